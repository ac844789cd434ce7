// Squared hinge by Newton's method on a working set. At the optimum all but a few rows lie beyond the margin of a
// label and have no say, so each label is solved on the rows that may have one, and a pass over all rows for 48 labels
// at a time finds those it missed.
#pragma once

#include "group.h"

#include <atomic>

namespace longtail {

// Takes children [*next, last) of the group, one by one as it gets done with others, and writes their weights to `out`.
void solve_hinge(const Group& group, std::atomic<int64_t>& next, int64_t last, std::vector<std::vector<Entry>>& out);

}  // namespace longtail
