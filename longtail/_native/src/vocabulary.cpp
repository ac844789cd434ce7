#include "vocabulary.h"

namespace longtail {
namespace {

constexpr int kShards = 32;  // parts of the terms that are joined in parallel
constexpr int64_t kMostTerms = int64_t(1) << 31;

int shard_of(uint64_t hash) { return static_cast<int>(hash >> 59); }
static_assert(kShards == 32, "shard_of takes five bits");

// All terms of one kind.
struct Kind {
    std::vector<StringMap> owners;          // owners of the bytes that `strings` point to
    std::vector<std::string_view> strings;  // words and characters
    std::vector<uint64_t> pairs;            // longer n-grams
    std::vector<int64_t> texts, totals;
    std::vector<uint8_t> wanted;  // 1: a term of the vocabulary; 2: the start or end of one
    std::vector<int32_t> place;   // among the wanted terms, in order
    int64_t size() const { return static_cast<int64_t>(texts.size()); }
};

uint64_t hash_key(std::string_view key) { return hash_string(key); }
uint64_t hash_key(uint64_t key) { return scramble(key); }
std::vector<std::string_view>& keys_of(Kind& kind, const std::vector<StringMap>&) { return kind.strings; }
std::vector<uint64_t>& keys_of(Kind& kind, const std::vector<PairMap>&) { return kind.pairs; }

// Joins the terms of one kind: key(block, id) identifies a term.
template <typename Map, typename Key>
void join_kind(std::vector<Block>& blocks, int k, Kind& kind, Key key) {
    const int64_t n = static_cast<int64_t>(blocks.size());
    std::vector<std::vector<int32_t>> order(n);  // the terms of each block by shard
    std::vector<std::vector<int64_t>> starts(n);
    parallel_for(n, 1, [&](int64_t b) {
        const int64_t size = blocks[b].found.size(k);
        std::vector<uint8_t> shard(size);
        starts[b].assign(kShards + 1, 0);
        for (int64_t id = 0; id < size; id++) {
            shard[id] = static_cast<uint8_t>(shard_of(hash_key(key(blocks[b], id))));
            starts[b][shard[id] + 1]++;
        }
        for (int s = 0; s < kShards; s++) starts[b][s + 1] += starts[b][s];
        std::vector<int64_t> at(starts[b].begin(), starts[b].end() - 1);
        order[b].resize(size);
        for (int64_t id = 0; id < size; id++) order[b][at[shard[id]]++] = static_cast<int32_t>(id);
        blocks[b].number[k].resize(size);
    });
    std::vector<Map> maps(kShards);
    std::vector<std::vector<int64_t>> texts(kShards), totals(kShards);
    parallel_for(kShards, 1, [&](int64_t s) {
        for (int64_t b = 0; b < n; b++)
            for (int64_t i = starts[b][s]; i < starts[b][s + 1]; i++) {
                const int32_t id = order[b][i];
                const int64_t at = maps[s].insert(key(blocks[b], id));
                if (at == static_cast<int64_t>(texts[s].size())) texts[s].push_back(0), totals[s].push_back(0);
                texts[s][at] += blocks[b].texts[k][id];
                totals[s][at] += blocks[b].totals[k][id];
                blocks[b].number[k][id] = static_cast<int32_t>(at);
            }
    });
    std::vector<int64_t> base(kShards + 1, 0);
    for (int s = 0; s < kShards; s++) base[s + 1] = base[s] + maps[s].size();
    check(base[kShards] < kMostTerms, "terms: more than 2^31 different ones; shorter n-grams or hashing have fewer");
    kind.texts.resize(base[kShards]);
    kind.totals.resize(base[kShards]);
    auto& keys = keys_of(kind, maps);
    keys.resize(base[kShards]);
    parallel_for(kShards, 1, [&](int64_t s) {
        std::copy(texts[s].begin(), texts[s].end(), kind.texts.begin() + base[s]);
        std::copy(totals[s].begin(), totals[s].end(), kind.totals.begin() + base[s]);
        maps[s].seal();
        for (int64_t id = 0; id < maps[s].size(); id++) keys[base[s] + id] = maps[s][id];
    });
    parallel_for(n, 1, [&](int64_t b) {
        for (int s = 0; s < kShards; s++)
            for (int64_t i = starts[b][s]; i < starts[b][s + 1]; i++)
                blocks[b].number[k][order[b][i]] += static_cast<int32_t>(base[s]);
    });
    if constexpr (std::is_same_v<Map, StringMap>) kind.owners = std::move(maps);
}

int64_t first_of(uint64_t pair) { return static_cast<int64_t>(pair >> 32); }
int64_t second_of(uint64_t pair) { return static_cast<int64_t>(pair & 0xFFFFFFFFu); }

// Strings sorted by their bytes. The first eight bytes, as one number, decide most comparisons.
void sort_strings(std::vector<int32_t>& ids, const std::vector<std::string_view>& strings) {
    struct Entry {
        uint64_t head;
        int32_t id;
    };
    std::vector<Entry> entries;
    entries.reserve(ids.size());
    for (const int32_t id : ids) {
        uint64_t head = 0;
        for (size_t i = 0; i < 8; i++)
            head = head << 8 | (i < strings[id].size() ? static_cast<uint8_t>(strings[id][i]) : 0);
        entries.push_back({head, id});
    }
    std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
        return a.head != b.head ? a.head < b.head : strings[a.id] < strings[b.id];
    });
    for (size_t i = 0; i < ids.size(); i++) ids[i] = entries[i].id;
}

