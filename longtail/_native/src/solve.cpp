// One-vs-all linear problems of a tree level. The labels under one parent share their training rows and are solved
// together, up to 48 at a time (dcd.h); parents are independent of each other.
#include "common.h"
#include "dcd_solver.h"

namespace longtail {
namespace {

constexpr int64_t kWidest = 48;  // labels solved together: with more, there is no gain, and all wait for the slowest

// Buffers that a thread reuses between tasks.
struct Scratch {
    GroupRows rows;
    DcdBuffers buffers;
    Scratch(int64_t all_rows, int64_t width) : rows(all_rows, width) {}
};

// The pruned weights of some labels by ascending feature: those whose lane is marked in `which`.
void keep(const LevelProblem& problem, const GroupRows& rows, const std::vector<int64_t>& children, const std::vector<float>& which,
          int lanes, const float* weights, std::vector<std::vector<Entry>>& out) {
    for (int32_t column : rows.by_feature) {
        const float* of_column = weights + int64_t(column) * lanes;
        for (size_t lane = 0; lane < children.size(); lane++)
            if (std::fabs(of_column[lane]) >= problem.threshold && of_column[lane] != 0.0f && which[lane] != 0.0f)
                out[children[lane]].push_back({rows.features[column], of_column[lane]});
    }
    for (size_t lane = 0; lane < children.size(); lane++)
        if (which[lane] != 0.0f) prune(out[children[lane]], problem.threshold, problem.weights_per_label);
}

std::vector<Task> make_tasks(const LevelProblem& problem, int64_t groups) {
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
        // a parent with a large part of the level's work is divided, so that several threads can share it
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
                      float eps, int max_passes, float threshold, int64_t weights_per_label, uint64_t seed, int64_t first_parent) {
    const int64_t groups = static_cast<int64_t>(group_ptr.shape(0)) - 1, n = static_cast<int64_t>(x_ptr.shape(0)) - 1;
    const int64_t children = child_ptr.data()[groups];
    LevelProblem problem{x_ptr.data(), x_columns.data(), x_values.data(), n, x_width, dense.data(),
                    static_cast<int64_t>(dense.shape(1)), bias, groups, group_ptr.data(), group_rows.data(), child_ptr.data(),
                    target_ptr.data(), target_rows.data(), targets.data(), costs.shape(0) ? costs.data() : nullptr,
                    ignore_ptr.shape(0) ? ignore_ptr.data() : nullptr, ignore_rows.data(), cost_positive,
                    cost_negative, eps, max_passes, threshold, weights_per_label, seed, first_parent};
    std::vector<std::vector<Entry>> solved(children);
    {
        nb::gil_scoped_release nogil;
        const std::vector<Task> tasks = make_tasks(problem, groups);
        PerThread<Scratch> scratch;
        const auto solve = [&](int64_t t) {
            Scratch& own = scratch.mine(n, problem.width());
            DcdSolver(problem, tasks[t], own.rows, own.buffers)
                .solve([&](const std::vector<int64_t>& children, const std::vector<float>& which, int lanes, const float* weights) {
                    keep(problem, own.rows, children, which, lanes, weights, solved);
                });
        };
        parallel_for(static_cast<int64_t>(tasks.size()), 1, solve, scratch.count());
    }
    return pack_weights(solved);
}

}  // namespace

void bind_solve(nb::module_& m) { m.def("solve_level", &solve_level); }

}  // namespace longtail
