// Dense tables (rows.cpp) of which a training step uses only a few rows.
#pragma once

#include <cstdint>

namespace longtail {

// The numbers of one step of Adam: m += (g − m)·part1; v = v·beta2 + g²·part2; w −= rate · m / (√v / scale + eps).
struct AdamStep {
    float part1, beta2, part2, scale, eps, rate;
};

}  // namespace longtail
