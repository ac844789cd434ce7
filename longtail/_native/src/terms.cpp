// Texts to term counts: tokens, n-grams, vocabulary. Blocks of texts are counted on their own, then joined in
// order, so the outcome is the same for any number of threads.
#include "common.h"
#include "string_map.h"
#include "text.h"
#include "unicode.h"

namespace longtail {
namespace {

constexpr int64_t kBlock = 256;  // texts counted together
constexpr int kShards = 32;      // parts of the vocabulary joined at the same time

// Calls term(string_view) for each term of a text: word n-grams of `least` to `most` words. A word is a run of at
// least two word characters, lower-cased. In scripts written without spaces every character and every pair of
// neighbours is a word of its own.
class Analyser {
public:
    Analyser(int least, int most) : least_(least), most_(most), kinds_(kind_table()), lowers_(lower_table()) {}

    int64_t unspaced = 0;  // characters seen in such scripts
    int64_t words = 0;     // other words seen

    template <typename Term>
    void run(const uint8_t* p, const uint8_t* end, Term term) {
        words_.clear();
        text_.clear();
        while (p < end) {
            const uint32_t code = next_code(p, end);
            const uint8_t kind = kinds_[code] & kLetterMask;
            if (kind == kWord) {
                p = word(p, end, code);
            } else if (kind == kUnspaced) {
                p = characters(p, end, code);
            }
        }
        emit(term);
    }

private:
    int least_, most_;
    const uint8_t* kinds_;
    const uint32_t* lowers_;
    std::string text_;                             // the words, lower-cased, each followed by a blank
    std::vector<std::pair<size_t, size_t>> words_;  // where each stands in text_
    std::string pair_;

    uint32_t lower(uint32_t code) const { return code < kCasedCodes ? lowers_[code] : code; }

    const uint8_t* word(const uint8_t* p, const uint8_t* end, uint32_t code) {
        const size_t start = text_.size();
        int length = 1;
        append_utf8(text_, lower(code));
        while (p < end) {
            const uint8_t* next = p;
            code = next_code(next, end);
            if ((kinds_[code] & kLetterMask) != kWord) break;
            append_utf8(text_, lower(code));
            length++;
            p = next;
        }
        if (length >= 2) {
            close(start);
            words++;
        } else {
            text_.resize(start);
        }
        return p;
    }

    const uint8_t* characters(const uint8_t* p, const uint8_t* end, uint32_t code) {
        size_t last = 0, last_length = 0;
        for (;;) {
            const size_t start = text_.size();
            append_utf8(text_, lower(code));
            const size_t length = text_.size() - start;
            close(start);
            unspaced++;
            if (last_length) {
                pair_.assign(text_, last, last_length);
                pair_.append(text_, start, length);
                const size_t at = text_.size();
                text_ += pair_;
                close(at);
            }
            last = start;
            last_length = length;
            const uint8_t* next = p;
            if (p >= end || (kinds_[code = next_code(next, end)] & kLetterMask) != kUnspaced) return p;
            p = next;
        }
    }

    void close(size_t start) {
        words_.emplace_back(start, text_.size());
        text_.push_back(' ');
    }

