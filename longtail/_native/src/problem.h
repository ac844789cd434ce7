// The one-vs-all problems of a tree level as Python passes them, and the weights that are returned.
#pragma once

#include "common.h"

#include <cmath>

namespace longtail {

struct LevelProblem {
    // rows of features, and the dense block beside them (may have no columns)
    const int64_t* x_ptr;
    const int32_t* x_columns;
    const float* x_values;
    int64_t x_rows, x_width;
    const float* dense;
    int64_t dense_width;
    float bias;
    // training rows of each parent; children of each parent, numbered consecutively
    int64_t groups;
    const int64_t* group_ptr;
    const int32_t* group_rows;
    const int64_t* child_ptr;
    // targets in (0, 1] and costs of each child's positive rows; rows that count neither way (ignored pairs)
    const int64_t* target_ptr;
    const int32_t* target_rows;
    const float* targets;
    const float* costs;         // null: all 1
    const int64_t* ignore_ptr;  // null: none
    const int32_t* ignore_rows;
    float cost_positive, cost_negative, eps;
    int max_passes;
    float threshold;
    int64_t budget;  // weights kept per label; negative: all above the threshold
    uint64_t seed = 0;
    int64_t first_group = 0;  // the number of the first group, for random choices

    int64_t width() const { return x_width + dense_width + 1; }  // the last column is the bias
    int64_t children() const { return child_ptr[groups]; }
};

struct Entry {
    int32_t feature;
    float weight;
};

// The entries to keep, by ascending feature.
inline void prune(std::vector<Entry>& entries, float threshold, int64_t budget) {
    const auto small = [&](const Entry& e) { return e.weight == 0.0f || !(std::fabs(e.weight) >= threshold); };
    entries.erase(std::remove_if(entries.begin(), entries.end(), small), entries.end());
    if (budget >= 0 && static_cast<int64_t>(entries.size()) > budget) {
        std::nth_element(entries.begin(), entries.begin() + budget, entries.end(), [](const Entry& a, const Entry& b) {
            const float x = std::fabs(a.weight), y = std::fabs(b.weight);
            return x > y || (x == y && a.feature < b.feature);
        });
        entries.resize(budget);
    }
    const auto by_feature = [](const Entry& a, const Entry& b) { return a.feature < b.feature; };
    if (!std::is_sorted(entries.begin(), entries.end(), by_feature)) std::sort(entries.begin(), entries.end(), by_feature);
    entries.shrink_to_fit();
}

// (ptr, features, values) of the children's weights; memory in `solved` is freed on the way.
inline nb::tuple pack_weights(std::vector<std::vector<Entry>>& solved) {
    const size_t children = solved.size();
    auto ptr = new_numpy<int64_t>({children + 1});
    ptr.data()[0] = 0;
    for (size_t c = 0; c < children; c++) ptr.data()[c + 1] = ptr.data()[c] + static_cast<int64_t>(solved[c].size());
    auto features = new_numpy<int32_t>({size_t(ptr.data()[children])});
    auto weights = new_numpy<float>({size_t(ptr.data()[children])});
    for (size_t c = 0; c < children; c++) {
        int64_t at = ptr.data()[c];
        for (const Entry& entry : solved[c]) {
            features.data()[at] = entry.feature;
            weights.data()[at++] = entry.weight;
        }
        std::vector<Entry>().swap(solved[c]);
    }
    return nb::make_tuple(ptr, features, weights);
}

}  // namespace longtail
