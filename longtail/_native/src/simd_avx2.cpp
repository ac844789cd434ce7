// Compiled for AVX2 and FMA (CMakeLists.txt). Nothing here may run before simd_portable.cpp has checked the processor,
// so this file includes no inline code that other files use.
#include "simd.h"
#include "dcd_pass.h"
#include "dense_pass.h"
#include "logistic_pass.h"
#include "node_pass.h"
#include "row_pass.h"

#if defined(__AVX2__)

#include <immintrin.h>

namespace longtail {
namespace {

int64_t positions_above(const float* values, int64_t n, float bound, int32_t* out) {
    const __m256 limit = _mm256_set1_ps(bound);
    int64_t count = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 above = _mm256_cmp_ps(_mm256_loadu_ps(values + i), limit, _CMP_GT_OQ);
        for (unsigned mask = _mm256_movemask_ps(above); mask; mask &= mask - 1)
            out[count++] = static_cast<int32_t>(i + __builtin_ctz(mask));
    }
    for (; i < n; i++)
        if (values[i] > bound) out[count++] = static_cast<int32_t>(i);
    return count;
}

const Simd form = {"avx2", positions_above, dcd_pass, scan_margins, sigmoids, logistic_pass,
                            logistic_products, logistic_update, logistic_next, node_kernels, row_dots, adam_row,
                            scan_codes, widen};

}  // namespace

const Simd* const avx2_simd = &form;

}  // namespace longtail

#else

namespace longtail {
const Simd* const avx2_simd = nullptr;
}

#endif
