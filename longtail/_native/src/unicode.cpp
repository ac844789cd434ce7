#include "unicode.h"

#include <vector>

namespace longtail {
namespace {

#include "unicode_table.inc"

constexpr uint32_t kCodes = 0x110000;
constexpr uint32_t kCased = 0x1F000;  // no character above has another case

struct Tables {
    std::vector<uint8_t> kind;
    std::vector<uint32_t> lower;
    Tables() : kind(kCodes, 0), lower(kCased) {
        for (const auto& range : kind_ranges)
            for (uint32_t code = range.first; code <= range.last; code++) kind[code] = range.kind;
        for (uint32_t code = 0; code < kCased; code++) lower[code] = code;
        for (const auto& pair : lower_pairs) lower[pair.from] = pair.to;
    }
};

const Tables& tables() {
    static const Tables made;
    return made;
}

}  // namespace

uint8_t char_kind(uint32_t code) { return code < kCodes ? tables().kind[code] : 0; }
uint32_t char_lower(uint32_t code) { return code < kCased ? tables().lower[code] : code; }

}  // namespace longtail
