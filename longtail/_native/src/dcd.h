// One pass of dual coordinate descent for the L2-regularised squared hinge (Hsieh et al. 2008), for up to 48 labels
// that share their training rows. Weights are stored feature-major (feature → one weight per label), so each non-zero of
// a row updates all labels at once, and its index is read only once for all of them.
#pragma once

#include <cstdint>

namespace longtail {

struct Term {  // a non-zero of a row
    int32_t column;
    float value;
};

// The data of a row is stored together: one block for its terms and one for its dual variables. Rows are visited in
// random order, and with many rows, finding the memory pages takes longer than the arithmetic.
struct DcdBlock {
    int64_t rows;
    int lanes;  // a multiple of 8, at most 48; unused lanes are never active
    const int64_t* row_ptr;
    const Term* terms;  // the training rows, columns renumbered within the block
    const float* squared_norms;  // (rows)
    float* weights;              // (columns, lanes)
    // (rows, 2, lanes): the dual variables; then 1/(2·cost), negative for negatives, 0 if the pair is shrunk away or not
    // part of the problem
    float* duals;
    uint8_t* row_active;         // (rows): whether any lane that is not done is active
    const int32_t* order;        // rows to visit
    int64_t order_size;
    const float* moves;          // (lanes): 0 for labels that are done, else 1
    const float* bound;          // (lanes): shrink where alpha is 0 and the gradient above this
    float* shrunk;               // (lanes): set to 1 where a pair is shrunk away
    float *highest, *lowest;     // (lanes): range of the projected gradients in this pass
};

}  // namespace longtail
