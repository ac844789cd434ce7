// One-vs-all linear problems of a tree level. The labels under one parent share their training rows and are solved
// together, up to 64 at a time (dcd.h); parents are independent of each other.
#include "common.h"
#include "dcd.h"
#include "random.h"
#include "simd.h"

#include <cmath>
#include <limits>
#include <unordered_map>

namespace longtail {
namespace {

constexpr int64_t kWidest = 48;  // labels solved together: more gain nothing, and wait for the slowest of them

struct Problem {
    // rows of features, and the dense block beside them (may have no columns)
    const int64_t* x_ptr;
    const int32_t* x_columns;
    const float* x_values;
    int64_t x_width;
    const float* dense;
    int64_t dense_width;
    float bias;
    // training rows of each parent; children of each parent, numbered through
    const int64_t* group_ptr;
    const int32_t* group_rows;
    const int64_t* child_ptr;
    // targets in (0, 1] and costs of each child's positive rows; rows that count neither way
    const int64_t* target_ptr;
    const int32_t* target_rows;
    const float* targets;
    const float* costs;  // null: all 1
    const int64_t* ignore_ptr;  // null: none
    const int32_t* ignore_rows;
    float cost_positive, cost_negative, eps;
    int max_passes;
    float threshold;
    int64_t budget;  // weights kept per label; negative: all above the threshold
    uint64_t seed;

    int64_t width() const { return x_width + dense_width + 1; }  // the last column is the bias
};

struct Task {
    int64_t group, first, last;  // children [first, last) of the group
};

struct Entry {
    int32_t feature;
    float weight;
};

// What a thread keeps between tasks, so that nothing of the size of the data is cleared for each.
struct Scratch {
    std::vector<int32_t> row_place, column_place;
    Scratch(int64_t rows, int64_t columns) : row_place(rows, -1), column_place(columns, -1) {}
};

class Block {
public:
    Block(const Problem& problem, const Task& task, Scratch& scratch) : problem_(problem), task_(task), scratch_(scratch) {
        const int64_t labels = task.last - task.first;
        lanes_ = static_cast<int>((labels + 7) / 8 * 8);
        gather();
        fill();
    }

    void solve() {
        const int64_t n = rows();
        std::vector<float> bound(lanes_, kInfinity), highest(lanes_), lowest(lanes_);
        std::vector<uint8_t> open(lanes_, 0);
        for (int64_t l = 0; l < task_.last - task_.first; l++) open[l] = 1;
        std::vector<int32_t> order;
        order.reserve(n);
        DcdBlock block{n, lanes_, row_ptr_.data(), columns_.data(), values_.data(), norms_.data(), weights_.data(),
                       alpha_.data(), diagonal_.data(), active_.data(), nullptr, 0, bound.data(), highest.data(), lowest.data()};
        // the order depends on the parent alone, so a label's path is the same whoever its lane neighbours are
        uint64_t random = scramble(problem_.seed + kRandomStep) + static_cast<uint64_t>(task_.group) * kRandomStep;
        for (int pass = 0; pass < problem_.max_passes; pass++) {
            order.clear();
            for (int64_t i = 0; i < n; i++) order.push_back(static_cast<int32_t>(i));
            for (int64_t i = n - 1; i > 0; i--) std::swap(order[i], order[random_below(random, i + 1)]);
            order.erase(std::remove_if(order.begin(), order.end(), [&](int32_t i) { return !any_active(i); }), order.end());
            std::fill(highest.begin(), highest.end(), -kInfinity);
            std::fill(lowest.begin(), lowest.end(), kInfinity);
            block.order = order.data();
            block.order_size = static_cast<int64_t>(order.size());
            simd().dcd_pass(block);
            if (!next_pass(bound, highest, lowest, open)) return;
        }
    }

