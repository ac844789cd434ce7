// From texts to numbered terms: word n-grams and character n-grams. The source decides the number of a term: a
// vocabulary being built, a finished one, or a hash.
#pragma once

#include "common.h"
#include "counter.h"
#include "cut.h"
#include "string_map.h"

namespace longtail {

constexpr int kMostWords = 5;  // in an n-gram

// What counts as a term. `most` 0: no words; `char_most` 0: no characters. `within`: character n-grams stay inside
// pieces between white space, with a blank added on either side.
struct Terms {
    int least, most, char_least, char_most;
    bool within;
};

inline Terms make_terms(int least, int most, int char_least, int char_most, bool within) {
    check(most == 0 || (least >= 1 && least <= most && most <= kMostWords), "terms: word n-grams out of range");
    check(char_most == 0 || (char_least >= 1 && char_least <= char_most), "terms: character n-grams out of range");
    check(most || char_most, "terms: neither words nor characters");
    return {least, most, char_least, char_most, within};
}

// A source has
//   Node word(string_view, tag)               a word
//   Node extend(Node prefix, Node word, size) the n-gram of `size` words that ends with this word
//   int64_t term(Node, size)                  the number of an n-gram, −1 if it is not wanted
//   int64_t gram(string_view)                 the number of a character n-gram, −1 if it is not wanted
template <typename Source>
class Analyser {
public:
    Analyser(const Terms& terms, Source& source) : terms_(terms), source_(source) {}

    int64_t unspaced() const { return words_.unspaced; }
    int64_t words() const { return words_.words; }

    // Counts the terms of a text.
    void run(const uint8_t* p, const uint8_t* end, Counter& counter) {
        if (terms_.most) word_grams(p, end, counter);
        if (!terms_.char_most) return;
        if (terms_.within) {
            cut_at_blanks(p, end, stretch_, [&](const Stretch& s) { pieces_.add(piece(s), 1); });
            pieces_.empty([&](Count count) {
                const int64_t id = id_of(count);
                for (int64_t i = piece_ends_[id]; i < piece_ends_[id + 1]; i++)
                    counter.add(piece_grams_[i], times_of(count));
            });
        } else {
            whole_text(p, end, stretch_);
            const size_t size = stretch_.size();
            for (size_t n = terms_.char_least; n <= static_cast<size_t>(terms_.char_most) && n <= size; n++)
                for (size_t first = 0; first + n <= size; first++) {
                    const int64_t id = source_.gram(stretch_.part(first, n));
                    if (id >= 0) counter.add(static_cast<uint32_t>(id), 1);
                }
        }
    }

private:
    using Node = typename Source::Node;
    Terms terms_;
    Source& source_;
    WordCutter words_;
    Stretch stretch_;
    // Words are repeated often: the n-grams of each distinct word are found only once.
    StringMap known_;
    std::vector<uint32_t> piece_grams_;
    std::vector<int64_t> piece_ends_{0};
    Counter pieces_;

    void word_grams(const uint8_t* p, const uint8_t* end, Counter& counter) {
        Node before[kMostWords + 1] = {};  // before[n]: the n-gram that ends at the word before
        int64_t seen = 0;
        words_.run(p, end, [&](std::string_view text, uint64_t tag) {
            const Node word = source_.word(text, tag);
            const int longest = static_cast<int>(std::min<int64_t>(terms_.most, ++seen));
            for (int size = longest; size >= 1; size--) {
                const Node node = size == 1 ? word : source_.extend(before[size - 1], word, size);
                before[size] = node;
                if (size < terms_.least) continue;
                const int64_t id = source_.term(node, size);
                if (id >= 0) counter.add(static_cast<uint32_t>(id), 1);
            }
        });
    }

    // The number of a piece between blanks; new pieces are split into n-grams. A piece that is too short is one term.
    uint32_t piece(const Stretch& stretch) {
        const int64_t id = known_.insert(stretch.text);
        if (id + 1 < static_cast<int64_t>(piece_ends_.size())) return static_cast<uint32_t>(id);
        const size_t size = stretch.size();
        for (size_t n = terms_.char_least; n <= static_cast<size_t>(terms_.char_most); n++) {
            const size_t width = std::min(n, size);
            for (size_t first = 0; first + width <= size; first++) {
                const int64_t gram = source_.gram(stretch.part(first, width));
                if (gram >= 0) piece_grams_.push_back(static_cast<uint32_t>(gram));
            }
            if (n >= size) break;
        }
        piece_ends_.push_back(static_cast<int64_t>(piece_grams_.size()));
        return static_cast<uint32_t>(id);
    }
};

}  // namespace longtail
