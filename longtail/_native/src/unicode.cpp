#include "unicode.h"

#include <vector>

namespace longtail {
namespace {

#include "unicode_table.inc"

struct Tables {
    std::vector<uint8_t> kind;
    std::vector<uint32_t> lower;
    Tables() : kind(kCodes, 0), lower(kCasedCodes) {
        for (const auto& range : kind_ranges)
            for (uint32_t code = range.first; code <= range.last; code++) kind[code] = range.kind;
        for (uint32_t code = 0; code < kCasedCodes; code++) lower[code] = code;
        for (const auto& pair : lower_pairs) lower[pair.from] = pair.to;
    }
};

const Tables& tables() {
    static const Tables made;
    return made;
}

}  // namespace

const uint8_t* kind_table() { return tables().kind.data(); }
const uint32_t* lower_table() { return tables().lower.data(); }

}  // namespace longtail
