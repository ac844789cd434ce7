#include "newton_logistic.h"
#include "simd.h"

namespace longtail {
namespace {

constexpr double kForcing = 0.3;  // relative residual at which a Newton step stops
constexpr int kMostProducts = 250;
constexpr double kSteepest = 0.5;  // a step may end uphill with at most this share of its initial slope
constexpr int kVectors = 5;
constexpr int kLanes = 24;  // a pass reads and writes: more lanes would not stay in the cache

struct Lane {
    int64_t child = -1;  // none
    std::vector<Exception> rows;
    double tolerance = 0;
    double squared = 0, enough = 0;  // squared length of the residual, and its target
    double slope = 0;                // along the direction, at the weights
    double step = 1;                 // the fraction of the direction that is tried
    int steps = 0, products = 0;
    bool fresh = true;  // at its first point: no step led here
};

// The best bias if there were nothing else: min ½b² + positive·log(1 + e^−bx) + negative·log(1 + e^bx), by bisection of
// the slope, which increases with b.
double best_bias(double positive, double negative, double x) {
    double low = -100, high = 100;
    for (int k = 0; k < 60; k++) {
        const double b = 0.5 * (low + high), sigmoid = 1 / (1 + std::exp(-b * x));
        (b + x * ((positive + negative) * sigmoid - positive) > 0 ? high : low) = b;
    }
    return 0.5 * (low + high);
}

class LogisticBlock {
public:
    LogisticBlock(const Group& group, int lanes)
        : group_(group), problem_(group.problem()), lanes_(lanes), vectors_(kVectors * group.columns() * lanes, 0.0f),
          curvature_(group.rows() * lanes, 0.0f), coefficients_(5 * lanes, 0.0f), products_(3 * lanes, 0.0),
          masks_(2 * lanes, 0), sum_(group.columns(), 0.0), lane_(lanes) {
        const int64_t size = group.columns() * lanes;
        float *v = vectors_.data(), *c = coefficients_.data();
        state_ = {group.columns(), lanes, v, v + size, v + 2 * size, v + 3 * size, v + 4 * size, masks_.data(),
                  masks_.data() + lanes, c, c + lanes, c + 2 * lanes, c + 3 * lanes, c + 4 * lanes,
                  products_.data(), products_.data() + lanes};
    }

    void run(LabelQueue& queue, std::vector<std::vector<Entry>>& out) {
        while (fill(queue)) {
            pass();
            simd().logistic_products(state_);
            for (int l = 0; l < lanes_; l++) judge(l, out);
            simd().logistic_update(state_);
            for (int l = 0; l < lanes_; l++) aim(l);
            simd().logistic_next(state_);
        }
    }

private:
    const Group& group_;
    const LevelProblem& problem_;
    const int lanes_;
    std::vector<float> vectors_, curvature_;
    std::vector<float> coefficients_;
    std::vector<double> products_;
    std::vector<int32_t> masks_;
    std::vector<double> sum_;
    std::vector<Lane> lane_;
    std::vector<LaneException> exceptions_;
    LogisticState state_;

    int32_t& at_point(int l) { return masks_[l]; }
    int32_t& taken(int l) { return masks_[lanes_ + l]; }
    float& coefficient(int which, int l) { return coefficients_[which * lanes_ + l]; }  // as in state_, from the step

    // Gives the free lanes their next labels. Returns whether there is anything to do.
    bool fill(LabelQueue& queue) {
        bool busy = false, fresh = false;
        for (int l = 0; l < lanes_; l++) {
            if (lane_[l].child < 0 && start(l, queue.take())) fresh = true;
            busy = busy || lane_[l].child >= 0;
        }
        if (fresh) order_exceptions();
        return busy;
    }

    bool start(int l, int64_t child) {
        if (child < 0) return false;
        Lane& lane = lane_[l];
        lane.child = child;
        lane.rows = group_.exceptions(child);
        lane.tolerance = group_.tolerance(lane.rows, 0.5, sum_);
        lane.steps = problem_.max_passes;
        lane.fresh = true;
        lane.step = 1;
        double positive = 0, negative = problem_.cost_negative * double(group_.rows() - int64_t(lane.rows.size()));
        for (const Exception& row : lane.rows) positive += row.positive, negative += row.negative;
        // the vector of a free lane is 0 (aim); the others are set when the first point is taken
        if (problem_.bias != 0.0f)
            state_.vectors[int64_t(group_.bias_column()) * lanes_ + l] =
                static_cast<float>(best_bias(positive, negative, problem_.bias));
        at_point(l) = -1;
        return true;
    }

