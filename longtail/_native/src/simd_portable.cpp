#include "simd.h"
#include "dcd_pass.h"
#include "dense_pass.h"
#include "logistic_pass.h"
#include "node_pass.h"
#include "row_pass.h"

#include <cstdlib>
#include <cstring>

namespace longtail {
namespace {

int64_t positions_above(const float* values, int64_t n, float bound, int32_t* out) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        out[count] = static_cast<int32_t>(i);
        count += values[i] > bound;
    }
    return count;
}

bool processor_has_avx2() {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

const Simd& choose() {
    const char* wish = std::getenv("LONGTAIL_SIMD");
    bool portable = wish && std::strcmp(wish, "portable") == 0;
    return !portable && avx2_simd && processor_has_avx2() ? *avx2_simd : portable_simd;
}

}  // namespace

const Simd portable_simd = {"portable", positions_above, dcd_pass, scan_margins, sigmoids, logistic_pass,
                            logistic_products, logistic_update, logistic_next, node_kernels, row_dots, adam_row,
                            scan_codes, widen};

const Simd& simd() {
    static const Simd& chosen = choose();
    return chosen;
}

}  // namespace longtail
