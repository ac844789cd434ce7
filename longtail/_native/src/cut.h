// Splitting texts: into words, and into the pieces that character n-grams are taken from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "string_map.h"
#include "unicode.h"
#include "utf8.h"

namespace longtail {

constexpr uint8_t kBlank = 0xFF, kNotAscii = 0xFE;  // besides the lower case of ASCII characters
struct AsciiTable {
    uint8_t lower[256];
    AsciiTable() {
        for (int c = 0; c < 256; c++)
            lower[c] = c >= 128 ? kNotAscii : char_kind(c) & kSpace ? kBlank : static_cast<uint8_t>(char_lower(c));
    }
};
inline const AsciiTable& ascii_table() {
    static const AsciiTable made;
    return made;
}

// Eight bytes processed together, the first lowest.
struct Eight {
    uint64_t lower;    // ASCII upper-case letters in lower case, everything else unchanged
    uint64_t word;     // the high bit of each byte that is an ASCII letter, digit or underscore
    uint64_t foreign;  // and of each byte that is not ASCII
};

inline Eight look_at(uint64_t bytes) {
    const uint64_t low = bytes & ~kHighs, foreign = bytes & kHighs;
    // sets the high bit where a byte below 0x80 is at least `first`
    const auto from = [](uint64_t x, uint64_t first) { return x + kOnes * (0x80 - first); };
    const uint64_t folded = low | kOnes * 0x20;
    const uint64_t letter = from(folded, 'a') & ~from(folded, 'z' + 1);
    const uint64_t digit = from(low, '0') & ~from(low, '9' + 1);
    const uint64_t underscore = from(low, '_') & ~from(low, '_' + 1);
    const uint64_t cased = letter & kHighs & ~foreign;
    return {bytes | cased >> 2, (letter | digit | underscore) & kHighs & ~foreign, foreign};
}

inline Eight look_at(const uint8_t* p, const uint8_t* end) {
    const char* text = reinterpret_cast<const char*>(p);
    return look_at(end - p >= 8 ? load_ordered8(text) : pack_short(text, end - p));
}

// The number of bytes before the first high bit; eight if there is none.
inline int bytes_before(uint64_t highs) {
    if (!highs) return 8;
#if defined(__GNUC__)
    return __builtin_ctzll(highs) / 8;
#else
    int n = 0;
    for (; !(highs & 0x80); highs >>= 8) n++;
    return n;
#endif
}

// Calls word(text, tag) for each word of a text, in order: runs of at least two word characters, lower-cased, with the
// tag that a StringMap uses. In scripts written without spaces, every character and every pair of neighbours is a word.
class WordCutter {
public:
    int64_t unspaced = 0;  // characters seen in such scripts
    int64_t words = 0;     // other words seen

    template <typename Word>
    void run(const uint8_t* p, const uint8_t* end, Word word) {
        while (p < end) {
            const Eight here = look_at(p, end);
            const int skipped = bytes_before(here.word | here.foreign);
            if (skipped) {
                if (skipped >= end - p) return;  // the zeros after the end were read
                p += skipped;
                continue;
            }
            // most words end within eight bytes and are all ASCII
            const int length = bytes_before(~here.word & kHighs);
            if (length > 0 && length < 8 && !(here.foreign >> 8 * length & 0x80)) {
                if (length >= 2) short_word(here.lower & ((uint64_t(1) << 8 * length) - 1), length, word);
                p += length;
                continue;
            }
            const uint8_t* start = p;
            const uint32_t code = next_code(p, end);
            const uint8_t kind = kinds_[code] & kLetterMask;
            if (kind == kWord) p = long_word(start, end, word);
            if (kind == kUnspaced) p = characters(p, end, code, word);
        }
    }

private:
    const uint8_t* kinds_ = kind_table();
    std::string text_;

    template <typename Word>
    void short_word(uint64_t tag, int length, Word& word) {
        const uint64_t bytes = in_order(tag);
        words++;
        word(std::string_view(reinterpret_cast<const char*>(&bytes), length), tag);
    }

    template <typename Word>
    void tell(std::string_view text, Word& word) {
        word(text, tag_of(text));
    }

    template <typename Word>
    const uint8_t* long_word(const uint8_t* p, const uint8_t* end, Word& word) {
        text_.clear();
        int64_t length = 0;
        while (p < end) {
            if (end - p >= 8) {
                const Eight here = look_at(p, end);
                const int more = bytes_before(~here.word & kHighs);
                const uint64_t bytes = in_order(here.lower);
                text_.append(reinterpret_cast<const char*>(&bytes), more);
                length += more;
                p += more;
                if (more == 8) continue;
                if (!(here.foreign >> 8 * more & 0x80)) break;
            }
            const uint8_t* next = p;
            const uint32_t code = next_code(next, end);
            if ((kinds_[code] & kLetterMask) != kWord) break;
            append_utf8(text_, char_lower(code));
            length++;
            p = next;
        }
        if (length < 2) return p;
        words++;
        tell(text_, word);
        return p;
    }

    template <typename Word>
    const uint8_t* characters(const uint8_t* p, const uint8_t* end, uint32_t code, Word& word) {
        text_.clear();
        for (;;) {  // text_ contains the previous character, if there is one
            const size_t before = text_.size();
            append_utf8(text_, char_lower(code));
            tell(std::string_view(text_).substr(before), word);
            if (before) tell(text_, word);
            text_.erase(0, before);
            unspaced++;
            const uint8_t* next = p;
            if (p >= end || (kinds_[code = next_code(next, end)] & kLetterMask) != kUnspaced) return p;
            p = next;
        }
    }
};

// A lower-cased piece of text with the places where its characters start.
struct Stretch {
    std::string text;
    std::vector<size_t> starts;  // one more than there are characters; empty if all are ASCII
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

    // The n characters starting at character `first`.
    std::string_view part(size_t first, size_t n) const {
        if (ascii) return {text.data() + first, n};
        return {text.data() + starts[first], starts[first + n] - starts[first]};
    }
};

// Calls word(piece) for each run of anything but white space, with a blank on either side.
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

// The whole text, with several white-space characters in a row as one blank.
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