    // The exceptions of all lanes by ascending row, in the order the pass needs them.
    void order_exceptions() {
        std::vector<int64_t> start(group_.rows() + 1, 0);
        for (const Lane& lane : lane_)
            for (const Exception& row : lane.rows) start[row.row + 1]++;
        for (int64_t i = 0; i < group_.rows(); i++) start[i + 1] += start[i];
        exceptions_.resize(start[group_.rows()]);
        for (int l = 0; l < lanes_; l++)
            for (const Exception& row : lane_[l].rows)
                exceptions_[start[row.row]++] = {row.row, l, row.positive + row.negative, row.positive};
    }

    void pass() {
        double* bias_sums = products_.data() + 2 * lanes_;
        simd().logistic_pass({group_.view(), lanes_, state_.vectors, state_.sums, bias_sums, curvature_.data(),
                              masks_.data(), problem_.cost_negative, exceptions_.data(),
                              static_cast<int64_t>(exceptions_.size())});
        float* sums = state_.sums + int64_t(group_.bias_column()) * lanes_;
        for (int l = 0; l < lanes_; l++) sums[l] = static_cast<float>(problem_.bias * bias_sums[l]);
    }

    // After a pass. At a new point: take it, go back part of the way, or finish there. Otherwise: the step of conjugate
    // gradients. A step is judged only by the slope at its end: the loss is convex, and differences of its values would be
    // lost in rounding long before the slopes are.
    void judge(int l, std::vector<std::vector<Entry>>& out) {
        Lane& lane = lane_[l];
        taken(l) = 0;
        coefficient(0, l) = 0.0f;
        if (lane.child < 0) return;
        const double first = state_.first[l], second = state_.second[l];
        const bool too_far = !lane.fresh && first > -kSteepest * lane.slope;
        if (!at_point(l)) {
            const double step = lane.squared / first;
            coefficient(0, l) = static_cast<float>(step);
            lane.slope -= step * lane.squared;
            lane.products++;
        } else if (too_far && lane.steps > 0) {
            lane.step *= std::max(0.1, std::min(0.7, lane.slope / (lane.slope - first)));
            lane.steps--;
        } else if (std::sqrt(second) <= lane.tolerance || lane.steps <= 0) {
            finish(l, too_far ? state_.weights : state_.vectors, out[lane.child]);
        } else {
            taken(l) = -1;
            lane.steps--;
            lane.enough = kForcing * kForcing * second;
            lane.slope = 0;
            lane.products = 0;
            lane.fresh = false;
        }
    }

    // What the next pass computes: another product of conjugate gradients, or the point they led to.
    void aim(int l) {
        Lane& lane = lane_[l];
        float of_residual = 0, of_vector = 0, of_weights = 0, of_direction = 0;
        const double squared = state_.first[l];
        if (lane.child < 0) {
            at_point(l) = 0;
        } else if (taken(l)) {
            of_residual = 1;
            at_point(l) = 0;
            lane.squared = squared;
        } else if (at_point(l)) {
            of_weights = 1;
            of_direction = static_cast<float>(lane.step);
        } else if (squared > lane.enough && lane.products < kMostProducts) {
            of_residual = 1;
            of_vector = static_cast<float>(squared / lane.squared);
            lane.squared = squared;
        } else {
            at_point(l) = -1;
            of_weights = of_direction = 1;
            lane.step = 1;
        }
        coefficient(1, l) = of_residual;
        coefficient(2, l) = of_vector;
        coefficient(3, l) = of_weights;
        coefficient(4, l) = of_direction;
    }

    void finish(int l, const float* solution, std::vector<Entry>& out) {
        for (int32_t c : group_.by_feature()) {
            const float weight = solution[int64_t(c) * lanes_ + l];
            if (std::fabs(weight) >= problem_.threshold) out.push_back({group_.feature(c), weight});
        }
        prune(out, problem_.threshold, problem_.weights_per_label);
        lane_[l].child = -1;
        std::vector<Exception>().swap(lane_[l].rows);
    }
};

}  // namespace

void solve_logistic(const Group& group, LabelQueue& queue, std::vector<std::vector<Entry>>& out) {
    const int lanes = lanes_for(queue, kVectors * group.columns() + group.rows(), kLanes);
    if (lanes > 0) LogisticBlock(group, lanes).run(queue, out);
}

}  // namespace longtail
