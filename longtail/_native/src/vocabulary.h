// Joins terms found in blocks of texts, each with its own numbers, into one vocabulary.
#pragma once

#include "analyse.h"
#include "term_rows.h"

namespace longtail {

// Kinds of terms: n-grams of 1, 2, … kMostWords words, then character n-grams. A word is identified by its string, a
// longer n-gram by the numbers of the n-gram before its last word and of that word.
constexpr int kGrams = kMostWords, kKinds = kMostWords + 1;
constexpr int kKindShift = 29;
static_assert(kKinds <= 8, "a kind has three bits");

// The terms of one block, numbered in order of appearance.
struct Found {
    using Node = int32_t;
    StringMap words, grams;
    PairMap longer[kMostWords - 1];

    Node word(std::string_view text, uint64_t tag) { return static_cast<Node>(words.insert(text, tag)); }
    Node extend(Node prefix, Node word, int size) {
        return static_cast<Node>(longer[size - 2].insert(PairMap::pair(prefix, word)));
    }
    int64_t term(Node node, int size) const { return static_cast<int64_t>(size - 1) << kKindShift | node; }
    int64_t gram(std::string_view text) {
        return static_cast<int64_t>(kGrams) << kKindShift | grams.insert(text);
    }
    int64_t size(int kind) const {
        return kind == 0 ? words.size() : kind == kGrams ? grams.size() : longer[kind - 1].size();
    }
};

struct Block {
    Found found;
    std::vector<int32_t> texts[kKinds];    // in how many texts each term occurs
    std::vector<uint32_t> totals[kKinds];  // and how often in total
    std::vector<int32_t> number[kKinds];   // the term's number among all of its kind; finally its number in the vocabulary, or −1

    // Adds the counts of a text.
    void add(const Count* counts, int64_t size) {
        for (int k = 0; k < kKinds; k++) {
            texts[k].resize(found.size(k), 0);
            totals[k].resize(found.size(k), 0);
        }
        for (int64_t i = 0; i < size; i++) {
            const uint32_t kind = id_of(counts[i]) >> kKindShift, id = id_of(counts[i]) & ((1u << kKindShift) - 1);
            texts[kind][id]++;
            totals[kind][id] += times_of(counts[i]);
        }
    }
    // All texts are counted: frees the memory used for finding terms.
    void close() {
        found.words.seal();
        found.grams.seal();
        for (PairMap& map : found.longer) map.seal();
    }
};

struct Vocabulary {
    std::vector<uint8_t> data;
    std::vector<int64_t> offsets{0}, texts_with;
    int64_t words = 0;  // terms before this one are words, the others are characters
};

// Terms in at least `min_texts` and at most `max_texts` texts; at most `limit` words and `limit` character n-grams, the
// most frequent (ties by the term itself; −1: all). Words first, then characters, both sorted by their bytes. The
// blocks get the final numbers.
Vocabulary join_blocks(std::vector<Block>& blocks, const Terms& terms, int64_t min_texts, int64_t max_texts,
                       int64_t limit);

}  // namespace longtail
