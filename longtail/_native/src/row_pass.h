// Reading and updating dense rows of a table, compiled like the passes of lanes.h: products of one vector with many rows,
// and a step of Adam. Sums use four groups of eight lanes, added in a fixed order.
#pragma once

#include "lanes.h"
#include "prefetch.h"
#include "rows.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace longtail {
namespace {

inline float added_up(Lanes a) { return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7])); }

// Exact to the last bit in both versions.
inline Lanes roots(Lanes a) {
#if defined(__AVX2__)
    return (Lanes)_mm256_sqrt_ps((__m256)a);
#else
    for (int l = 0; l < 8; l++) a[l] = __builtin_sqrtf(a[l]);
    return a;
#endif
}

inline float dot(const float* a, const float* b, int64_t d) {
    Lanes sums[4] = {};
    int64_t i = 0;
    for (; i + 32 <= d; i += 32)
        for (int j = 0; j < 4; j++) sums[j] += *at(a + i + 8 * j) * *at(b + i + 8 * j);
    for (; i + 8 <= d; i += 8) sums[0] += *at(a + i) * *at(b + i);
    float total = added_up((sums[0] + sums[1]) + (sums[2] + sums[3]));
    for (; i < d; i++) total += a[i] * b[i];
    return total;
}

__attribute__((always_inline)) inline void ask_for(const float* row, int64_t d) {
    for (int64_t i = 0; i < d; i += 16) prefetch(row + i);
}

void row_dots(const float* x, const float* table, int64_t d, const int64_t* rows, int64_t n, float* out) {
    constexpr int64_t ahead = 4;  // rows are anywhere in the table, so they are prefetched
    for (int64_t i = 0; i < n; i++) {
        if (i + ahead < n && rows[i + ahead] >= 0) ask_for(table + rows[i + ahead] * d, d);
        out[i] = rows[i] < 0 ? 0.0f : dot(x, table + rows[i] * d, d);
    }
}

inline void adam_lanes(const AdamStep& step, float* weight, float* first, float* second, const float* grad) {
    const Lanes g = *at(grad);
    const Lanes m = *at(first) + (g - *at(first)) * all(step.part1);
    const Lanes v = *at(second) * all(step.beta2) + (g * all(step.part2)) * g;
    *at(first) = m;
    *at(second) = v;
    *at(weight) -= m / (roots(v) / all(step.scale) + all(step.eps)) * all(step.rate);
}

void adam_row(const AdamStep& step, float* weight, float* first, float* second, const float* grad, int64_t d) {
    int64_t i = 0;
    for (; i + 8 <= d; i += 8) adam_lanes(step, weight + i, first + i, second + i, grad + i);
    if (i == d) return;
    float padded[4][8] = {};
    float* const parts[4] = {weight + i, first + i, second + i, const_cast<float*>(grad) + i};
    for (int p = 0; p < 4; p++)
        for (int l = 0; i + l < d; l++) padded[p][l] = parts[p][l];
    adam_lanes(step, padded[0], padded[1], padded[2], padded[3]);
    for (int p = 0; p < 3; p++)
        for (int l = 0; i + l < d; l++) parts[p][l] = padded[p][l];
}

}  // namespace
}  // namespace longtail