    template <typename Term>
    void emit(Term& term) const {
        const size_t n = words_.size();
        for (size_t i = 0; i < n; i++)
            for (int size = least_; size <= most_ && i + size <= n; size++) {
                const size_t start = words_[i].first, stop = words_[i + size - 1].second;
                term(std::string_view(text_.data() + start, stop - start));
            }
    }
};

struct Count {
    int32_t term, count;
};

// Counts of one text at a time: how often each number was seen, in order of first appearance.
class Counter {
public:
    void add(int64_t id) {
        if (id >= static_cast<int64_t>(place_.size())) place_.resize(std::max<size_t>(id + 1, place_.size() * 2), -1);
        if (place_[id] < 0) {
            place_[id] = static_cast<int32_t>(counts.size());
            counts.push_back({static_cast<int32_t>(id), 0});
        }
        counts[place_[id]].count++;
    }
    void clear() {
        for (const Count& c : counts) place_[c.term] = -1;
        counts.clear();
    }
    std::vector<Count> counts;

private:
    std::vector<int32_t> place_;
};

struct Block {
    StringMap terms;
    std::vector<Count> counts;
    std::vector<int64_t> row_ends;
    std::vector<int32_t> texts_with;  // of each term
    std::vector<int32_t> final_id;    // of each term, −1 if it is dropped; empty: terms have their final numbers
    int32_t final_term(int32_t term) const { return final_id.empty() ? term : final_id[term]; }
    int64_t unspaced = 0, words = 0;
};

struct Shard {
    StringMap terms;
    std::vector<int64_t> texts_with;
};

int shard_of(uint64_t hash) { return static_cast<int>(hash >> 59); }  // the top five bits
static_assert(kShards == 32, "shard_of takes five bits");

void count_block(Block& block, Analyser& analyser, const uint8_t* data, const int64_t* cut, int64_t first, int64_t last) {
    Counter counter;
    for (int64_t row = first; row < last; row++) {
        analyser.run(data + cut[row], data + cut[row + 1],
                     [&](std::string_view term) { counter.add(block.terms.insert(term, hash_string(term))); });
        block.texts_with.resize(block.terms.size(), 0);
        for (const Count& c : counter.counts) block.texts_with[c.term]++;
        block.counts.insert(block.counts.end(), counter.counts.begin(), counter.counts.end());
        block.row_ends.push_back(block.counts.size());
        counter.clear();
    }
    block.unspaced = analyser.unspaced;
    block.words = analyser.words;
}

// The vocabulary: terms in at least `min_texts` and at most `max_texts` texts, the `limit` most common of these
// (ties by the term itself), sorted by their bytes.
struct Vocabulary {
    std::vector<uint8_t> data;
    std::vector<int64_t> offsets{0}, texts_with;
};

Vocabulary join_blocks(std::vector<Block>& blocks, int64_t min_texts, int64_t max_texts, int64_t limit) {
    std::vector<Shard> shards(kShards);
    parallel_for(kShards, 1, [&](int64_t s) {
        Shard& shard = shards[s];
        for (Block& block : blocks)
            for (int64_t id = 0; id < block.terms.size(); id++)
                if (shard_of(block.terms.hash(id)) == s) {
                    const int64_t at = shard.terms.insert(block.terms[id], block.terms.hash(id));
                    if (at == static_cast<int64_t>(shard.texts_with.size())) shard.texts_with.push_back(0);
                    shard.texts_with[at] += block.texts_with[id];
                }
    });
    struct Kept {
        std::string_view term;
        int64_t texts;
        int32_t shard, id;
    };
    std::vector<Kept> kept;
    for (int s = 0; s < kShards; s++)
        for (int64_t id = 0; id < shards[s].terms.size(); id++) {
            const int64_t texts = shards[s].texts_with[id];
            if (texts >= min_texts && texts <= max_texts)
                kept.push_back({shards[s].terms[id], texts, s, static_cast<int32_t>(id)});
        }
    if (limit >= 0 && static_cast<int64_t>(kept.size()) > limit) {
        std::sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) {
            return a.texts > b.texts || (a.texts == b.texts && a.term < b.term);
        });
        kept.resize(limit);
    }
    std::sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) { return a.term < b.term; });
    Vocabulary vocabulary;
    std::vector<std::vector<int32_t>> final_id(kShards);
    for (int s = 0; s < kShards; s++) final_id[s].assign(shards[s].terms.size(), -1);
    for (size_t i = 0; i < kept.size(); i++) {
        vocabulary.data.insert(vocabulary.data.end(), kept[i].term.begin(), kept[i].term.end());
        vocabulary.offsets.push_back(vocabulary.data.size());
        vocabulary.texts_with.push_back(kept[i].texts);
        final_id[kept[i].shard][kept[i].id] = static_cast<int32_t>(i);
    }
    parallel_for(static_cast<int64_t>(blocks.size()), 1, [&](int64_t b) {
        Block& block = blocks[b];
        block.final_id.resize(block.terms.size());
        for (int64_t id = 0; id < block.terms.size(); id++) {
            const int s = shard_of(block.terms.hash(id));
            block.final_id[id] = final_id[s][shards[s].terms.find(block.terms[id], block.terms.hash(id))];
        }
    });
    return vocabulary;
}

