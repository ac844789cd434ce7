#include "simd.h"

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

// Eight running sums, added up as the AVX2 form adds its lanes.
float dot(const float* a, const float* b, int64_t n) {
    float lane[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++) lane[j] += a[i + j] * b[i + j];
    float sum = ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
    for (; i < n; i++) sum += a[i] * b[i];
    return sum;
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

const Simd portable_simd = {"portable", positions_above, dot};

const Simd& simd() {
    static const Simd& chosen = choose();
    return chosen;
}

}  // namespace longtail
