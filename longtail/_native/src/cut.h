// Cutting texts: to words, and to the stretches that character n-grams are taken from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unicode.h"

namespace longtail {

// ASCII bytes at a glance: lower-cased where they belong to a word, else kNoWord; lower-cased or kBlank.
constexpr uint8_t kNoWord = 0, kBlank = 0xFF, kNotAscii = 0xFE;
struct AsciiTable {
    uint8_t word[256], lower[256];
    AsciiTable() {
        for (int c = 0; c < 256; c++) {
            word[c] = c < 128 && (char_kind(c) & kLetterMask) ? static_cast<uint8_t>(char_lower(c)) : kNoWord;
            lower[c] = c >= 128 ? kNotAscii : char_kind(c) & kSpace ? kBlank : static_cast<uint8_t>(char_lower(c));
        }
    }
};
inline const AsciiTable& ascii_table() {
    static const AsciiTable made;
    return made;
}

// Calls word(string_view) for each word of a text, in order: runs of at least two word characters, lower-cased. In
// scripts written without spaces every character and every pair of neighbours is a word of its own.
class WordCutter {
public:
    int64_t unspaced = 0;  // characters seen in such scripts
    int64_t words = 0;     // other words seen

    template <typename Word>
    void run(const uint8_t* p, const uint8_t* end, Word word) {
        while (p < end) {
            if (ascii_.word[*p]) {
                p = one_word(p, end, word);
            } else if (*p < 0x80) {
                p++;
            } else {
                const uint8_t* start = p;
                const uint32_t code = next_code(p, end);
                const uint8_t kind = kinds_[code] & kLetterMask;
                if (kind == kWord) p = one_word(start, end, word);
                if (kind == kUnspaced) p = characters(p, end, code, word);
            }
        }
    }

private:
    const AsciiTable& ascii_ = ascii_table();
    const uint8_t* kinds_ = kind_table();
    std::string text_;

    template <typename Word>
    const uint8_t* one_word(const uint8_t* p, const uint8_t* end, Word& word) {
        const uint8_t* start = p;
        bool as_it_is = true;  // most words are in lower case: no need to copy them
        while (p < end && ascii_.word[*p]) as_it_is &= ascii_.word[*p] == *p, p++;
        if (p == end || *p < 0x80) {
            if (p - start < 2) return p;
            words++;
            if (as_it_is) {
                word(std::string_view(reinterpret_cast<const char*>(start), p - start));
                return p;
            }
            text_.resize(p - start);
            for (size_t i = 0; i < text_.size(); i++) text_[i] = static_cast<char>(ascii_.word[start[i]]);
            word(std::string_view(text_));
            return p;
        }
        text_.clear();
        int64_t length = 0;
        for (p = start; p < end; length++) {
            const uint8_t* next = p;
            const uint32_t code = next_code(next, end);
            if ((kinds_[code] & kLetterMask) != kWord) break;
            append_utf8(text_, char_lower(code));
            p = next;
        }
        if (length < 2) return p;
        words++;
        word(std::string_view(text_));
        return p;
    }

    template <typename Word>
    const uint8_t* characters(const uint8_t* p, const uint8_t* end, uint32_t code, Word& word) {
        text_.clear();
        for (;;) {  // text_ holds the character before, if there is one
            const size_t before = text_.size();
            append_utf8(text_, char_lower(code));
            word(std::string_view(text_).substr(before));
            if (before) word(std::string_view(text_));
            text_.erase(0, before);
            unspaced++;
            const uint8_t* next = p;
            if (p >= end || (kinds_[code = next_code(next, end)] & kLetterMask) != kUnspaced) return p;
            p = next;
        }
    }
};

// A lower-cased stretch of text with the places where its characters start.
struct Stretch {
    std::string text;
    std::vector<size_t> starts;  // one more than there are characters; left empty where all are ASCII
    bool ascii = true;

    void clear() {
        text.clear();
        starts.clear();
        ascii = true;
    }
    void add(uint32_t code) {
        if (code >= 0x80 && ascii) {
            ascii = false;
            for (size_t i = 0; i < text.size(); i++) starts.push_back(i);
        }
        if (!ascii) starts.push_back(text.size());
        append_utf8(text, code);
    }
    void close() {
        if (!ascii) starts.push_back(text.size());
    }
    size_t size() const { return ascii ? text.size() : starts.size() - 1; }

    // The n characters from the first-th on.
    std::string_view part(size_t first, size_t n) const {
        if (ascii) return {text.data() + first, n};
        return {text.data() + starts[first], starts[first + n] - starts[first]};
    }
};

// Calls word(stretch) for each run of anything but white space, with a blank on either side.
template <typename Word>
void cut_at_blanks(const uint8_t* p, const uint8_t* end, Stretch& stretch, Word word) {
    const AsciiTable& ascii = ascii_table();
    bool inside = false;
    const auto finish = [&] {
        stretch.add(' ');
        stretch.close();
        word(stretch);
        inside = false;
    };
    while (p < end) {
        const uint8_t low = ascii.lower[*p];
        uint32_t code = low;
        bool blank = low == kBlank;
        if (low == kNotAscii) {
            code = next_code(p, end);
            blank = char_kind(code) & kSpace;
            code = char_lower(code);
        } else {
            p++;
        }
        if (blank) {
            if (inside) finish();
            continue;
        }
        if (!inside) {
            stretch.clear();
            stretch.text.push_back(' ');
            inside = true;
        }
        if (code < 0x80 && stretch.ascii) stretch.text.push_back(static_cast<char>(code));
        else stretch.add(code);
    }
    if (inside) finish();
}

// The whole text, two and more white-space characters in a row as one blank.
inline void whole_text(const uint8_t* p, const uint8_t* end, Stretch& stretch) {
    const uint8_t* kinds = kind_table();
    stretch.clear();
    while (p < end) {
        uint32_t code = next_code(p, end);
        if (kinds[code] & kSpace) {
            const uint8_t *first = p, *next = p;
            while (p < end && (kinds[next_code(next, end)] & kSpace)) p = next;
            if (p != first || code >= 0x80) code = ' ';
        }
        stretch.add(char_lower(code));
    }
    stretch.close();
}

}  // namespace longtail
