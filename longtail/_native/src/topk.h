// Keeps the k best of the (score, index) pairs offered to it: higher score first, ties by lower index.
#pragma once

#include "simd.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace longtail {

class TopK {
public:
    explicit TopK(int64_t k) : k_(k) { heap_.reserve(k); }

    void offer(float score, int32_t index) {
        if (static_cast<int64_t>(heap_.size()) < k_) {
            heap_.emplace_back(score, index);
            std::push_heap(heap_.begin(), heap_.end(), better);
        } else if (k_ > 0 && better({score, index}, heap_.front())) {
            std::pop_heap(heap_.begin(), heap_.end(), better);
            heap_.back() = {score, index};
            std::push_heap(heap_.begin(), heap_.end(), better);
        }
    }

    bool full() const { return k_ > 0 && static_cast<int64_t>(heap_.size()) == k_; }
    float worst() const { return heap_.front().first; }

    // Returns them best first, padded with −1 and −inf. Leaves the object empty.
    void write(int32_t* indices, float* scores) {
        std::sort_heap(heap_.begin(), heap_.end(), better);
        const int64_t held = static_cast<int64_t>(heap_.size());
        for (int64_t i = 0; i < k_; i++) {
            indices[i] = i < held ? heap_[i].second : -1;
            scores[i] = i < held ? heap_[i].first : -std::numeric_limits<float>::infinity();
        }
        heap_.clear();
    }

private:
    using Entry = std::pair<float, int32_t>;
    struct Better {  // its own type, so that heaps inline the comparisons
        bool operator()(const Entry& a, const Entry& b) const {
            return a.first > b.first || (a.first == b.first && a.second < b.second);
        }
    };
    static constexpr Better better{};
    int64_t k_;
    std::vector<Entry> heap_;  // a heap whose front is the worst entry kept
};

// Offers every values[i] > floor, block by block: once the heap is full, a block is first scanned for values above the
// worst one kept, which on long rows leaves almost nothing to offer.
inline void offer_dense(TopK& best, const float* values, int64_t n, float floor) {
    constexpr int64_t block = 1024;
    int32_t above[block];
    const Simd& kernels = simd();
    for (int64_t start = 0; start < n; start += block) {
        const float bound = best.full() ? std::max(best.worst(), floor) : floor;
        const int64_t size = std::min(block, n - start);
        const int64_t count = kernels.positions_above(values + start, size, bound, above);
        for (int64_t i = 0; i < count; i++)
            best.offer(values[start + above[i]], static_cast<int32_t>(start + above[i]));
    }
}

}  // namespace longtail
