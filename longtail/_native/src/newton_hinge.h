// Squared hinge by Newton's method on a working set. At the optimum all but a few rows lie beyond the margin of a
// label and have no say, so each label is solved on the rows that may have one, and a pass over all rows for 48 labels
// at a time finds those it missed.
#pragma once

#include "group.h"

namespace longtail {

void solve_hinge(const Group& group, LabelQueue& queue, std::vector<std::vector<Entry>>& out);

}  // namespace longtail
