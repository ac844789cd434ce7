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

}  // namespace longtail
