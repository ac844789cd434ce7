// What the passes of the Newton solvers read and write. Up to 48 labels share their training rows; their weights lie
// feature-major (feature → one weight per label), so that every non-zero of a row does work as wide as the labels are
// many, and its index is read once for all of them.
#pragma once

#include <cstdint>

namespace longtail {

constexpr int kNewtonLanes = 48;

// The rows of a group (group.h). Columns: those of the sparse values, then the dense block, then the bias.
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

// The margins of rows [first, last), and which of them lie above a bound.
struct MarginScan {
    RowsView x;
    int lanes;             // a multiple of 8, at most 48
    const float* weights;  // (columns, lanes)
    const float* bounds;   // (lanes): infinite where there is nothing to find
    int64_t first, last;
    FoundMargin* found;  // room for (last − first) · lanes
};

// A row of a lane that is not a plain negative (group.h): its costs for both signs together, and for the positive one.
struct LaneException {
    int32_t row, lane;
    float whole, positive;
};

// One pass of logistic loss. Lanes are at different points of their way: where `at_point`, the gradient of the loss at
// the vector, leaving the curvature of each pair behind; elsewhere the product of that curvature's Hessian with it.
struct LogisticPass {
    RowsView x;
    int lanes;
    const float* vectors;     // (columns, lanes)
    float* sums;              // (columns, lanes): added to, but for the bias
    double* bias_sums;        // (lanes): the row of the bias, set
    float* curvature;         // (rows, lanes)
    const int32_t* at_point;  // (lanes): −1 or 0
    float plain;              // cost of a plain negative
    const LaneException* exceptions;  // by rising row
    int64_t exception_count;
};

// The vectors of Newton's method (columns, lanes each) and what each lane is to do with them.
struct LogisticState {
    int64_t columns;
    int lanes;
    float *weights, *direction, *residual, *vectors, *sums;
    const int32_t* at_point;  // (lanes): −1 or 0
    const int32_t* taken;     // (lanes): −1 where the vector becomes the weights
    const float* step;        // (lanes): along the vector, of conjugate gradients
    const float *of_residual, *of_vector, *of_weights, *of_direction;  // (lanes): what the next vector is made of
    double *first, *second;   // (lanes): products found
};

}  // namespace longtail
