// The pass of dcd.h. Compiled once for AVX2 and once for any machine (simd_*.cpp, and nowhere else): labels sit in lanes
// that never mix and nothing is contracted to fused operations, so both give the same bits. It uses no inline code from
// elsewhere, which the linker might take from the AVX2 side.
#pragma once

#include "dcd.h"

namespace longtail {
namespace {

template <int LANES>
void dcd_pass_lanes(const DcdBlock& block) {
    for (int64_t turn = 0; turn < block.order_size; turn++) {
        const int64_t row = block.order[turn];
        const int64_t begin = block.row_ptr[row], end = block.row_ptr[row + 1];
        alignas(32) float margin[LANES] = {0};
        for (int64_t j = begin; j < end; j++) {
            const float value = block.values[j];
            const float* weight = block.weights + int64_t(block.columns[j]) * LANES;
            for (int l = 0; l < LANES; l++) margin[l] += value * weight[l];
        }
        const float norm = block.squared_norms[row];
        float* alpha = block.alpha + row * LANES;
        const float* diagonal = block.signed_diagonal + row * LANES;
        uint8_t* active = block.active + row * LANES;
        alignas(32) float delta[LANES];
        alignas(32) int32_t on[LANES];
        for (int l = 0; l < LANES; l++) on[l] = active[l];
        float largest = 0.0f;
        for (int l = 0; l < LANES; l++) {
            const float y = diagonal[l] < 0.0f ? -1.0f : 1.0f;
            const float d = diagonal[l] < 0.0f ? -diagonal[l] : diagonal[l];
            const float gradient = y * margin[l] - 1.0f + d * alpha[l];
            const bool zero = alpha[l] == 0.0f;
            const bool shrink = zero & (gradient > block.bound[l]);
            on[l] = on[l] & (shrink ? 0 : 1);
            const float downhill = gradient < 0.0f ? gradient : 0.0f;
            const float projected = on[l] ? (zero ? downhill : gradient) : 0.0f;
            const float high = on[l] ? projected : block.highest[l];
            const float low = on[l] ? projected : block.lowest[l];
            block.highest[l] = high > block.highest[l] ? high : block.highest[l];
            block.lowest[l] = low < block.lowest[l] ? low : block.lowest[l];
            const float target = alpha[l] - gradient / (norm + d);
            const float moved = (target > 0.0f ? target : 0.0f) - alpha[l];
            const float size = projected < 0.0f ? -projected : projected;
            const float step = size > 1e-12f ? moved : 0.0f;
            alpha[l] += step;
            delta[l] = y * step;
            const float amount = step < 0.0f ? -step : step;
            largest = amount > largest ? amount : largest;
        }
        for (int l = 0; l < LANES; l++) active[l] = static_cast<uint8_t>(on[l]);
        if (largest == 0.0f) continue;
        for (int64_t j = begin; j < end; j++) {
            const float value = block.values[j];
            float* weight = block.weights + int64_t(block.columns[j]) * LANES;
            for (int l = 0; l < LANES; l++) weight[l] += value * delta[l];
        }
    }
}

void dcd_pass(const DcdBlock& block) {
    switch (block.lanes) {
        case 8: return dcd_pass_lanes<8>(block);
        case 16: return dcd_pass_lanes<16>(block);
        case 32: return dcd_pass_lanes<32>(block);
        default: return dcd_pass_lanes<64>(block);
    }
}

}  // namespace
}  // namespace longtail
