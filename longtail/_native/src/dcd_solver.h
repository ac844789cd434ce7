// Dual coordinate descent for the labels of one task together: passes over the rows (dcd.h) until every label is within
// eps of its optimum. Labels that are done are removed, and the remaining lanes are packed together.
#pragma once

#include "aligned.h"
#include "dcd.h"
#include "group_rows.h"
#include "simd.h"

#include <unordered_map>

namespace longtail {

struct Task {
    int64_t group, first, last;  // children [first, last) of the group
};

// Reused from task to task, so that large memory blocks are not allocated again and again.
struct DcdBuffers {
    AlignedVector<float> weights, duals, diagonal;
    std::vector<uint8_t> row_active;
    std::vector<int32_t> order, turn;
};

class DcdSolver {
public:
    DcdSolver(const LevelProblem& problem, const Task& task, GroupRows& rows, DcdBuffers& buffers)
        : problem_(problem), task_(task), rows_(rows), weights_(buffers.weights), duals_(buffers.duals),
          diagonal_(buffers.diagonal), row_active_(buffers.row_active), order_(buffers.order), turn_(buffers.turn) {
        rows.gather(problem, task.group);
        add_second_rows();
        for (int64_t child = task.first; child < task.last; child++) children_.push_back(child);
        lanes_ = rounded(static_cast<int64_t>(children_.size()));
        fill();
        start();
    }

    // done(children, which, lanes, weights) is called when the weights (columns, lanes) of some labels are final: those
    // of the lanes for which `which` is not 0.
    template <typename Done>
    void solve(Done done) {
        std::vector<float> moves(lanes_, 0.0f), bound(lanes_, kInfinity), shrunk(lanes_, 0.0f), highest(lanes_), lowest(lanes_);
        std::fill_n(moves.begin(), children_.size(), 1.0f);
        row_active_.assign(rows_.rows(), 1);
        uint64_t random = rows_.random_state(problem_);
        for (int pass = 0; pass < problem_.max_passes && !children_.empty(); pass++) {
            rows_.shuffle(order_, random);
            turn_.clear();
            for (int32_t row : order_)
                if (row_active_[row]) turn_.push_back(row);
            std::fill(highest.begin(), highest.end(), -kInfinity);
            std::fill(lowest.begin(), lowest.end(), kInfinity);
            const DcdBlock block{rows_.rows(), lanes_, rows_.row_ptr.data(), rows_.terms.data(),
                                 rows_.squared_norms.data(), weights_.data(), duals_.data(), row_active_.data(),
                                 turn_.data(), static_cast<int64_t>(turn_.size()), moves.data(), bound.data(),
                                 shrunk.data(), highest.data(), lowest.data()};
            simd().dcd_pass(block);
            next_pass(moves, bound, shrunk, highest, lowest, done);
        }
        done(children_, std::vector<float>(children_.size(), 1.0f), lanes_, weights_.data());
    }

private:
    static constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const LevelProblem& problem_;
    Task task_;
    GroupRows& rows_;
    AlignedVector<float>&weights_, &duals_;
    AlignedVector<float>& diagonal_;  // (rows, lanes): as in the duals, before any shrinking
    std::vector<uint8_t>& row_active_;
    std::vector<int32_t>&order_, &turn_;
    std::vector<int64_t> children_;  // of each lane in use
    int lanes_;
    std::unordered_map<int32_t, int32_t> second_;  // place of a row → its second place

    static int rounded(int64_t labels) { return static_cast<int>((labels + 7) / 8 * 8); }

    // The loss of a soft target is y·ℓ(+1) + (1 − y)·ℓ(−1): the row appears twice, once for each side.
    void add_second_rows() {
        for (int64_t j = problem_.target_ptr[task_.first]; j < problem_.target_ptr[task_.last]; j++) {
            const int32_t place = rows_.place(problem_.target_rows[j]);
            if (problem_.targets[j] < 1.0f && place >= 0 && !second_.count(place)) second_[place] = rows_.add_second(place);
        }
    }

    // ±1/(2·cost) of each pair, 0 if it is not part of the problem: every row is a negative of each label, except for its
    // positives.
    void fill() {
        const int64_t own = rows_.own_rows(), labels = static_cast<int64_t>(children_.size());
        diagonal_.assign(rows_.rows() * lanes_, 0.0f);
        const float negative = -0.5f / problem_.cost_negative;
        for (int64_t i = 0; i < own; i++) std::fill_n(diagonal_.begin() + i * lanes_, labels, negative);
        for (int64_t lane = 0; lane < labels; lane++) {
            const int64_t child = children_[lane];
            for (int64_t j = problem_.target_ptr[child]; j < problem_.target_ptr[child + 1]; j++) {
                const int32_t place = rows_.place(problem_.target_rows[j]);
                if (place < 0) continue;
                const float y = problem_.targets[j], cost = problem_.costs ? problem_.costs[j] : 1.0f;
                if (y < 1.0f) diagonal_[int64_t(second_.at(place)) * lanes_ + lane] = negative / (1.0f - y);
                diagonal_[int64_t(place) * lanes_ + lane] = 0.5f / (problem_.cost_positive * cost * y);
            }
            for (int64_t j = problem_.ignore_ptr ? problem_.ignore_ptr[child] : 0; problem_.ignore_ptr && j < problem_.ignore_ptr[child + 1]; j++) {
                const int32_t place = rows_.place(problem_.ignore_rows[j]);
                if (place < 0) continue;
                diagonal_[int64_t(place) * lanes_ + lane] = 0.0f;
                const auto second = second_.find(place);
                if (second != second_.end()) diagonal_[int64_t(second->second) * lanes_ + lane] = 0.0f;
            }
        }
    }

