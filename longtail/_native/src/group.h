// The training rows of one parent with their columns renumbered, used by every solver of its labels; and the exceptions
// of one label.
#pragma once

#include "problem.h"
#include "newton.h"

#include <atomic>

namespace longtail {

// Buffers as large as the data, reused from group to group so that none has to be cleared for each.
struct Places {
    std::vector<int32_t> rows, columns;
    Places(int64_t n, int64_t width) : rows(n, -1), columns(width, -1) {}
};

// Labels of a group that free threads take one by one. The result of a label does not depend on which labels are solved
// beside it.
class LabelQueue {
public:
    explicit LabelQueue(std::vector<int64_t> children) : children_(std::move(children)) {}
    int64_t left() const { return std::max<int64_t>(0, size() - next_.load()); }
    int64_t take() {  // −1: none left
        const int64_t k = next_.fetch_add(1);
        return k < size() ? children_[k] : -1;
    }

private:
    std::vector<int64_t> children_;
    std::atomic<int64_t> next_{0};
    int64_t size() const { return static_cast<int64_t>(children_.size()); }
};

// How many labels to solve together if each needs this many floats: no more than there are, or than fit in memory.
inline int lanes_for(const LabelQueue& queue, int64_t floats, int most) {
    constexpr int64_t room = int64_t(64) << 20;  // bytes, per thread
    const int64_t fit = std::max<int64_t>(8, room / (int64_t(sizeof(float)) * floats) / 8 * 8);
    return static_cast<int>(std::min({int64_t(most), fit, (queue.left() + 7) / 8 * 8}));
}

// A row of one label that is not a plain negative: the loss is positive·ℓ(m) + negative·ℓ(−m). Both are 0 if the pair
// is ignored.
struct Exception {
    int32_t row;  // in the group
    float positive, negative;
};

// The bias is not among the values of a row: its weight is in the last column, and every row has it.
class Group {
public:
    Group(const LevelProblem& problem, int64_t group, Places& places) : problem_(problem), places_(places) {
        begin_ = problem.group_ptr[group];
        rows_ = problem.group_ptr[group + 1] - begin_;
        ptr_.push_back(0);
        for (int64_t i = 0; i < rows_; i++) {
            const int64_t row = problem.group_rows[begin_ + i];
            places_.rows[row] = static_cast<int32_t>(i);
            for (int64_t j = problem.x_ptr[row]; j < problem.x_ptr[row + 1]; j++) {
                int32_t& place = places_.columns[problem.x_columns[j]];
                if (place < 0) {
                    place = static_cast<int32_t>(global_.size());
                    global_.push_back(problem.x_columns[j]);
                }
                columns_.push_back(place);
                values_.push_back(problem.x_values[j]);
            }
            ptr_.push_back(static_cast<int64_t>(values_.size()));
        }
        for (int32_t feature : global_) places_.columns[feature] = -1;
        sparse_ = static_cast<int64_t>(global_.size());
        for (int64_t j = 0; j <= problem.dense_width; j++) global_.push_back(static_cast<int32_t>(problem.x_width + j));
        by_feature_.resize(global_.size());
        for (size_t c = 0; c < global_.size(); c++) by_feature_[c] = static_cast<int32_t>(c);
        std::sort(by_feature_.begin(), by_feature_.end(),
                  [&](int32_t a, int32_t b) { return global_[a] < global_[b]; });
        sum_columns();
    }
    ~Group() {
        for (int64_t i = 0; i < rows_; i++) places_.rows[problem_.group_rows[begin_ + i]] = -1;
    }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    int64_t rows() const { return rows_; }
    int64_t columns() const { return static_cast<int64_t>(global_.size()); }
    int32_t feature(int64_t column) const { return global_[column]; }
    const std::vector<int32_t>& by_feature() const { return by_feature_; }  // the columns by ascending feature
    int32_t bias_column() const { return static_cast<int32_t>(columns() - 1); }
    const LevelProblem& problem() const { return problem_; }
    double squares(int64_t column) const { return squares_[column]; }  // Σ x² over the rows