// The counts of all blocks as CSR arrays over final term numbers, sorted within rows.
nb::tuple write_counts(std::vector<Block>& blocks, int64_t n) {
    auto indptr = new_numpy<int64_t>({size_t(n + 1)});
    int64_t* ptr = indptr.data();
    ptr[0] = 0;
    int64_t row = 0;
    {
        nb::gil_scoped_release nogil;
        for (Block& block : blocks) {
            int64_t at = 0;
            for (int64_t end : block.row_ends) {
                int64_t kept = 0;
                for (; at < end; at++) kept += block.final_term(block.counts[at].term) >= 0;
                ptr[row + 1] = ptr[row] + kept;
                row++;
            }
        }
    }
    auto indices = new_numpy<int32_t>({size_t(ptr[n])});
    auto counts = new_numpy<float>({size_t(ptr[n])});
    int32_t* index_out = indices.data();
    float* count_out = counts.data();
    {
        nb::gil_scoped_release nogil;
        parallel_for(static_cast<int64_t>(blocks.size()), 1, [&](int64_t b) {
            Block& block = blocks[b];
            std::vector<Count> entries;
            int64_t at = 0;
            for (size_t r = 0; r < block.row_ends.size(); r++) {
                entries.clear();
                for (; at < block.row_ends[r]; at++) {
                    const int32_t term = block.final_term(block.counts[at].term);
                    if (term >= 0) entries.push_back({term, block.counts[at].count});
                }
                std::sort(entries.begin(), entries.end(), [](const Count& a, const Count& b) { return a.term < b.term; });
                int64_t out = ptr[b * kBlock + r];
                for (const Count& entry : entries) {
                    index_out[out] = entry.term;
                    count_out[out++] = static_cast<float>(entry.count);
                }
            }
            block = Block();
        });
    }
    return nb::make_tuple(indptr, indices, counts);
}

nb::tuple fit_terms(In<uint8_t> data, In<int64_t> offsets, int least, int most, int64_t min_texts, int64_t max_texts,
                    int64_t limit) {
    const int64_t n = check_offsets(data, offsets);
    std::vector<Block> blocks((n + kBlock - 1) / kBlock);
    Vocabulary vocabulary;
    {
        nb::gil_scoped_release nogil;
        parallel_for(static_cast<int64_t>(blocks.size()), 1, [&](int64_t b) {
            Analyser analyser(least, most);
            count_block(blocks[b], analyser, data.data(), offsets.data(), b * kBlock, std::min(n, (b + 1) * kBlock));
        });
        vocabulary = join_blocks(blocks, min_texts, max_texts, limit);
    }
    int64_t unspaced = 0, words = 0;
    for (const Block& block : blocks) unspaced += block.unspaced, words += block.words;
    nb::tuple counts = write_counts(blocks, n);
    return nb::make_tuple(to_numpy(std::move(vocabulary.data)), to_numpy(std::move(vocabulary.offsets)),
                          to_numpy(std::move(vocabulary.texts_with)), counts, unspaced, words);
}

// A fixed vocabulary, ready to count texts with.
class TermIndex {
public:
    TermIndex(In<uint8_t> data, In<int64_t> offsets, int least, int most) : least_(least), most_(most) {
        const int64_t n = check_offsets(data, offsets);
        const char* base = reinterpret_cast<const char*>(data.data());
        for (int64_t i = 0; i < n; i++) {
            const std::string_view term(base + offsets.data()[i], offsets.data()[i + 1] - offsets.data()[i]);
            check(terms_.insert(term, hash_string(term)) == i, "a term stands twice in the vocabulary");
        }
    }

    nb::tuple count(In<uint8_t> data, In<int64_t> offsets) const {
        const int64_t n = check_offsets(data, offsets);
        std::vector<Block> blocks((n + kBlock - 1) / kBlock);
        {
            nb::gil_scoped_release nogil;
            parallel_for(static_cast<int64_t>(blocks.size()), 1, [&](int64_t b) {
                Analyser analyser(least_, most_);
                Counter counter;
                Block& block = blocks[b];
                for (int64_t row = b * kBlock; row < std::min(n, (b + 1) * kBlock); row++) {
                    analyser.run(data.data() + offsets.data()[row], data.data() + offsets.data()[row + 1],
                                 [&](std::string_view term) {
                                     const int64_t id = terms_.find(term);
                                     if (id >= 0) counter.add(id);
                                 });
                    block.counts.insert(block.counts.end(), counter.counts.begin(), counter.counts.end());
                    block.row_ends.push_back(block.counts.size());
                    counter.clear();
                }
            });
        }
        return write_counts(blocks, n);
    }

private:
    int least_, most_;
    StringMap terms_;
};

}  // namespace

void bind_terms(nb::module_& m) {
    m.def("fit_terms", &fit_terms);
    nb::class_<TermIndex>(m, "TermIndex")
        .def(nb::init<In<uint8_t>, In<int64_t>, int, int>())
        .def("count", &TermIndex::count);
}

}  // namespace longtail
