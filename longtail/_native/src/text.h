// What every kernel that takes texts asks of them.
#pragma once

#include "common.h"

namespace longtail {

// How many texts there are; throws where offsets fall or reach outside the data, so that no kernel reads there.
int64_t check_offsets(const In<uint8_t>& data, const In<int64_t>& offsets);

}  // namespace longtail
