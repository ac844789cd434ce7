// The pass of dcd.h. Compiled once for AVX2 and once for any machine (simd_*.cpp, and nowhere else): labels sit in lanes
// that never mix and nothing is contracted to fused operations, so both give the same bits. It uses no inline code from
// elsewhere, which the linker might take from the AVX2 side.
#pragma once

#include "dcd.h"

#if defined(__GNUC__) || defined(__clang__)
#define LONGTAIL_RESTRICT __restrict__
#else
#define LONGTAIL_RESTRICT
#endif

namespace longtail {
namespace {

// margin = Σ value · weights of the column. A narrow block has too few lanes to keep the adders busy, so it runs
// several sums side by side.
template <int LANES>
void row_margins(const DcdBlock& block, int64_t begin, int64_t end, float* LONGTAIL_RESTRICT margin) {
    constexpr int SUMS = LANES >= 32 ? 1 : LANES >= 16 ? 2 : 4;
    alignas(32) float sums[SUMS][LANES] = {};
    const float* LONGTAIL_RESTRICT weights = block.weights;
    int64_t j = begin;
    for (; j + SUMS <= end; j += SUMS)
        for (int s = 0; s < SUMS; s++) {
            const float value = block.values[j + s];
            const float* weight = weights + int64_t(block.columns[j + s]) * LANES;
            for (int l = 0; l < LANES; l++) sums[s][l] += value * weight[l];
        }
    for (; j < end; j++) {
        const float value = block.values[j];
        const float* weight = weights + int64_t(block.columns[j]) * LANES;
        for (int l = 0; l < LANES; l++) sums[0][l] += value * weight[l];
    }
    for (int l = 0; l < LANES; l++) {
        float sum = sums[0][l];
        for (int s = 1; s < SUMS; s++) sum += sums[s][l];
        margin[l] = sum;
    }
}

template <int LANES>
void dcd_pass_lanes(const DcdBlock& block) {
    alignas(32) float highest[LANES], lowest[LANES], bound[LANES], margin[LANES], delta[LANES];
    for (int l = 0; l < LANES; l++) highest[l] = block.highest[l], lowest[l] = block.lowest[l], bound[l] = block.bound[l];
    for (int64_t turn = 0; turn < block.order_size; turn++) {
        const int64_t row = block.order[turn];
        const int64_t begin = block.row_ptr[row], end = block.row_ptr[row + 1];
        row_margins<LANES>(block, begin, end, margin);
        const float norm = block.squared_norms[row];
        float* LONGTAIL_RESTRICT alpha = block.alpha + row * LANES;
        const float* LONGTAIL_RESTRICT diagonal = block.signed_diagonal + row * LANES;
        float* LONGTAIL_RESTRICT active = block.active + row * LANES;
        float moved = 0.0f;
        for (int l = 0; l < LANES; l++) {
            const float y = diagonal[l] < 0.0f ? -1.0f : 1.0f;
            const float d = y * diagonal[l], a = alpha[l];
            const float gradient = y * margin[l] - 1.0f + d * a;
            const bool zero = a == 0.0f;
            // a pair at 0 whose gradient pushes it further down is shrunk away
            const float on = zero & (gradient > bound[l]) ? 0.0f : active[l];
            active[l] = on;
            const float projected = zero & (gradient > 0.0f) ? 0.0f : gradient;
            const bool off = on == 0.0f;
            const float high = off ? highest[l] : projected, low = off ? lowest[l] : projected;
            highest[l] = high > highest[l] ? high : highest[l];
            lowest[l] = low < lowest[l] ? low : lowest[l];
            const float aim = a - gradient / (norm + d);
            const float kept = aim > 0.0f ? aim : 0.0f;
            const float next = off | (projected == 0.0f) ? a : kept;
            const float step = next - a;
            alpha[l] = next;
            delta[l] = y * step;
            const float size = step < 0.0f ? -step : step;
            moved = size > moved ? size : moved;
        }
        if (moved == 0.0f) continue;
        float* LONGTAIL_RESTRICT weights = block.weights;
        for (int64_t j = begin; j < end; j++) {
            const float value = block.values[j];
            float* weight = weights + int64_t(block.columns[j]) * LANES;
            for (int l = 0; l < LANES; l++) weight[l] += value * delta[l];
        }
    }
    for (int l = 0; l < LANES; l++) block.highest[l] = highest[l], block.lowest[l] = lowest[l];
}

void dcd_pass(const DcdBlock& block) {
    switch (block.lanes) {
        case 8: return dcd_pass_lanes<8>(block);
        case 16: return dcd_pass_lanes<16>(block);
        case 24: return dcd_pass_lanes<24>(block);
        case 32: return dcd_pass_lanes<32>(block);
        case 40: return dcd_pass_lanes<40>(block);
        case 48: return dcd_pass_lanes<48>(block);
        case 56: return dcd_pass_lanes<56>(block);
        case 64: return dcd_pass_lanes<64>(block);
        case 72: return dcd_pass_lanes<72>(block);
        case 80: return dcd_pass_lanes<80>(block);
        case 88: return dcd_pass_lanes<88>(block);
        case 96: return dcd_pass_lanes<96>(block);
        default: return dcd_pass_lanes<104>(block);
    }
}

}  // namespace
}  // namespace longtail