    // Every label starts from the solution without positives, minus the part that its own positives have in it.
    void start() {
        const int64_t own = rows_.own_rows(), labels = static_cast<int64_t>(children_.size());
        weights_.assign(rows_.features.size() * lanes_, 0.0f);
        for (size_t c = 0; c < rows_.features.size(); c++) std::fill_n(weights_.begin() + c * lanes_, labels, rows_.start_weights[c]);
        duals_.assign(rows_.rows() * 2 * lanes_, 0.0f);
        for (int64_t i = 0; i < own; i++) std::fill_n(duals_.begin() + i * 2 * lanes_, labels, rows_.start_alpha[i]);
        for (int64_t i = 0; i < rows_.rows(); i++)
            std::copy_n(diagonal_.begin() + i * lanes_, lanes_, duals_.begin() + (i * 2 + 1) * lanes_);
        for (int64_t lane = 0; lane < labels; lane++) {
            const int64_t child = children_[lane];
            const auto leave = [&](int32_t row) {
                const int32_t place = rows_.place(row);
                if (place < 0) return;
                float& alpha = duals_[int64_t(place) * 2 * lanes_ + lane];
                for (int64_t j = rows_.row_ptr[place]; alpha != 0.0f && j < rows_.row_ptr[place + 1]; j++)
                    weights_[int64_t(rows_.terms[j].column) * lanes_ + lane] += alpha * rows_.terms[j].value;
                alpha = 0.0f;
            };
            for (int64_t j = problem_.target_ptr[child]; j < problem_.target_ptr[child + 1]; j++) leave(problem_.target_rows[j]);
            for (int64_t j = problem_.ignore_ptr ? problem_.ignore_ptr[child] : 0; problem_.ignore_ptr && j < problem_.ignore_ptr[child + 1]; j++)
                leave(problem_.ignore_rows[j]);
        }
    }

    // LIBLINEAR's stopping rule, label by label: done when the projected gradients of *all* rows are within eps of each
    // other. If only the rows not yet shrunk away satisfy it, the others come back first.
    template <typename Done>
    void next_pass(std::vector<float>& moves, std::vector<float>& bound, std::vector<float>& shrunk,
                   const std::vector<float>& highest, const std::vector<float>& lowest, Done done) {
        int64_t open = 0;
        for (size_t l = 0; l < children_.size(); l++) {
            if (moves[l] == 0.0f) continue;
            if (highest[l] - lowest[l] > problem_.eps) {
                bound[l] = highest[l] > 0.0f ? highest[l] : kInfinity;
            } else if (shrunk[l] != 0.0f) {
                for (int64_t i = 0; i < rows_.rows(); i++)
                    if (diagonal_[i * lanes_ + l] != 0.0f) {
                        duals_[(i * 2 + 1) * lanes_ + l] = diagonal_[i * lanes_ + l];
                        row_active_[i] = 1;
                    }
                shrunk[l] = 0.0f;
                bound[l] = kInfinity;
            } else {
                moves[l] = 0.0f;
                continue;
            }
            open++;
        }
        if (rounded(open) == lanes_) return;
        std::vector<float> final(children_.size());
        for (size_t l = 0; l < children_.size(); l++) final[l] = 1.0f - moves[l];
        done(children_, final, lanes_, weights_.data());
        pack(moves, bound, shrunk);
    }

    // Removes the lanes of labels that are done.
    void pack(std::vector<float>& moves, std::vector<float>& bound, std::vector<float>& shrunk) {
        std::vector<int> kept;
        for (size_t l = 0; l < children_.size(); l++)
            if (moves[l] != 0.0f) kept.push_back(static_cast<int>(l));
        const int before = lanes_, now = rounded(static_cast<int64_t>(kept.size()));
        const auto squeeze = [&](auto& values, int64_t rows) {
            for (int64_t i = 0; i < rows; i++) {  // moves to the left, so nothing is overwritten before it is read
                for (size_t l = 0; l < kept.size(); l++) values[i * now + l] = values[i * before + kept[l]];
                for (size_t l = kept.size(); l < size_t(now); l++) values[i * now + l] = 0.0f;
            }
        };
        squeeze(weights_, static_cast<int64_t>(rows_.features.size()));
        squeeze(duals_, 2 * rows_.rows());
        squeeze(diagonal_, rows_.rows());
        for (auto* values : {&moves, &bound, &shrunk}) squeeze(*values, 1);
        for (size_t l = 0; l < kept.size(); l++) children_[l] = children_[kept[l]];
        children_.resize(kept.size());
        lanes_ = now;
    }
};

}  // namespace longtail
