// From counts to weights, rows scaled to unit length.
#pragma once

#include <cstdint>

namespace longtail {

// out = tf · idf[term], scaled to unit length in each row; tf is the count, or (sublinear) 1 + ln(count). `out` may
// be `counts`.
void weigh_rows(int64_t n, const int64_t* ptr, const int32_t* indices, const float* counts, const float* idf,
                bool sublinear, float* out);

}  // namespace longtail
