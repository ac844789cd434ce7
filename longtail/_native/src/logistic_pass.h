// The passes of logistic loss (newton.h), compiled like those of newton_pass.h. Sums over the rows are float32, row by
// row, except for the bias, to which every row adds: it is summed 256 rows at a time, and these sums are added in double.
// Products of vectors are also summed in double, 32 columns at a time.
#pragma once

#include "newton_pass.h"

namespace longtail {
namespace {

typedef double Wide __attribute__((vector_size(64), aligned(8), may_alias));

typedef int32_t StoredMask __attribute__((vector_size(32), aligned(4), may_alias));

inline void add_wide(Wide& sum, Lanes a) { sum += __builtin_convertvector(a, Wide); }
inline Wide* at(double* p) { return reinterpret_cast<Wide*>(p); }
inline Mask mask_at(const int32_t* p) { return *reinterpret_cast<const StoredMask*>(p); }

// e^x for x in [−87, 0], to 2e-7 of itself: 2^n · e^r with |r| ≤ ½ ln 2, the latter by its series up to r^7/7!.
inline Lanes exp_lanes(Lanes x) {
    const Lanes magic = all(12582912.0f);  // 1.5 · 2^23: adding it rounds to an integer, left in the lowest bits
    const Lanes shifted = x * all(1.44269504f) + magic, n = shifted - magic;
    // ln 2 in two parts: n times the first is exact
    const Lanes r = (x - n * all(0.693359375f)) - n * all(-2.12194440e-4f);
    Lanes y = all(1.0f / 5040.0f);
    y = y * r + all(1.0f / 720.0f);
    y = y * r + all(1.0f / 120.0f);
    y = y * r + all(1.0f / 24.0f);
    y = y * r + all(1.0f / 6.0f);
    y = y * r + all(0.5f);
    y = y * r * r + r + all(1.0f);
    const Mask power = ((Mask)shifted << 23) + (127 << 23);  // a cast between vector types keeps the bits
    return y * (Lanes)power;
}

// 1/(1 + e^|z|), from which the sigmoid of z and its slope follow without loss of precision.
inline Lanes lesser_sigmoid(Lanes z) {
    const Lanes e = exp_lanes(larger(smaller(z, -z), all(-87.0f)));
    return e / (all(1.0f) + e);
}

void sigmoids(const float* values, int64_t n, float* out) {
    const auto some = [](Lanes z) {
        const Lanes lesser = lesser_sigmoid(z);
        return z > all(0.0f) ? all(1.0f) - lesser : lesser;
    };
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) *at(out + i) = some(*at(values + i));
    if (i == n) return;
    Lanes last = {};
    for (int l = 0; i + l < n; l++) last[l] = values[i + l];
    last = some(last);
    for (int l = 0; i + l < n; l++) out[i + l] = last[l];
}

// From the margins of a row to the factor of its values in the sums.
template <int V>
inline void logistic_row(const LogisticPass& pass, int64_t row, int64_t& exception, const int* some_at_point,
                         Lanes* z) {
    Lanes whole[V], positive[V] = {};
    for (int v = 0; v < V; v++) whole[v] = all(pass.plain);
    for (; exception < pass.exception_count && pass.exceptions[exception].row == row; exception++) {
        const LaneException& e = pass.exceptions[exception];
        whole[e.lane / 8][e.lane % 8] = e.whole;
        positive[e.lane / 8][e.lane % 8] = e.positive;
    }
    Lanes* curvature = at(pass.curvature + row * 8 * V);
    for (int v = 0; v < V; v++) {
        const Lanes product = curvature[v] * z[v];
        if (!some_at_point[v]) {
            z[v] = product;
            continue;
        }
        const Lanes one = all(1.0f), lesser = lesser_sigmoid(z[v]);
        const Lanes sigmoid = z[v] > all(0.0f) ? one - lesser : lesser;
        const Mask fresh = mask_at(pass.at_point + 8 * v);
        curvature[v] = fresh ? whole[v] * (lesser * (one - lesser)) : curvature[v];
        z[v] = fresh ? whole[v] * sigmoid - positive[v] : product;
    }
}

template <int V>
void logistic_pass_lanes(const LogisticPass& pass) {
    const RowsView& x = pass.x;
    int some_at_point[V] = {};
    for (int l = 0; l < 8 * V; l++) some_at_point[l / 8] |= pass.at_point[l];
    Lanes z[V], bias[V] = {};
    Wide bias_sums[V] = {};
    int64_t exception = 0;
    const auto add = [&](float value, int64_t column) {
        Lanes* sum = at(pass.sums + column * (8 * V));
        for (int v = 0; v < V; v++) sum[v] += all(value) * z[v];
    };
    for (int64_t row = 0; row < x.rows; row++) {
        margins_of<V>(x, pass.vectors, row, z);
        logistic_row<V>(pass, row, exception, some_at_point, z);
        for (int64_t j = x.ptr[row]; j < x.ptr[row + 1]; j++) add(x.values[j], x.columns[j]);
        const float* dense = x.dense + int64_t(x.dense_rows[row]) * x.dense_width;
        for (int64_t j = 0; j < x.dense_width; j++) add(dense[j], x.sparse_columns + j);
        for (int v = 0; v < V; v++) bias[v] += z[v];
        if (row % 256 == 255 || row + 1 == x.rows)
            for (int v = 0; v < V; v++) add_wide(bias_sums[v], bias[v]), bias[v] = all(0.0f);
    }
    for (int v = 0; v < V; v++) at(pass.bias_sums)[v] = bias_sums[v];
}

void logistic_pass(const LogisticPass& pass) { LONGTAIL_BY_LANES(pass.lanes, logistic_pass_lanes, pass) }

// Calls body(v, offset) over the columns and groups of lanes; its two results are summed lane by lane.
template <int V, typename Body>
inline void sum_products(const LogisticState& state, Body body) {
    Wide first[V] = {}, second[V] = {};
    for (int64_t begin = 0; begin < state.columns; begin += 32) {
        const int64_t end = begin + 32 < state.columns ? begin + 32 : state.columns;
        for (int v = 0; v < V; v++) {
            Lanes one = {}, two = {};
            for (int64_t c = begin; c < end; c++) body(v, (c * V + v) * 8, one, two);
            add_wide(first[v], one);
            add_wide(second[v], two);
        }
    }
    for (int v = 0; v < V; v++) at(state.first)[v] = first[v], at(state.second)[v] = second[v];
}

// With full = vector + sum (a gradient, or the Hessian times the vector): its products with the direction or the
// vector, as the lane requires, and with itself.
template <int V>
void logistic_products_lanes(const LogisticState& state) {
    sum_products<V>(state, [&](int v, int64_t i, Lanes& one, Lanes& two) {
        const Lanes vector = *at(state.vectors + i), full = vector + *at(state.sums + i);
        one += full * (mask_at(state.at_point + 8 * v) ? *at(state.direction + i) : vector);
        two += full * full;
    });
}

void logistic_products(const LogisticState& state) { LONGTAIL_BY_LANES(state.lanes, logistic_products_lanes, state) }

// If taken: the vector becomes the weights, and conjugate gradients start at minus the gradient. Otherwise one step of
// conjugate gradients. Then the product of the residual with itself.
template <int V>
void logistic_update_lanes(const LogisticState& state) {
    sum_products<V>(state, [&](int v, int64_t i, Lanes& one, Lanes&) {
        const Mask taken = mask_at(state.taken + 8 * v);
        const Lanes vector = *at(state.vectors + i), full = vector + *at(state.sums + i), step = at(state.step)[v];
        Lanes *residual = at(state.residual + i), *direction = at(state.direction + i);
        Lanes* weights = at(state.weights + i);
        *residual = taken ? -full : *residual - step * full;
        *direction = taken ? all(0.0f) : *direction + step * vector;
        *weights = taken ? vector : *weights;
        one += *residual * *residual;
    });
}

void logistic_update(const LogisticState& state) { LONGTAIL_BY_LANES(state.lanes, logistic_update_lanes, state) }

// The vectors of the next pass, and sums of 0.
template <int V>
void logistic_next_lanes(const LogisticState& state) {
    for (int64_t c = 0; c < state.columns; c++)
        for (int v = 0; v < V; v++) {
            const int64_t i = (c * V + v) * 8;
            Lanes* vector = at(state.vectors + i);
            *vector = (at(state.of_residual)[v] * *at(state.residual + i) + at(state.of_vector)[v] * *vector) +
                      (at(state.of_weights)[v] * *at(state.weights + i) +
                       at(state.of_direction)[v] * *at(state.direction + i));
            *at(state.sums + i) = all(0.0f);
        }
}

void logistic_next(const LogisticState& state) { LONGTAIL_BY_LANES(state.lanes, logistic_next_lanes, state) }

}  // namespace
}  // namespace longtail
