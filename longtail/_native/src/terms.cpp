// From texts to term counts: with a vocabulary built from them, with a finished one, or with hashed terms.
#include "text.h"
#include "vocabulary.h"
#include "weigh.h"

#include <atomic>
#include <numeric>

namespace longtail {
namespace {

constexpr int64_t kFitBytes = 1 << 20;    // size of the texts in a block with its own vocabulary
constexpr int64_t kCountBytes = 1 << 18;  // size of the texts in a block that is only counted

// Counts the terms of the texts first … last − 1.
template <typename Source, typename Row>
void count_texts(Analyser<Source>& analyser, const SpelledTexts& texts, int64_t first, int64_t last, Rows& rows,
                 Row row) {
    Counter counter;
    texts.each(first, last, [&](const uint8_t* p, const uint8_t* end) {
        analyser.run(p, end, counter);
        const size_t start = rows.counts.size();
        counter.empty([&](Count count) { rows.counts.push_back(count); });
        rows.ends.push_back(static_cast<int64_t>(rows.counts.size()));
        row(rows.counts.data() + start, static_cast<int64_t>(rows.counts.size() - start));
    });
}

int64_t sum(const std::vector<int64_t>& counts) { return std::accumulate(counts.begin(), counts.end(), int64_t(0)); }

nb::tuple fit_terms(In<uint8_t> data, In<int64_t> offsets, In<int64_t> spelled, In<uint8_t> new_data,
                    In<int64_t> new_offsets, int least, int most, int char_least, int char_most, bool within,
                    int64_t min_texts, int64_t max_texts, int64_t limit) {
    const SpelledTexts texts(data, offsets, spelled, new_data, new_offsets);
    const int64_t n = texts.size();
    const Terms terms = make_terms(least, most, char_least, char_most, within);
    const std::vector<int64_t> starts = cut_blocks(texts.offsets(), n, kFitBytes);
    std::vector<Block> blocks(starts.size() - 1);
    std::vector<Rows> rows(blocks.size());
    std::vector<int64_t> unspaced(blocks.size()), words(blocks.size());
    Vocabulary vocabulary;
    {
        nb::gil_scoped_release nogil;
        parallel_for(static_cast<int64_t>(blocks.size()), 1, [&](int64_t b) {
            Block& block = blocks[b];
            Analyser<Found> analyser(terms, block.found);
            count_texts(analyser, texts, starts[b], starts[b + 1], rows[b],
                        [&](const Count* counts, int64_t size) { block.add(counts, size); });
            block.close();
            unspaced[b] = analyser.unspaced();
            words[b] = analyser.words();
        });
        vocabulary = join_blocks(blocks, terms, min_texts, max_texts, limit);
        parallel_for(static_cast<int64_t>(blocks.size()), 1, [&](int64_t b) {
            constexpr uint32_t mask = (1u << kKindShift) - 1;
            renumber(rows[b], [&](uint32_t id) { return blocks[b].number[id >> kKindShift][id & mask]; });
            sort_rows(rows[b], vocabulary.texts_with.size());
            blocks[b] = Block();
        });
    }
    const CsrArrays counts = write_rows(rows, n);
    return nb::make_tuple(to_numpy(std::move(vocabulary.data)), to_numpy(std::move(vocabulary.offsets)),
                          to_numpy(std::move(vocabulary.texts_with)), vocabulary.words, counts.tuple(), sum(unspaced),
                          sum(words));
}

// A term's number is its hash, reduced to the number of buckets: the same on every machine.
struct Hashed {
    using Node = uint64_t;
    uint64_t buckets;
    const uint8_t* kept = nullptr;  // one flag per bucket; null: all are kept

