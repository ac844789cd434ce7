// One-vs-all linear problems of a tree level by Newton's method: squared hinge (newton_hinge.h) or logistic loss
// (newton_logistic.h).
#include "newton_hinge.h"
#include "newton_logistic.h"
#include "random.h"
#include "simd.h"

#include <unordered_map>

namespace longtail {
namespace {

constexpr double kLarge = 0.05;  // a group with more than this share of the level's work is divided among all threads

using Solve = void (*)(const Group&, LabelQueue&, std::vector<std::vector<Entry>>&);

// Whether two children have the same targets, costs and ignored pairs, and therefore the same weights.
class Alike {
public:
    explicit Alike(const LevelProblem& problem) : p_(problem) {}

    uint64_t hash(int64_t child) const {
        uint64_t h = 0;
        const auto mix = [&](uint64_t value) { h = scramble(h + kRandomStep + value); };
        for (int64_t j = p_.target_ptr[child]; j < p_.target_ptr[child + 1]; j++) mix(p_.target_rows[j]);
        mix(~uint64_t(0));
        if (p_.ignore_ptr)
            for (int64_t j = p_.ignore_ptr[child]; j < p_.ignore_ptr[child + 1]; j++) mix(p_.ignore_rows[j]);
        return h;
    }

    bool operator()(int64_t a, int64_t b) const {
        const auto same = [&](const int64_t* ptr, const auto* values) {
            return std::equal(values + ptr[a], values + ptr[a + 1], values + ptr[b], values + ptr[b + 1]);
        };
        return same(p_.target_ptr, p_.target_rows) && same(p_.target_ptr, p_.targets) &&
               (!p_.costs || same(p_.target_ptr, p_.costs)) && (!p_.ignore_ptr || same(p_.ignore_ptr, p_.ignore_rows));
    }

private:
    const LevelProblem& p_;
};

// The children of a group to solve, and for each of the others the identical one it copies. Among labels with one or two
// positives there are many identical pairs.
struct Distinct {
    std::vector<int64_t> children;
    std::vector<std::pair<int64_t, int64_t>> copies;  // (to, from)

    Distinct(const LevelProblem& problem, int64_t group) {
        const Alike alike(problem);
        std::unordered_map<uint64_t, int64_t> first;
        for (int64_t child = problem.child_ptr[group]; child < problem.child_ptr[group + 1]; child++) {
            const auto known = first.emplace(alike.hash(child), child);
            if (known.second || !alike(known.first->second, child))
                children.push_back(child);
            else
                copies.emplace_back(child, known.first->second);
        }
    }
};

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

void solve_groups(const LevelProblem& problem, Solve solve, std::vector<std::vector<Entry>>& out) {
    const std::vector<double> work = work_of_groups(problem);
    double total = 0;
    for (double w : work) total += w;
    std::vector<int64_t> order(problem.groups);
    for (int64_t g = 0; g < problem.groups; g++) order[g] = g;
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return work[a] > work[b]; });
    PerThread<Places> places;
    const auto solve_group = [&](int64_t g, int64_t workers) {
        const Group group(problem, g, places.mine(problem.x_rows, problem.width()));
        const Distinct distinct(problem, g);
        LabelQueue queue(distinct.children);
        parallel_for(workers, 1, [&](int64_t) { solve(group, queue, out); }, places.count());
        for (const auto& [to, from] : distinct.copies) out[to] = out[from];
    };
    int64_t large = 0;
    for (; large < problem.groups && work[order[large]] > kLarge * total; large++) solve_group(order[large], places.count());
    parallel_for(problem.groups - large, 1, [&](int64_t k) { solve_group(order[large + k], 1); }, places.count());
}

nb::tuple solve_newton(In<int64_t> x_ptr, In<int32_t> x_columns, In<float> x_values, int64_t x_width, In2<float> dense,
                       float bias, In<int64_t> group_ptr, In<int32_t> group_rows, In<int64_t> child_ptr,
                       In<int64_t> target_ptr, In<int32_t> target_rows, In<float> targets, In<float> costs,
                       In<int64_t> ignore_ptr, In<int32_t> ignore_rows, float cost_positive, float cost_negative,
                       float eps, int max_passes, float threshold, int64_t weights_per_label, bool logistic) {
    const LevelProblem problem{x_ptr.data(), x_columns.data(), x_values.data(), static_cast<int64_t>(x_ptr.shape(0)) - 1,
                               x_width, dense.data(), static_cast<int64_t>(dense.shape(1)), bias,
                               static_cast<int64_t>(group_ptr.shape(0)) - 1, group_ptr.data(), group_rows.data(),
                               child_ptr.data(), target_ptr.data(), target_rows.data(), targets.data(),
                               costs.shape(0) ? costs.data() : nullptr, ignore_ptr.shape(0) ? ignore_ptr.data() : nullptr,
                               ignore_rows.data(), cost_positive, cost_negative, eps, max_passes, threshold, weights_per_label};
    std::vector<std::vector<Entry>> solved(problem.children());
    {
        nb::gil_scoped_release nogil;
        solve_groups(problem, logistic ? solve_logistic : solve_hinge, solved);
    }
    return pack_weights(solved);
}

}  // namespace

void bind_newton(nb::module_& m) {
    m.def("solve_newton", &solve_newton);
    m.def("sigmoids", [](In<float> values) {
        auto out = new_numpy<float>({values.shape(0)});
        simd().sigmoids(values.data(), static_cast<int64_t>(values.shape(0)), out.data());
        return out;
    });
}

}  // namespace longtail
