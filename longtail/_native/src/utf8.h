// Fast scans over UTF-8 bytes, eight at a time.
#pragma once

#include <cstdint>
#include <cstring>

namespace longtail {

inline uint64_t load8(const uint8_t* p) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    return word;
}

constexpr uint64_t kOnes = 0x0101010101010101ull, kHighs = 0x8080808080808080ull;

// The first quote, backslash or control character at or after p: where plain string content ends.
inline const uint8_t* plain_end(const uint8_t* p, const uint8_t* end) {
    while (end - p >= 8) {
        const uint64_t word = load8(p);
        const uint64_t quote = word ^ (kOnes * '"'), slash = word ^ (kOnes * '\\');
        // a byte of x is zero where (x − 1) & ~x has its high bit; below 0x20 where (x − 0x20) & ~x has it
        const uint64_t special =
            ((quote - kOnes) & ~quote) | ((slash - kOnes) & ~slash) | ((word - kOnes * 0x20) & ~word);
        if (special & kHighs) break;
        p += 8;
    }
    while (p < end && *p != '"' && *p != '\\' && *p >= 0x20) p++;
    return p;
}

// Whether the bytes are well-formed UTF-8 (no overlong forms, surrogates or codes past U+10FFFF).
inline bool valid_utf8(const uint8_t* p, const uint8_t* end) {
    while (p < end) {
        if (end - p >= 8 && !(load8(p) & kHighs)) {
            p += 8;
            continue;
        }
        const uint8_t lead = *p++;
        if (lead < 0x80) continue;
        const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
        if (lead < 0xC2 || lead > 0xF4 || end - p < more) return false;
        const uint8_t second = p[0];
        const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
        if (second < low || second > high) return false;
        for (int i = 1; i < more; i++)
            if ((p[i] & 0xC0) != 0x80) return false;
        p += more;
    }
    return true;
}

}  // namespace longtail
