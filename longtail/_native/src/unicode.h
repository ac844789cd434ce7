// Reading UTF-8, character kinds and lower-casing, the same on every machine (tables: unicode_table.inc).
#pragma once

#include <cstdint>
#include <string>

namespace longtail {

constexpr uint8_t kWord = 1;      // letter, mark, digit or underscore of a script that separates words
constexpr uint8_t kUnspaced = 2;  // the same of a script written without spaces (Chinese, Japanese, Thai …)
constexpr uint8_t kLetterMask = 3;
constexpr uint8_t kDigit = 4;
constexpr uint8_t kSpace = 8;
constexpr uint8_t kVariant = 16;  // may spell a word differently: a compatibility form, or it joins the character before it
constexpr uint8_t kOtherForm = 32;  // any other character that Unicode normalisation (NFKC) changes

constexpr uint32_t kCodes = 0x110000;
constexpr uint32_t kCasedCodes = 0x1F000;  // no character above this has another case

const uint8_t* kind_table();    // kCodes entries
const uint32_t* lower_table();  // kCasedCodes entries

inline uint8_t char_kind(uint32_t code) { return kind_table()[code]; }
inline uint32_t char_lower(uint32_t code) { return code < kCasedCodes ? lower_table()[code] : code; }

// The code point at `p`; moves `p` past it. Malformed bytes give U+FFFD, one byte at a time.
inline uint32_t next_code(const uint8_t*& p, const uint8_t* end) {
    const uint8_t lead = *p++;
    if (lead < 0x80) return lead;
    int more = lead >= 0xF0 && lead < 0xF8 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC2 ? 1 : 0;
    if (lead >= 0xF8 || more == 0 || end - p < more) return 0xFFFD;
    uint32_t code = lead & (0x3F >> more);
    for (int i = 0; i < more; i++) {
        if ((p[i] & 0xC0) != 0x80) return 0xFFFD;
        code = code << 6 | (p[i] & 0x3F);
    }
    if (code > 0x10FFFF) return 0xFFFD;
    p += more;
    return code;
}

inline void append_utf8(std::string& out, uint32_t code) {
    if (code < 0x80) {
        out.push_back(static_cast<char>(code));
    } else if (code < 0x800) {
        out.push_back(static_cast<char>(0xC0 | code >> 6));
        out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
    } else if (code < 0x10000) {
        out.push_back(static_cast<char>(0xE0 | code >> 12));
        out.push_back(static_cast<char>(0x80 | (code >> 6 & 0x3F)));
        out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
    } else {
        out.push_back(static_cast<char>(0xF0 | code >> 18));
        out.push_back(static_cast<char>(0x80 | (code >> 12 & 0x3F)));
        out.push_back(static_cast<char>(0x80 | (code >> 6 & 0x3F)));
        out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
    }
}

}  // namespace longtail
