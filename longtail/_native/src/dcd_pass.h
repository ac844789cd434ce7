// The pass of dcd.h. Compiled once for AVX2 and once for any machine (simd_*.cpp, and nowhere else): labels are in lanes
// that never mix, and there are no fused operations, so both give the same bits. It uses no inline code from other files,
// which the linker might take from the AVX2 side.
#pragma once

#include "dcd.h"
#include "lanes.h"
#include "prefetch.h"

namespace longtail {
namespace {

// margin = Σ value · weights of the column, over the row. A narrow block has too few lanes to keep the adders busy, so
// it computes four sums in parallel.
template <int V>
inline void row_margins(const DcdBlock& block, int64_t begin, int64_t end, Lanes* margin) {
    const auto weight = [&](int64_t j) { return at(block.weights + int64_t(block.terms[j].column) * (8 * V)); };
    Lanes sum[V] = {};
    int64_t j = begin;
    if (V <= 2) {
        Lanes second[V] = {}, third[V] = {}, fourth[V] = {};
        for (; j + 4 <= end; j += 4)
            for (int v = 0; v < V; v++) {
                sum[v] += all(block.terms[j].value) * weight(j)[v];
                second[v] += all(block.terms[j + 1].value) * weight(j + 1)[v];
                third[v] += all(block.terms[j + 2].value) * weight(j + 2)[v];
                fourth[v] += all(block.terms[j + 3].value) * weight(j + 3)[v];
            }
        for (int v = 0; v < V; v++) sum[v] = (sum[v] + second[v]) + (third[v] + fourth[v]);
    }
    for (; j < end; j++)
        for (int v = 0; v < V; v++) sum[v] += all(block.terms[j].value) * weight(j)[v];
    for (int v = 0; v < V; v++) margin[v] = sum[v];
}

// A step goes this much beyond the optimum of its coordinate (projected SOR, Mangasarian 1987). With it, the parts that
// all rows share converge in fewer passes.
constexpr float kBeyond = 1.3f;

// Values of the lanes that stay the same from row to row.
template <int V>
struct LaneState {
    Lanes moves[V], bound[V], shrunk[V], highest[V], lowest[V];
};

inline bool any(Mask mask) {
    int32_t found = 0;
    for (int l = 0; l < 8; l++) found |= mask[l];
    return found != 0;
}

// One coordinate step of every lane: new alphas, shrinking, the range of projected gradients. Writes the change of the
// weights to `delta`; returns whether there is any.
template <int V>
inline bool row_step(const DcdBlock& block, int64_t row, const Lanes* margin, Lanes* delta, LaneState<V>& lanes) {
    const Lanes zero = {}, norm = all(block.squared_norms[row]);
    Lanes *alpha = at(block.duals + row * 16 * V), *diagonal = alpha + V;
    Mask moved = {}, left = {};
    for (int v = 0; v < V; v++) {
        const Lanes y = diagonal[v] < zero ? all(-1.0f) : all(1.0f);
        const Lanes d = y * diagonal[v], a = alpha[v];
        const Lanes gradient = y * margin[v] - all(1.0f) + d * a;
        const Lanes projected = a == zero ? smaller(gradient, zero) : gradient;
        // a pair at 0 whose gradient pushes it further down is shrunk away
        const Lanes pushed = a == zero ? gradient : lanes.bound[v];
        const Mask away = (pushed > lanes.bound[v]) & (d != zero);
        lanes.shrunk[v] = away ? all(1.0f) : lanes.shrunk[v];
        diagonal[v] = away ? zero : diagonal[v];
        const Mask on = (diagonal[v] != zero) & (lanes.moves[v] != zero);
        lanes.highest[v] = on ? larger(projected, lanes.highest[v]) : lanes.highest[v];
        lanes.lowest[v] = on ? smaller(projected, lanes.lowest[v]) : lanes.lowest[v];
        const Lanes step = on ? larger(a - all(kBeyond) * gradient / (norm + d), zero) - a : zero;
        alpha[v] = a + step;
        delta[v] = y * step;
        moved |= step != zero;
        left |= on;
    }
    block.row_active[row] = any(left);
    return any(moved);
}

// Rows come in random order, which no processor can predict. Prefetches the data of a row to come and, further ahead,
// the place where that data is stored.
template <int V>
__attribute__((always_inline)) inline void ask_ahead(const DcdBlock& block, int64_t turn) {
    constexpr int64_t near = 8, far = 16;
    if (turn + far >= block.order_size) return;
    const int64_t later = block.order[turn + far], row = block.order[turn + near];
    prefetch(block.row_ptr + later);
    prefetch(block.squared_norms + later);
    prefetch(block.row_active + later);
    for (int64_t j = block.row_ptr[row]; j < block.row_ptr[row + 1]; j += 8) prefetch(block.terms + j);
    for (int v = 0; v < 2 * V; v += 2) prefetch(block.duals + (row * 2 * V + v) * 8);
}

constexpr int64_t kCache = 1 << 20;  // up to this many bytes of rows need no prefetching

template <int V>
void dcd_pass_lanes(const DcdBlock& block) {
    LaneState<V> lanes;
    Lanes margin[V], delta[V];
    for (int v = 0; v < V; v++) {
        lanes.moves[v] = at(block.moves)[v], lanes.bound[v] = at(block.bound)[v], lanes.shrunk[v] = at(block.shrunk)[v];
        lanes.highest[v] = at(block.highest)[v], lanes.lowest[v] = at(block.lowest)[v];
    }
    const bool beyond_cache = 8 * (block.row_ptr[block.rows] + block.rows * block.lanes) > kCache;
    for (int64_t turn = 0; turn < block.order_size; turn++) {
        const int64_t row = block.order[turn];
        if (beyond_cache) ask_ahead<V>(block, turn);
        const int64_t begin = block.row_ptr[row], end = block.row_ptr[row + 1];
        row_margins<V>(block, begin, end, margin);
        if (!row_step<V>(block, row, margin, delta, lanes)) continue;
        for (int64_t j = begin; j < end; j++) {
            Lanes* weight = at(block.weights + int64_t(block.terms[j].column) * (8 * V));
            for (int v = 0; v < V; v++) weight[v] += all(block.terms[j].value) * delta[v];
        }
    }
    for (int v = 0; v < V; v++) {
        at(block.shrunk)[v] = lanes.shrunk[v];
        at(block.highest)[v] = lanes.highest[v], at(block.lowest)[v] = lanes.lowest[v];
    }
}

void dcd_pass(const DcdBlock& block) {
    switch (block.lanes / 8) {
        case 1: return dcd_pass_lanes<1>(block);
        case 2: return dcd_pass_lanes<2>(block);
        case 3: return dcd_pass_lanes<3>(block);
        case 4: return dcd_pass_lanes<4>(block);
        case 5: return dcd_pass_lanes<5>(block);
        default: return dcd_pass_lanes<6>(block);
    }
}

}  // namespace
}  // namespace longtail
