// Logistic loss by Newton's method with conjugate gradients, for up to 24 labels at a time. Every row affects every
// label, so the labels go over the rows together; but each label has its own progress, and when one is done, the next
// takes its lane.
#pragma once

#include "group.h"

namespace longtail {

void solve_logistic(const Group& group, LabelQueue& queue, std::vector<std::vector<Entry>>& out);

}  // namespace longtail
