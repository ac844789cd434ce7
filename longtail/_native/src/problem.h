// The one-vs-all problems of a tree level, as solve.cpp gets them from Python, and what its solvers share.
#pragma once

#include <cstdint>

namespace longtail {

struct Problem {
    // rows of features, and the dense block beside them (may have no columns)
    const int64_t* x_ptr;
    const int32_t* x_columns;
    const float* x_values;
    int64_t x_width;
    const float* dense;
    int64_t dense_width;
    float bias;
    // training rows of each parent; children of each parent, numbered through
    const int64_t* group_ptr;
    const int32_t* group_rows;
    const int64_t* child_ptr;
    // targets in (0, 1] and costs of each child's positive rows; rows that count neither way
    const int64_t* target_ptr;
    const int32_t* target_rows;
    const float* targets;
    const float* costs;  // null: all 1
    const int64_t* ignore_ptr;  // null: none
    const int32_t* ignore_rows;
    float cost_positive, cost_negative, eps;
    int max_passes;
    float threshold;
    int64_t budget;  // weights kept per label; negative: all above the threshold
    uint64_t seed;
    int64_t first_group;  // the number of the first group, for what is random

    int64_t width() const { return x_width + dense_width + 1; }  // the last column is the bias
};

struct Task {
    int64_t group, first, last;  // children [first, last) of the group
};

struct Entry {
    int32_t feature;
    float weight;
};

}  // namespace longtail
