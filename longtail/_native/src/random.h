// A small generator whose stream depends only on its seed, on every machine.
#pragma once

#include <cstdint>

namespace longtail {

constexpr uint64_t kRandomStep = 0x9E3779B97F4A7C15ull;

// SplitMix64: scrambles a counter; next_random increments one.
inline uint64_t scramble(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
}

inline uint64_t next_random(uint64_t& state) { return scramble(state += kRandomStep); }

// A number below n, for n < 2^32.
inline int64_t random_below(uint64_t& state, int64_t n) {
    return static_cast<int64_t>((next_random(state) >> 32) * static_cast<uint64_t>(n) >> 32);
}

}  // namespace longtail
