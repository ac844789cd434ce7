// Squared hinge by Newton's method on a working set. At the optimum, most rows are beyond the margin of a label and do
// not affect it. So each label is solved on the rows that may affect it, and a pass over all rows, for 48 labels at a
// time, finds the rows that were missed.
#pragma once

#include "group.h"

namespace longtail {

void solve_hinge(const Group& group, LabelQueue& queue, std::vector<std::vector<Entry>>& out);

}  // namespace longtail
