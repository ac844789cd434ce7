// The passes of newton.h, compiled once for AVX2 and once for any machine (lanes.h). They use no inline code from other
// files, which the linker might take from the AVX2 side. The result of a lane does not depend on how many there are.
#pragma once

#include "lanes.h"
#include "newton.h"

namespace longtail {
namespace {

// margin = Σ value · weights of the column, over the row. Two parallel sums keep the adders busy.
template <int V>
inline void margins_of(const RowsView& x, const float* weights, int64_t row, Lanes* margin) {
    Lanes even[V], odd[V] = {};
    const Lanes* of_bias = at(weights + (x.sparse_columns + x.dense_width) * (8 * V));
    for (int v = 0; v < V; v++) even[v] = all(x.bias) * of_bias[v];
    const auto add = [](Lanes* sum, float value, const float* weight) {
        for (int v = 0; v < V; v++) sum[v] += all(value) * at(weight)[v];
    };
    int64_t j = x.ptr[row];
    const int64_t end = x.ptr[row + 1];
    for (; j + 2 <= end; j += 2) {
        add(even, x.values[j], weights + int64_t(x.columns[j]) * (8 * V));
        add(odd, x.values[j + 1], weights + int64_t(x.columns[j + 1]) * (8 * V));
    }
    if (j < end) add(even, x.values[j], weights + int64_t(x.columns[j]) * (8 * V));
    if (x.dense_width) {
        const float* dense = x.dense + int64_t(x.dense_rows[row]) * x.dense_width;
        const float* weight = weights + x.sparse_columns * (8 * V);
        for (j = 0; j + 2 <= x.dense_width; j += 2) {
            add(even, dense[j], weight + j * (8 * V));
            add(odd, dense[j + 1], weight + (j + 1) * (8 * V));
        }
        if (j < x.dense_width) add(even, dense[j], weight + j * (8 * V));
    }
    for (int v = 0; v < V; v++) margin[v] = even[v] + odd[v];
}

template <int V>
int64_t scan_margins_lanes(const MarginScan& scan) {
    Lanes margin[V];
    int64_t count = 0;
    for (int64_t row = scan.first; row < scan.last; row++) {
        margins_of<V>(scan.x, scan.weights, row, margin);
        Mask above[V], any = {};
        for (int v = 0; v < V; v++) any |= above[v] = margin[v] > at(scan.bounds)[v];
        int32_t some = 0;
        for (int l = 0; l < 8; l++) some |= any[l];
        if (!some) continue;
        for (int v = 0; v < V; v++)
            for (int l = 0; l < 8; l++) {  // without a branch: the lane cannot be predicted
                scan.found[count] = {static_cast<int32_t>(row), 8 * v + l, margin[v][l]};
                count -= above[v][l];
            }
    }
    return count;
}

// Calls the version of a template for this many lanes.
#define LONGTAIL_BY_LANES(lanes, form, argument)   \
    switch ((lanes) / 8) {                         \
        case 1: return form<1>(argument);          \
        case 2: return form<2>(argument);          \
        case 3: return form<3>(argument);          \
        case 4: return form<4>(argument);          \
        case 5: return form<5>(argument);          \
        default: return form<6>(argument);         \
    }

// Returns how many were found.
int64_t scan_margins(const MarginScan& scan) { LONGTAIL_BY_LANES(scan.lanes, scan_margins_lanes, scan) }

}  // namespace
}  // namespace longtail
