// Eight labels side by side. For the files that are compiled once for AVX2 and once for any machine (simd_*.cpp, and
// nowhere else): lanes never mix, and there are no fused operations, so both give the same bits.
#pragma once

#include <cstdint>

namespace longtail {
namespace {

// Eight lanes, an extension of GCC and Clang on every processor they know; need not be aligned in memory.
typedef float Lanes __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t Mask __attribute__((vector_size(32)));

inline Lanes all(float value) { return Lanes{value, value, value, value, value, value, value, value}; }
inline const Lanes* at(const float* p) { return reinterpret_cast<const Lanes*>(p); }
inline Lanes* at(float* p) { return reinterpret_cast<Lanes*>(p); }
inline Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }
inline Lanes smaller(Lanes a, Lanes b) { return a < b ? a : b; }

}  // namespace
}  // namespace longtail