struct Term {
    int32_t kind, id;
};

// The wanted word n-grams in the order of their bytes. A blank sorts before all word characters, so this is the order of
// their words, and an n-gram comes before those that start with it: a walk through the tree of n-grams.
class WordOrder {
public:
    WordOrder(std::vector<Kind>& kinds, int most) : kinds_(kinds), order_(most), children_(most) {
        for (int k = most - 1; k > 0; k--)
            for (int64_t id = 0; id < kinds[k].size(); id++)
                if (kinds[k].wanted[id]) {
                    kinds[k - 1].wanted[first_of(kinds[k].pairs[id])] |= 2;
                    kinds[0].wanted[second_of(kinds[k].pairs[id])] |= 2;
                }
        for (int k = 0; k < most; k++) {
            order_[k] = wanted(kinds[k]);
            if (k == 0) sort_strings(order_[0], kinds[0].strings);
            else sort_level(k);
            kinds[k].place.resize(kinds[k].size());
            for (size_t i = 0; i < order_[k].size(); i++) kinds[k].place[order_[k][i]] = static_cast<int32_t>(i);
        }
    }

    std::vector<Term> walk() {
        std::vector<Term> found;
        for (size_t i = 0; i < order_[0].size(); i++) visit(0, static_cast<int64_t>(i), found);
        return found;
    }

    static std::vector<int32_t> wanted(const Kind& kind) {
        std::vector<int32_t> ids;
        for (int64_t id = 0; id < kind.size(); id++)
            if (kind.wanted[id]) ids.push_back(static_cast<int32_t>(id));
        return ids;
    }

private:
    std::vector<Kind>& kinds_;
    std::vector<std::vector<int32_t>> order_;     // of each level
    std::vector<std::vector<int64_t>> children_;  // for each level: where in the next level the children of a place start

    // Sorts by the place of the n-gram before the last word, then by the place of the word.
    void sort_level(int k) {
        const std::vector<uint64_t>& pairs = kinds_[k].pairs;
        const std::vector<int32_t>&parents = kinds_[k - 1].place, &words = kinds_[0].place;
        std::vector<int64_t>& starts = children_[k - 1];
        starts.assign(order_[k - 1].size() + 1, 0);
        for (const int32_t id : order_[k]) starts[parents[first_of(pairs[id])] + 1]++;
        for (size_t i = 1; i < starts.size(); i++) starts[i] += starts[i - 1];
        std::vector<int64_t> at(starts);
        std::vector<int32_t> sorted(order_[k].size());
        for (const int32_t id : order_[k]) sorted[at[parents[first_of(pairs[id])]]++] = id;
        parallel_for(static_cast<int64_t>(starts.size()) - 1, 1024, [&](int64_t i) {
            std::sort(sorted.begin() + starts[i], sorted.begin() + starts[i + 1], [&](int32_t a, int32_t b) {
                return words[second_of(pairs[a])] < words[second_of(pairs[b])];
            });
        });
        order_[k].swap(sorted);
    }

    void visit(int k, int64_t place, std::vector<Term>& found) const {
        const int32_t id = order_[k][place];
        if (kinds_[k].wanted[id] & 1) found.push_back({k, id});
        if (children_[k].empty()) return;
        for (int64_t i = children_[k][place]; i < children_[k][place + 1]; i++) visit(k + 1, i, found);
    }
};

