// One-vs-all linear problems of a tree level by Newton's method: squared hinge (newton_hinge.h) or logistic loss. What a
// label gets does not depend on who is solved beside it, so threads take labels as they come.
#include "newton_hinge.h"

namespace longtail {
namespace {

constexpr double kLarge = 0.05;  // a group with more than this part of the level's work is shared by all threads

void solve_group(const Group& group, std::atomic<int64_t>& next, int64_t last, std::vector<std::vector<Entry>>& out) {
    solve_hinge(group, next, last, out);
}

std::vector<double> work_of_groups(const LevelProblem& problem) {
    std::vector<double> work(problem.groups, 0.0);
    for (int64_t g = 0; g < problem.groups; g++) {
        for (int64_t j = problem.group_ptr[g]; j < problem.group_ptr[g + 1]; j++) {
            const int64_t row = problem.group_rows[j];
            work[g] += static_cast<double>(problem.x_ptr[row + 1] - problem.x_ptr[row] + problem.dense_width + 1);
        }
        work[g] *= static_cast<double>(problem.child_ptr[g + 1] - problem.child_ptr[g]);
    }
    return work;
}

void solve_groups(const LevelProblem& problem, std::vector<std::vector<Entry>>& out) {
    const std::vector<double> work = work_of_groups(problem);
    double total = 0;
    for (double w : work) total += w;
    std::vector<int64_t> order(problem.groups);
    for (int64_t g = 0; g < problem.groups; g++) order[g] = g;
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return work[a] > work[b]; });
    std::vector<std::unique_ptr<Places>> places(std::max(1, threads()));
    const auto own_places = [&]() -> Places& {
        auto& own = places[thread_number()];
        if (!own) own = std::make_unique<Places>(problem.x_rows, problem.width());
        return *own;
    };
    int64_t large = 0;
    for (; large < problem.groups && work[order[large]] > kLarge * total; large++) {
        const Group group(problem, order[large], own_places());
        std::atomic<int64_t> next{problem.child_ptr[order[large]]};
        parallel_for(threads(), 1, [&](int64_t) { solve_group(group, next, problem.child_ptr[order[large] + 1], out); });
    }
    parallel_for(problem.groups - large, 1, [&](int64_t k) {
        const int64_t g = order[large + k];
        const Group group(problem, g, own_places());
        std::atomic<int64_t> next{problem.child_ptr[g]};
        solve_group(group, next, problem.child_ptr[g + 1], out);
    });
}

nb::tuple solve_newton(In<int64_t> x_ptr, In<int32_t> x_columns, In<float> x_values, int64_t x_width, In2<float> dense,
                       float bias, In<int64_t> group_ptr, In<int32_t> group_rows, In<int64_t> child_ptr,
                       In<int64_t> target_ptr, In<int32_t> target_rows, In<float> targets, In<float> costs,
                       In<int64_t> ignore_ptr, In<int32_t> ignore_rows, float cost_positive, float cost_negative,
                       float eps, int max_steps, float threshold, int64_t budget, bool logistic) {
    check(!logistic, "not yet");
    const LevelProblem problem{x_ptr.data(), x_columns.data(), x_values.data(), static_cast<int64_t>(x_ptr.shape(0)) - 1,
                               x_width, dense.data(), static_cast<int64_t>(dense.shape(1)), bias,
                               static_cast<int64_t>(group_ptr.shape(0)) - 1, group_ptr.data(), group_rows.data(),
                               child_ptr.data(), target_ptr.data(), target_rows.data(), targets.data(),
                               costs.shape(0) ? costs.data() : nullptr, ignore_ptr.shape(0) ? ignore_ptr.data() : nullptr,
                               ignore_rows.data(), cost_positive, cost_negative, eps, max_steps, threshold, budget};
    std::vector<std::vector<Entry>> solved(problem.children());
    {
        nb::gil_scoped_release nogil;
        solve_groups(problem, solved);
    }
    return pack_weights(solved);
}

}  // namespace

void bind_newton(nb::module_& m) { m.def("solve_newton", &solve_newton); }

}  // namespace longtail