    Node word(std::string_view text, uint64_t tag) const { return hash_tag(tag, text.size()); }
    Node extend(Node prefix, Node word, int) const { return scramble(prefix + 0x9E3779B97F4A7C15ull) ^ word; }
    int64_t term(Node node, int) const { return bucket(node); }
    int64_t gram(std::string_view text) const { return bucket(hash_string(text) ^ 0xD6E8FEB86659FD93ull); }

private:
    int64_t bucket(uint64_t hash) const {
        const int64_t at = static_cast<int64_t>((scramble(hash) >> 32) * buckets >> 32);
        return kept && !kept[at] ? -1 : at;
    }
};

void check_buckets(int64_t buckets) {
    check(buckets >= 1 && buckets < (int64_t(1) << 31), "terms: buckets out of range");
}

// In how many texts each bucket occurs (0 for dropped buckets), and the counts.
nb::tuple fit_hashed(In<uint8_t> data, In<int64_t> offsets, In<int64_t> spelled, In<uint8_t> new_data,
                     In<int64_t> new_offsets, int least, int most, int char_least, int char_most, bool within,
                     int64_t buckets, int64_t min_texts, int64_t max_texts) {
    const SpelledTexts texts(data, offsets, spelled, new_data, new_offsets);
    const int64_t n = texts.size();
    check_buckets(buckets);
    const Terms terms = make_terms(least, most, char_least, char_most, within);
    const std::vector<int64_t> starts = cut_blocks(texts.offsets(), n, kCountBytes);
    std::vector<Rows> rows(starts.size() - 1);
    std::vector<int64_t> unspaced(rows.size()), words(rows.size());
    auto texts_with = new_numpy<int64_t>({size_t(buckets)});
    int64_t* with = texts_with.data();
    {
        nb::gil_scoped_release nogil;
        std::vector<std::atomic<int32_t>> seen(buckets);  // sums of integers: the order does not matter
        parallel_for(static_cast<int64_t>(rows.size()), 1, [&](int64_t b) {
            Hashed source{static_cast<uint64_t>(buckets)};
            Analyser<Hashed> analyser(terms, source);
            count_texts(analyser, texts, starts[b], starts[b + 1], rows[b],
                        [&](const Count* counts, int64_t size) {
                            for (int64_t i = 0; i < size; i++)
                                seen[id_of(counts[i])].fetch_add(1, std::memory_order_relaxed);
                        });
            sort_rows(rows[b], buckets);
            unspaced[b] = analyser.unspaced();
            words[b] = analyser.words();
        });
        for (int64_t i = 0; i < buckets; i++) {
            const int64_t count = seen[i].load();
            with[i] = count >= min_texts && count <= max_texts ? count : 0;
        }
        parallel_for(static_cast<int64_t>(rows.size()), 1, [&](int64_t b) {
            renumber(rows[b], [&](uint32_t id) { return with[id] ? static_cast<int32_t>(id) : -1; });
        });
    }
    return nb::make_tuple(texts_with, write_rows(rows, n).tuple(), sum(unspaced), sum(words));
}

// A finished vocabulary: word n-grams as a tree, character n-grams as strings.
struct Known {
    using Node = int32_t;
    StringMap words, grams;
    PairMap longer[kMostWords - 1];
    std::vector<int32_t> term_of[kMostWords];  // of each n-gram; −1 if it is only the start or end of others
    int64_t first_gram = 0;

    Node word(std::string_view text, uint64_t tag) const { return static_cast<Node>(words.find(text, tag)); }
    Node extend(Node prefix, Node word, int size) const {
        return prefix < 0 || word < 0 ? -1 : static_cast<Node>(longer[size - 2].find(PairMap::pair(prefix, word)));
    }
    int64_t term(Node node, int size) const { return node < 0 ? -1 : term_of[size - 1][node]; }
    int64_t gram(std::string_view text) const {
        const int64_t id = grams.find(text);
        return id < 0 ? -1 : first_gram + id;
    }

