// Keeps the m best of the (score, number) pairs offered to it, like TopK of topk.h, but fast for hundreds too: pairs are
// collected, and the best of them selected when twice as many are there.
#pragma once

#include "simd.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace longtail {

class Best {
public:
    using Entry = std::pair<float, int32_t>;

    explicit Best(int64_t m) : m_(m) { held_.reserve(2 * m); }

    // Starts with a sorted row of `write`; −1 ends it.
    void read(const int32_t* numbers, const float* scores) {
        for (int64_t i = 0; i < m_ && numbers[i] >= 0; i++) held_.emplace_back(scores[i], numbers[i]);
        if (m_ > 0 && static_cast<int64_t>(held_.size()) == m_) bound_ = held_.back().first;
    }

    // Only scores above this can be among the best. Pairs must be offered with rising numbers: then those that are equal
    // to the worst one kept come after it.
    float bound() const { return bound_; }

    void offer(float score, int32_t number) {
        if (!(score > bound_) || m_ == 0) return;
        held_.emplace_back(score, number);
        if (static_cast<int64_t>(held_.size()) == 2 * m_) cut();
    }

    // Offers values[i] as number first + i where allowed[first + i] is not 0; `allowed` may be null.
    void offer_all(const float* values, int64_t n, int64_t first, const uint8_t* allowed) {
        constexpr int64_t block = 1024;
        int32_t above[block];
        const Simd& kernels = simd();
        for (int64_t start = 0; start < n; start += block) {
            const int64_t count = kernels.positions_above(values + start, std::min(block, n - start), bound_, above);
            for (int64_t i = 0; i < count; i++) {
                const int64_t at = start + above[i];
                if (!allowed || allowed[first + at]) offer(values[at], static_cast<int32_t>(first + at));
            }
        }
    }

    // The best ones, best first, ties by lower number.
    const std::vector<Entry>& sorted() {
        if (static_cast<int64_t>(held_.size()) > m_) cut();
        std::sort(held_.begin(), held_.end(), better);
        return held_;
    }

    // The same as rows of arrays, padded with −1 and −inf.
    void write(int32_t* numbers, float* scores) {
        sorted();
        const int64_t size = static_cast<int64_t>(held_.size());
        for (int64_t i = 0; i < m_; i++) {
            numbers[i] = i < size ? held_[i].second : -1;
            scores[i] = i < size ? held_[i].first : -std::numeric_limits<float>::infinity();
        }
    }

private:
    struct Better {  // its own type, so that the comparisons are inlined
        bool operator()(const Entry& a, const Entry& b) const {
            return a.first > b.first || (a.first == b.first && a.second < b.second);
        }
    };
    static constexpr Better better{};

    void cut() {
        std::nth_element(held_.begin(), held_.begin() + (m_ - 1), held_.end(), better);
        bound_ = held_[m_ - 1].first;
        held_.resize(m_);
    }

    int64_t m_;
    float bound_ = -std::numeric_limits<float>::infinity();
    std::vector<Entry> held_;
};

}  // namespace longtail
