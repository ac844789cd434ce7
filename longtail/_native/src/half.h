// 16-bit floats computed without processor support, so that every machine rounds in the same way.
// Static, because two instruction sets include it.
#pragma once

#include <cstdint>
#include <cstring>

namespace longtail {

struct Half {
    uint16_t bits;
};

static inline float to_float(Half half) {
    // shifted into the place of a 32-bit float, the exponent is 112 too small: one product corrects that, subnormals too
    const uint32_t magnitude = uint32_t(half.bits & 0x7fffu) << 13, sign = uint32_t(half.bits & 0x8000u) << 16;
    float value;
    std::memcpy(&value, &magnitude, 4);
    value *= 5.192296858534828e33f;  // 2^112
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    bits |= sign;
    std::memcpy(&value, &bits, 4);
    return value;
}

// The nearest value, ties to even; values that are too large become the largest one.
static inline Half to_half(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
    bits &= 0x7fffffffu;
    if (bits >= 0x477fe000u) return {static_cast<uint16_t>(sign | 0x7bffu)};
    if (bits < 0x38800000u) {  // subnormal: adding ½ aligns the last bit of the result with the last bit of the sum
        float magnitude;
        std::memcpy(&magnitude, &bits, 4);
        magnitude += 0.5f;
        std::memcpy(&bits, &magnitude, 4);
        return {static_cast<uint16_t>(sign | (bits - 0x3f000000u))};
    }
    bits += 0xfffu + (bits >> 13 & 1u);
    return {static_cast<uint16_t>(sign | ((bits - 0x38000000u) >> 13))};
}

}  // namespace longtail
