// The vector kernels, in an AVX2 and a portable version; `simd()` is the one chosen for this process.
#pragma once

#include "dcd.h"
#include "level.h"
#include "newton.h"
#include "rows.h"

#include <cstdint>

namespace longtail {

struct Simd {
    const char* name;
    // Writes the positions i < n with values[i] > bound to `out` (space for n) and returns how many.
    int64_t (*positions_above)(const float* values, int64_t n, float bound, int32_t* out);
    // One pass of dual coordinate descent over sibling labels.
    void (*dcd_pass)(const DcdBlock& block);
    // Finds margins above a bound, of rows against several labels; returns how many.
    int64_t (*scan_margins)(const MarginScan& scan);
    // 1/(1 + e^−value).
    void (*sigmoids)(const float* values, int64_t n, float* out);
    // Newton's method for logistic loss: a pass over the rows, and the operations on its vectors.
    void (*logistic_pass)(const LogisticPass& pass);
    void (*logistic_products)(const LogisticState& state);
    void (*logistic_update)(const LogisticState& state);
    void (*logistic_next)(const LogisticState& state);
    // Reads the weights of a level, by the bytes of a child's number and then of a weight: 1, 2, 4.
    const NodeKernels (*node)[3];
    // x · table[rows[i]] for n rows of d numbers; 0 for −1.
    void (*row_dots)(const float* x, const float* table, int64_t d, const int64_t* rows, int64_t n, float* out);
    // A step of Adam for a row of d numbers and its moments.
    void (*adam_row)(const AdamStep& step, float* weight, float* first, float* second, const float* grad, int64_t d);
    // scales[i] · (query · codes[i]) for n rows of d 8-bit codes from −127 to 127.
    void (*scan_codes)(const int8_t* query, const int8_t* codes, int64_t d, int64_t n, const float* scales, float* out);
    // n 16-bit floats as 32-bit ones.
    void (*widen)(const uint16_t* halves, int64_t n, float* out);
};

const Simd& simd();
extern const Simd portable_simd;
extern const Simd* const avx2_simd;  // null if the compiler could not build it

}  // namespace longtail