    void add_words(std::string_view term, int32_t id) {
        Node node = -1;
        int size = 0;
        for (size_t start = 0, stop; start <= term.size(); start = stop + 1) {
            stop = std::min(term.find(' ', start), term.size());
            check(size < kMostWords, "terms: an n-gram of the vocabulary has too many words");
            const Node word = static_cast<Node>(words.insert(term.substr(start, stop - start)));
            if (word == static_cast<Node>(term_of[0].size())) term_of[0].push_back(-1);
            node = size == 0 ? word : static_cast<Node>(longer[size - 1].insert(PairMap::pair(node, word)));
            if (node == static_cast<Node>(term_of[size].size())) term_of[size].push_back(-1);
            size++;
        }
        check(term_of[size - 1][node] < 0, "a term stands twice in the vocabulary");
        term_of[size - 1][node] = id;
    }
    void add_gram(std::string_view term, int32_t id) {
        check(grams.insert(term) == id - first_gram, "a term stands twice in the vocabulary");
    }
};

// Counts of the terms of texts, or (with idf) rows of TF-IDF.
template <typename Source>
nb::tuple count_terms(const Terms& terms, const Source& source, int64_t bound, const SpelledTexts& texts,
                      const In<float>* idf = nullptr, bool sublinear = false) {
    const int64_t n = texts.size();
    check(!idf || static_cast<int64_t>(idf->shape(0)) == bound, "terms: idf is not of the vocabulary's size");
    const std::vector<int64_t> starts = cut_blocks(texts.offsets(), n, kCountBytes);
    std::vector<Rows> rows(starts.size() - 1);
    {
        nb::gil_scoped_release nogil;
        parallel_for(static_cast<int64_t>(rows.size()), 1, [&](int64_t b) {
            Analyser<const Source> analyser(terms, source);
            count_texts(analyser, texts, starts[b], starts[b + 1], rows[b],
                        [](const Count*, int64_t) {});
            sort_rows(rows[b], bound);
        });
    }
    CsrArrays counts = write_rows(rows, n);
    if (idf) {
        nb::gil_scoped_release nogil;
        weigh_rows(n, counts.indptr.data(), counts.indices.data(), counts.values.data(), idf->data(), sublinear,
                   counts.values.data());
    }
    return counts.tuple();
}

class TermIndex {
public:
    TermIndex(In<uint8_t> data, In<int64_t> offsets, int64_t words, int least, int most, int char_least, int char_most,
              bool within)
        : terms_(make_terms(least, most, char_least, char_most, within)), size_(check_offsets(data, offsets)) {
        check(words >= 0 && words <= size_, "terms: there are fewer terms than words");
        known_.first_gram = words;
        const char* base = reinterpret_cast<const char*>(data.data());
        const int64_t* cut = offsets.data();
        for (int64_t i = 0; i < size_; i++) {
            const std::string_view term(base + cut[i], cut[i + 1] - cut[i]);
            if (i < words) known_.add_words(term, static_cast<int32_t>(i));
            else known_.add_gram(term, static_cast<int32_t>(i));
        }
    }
    nb::tuple count(In<uint8_t> data, In<int64_t> offsets, In<int64_t> spelled, In<uint8_t> new_data,
                    In<int64_t> new_offsets) const {
        const SpelledTexts texts(data, offsets, spelled, new_data, new_offsets);
        return count_terms(terms_, known_, size_, texts);
    }
    nb::tuple encode(In<uint8_t> data, In<int64_t> offsets, In<int64_t> spelled, In<uint8_t> new_data,
                     In<int64_t> new_offsets, In<float> idf, bool sublinear) const {
        const SpelledTexts texts(data, offsets, spelled, new_data, new_offsets);
        return count_terms(terms_, known_, size_, texts, &idf, sublinear);
    }

private:
    Terms terms_;
    Known known_;
    int64_t size_;
};

class HashIndex {
public:
    HashIndex(In<uint8_t> kept, int least, int most, int char_least, int char_most, bool within)
        : terms_(make_terms(least, most, char_least, char_most, within)),
          kept_(kept.data(), kept.data() + kept.shape(0)) {
        check_buckets(static_cast<int64_t>(kept_.size()));
    }
    nb::tuple count(In<uint8_t> data, In<int64_t> offsets, In<int64_t> spelled, In<uint8_t> new_data,
                    In<int64_t> new_offsets) const {
        const SpelledTexts texts(data, offsets, spelled, new_data, new_offsets);
        return count_terms(terms_, source(), kept_.size(), texts);
    }
    nb::tuple encode(In<uint8_t> data, In<int64_t> offsets, In<int64_t> spelled, In<uint8_t> new_data,
                     In<int64_t> new_offsets, In<float> idf, bool sublinear) const {
        const SpelledTexts texts(data, offsets, spelled, new_data, new_offsets);
        return count_terms(terms_, source(), kept_.size(), texts, &idf, sublinear);
    }

private:
    Terms terms_;
    std::vector<uint8_t> kept_;
    Hashed source() const { return {kept_.size(), kept_.data()}; }
};

}  // namespace

void bind_terms(nb::module_& m) {
    m.def("fit_terms", &fit_terms);
    m.def("fit_hashed", &fit_hashed);
    nb::class_<TermIndex>(m, "TermIndex")
        .def(nb::init<In<uint8_t>, In<int64_t>, int64_t, int, int, int, int, bool>())
        .def("count", &TermIndex::count)
        .def("encode", &TermIndex::encode);
    nb::class_<HashIndex>(m, "HashIndex")
        .def(nb::init<In<uint8_t>, int, int, int, int, bool>())
        .def("count", &HashIndex::count)
        .def("encode", &HashIndex::encode);
}

}  // namespace longtail