    RowsView view() const {
        return {rows_,          ptr_.data(),           columns_.data(), values_.data(), problem_.group_rows + begin_,
                problem_.dense, problem_.dense_width, sparse_,          problem_.bias};
    }

    // Calls body(column, value) for every value of a row, the bias last.
    template <typename Body>
    void each_value(int64_t row, Body body) const {
        for (int64_t j = ptr_[row]; j < ptr_[row + 1]; j++) body(columns_[j], values_[j]);
        const float* dense = problem_.dense + problem_.group_rows[begin_ + row] * problem_.dense_width;
        for (int64_t j = 0; j < problem_.dense_width; j++) body(static_cast<int32_t>(sparse_ + j), dense[j]);
        if (problem_.bias != 0.0f) body(bias_column(), problem_.bias);
    }

    // The rows of a label that are not plain negatives, in ascending order.
    std::vector<Exception> exceptions(int64_t child) const {
        std::vector<Exception> found;
        for (int64_t j = problem_.target_ptr[child]; j < problem_.target_ptr[child + 1]; j++) {
            const int32_t place = places_.rows[problem_.target_rows[j]];
            const float y = problem_.targets[j], cost = problem_.costs ? problem_.costs[j] : 1.0f;
            if (place >= 0)
                found.push_back({place, problem_.cost_positive * cost * y, problem_.cost_negative * (1.0f - y)});
        }
        if (problem_.ignore_ptr)
            for (int64_t j = problem_.ignore_ptr[child]; j < problem_.ignore_ptr[child + 1]; j++) {
                const int32_t place = places_.rows[problem_.ignore_rows[j]];
                if (place >= 0) found.push_back({place, 0.0f, 0.0f});
            }
        // an ignored pair sorts before the same pair as a target, and takes precedence
        std::sort(found.begin(), found.end(), [](const Exception& a, const Exception& b) {
            return a.row != b.row ? a.row < b.row : a.positive + a.negative < b.positive + b.negative;
        });
        const auto same_row = [](const Exception& a, const Exception& b) { return a.row == b.row; };
        found.erase(std::unique(found.begin(), found.end(), same_row), found.end());
        return found;
    }

    // How long the final gradient may be: LIBLINEAR's rule for its primal solvers, eps · min(positives, negatives) /
    // rows · the length of the gradient at 0, where the loss has the slope −slope.
    double tolerance(const std::vector<Exception>& exceptions, double slope, std::vector<double>& scratch) const {
        double positives = 0, taking_part = static_cast<double>(rows_), squared = squared_sum_;
        const double plain = problem_.cost_negative;
        squared *= plain * plain;
        std::vector<int32_t> touched;
        for (const Exception& e : exceptions) {
            const double whole = double(e.positive) + e.negative;
            if (whole == 0) taking_part--;
            positives += whole == 0 ? 0 : 1 - e.negative / plain;
            each_value(e.row, [&](int32_t column, float value) {
                if (scratch[column] == 0) touched.push_back(column);
                scratch[column] += (double(e.negative) - e.positive - plain) * value;
            });
        }
        for (int32_t column : touched) {  // |sum + change|² − |sum|²
            squared += (2 * plain * sums_[column] + scratch[column]) * scratch[column];
            scratch[column] = 0;
        }
        const double fewer = std::max(1.0, std::min(positives, taking_part - positives));
        return problem_.eps * fewer / std::max(1.0, taking_part) * slope * std::sqrt(std::max(0.0, squared));
    }

private:
    const LevelProblem& problem_;
    Places& places_;
    int64_t begin_, rows_, sparse_ = 0;
    std::vector<int64_t> ptr_;
    std::vector<int32_t> columns_, global_, by_feature_;
    std::vector<float> values_;
    std::vector<double> sums_, squares_;
    double squared_sum_ = 0;

    void sum_columns() {
        sums_.assign(columns(), 0.0);
        squares_.assign(columns(), 0.0);
        for (int64_t i = 0; i < rows_; i++)
            each_value(i, [&](int32_t column, float value) {
                sums_[column] += value;
                squares_[column] += double(value) * value;
            });
        for (double sum : sums_) squared_sum_ += sum * sum;
    }
};

}  // namespace longtail
