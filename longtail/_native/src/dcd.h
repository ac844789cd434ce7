// One pass of dual coordinate descent for the L2-regularised squared hinge (Hsieh et al. 2008), for up to 48 labels
// that share their training rows. Weights lie feature-major (feature → one weight per label), so every non-zero of a
// row does work as wide as the labels are many, and its index is read once for all of them.
#pragma once

#include <cstdint>

namespace longtail {

struct DcdBlock {
    int64_t rows;
    int lanes;  // a multiple of 8, at most 48; unused ones are never active
    // the training rows, columns renumbered within the block
    const int64_t* row_ptr;
    const int32_t* columns;
    const float* values;
    const float* squared_norms;  // (rows)
    float* weights;              // (columns, lanes)
    float* alpha;                // (rows, lanes): the dual variables
    const float* signed_diagonal;  // (rows, lanes): 1/(2·cost), negative for negatives
    float* active;               // (rows, lanes): 0 where the pair is shrunk away or takes no part, else 1
    uint8_t* row_active;         // (rows): whether any lane that still moves is active
    const int32_t* order;        // rows to visit
    int64_t order_size;
    const float* moves;          // (lanes): 0 for labels that are done, else 1
    const float* bound;          // (lanes): shrink where alpha is 0 and the gradient above this
    float* shrunk;               // (lanes): set to 1 where a pair is shrunk away
    float *highest, *lowest;     // (lanes): of the projected gradients seen in this pass
};

}  // namespace longtail
