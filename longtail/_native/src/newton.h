// Inputs and outputs of the passes of the Newton solvers. Up to 48 labels share their training rows; weights are stored
// feature-major (feature → one weight per label), so each non-zero of a row updates all labels at once, and its index is
// read only once for all of them.
#pragma once

#include <cstdint>

namespace longtail {

constexpr int kNewtonLanes = 48;

// The rows of a group (group.h). Columns: the sparse values, then the dense block, then the bias.
struct RowsView {
    int64_t rows;
    const int64_t* ptr;
    const int32_t* columns;
    const float* values;
    const int32_t* dense_rows;  // (rows): which row of `dense`
    const float* dense;
    int64_t dense_width, sparse_columns;
    float bias;
};

struct FoundMargin {
    int32_t row, lane;
    float margin;
};

// The margins of rows [first, last), and which of them are above a bound.
struct MarginScan {
    RowsView x;
    int lanes;             // a multiple of 8, at most 48
    const float* weights;  // (columns, lanes)
    const float* bounds;   // (lanes): infinite for unused lanes
    int64_t first, last;
    FoundMargin* found;  // space for (last − first) · lanes
};

// A row of a lane that is not a plain negative (group.h): the sum of its costs for both signs, and the positive cost.
struct LaneException {
    int32_t row, lane;
    float whole, positive;
};

// One pass of logistic loss. Each lane has its own progress. If `at_point`: the gradient of the loss at the vector; the
// curvature of each pair is stored. Otherwise: the product of the Hessian from that curvature with the vector.
struct LogisticPass {
    RowsView x;
    int lanes;
    const float* vectors;     // (columns, lanes)
    float* sums;              // (columns, lanes): added to, except for the bias
    double* bias_sums;        // (lanes): the row of the bias, set
    float* curvature;         // (rows, lanes)
    const int32_t* at_point;  // (lanes): −1 or 0
    float plain;              // cost of a plain negative
    const LaneException* exceptions;  // by ascending row
    int64_t exception_count;
};

// The vectors of Newton's method (columns, lanes each) and what each lane does with them.
struct LogisticState {
    int64_t columns;
    int lanes;
    float *weights, *direction, *residual, *vectors, *sums;
    const int32_t* at_point;  // (lanes): −1 or 0
    const int32_t* taken;     // (lanes): −1 where the vector becomes the weights
    const float* step;        // (lanes): along the vector, of conjugate gradients
    const float *of_residual, *of_vector, *of_weights, *of_direction;  // (lanes): coefficients of the next vector
    double *first, *second;   // (lanes): products computed
};

}  // namespace longtail
