#include "unicode.h"

#include "text.h"
#include "utf8.h"

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

// Which texts contain a character that Unicode normalisation may change: a word character, or any.
static Out<uint8_t> has_variants(In<uint8_t> data, In<int64_t> offsets, bool words) {
    const int64_t n = check_offsets(data, offsets);
    auto result = new_numpy<uint8_t>({size_t(n)});
    uint8_t* out = result.data();
    {
        nb::gil_scoped_release nogil;
        const uint8_t* kinds = kind_table();
        const uint8_t mask = words ? kVariant : kVariant | kOtherForm;
        parallel_for(n, 256, [&](int64_t i) {
            const uint8_t *p = data.data() + offsets.data()[i], *end = data.data() + offsets.data()[i + 1];
            out[i] = 0;
            while (p < end && !out[i]) {
                if (end - p >= 8 && !(load8(p) & kHighs)) p += 8;  // ASCII has none
                else out[i] = (kinds[next_code(p, end)] & mask) != 0;
            }
        });
    }
    return result;
}

void bind_unicode(nb::module_& m) { m.def("has_variants", &has_variants); }

}  // namespace longtail
