// The training rows of one parent, copied: columns are renumbered densely, so that weights of many labels fit the cache.
#pragma once

#include "aligned.h"
#include "dcd.h"
#include "prefetch.h"
#include "problem.h"
#include "random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace longtail {

class GroupRows {
public:
    AlignedVector<int64_t> row_ptr;
    AlignedVector<Term> terms;           // columns renumbered
    AlignedVector<float> squared_norms;  // (rows)
    std::vector<int32_t> features;     // (columns): the original feature of each
    std::vector<int32_t> by_feature;   // (columns): sorted by ascending feature
    // the solution of the problem in which every row is a negative: labels can start from it
    std::vector<float> start_alpha, start_weights;

    GroupRows(int64_t all_rows, int64_t width) : row_place_(all_rows, -1), column_place_(width, -1) {}

    int64_t rows() const { return static_cast<int64_t>(squared_norms.size()); }
    int64_t own_rows() const { return own_rows_; }  // without the rows that appear a second time
    int32_t place(int32_t row) const { return row_place_[row]; }  // among the rows; −1 if it is not part of the group

    // Copies the rows of a group, unless they are here already, and solves the all-negative problem.
    void gather(const LevelProblem& problem, int64_t group) {
        drop_seconds();
        if (group == group_) return;
        for (int32_t row : own_) row_place_[row] = -1;
        const int64_t begin = problem.group_ptr[group], end = problem.group_ptr[group + 1];
        own_.assign(problem.group_rows + begin, problem.group_rows + end);
        own_rows_ = end - begin;
        group_ = group;
        row_ptr.assign(1, 0);
        terms.clear(), squared_norms.clear(), features.clear();
        for (int64_t i = 0; i < own_rows_; i++) {
            row_place_[own_[i]] = static_cast<int32_t>(i);
            add_row(problem, own_[i]);
        }
        for (int32_t feature : features) column_place_[feature] = -1;
        by_feature.resize(features.size());
        for (size_t c = 0; c < features.size(); c++) by_feature[c] = static_cast<int32_t>(c);
        std::sort(by_feature.begin(), by_feature.end(), [&](int32_t a, int32_t b) { return features[a] < features[b]; });
        solve_all_negative(problem);
    }

    // Adds a row of the group a second time (a soft target counts both ways); returns its place.
    int32_t add_second(int32_t place) {
        for (int64_t j = row_ptr[place]; j < row_ptr[place + 1]; j++) terms.push_back(Term(terms[j]));
        squared_norms.push_back(squared_norms[place]);
        row_ptr.push_back(static_cast<int64_t>(terms.size()));
        return static_cast<int32_t>(rows() - 1);
    }

    // The rows in a random order that depends only on the parent, so that a label's result does not depend on its
    // neighbours. `state` continues from pass to pass.
    uint64_t random_state(const LevelProblem& problem) const {
        return scramble(problem.seed + kRandomStep) + static_cast<uint64_t>(problem.first_group + group_) * kRandomStep;
    }
    void shuffle(std::vector<int32_t>& order, uint64_t& state) const {
        const int64_t n = rows();
        order.resize(n);
        for (int64_t i = 0; i < n; i++) order[i] = static_cast<int32_t>(i);
        for (int64_t i = n - 1; i > 0; i--) std::swap(order[i], order[random_below(state, i + 1)]);
    }

private:
    static constexpr int kStartPasses = 8;
    static constexpr int64_t kAhead = 8;
    std::vector<int32_t> row_place_, column_place_, own_;
    int64_t group_ = -1, own_rows_ = 0;

    void drop_seconds() {
        if (group_ < 0) return;
        row_ptr.resize(own_rows_ + 1);
        squared_norms.resize(own_rows_);
        terms.resize(row_ptr.back());
    }

    void add_value(int32_t feature, float value) {
        int32_t& place = column_place_[feature];
        if (place < 0) {
            place = static_cast<int32_t>(features.size());
            features.push_back(feature);
        }
        terms.push_back({place, value});
    }

    void add_row(const LevelProblem& problem, int64_t row) {
        const size_t start = terms.size();
        for (int64_t j = problem.x_ptr[row]; j < problem.x_ptr[row + 1]; j++) add_value(problem.x_columns[j], problem.x_values[j]);
        for (int64_t j = 0; j < problem.dense_width; j++)
            add_value(static_cast<int32_t>(problem.x_width + j), problem.dense[row * problem.dense_width + j]);
        if (problem.bias != 0.0f) add_value(static_cast<int32_t>(problem.width() - 1), problem.bias);
        float norm = 0.0f;
        for (size_t j = start; j < terms.size(); j++) norm += terms[j].value * terms[j].value;
        squared_norms.push_back(norm);
        row_ptr.push_back(static_cast<int64_t>(terms.size()));
    }

    // Coordinate descent for one label. Starts at the best point at which all dual variables are equal: the part that all
    // rows share, above all the bias, would otherwise need many passes to converge.
    void solve_all_negative(const LevelProblem& problem) {
        const int64_t n = own_rows_;
        const float diagonal = 0.5f / problem.cost_negative;
        start_weights.assign(features.size(), 0.0f);
        for (const Term& term : terms) start_weights[term.column] += term.value;
        double square = 0;
        for (float sum : start_weights) square += double(sum) * sum;
        const float equal = n ? static_cast<float>(n / (square + n * double(diagonal))) : 0.0f;
        start_alpha.assign(n, equal);
        for (float& weight : start_weights) weight *= -equal;
        std::vector<int32_t> order;
        uint64_t random = random_state(problem);
        for (int pass = 0; pass < kStartPasses; pass++) {
            shuffle(order, random);
            float highest = 0.0f, lowest = 0.0f;
            for (int64_t turn = 0; turn < n; turn++) {
                const int32_t i = order[turn];
                if (turn + kAhead < n)  // prefetches the rows to come (see ask_ahead in dcd_pass.h)
                    for (int64_t j = row_ptr[order[turn + kAhead]]; j < row_ptr[order[turn + kAhead] + 1]; j += 8)
                        prefetch(&terms[j]);
                float margin = 0.0f;
                for (int64_t j = row_ptr[i]; j < row_ptr[i + 1]; j++) margin += terms[j].value * start_weights[terms[j].column];
                const float alpha = start_alpha[i], gradient = -margin - 1.0f + diagonal * alpha;
                const float projected = alpha == 0.0f ? std::min(gradient, 0.0f) : gradient;
                highest = std::max(highest, projected), lowest = std::min(lowest, projected);
                const float step = std::max(alpha - gradient / (squared_norms[i] + diagonal), 0.0f) - alpha;
                if (step == 0.0f) continue;
                start_alpha[i] = alpha + step;
                for (int64_t j = row_ptr[i]; j < row_ptr[i + 1]; j++) start_weights[terms[j].column] -= terms[j].value * step;
            }
            if (highest - lowest <= 0.5f * problem.eps) break;
        }
    }
};

}  // namespace longtail
