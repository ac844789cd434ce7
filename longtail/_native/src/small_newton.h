// Newton's method with conjugate gradients (Lin, Weng and Keerthi 2008; a line search in place of the trust region) for
// one label and the rows of its working set: min ½ Σ ridge·w² + Σ positive·max(0, 1 − m)² + negative·max(0, 1 + m)².
// The problem is small and in the cache, so everything is computed in double and sequentially.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace longtail {

class SmallNewton {
public:
    // filled by the caller: rows by their columns (numbered from 0), costs, penalties, and where to start
    std::vector<int64_t> ptr;
    std::vector<int32_t> columns;
    std::vector<float> values;
    std::vector<double> positive, negative;
    std::vector<double> ridge, weights;

    void clear() {
        ptr.assign(1, 0);
        columns.clear();
        values.clear();
        positive.clear();
        negative.clear();
        ridge.clear();
        weights.clear();
    }

    // Changes the weights until the gradient is no longer than `tolerance` or `steps` are used up; subtracts the steps it
    // used from `steps`. Returns the length of the gradient.
    double solve(double tolerance, int& steps) {
        const int64_t n = rows();
        margins_.resize(n);
        for (int64_t i = 0; i < n; i++) margins_[i] = product(i, weights);
        for (;;) {
            const double length = std::sqrt(find_gradient());
            if (!(length > tolerance) || steps <= 0) return length;
            steps--;
            find_direction(length);
            if (!move()) return length;
        }
    }

private:
    static constexpr double kForcing = 0.1;  // relative residual at which a Newton step stops
    static constexpr int kMostProducts = 250;
    std::vector<double> margins_, ahead_, gradient_, direction_, residual_, search_, image_;
    std::vector<int32_t> active_;    // rows that affect the gradient
    std::vector<double> curvature_;  // curvature of each active row

    int64_t rows() const { return static_cast<int64_t>(ptr.size()) - 1; }

    double product(int64_t row, const std::vector<double>& vector) const {
        double sum[4] = {};  // four parallel sums, so that no addition waits for the previous one
        const int64_t end = ptr[row + 1];
        int64_t j = ptr[row];
        for (; j + 4 <= end; j += 4)
            for (int s = 0; s < 4; s++) sum[s] += values[j + s] * vector[columns[j + s]];
        for (; j < end; j++) sum[0] += values[j] * vector[columns[j]];
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }

    void add(int64_t row, double scale, std::vector<double>& vector) const {
        for (int64_t j = ptr[row]; j < ptr[row + 1]; j++) vector[columns[j]] += scale * values[j];
    }

    // The gradient, its squared length, and the rows that affect it.
    double find_gradient() {
        const size_t width = weights.size();
        gradient_.resize(width);
        for (size_t c = 0; c < width; c++) gradient_[c] = ridge[c] * weights[c];
        active_.clear();
        curvature_.clear();
        for (int64_t i = 0; i < rows(); i++) {
            const double m = margins_[i];
            const double below = positive[i] * std::fmax(0.0, 1 - m), above = negative[i] * std::fmax(0.0, 1 + m);
            const double curvature = (m < 1 ? 2 * positive[i] : 0.0) + (m > -1 ? 2 * negative[i] : 0.0);
            if (curvature == 0) continue;
            active_.push_back(static_cast<int32_t>(i));
            curvature_.push_back(curvature);
            add(i, 2 * (above - below), gradient_);
        }
        return dot(gradient_, gradient_);
    }

    // Conjugate gradients for H·direction = −gradient, H = diag(ridge) + Σ curvature·x·xᵀ over the active rows.
    void find_direction(double length) {
        const size_t width = weights.size();
        direction_.assign(width, 0.0);
        residual_.resize(width);
        for (size_t c = 0; c < width; c++) residual_[c] = -gradient_[c];
        search_ = residual_;
        image_.resize(width);
        double squared = length * length;
        const double enough = kForcing * kForcing * squared;
        for (int k = 0; k < kMostProducts && squared > enough; k++) {
            for (size_t c = 0; c < width; c++) image_[c] = ridge[c] * search_[c];
            for (size_t a = 0; a < active_.size(); a++)
                add(active_[a], curvature_[a] * product(active_[a], search_), image_);
            const double step = squared / dot(search_, image_);
            for (size_t c = 0; c < width; c++) {
                direction_[c] += step * search_[c];
                residual_[c] -= step * image_[c];
            }
            const double next = dot(residual_, residual_), turn = next / squared;
            for (size_t c = 0; c < width; c++) search_[c] = residual_[c] + turn * search_[c];
            squared = next;
        }
    }

    // Goes to the lowest point along the direction: the root of an increasing, piecewise linear slope, by Newton's method
    // between bounds. Returns false if the direction brings no more improvement.
    bool move() {
        const int64_t n = rows();
        ahead_.resize(n);
        for (int64_t i = 0; i < n; i++) ahead_[i] = product(i, direction_);
        double at_zero = 0, quadratic = 0;
        for (size_t c = 0; c < weights.size(); c++) {
            at_zero += ridge[c] * weights[c] * direction_[c];
            quadratic += ridge[c] * direction_[c] * direction_[c];
        }
        double low = 0, high = 0, t = 1;  // high 0: none known yet
        for (int k = 0; k < 30; k++) {
            double slope = at_zero + t * quadratic, rise = quadratic;
            for (int64_t i = 0; i < n; i++) {
                const double a = ahead_[i], m = margins_[i] + t * a;
                if (m < 1) slope -= 2 * positive[i] * (1 - m) * a, rise += 2 * positive[i] * a * a;
                if (m > -1) slope += 2 * negative[i] * (1 + m) * a, rise += 2 * negative[i] * a * a;
            }
            (slope > 0 ? high : low) = t;
            const double next = t - slope / rise;
            if (!(std::fabs(next - t) > 1e-3 * t)) break;
            t = next > low && (high == 0 || next < high) ? next : high == 0 ? 2 * t : 0.5 * (low + high);
        }
        if (!(t > 1e-12)) return false;
        for (size_t c = 0; c < weights.size(); c++) weights[c] += t * direction_[c];
        for (int64_t i = 0; i < n; i++) margins_[i] += t * ahead_[i];
        return true;
    }

    static double dot(const std::vector<double>& a, const std::vector<double>& b) {
        double sum[4] = {};
        size_t c = 0;
        for (; c + 4 <= a.size(); c += 4)
            for (int s = 0; s < 4; s++) sum[s] += a[c + s] * b[c + s];
        for (; c < a.size(); c++) sum[0] += a[c] * b[c];
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
};

}  // namespace longtail