    // The weights of each child, pruned, by rising feature.
    void write(std::vector<std::vector<Entry>>& out) const {
        std::vector<int64_t> by_feature(global_.size());
        for (size_t c = 0; c < global_.size(); c++) by_feature[c] = c;
        std::sort(by_feature.begin(), by_feature.end(), [&](int64_t a, int64_t b) { return global_[a] < global_[b]; });
        for (int64_t l = 0; l < task_.last - task_.first; l++) {
            std::vector<Entry>& entries = out[task_.first + l];
            for (int64_t c : by_feature) {
                const float weight = weights_[c * lanes_ + l];
                if (weight != 0.0f && std::fabs(weight) >= problem_.threshold) entries.push_back({global_[c], weight});
            }
            if (problem_.budget >= 0 && static_cast<int64_t>(entries.size()) > problem_.budget) {
                std::nth_element(entries.begin(), entries.begin() + problem_.budget, entries.end(),
                                 [](const Entry& a, const Entry& b) {
                                     const float x = std::fabs(a.weight), y = std::fabs(b.weight);
                                     return x > y || (x == y && a.feature < b.feature);
                                 });
                entries.resize(problem_.budget);
                std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.feature < b.feature; });
            }
        }
    }

private:
    static constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const Problem& problem_;
    Task task_;
    Scratch& scratch_;
    int lanes_;
    std::vector<int64_t> row_ptr_{0};
    std::vector<int32_t> columns_, global_;
    std::vector<float> values_, norms_, weights_, alpha_, diagonal_;
    std::vector<float> active_, allowed_;
    std::unordered_map<int32_t, int32_t> second_place_;  // of rows with a soft target

    int64_t rows() const { return static_cast<int64_t>(norms_.size()); }

    void add_value(int32_t feature, float value) {
        int32_t& place = scratch_.column_place[feature];
        if (place < 0) {
            place = static_cast<int32_t>(global_.size());
            global_.push_back(feature);
        }
        columns_.push_back(place);
        values_.push_back(value);
    }

    void add_row(int64_t row) {
        const size_t start = values_.size();
        for (int64_t j = problem_.x_ptr[row]; j < problem_.x_ptr[row + 1]; j++)
            add_value(problem_.x_columns[j], problem_.x_values[j]);
        for (int64_t j = 0; j < problem_.dense_width; j++)
            add_value(static_cast<int32_t>(problem_.x_width + j), problem_.dense[row * problem_.dense_width + j]);
        if (problem_.bias != 0.0f) add_value(static_cast<int32_t>(problem_.width() - 1), problem_.bias);
        float norm = 0.0f;
        for (size_t j = start; j < values_.size(); j++) norm += values_[j] * values_[j];
        norms_.push_back(norm);
        row_ptr_.push_back(static_cast<int64_t>(values_.size()));
    }

    // The rows of the parent with their columns renumbered; a row with a soft target stands twice.
    void gather() {
        const int64_t begin = problem_.group_ptr[task_.group], end = problem_.group_ptr[task_.group + 1];
        for (int64_t j = begin; j < end; j++) add_row(problem_.group_rows[j]);
        for (int64_t child = task_.first; child < task_.last; child++)
            for (int64_t j = problem_.target_ptr[child]; j < problem_.target_ptr[child + 1]; j++)
                if (problem_.targets[j] < 1.0f && scratch_.row_place[problem_.target_rows[j]] < 0) {
                    second_place_[problem_.target_rows[j]] = static_cast<int32_t>(rows());
                    scratch_.row_place[problem_.target_rows[j]] = static_cast<int32_t>(rows());
                    add_row(problem_.target_rows[j]);
                }
        for (int32_t feature : global_) scratch_.column_place[feature] = -1;
        weights_.assign(global_.size() * lanes_, 0.0f);
    }