// The `limit` terms with the largest totals, in their order; of equal ones the first.
void keep_most_frequent(std::vector<Term>& found, const std::vector<Kind>& kinds, int64_t limit) {
    if (limit < 0 || static_cast<int64_t>(found.size()) <= limit) return;
    const auto total = [&](const Term& term) { return kinds[term.kind].totals[term.id]; };
    std::vector<int64_t> totals;
    for (const Term& term : found) totals.push_back(total(term));
    std::nth_element(totals.begin(), totals.begin() + limit - 1, totals.end(), std::greater<int64_t>());
    const int64_t least = totals[limit - 1];
    int64_t equal = limit;  // how many terms with exactly the smallest total fit
    for (const Term& term : found) equal -= total(term) > least;
    std::vector<Term> kept;
    for (const Term& term : found)
        if (total(term) > least || (total(term) == least && equal-- > 0)) kept.push_back(term);
    found.swap(kept);
}

void append_term(std::vector<uint8_t>& out, const std::vector<Kind>& kinds, const Term& term) {
    if (term.kind > 0 && term.kind < kGrams) {
        const uint64_t pair = kinds[term.kind].pairs[term.id];
        append_term(out, kinds, {term.kind - 1, static_cast<int32_t>(first_of(pair))});
        out.push_back(' ');
        append_term(out, kinds, {0, static_cast<int32_t>(second_of(pair))});
    } else {
        const std::string_view text = kinds[term.kind].strings[term.id];
        out.insert(out.end(), text.begin(), text.end());
    }
}

}  // namespace

Vocabulary join_blocks(std::vector<Block>& blocks, const Terms& terms, int64_t min_texts, int64_t max_texts,
                       int64_t limit) {
    std::vector<Kind> kinds(kKinds);
    if (terms.most)
        join_kind<StringMap>(blocks, 0, kinds[0],
                             [](const Block& block, int64_t id) { return block.found.words[id]; });
    for (int k = 1; k < terms.most; k++)
        join_kind<PairMap>(blocks, k, kinds[k], [k](const Block& block, int64_t id) {
            const uint64_t pair = block.found.longer[k - 1][id];
            return PairMap::pair(block.number[k - 1][first_of(pair)], block.number[0][second_of(pair)]);
        });
    if (terms.char_most)
        join_kind<StringMap>(blocks, kGrams, kinds[kGrams],
                             [](const Block& block, int64_t id) { return block.found.grams[id]; });
    for (int k = 0; k < kKinds; k++) {
        kinds[k].wanted.assign(kinds[k].size(), 0);
        if (k + 1 < terms.least) continue;
        for (int64_t id = 0; id < kinds[k].size(); id++)
            kinds[k].wanted[id] = kinds[k].texts[id] >= min_texts && kinds[k].texts[id] <= max_texts;
    }
    std::vector<Term> found;
    if (terms.most) found = WordOrder(kinds, terms.most).walk();
    keep_most_frequent(found, kinds, limit);
    Vocabulary vocabulary;
    vocabulary.words = static_cast<int64_t>(found.size());
    std::vector<int32_t> grams = WordOrder::wanted(kinds[kGrams]);
    sort_strings(grams, kinds[kGrams].strings);
    std::vector<Term> characters;
    for (const int32_t id : grams) characters.push_back({kGrams, id});
    keep_most_frequent(characters, kinds, limit);
    found.insert(found.end(), characters.begin(), characters.end());
    for (Kind& kind : kinds) kind.place.assign(kind.size(), -1);
    for (size_t i = 0; i < found.size(); i++) {
        append_term(vocabulary.data, kinds, found[i]);
        vocabulary.offsets.push_back(static_cast<int64_t>(vocabulary.data.size()));
        vocabulary.texts_with.push_back(kinds[found[i].kind].texts[found[i].id]);
        kinds[found[i].kind].place[found[i].id] = static_cast<int32_t>(i);
    }
    parallel_for(static_cast<int64_t>(blocks.size()), 1, [&](int64_t b) {
        for (int k = 0; k < kKinds; k++)
            for (int32_t& number : blocks[b].number[k]) number = kinds[k].place[number];
        blocks[b].found = Found();
    });
    return vocabulary;
}

}  // namespace longtail
