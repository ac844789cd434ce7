// Reading dense vectors that are stored in fewer bits, compiled like the passes of lanes.h: products of 8-bit codes, whose
// sums of integers are the same in both versions, and 16-bit floats.
#pragma once

#include "half.h"
#include "prefetch.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cstdint>

namespace longtail {
namespace {

#if defined(__AVX2__)

// query · codes for R rows; the query is read once for all of them.
template <int R>
inline void code_dots(const int8_t* query, const int8_t* codes, int64_t d, int32_t* out) {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sums[R];
    for (int r = 0; r < R; r++) sums[r] = _mm256_setzero_si256();
    int64_t i = 0;
    for (; i + 32 <= d; i += 32) {
        const __m256i q = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(query + i)), size = _mm256_abs_epi8(q);
        for (int r = 0; r < R; r++) {
            const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + r * d + i));
            // |q| · (v with the sign of q): two products of at most 127² fit in 16 bits
            const __m256i pairs = _mm256_maddubs_epi16(size, _mm256_sign_epi8(v, q));
            sums[r] = _mm256_add_epi32(sums[r], _mm256_madd_epi16(pairs, ones));
        }
    }
    for (int r = 0; r < R; r++) {
        __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sums[r]), _mm256_extracti128_si256(sums[r], 1));
        half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
        half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1));
        int32_t sum = _mm_cvtsi128_si32(half);
        for (int64_t j = i; j < d; j++) sum += int32_t(query[j]) * codes[r * d + j];
        out[r] = sum;
    }
}

#else

template <int R>
inline void code_dots(const int8_t* query, const int8_t* codes, int64_t d, int32_t* out) {
    for (int r = 0; r < R; r++) {
        int32_t sum = 0;
        for (int64_t i = 0; i < d; i++) sum += int16_t(int16_t(query[i]) * codes[r * d + i]);
        out[r] = sum;
    }
}

#endif

void scan_codes(const int8_t* query, const int8_t* codes, int64_t d, int64_t n, const float* scales, float* out) {
    // a processor stops fetching ahead at the end of a page: doing so here halves the time of codes that are in no cache.
    // Fetching beyond the codes is harmless.
    constexpr int64_t ahead = 4096, line = 64;
    int32_t sums[4];
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        for (int64_t at = 0; at < 4 * d; at += line) prefetch(codes + i * d + ahead + at);
        code_dots<4>(query, codes + i * d, d, sums);
        for (int r = 0; r < 4; r++) out[i + r] = scales[i + r] * static_cast<float>(sums[r]);
    }
    for (; i < n; i++) {
        code_dots<1>(query, codes + i * d, d, sums);
        out[i] = scales[i] * static_cast<float>(sums[0]);
    }
}

void widen(const uint16_t* halves, int64_t n, float* out) {
    for (int64_t i = 0; i < n; i++) out[i] = to_float(Half{halves[i]});
}

}  // namespace
}  // namespace longtail