    // Signs and costs: each row of the parent is a negative of each child, but for its positives.
    void fill() {
        const int64_t begin = problem_.group_ptr[task_.group], n = problem_.group_ptr[task_.group + 1] - begin;
        const int64_t labels = task_.last - task_.first;
        alpha_.assign(rows() * lanes_, 0.0f);
        diagonal_.assign(rows() * lanes_, -0.5f / problem_.cost_negative);
        active_.assign(rows() * lanes_, 0.0f);
        for (int64_t i = 0; i < n; i++) std::fill_n(active_.begin() + i * lanes_, labels, 1.0f);
        for (const auto& [row, place] : second_place_) scratch_.row_place[row] = -1;
        for (int64_t i = 0; i < n; i++) scratch_.row_place[problem_.group_rows[begin + i]] = static_cast<int32_t>(i);
        for (int64_t child = task_.first; child < task_.last; child++) {
            const int64_t lane = child - task_.first;
            for (int64_t j = problem_.target_ptr[child]; j < problem_.target_ptr[child + 1]; j++) {
                const int32_t row = problem_.target_rows[j], place = scratch_.row_place[row];
                const float y = problem_.targets[j], cost = problem_.costs ? problem_.costs[j] : 1.0f;
                if (y < 1.0f) {  // y·ℓ(+1) in the row's own place, (1 − y)·ℓ(−1) in its second
                    const int64_t at = int64_t(second_place_.at(row)) * lanes_ + lane;
                    active_[at] = 1.0f;
                    diagonal_[at] = -0.5f / (problem_.cost_negative * (1.0f - y));
                }
                if (place >= 0) diagonal_[int64_t(place) * lanes_ + lane] = 0.5f / (problem_.cost_positive * cost * y);
            }
            if (problem_.ignore_ptr)
                for (int64_t j = problem_.ignore_ptr[child]; j < problem_.ignore_ptr[child + 1]; j++) {
                    const int32_t row = problem_.ignore_rows[j], place = scratch_.row_place[row];
                    if (place >= 0) active_[int64_t(place) * lanes_ + lane] = 0.0f;
                    const auto second = second_place_.find(row);
                    if (second != second_place_.end()) active_[int64_t(second->second) * lanes_ + lane] = 0.0f;
                }
        }
        for (int64_t i = 0; i < n; i++) scratch_.row_place[problem_.group_rows[begin + i]] = -1;
        allowed_ = active_;
    }

    bool any_active(int64_t row) const {
        const float* active = active_.data() + row * lanes_;
        float any = 0.0f;
        for (int l = 0; l < lanes_; l++) any += active[l];
        return any != 0.0f;
    }

    // LIBLINEAR's stopping rule, label by label: done when the projected gradients of *all* rows lie within eps of each
    // other. Where only the rows not yet shrunk away do, these come back first. False when every label is done.
    bool next_pass(std::vector<float>& bound, const std::vector<float>& highest, const std::vector<float>& lowest,
                   std::vector<uint8_t>& open) {
        bool more = false;
        for (int64_t l = 0; l < task_.last - task_.first; l++) {
            if (!open[l]) continue;
            const bool close = !(highest[l] - lowest[l] > problem_.eps);
            if (!close) {
                bound[l] = highest[l] > 0.0f ? highest[l] : kInfinity;
                more = true;
                continue;
            }
            bool shrunk = false;
            for (int64_t i = 0; i < rows() && !shrunk; i++) shrunk = active_[i * lanes_ + l] != allowed_[i * lanes_ + l];
            if (shrunk) {
                for (int64_t i = 0; i < rows(); i++) active_[i * lanes_ + l] = allowed_[i * lanes_ + l];
                bound[l] = kInfinity;
                more = true;
            } else {
                open[l] = 0;
                for (int64_t i = 0; i < rows(); i++) active_[i * lanes_ + l] = allowed_[i * lanes_ + l] = 0.0f;
            }
        }
        return more;
    }
};

std::vector<Task> make_tasks(const Problem& problem, int64_t groups) {
    std::vector<Task> tasks;
    std::vector<double> work;
    double total = 0;
    for (int64_t g = 0; g < groups; g++) {
        double values = 0;
        for (int64_t j = problem.group_ptr[g]; j < problem.group_ptr[g + 1]; j++) {
            const int64_t row = problem.group_rows[j];
            values += problem.x_ptr[row + 1] - problem.x_ptr[row] + problem.dense_width + 1;
        }
        work.push_back(values);
        total += values * (problem.child_ptr[g + 1] - problem.child_ptr[g]);
    }
    for (int64_t g = 0; g < groups; g++) {
        // a parent that is much of the whole level is cut, so that several threads can share it
        const int64_t children = problem.child_ptr[g + 1] - problem.child_ptr[g];
        const int64_t parts = std::max<int64_t>((children + kWidest - 1) / kWidest, int64_t(8 * work[g] * children / total));
        const int64_t width = std::min(kWidest, (children / std::max<int64_t>(parts, 1) + 8) / 8 * 8);
        for (int64_t first = problem.child_ptr[g]; first < problem.child_ptr[g + 1]; first += width)
            tasks.push_back({g, first, std::min(first + width, problem.child_ptr[g + 1])});
    }
    std::stable_sort(tasks.begin(), tasks.end(), [&](const Task& a, const Task& b) {  // the longest first
        return work[a.group] * (a.last - a.first) > work[b.group] * (b.last - b.first);
    });
    return tasks;
}

nb::tuple solve_level(In<int64_t> x_ptr, In<int32_t> x_columns, In<float> x_values, int64_t x_width, In2<float> dense,
                      float bias, In<int64_t> group_ptr, In<int32_t> group_rows, In<int64_t> child_ptr,
                      In<int64_t> target_ptr, In<int32_t> target_rows, In<float> targets, In<float> costs,
                      In<int64_t> ignore_ptr, In<int32_t> ignore_rows, float cost_positive, float cost_negative,
                      float eps, int max_passes, float threshold, int64_t budget, uint64_t seed) {
    const int64_t groups = static_cast<int64_t>(group_ptr.shape(0)) - 1, n = static_cast<int64_t>(x_ptr.shape(0)) - 1;
    const int64_t children = child_ptr.data()[groups];
    Problem problem{x_ptr.data(), x_columns.data(), x_values.data(), x_width, dense.data(),
                    static_cast<int64_t>(dense.shape(1)), bias, group_ptr.data(), group_rows.data(), child_ptr.data(),
                    target_ptr.data(), target_rows.data(), targets.data(), costs.shape(0) ? costs.data() : nullptr,
                    ignore_ptr.shape(0) ? ignore_ptr.data() : nullptr, ignore_rows.data(), cost_positive,
                    cost_negative, eps, max_passes, threshold, budget, seed};
    std::vector<std::vector<Entry>> solved(children);
    {
        nb::gil_scoped_release nogil;
        const std::vector<Task> tasks = make_tasks(problem, groups);
        std::vector<std::unique_ptr<Scratch>> scratch(std::max(1, threads()));
        parallel_for(static_cast<int64_t>(tasks.size()), 1, [&](int64_t t) {
            auto& own = scratch[thread_number()];
            if (!own) own = std::make_unique<Scratch>(n, problem.width());
            Block block(problem, tasks[t], *own);
            block.solve();
            block.write(solved);
        });
    }
    auto ptr = new_numpy<int64_t>({size_t(children + 1)});
    ptr.data()[0] = 0;
    for (int64_t c = 0; c < children; c++) ptr.data()[c + 1] = ptr.data()[c] + static_cast<int64_t>(solved[c].size());
    auto features = new_numpy<int32_t>({size_t(ptr.data()[children])});
    auto weights = new_numpy<float>({size_t(ptr.data()[children])});
    for (int64_t c = 0; c < children; c++) {
        int64_t at = ptr.data()[c];
        for (const Entry& entry : solved[c]) {
            features.data()[at] = entry.feature;
            weights.data()[at++] = entry.weight;
        }
        std::vector<Entry>().swap(solved[c]);
    }
    return nb::make_tuple(ptr, features, weights);
}

}  // namespace

void bind_solve(nb::module_& m) { m.def("solve_level", &solve_level); }

}  // namespace longtail
