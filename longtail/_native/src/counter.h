// Counting numbers, and sorting the counts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace longtail {

// A number and how often it was seen, in one word that sorts by the number.
using Count = uint64_t;
inline Count make_count(uint32_t id, uint32_t times) { return static_cast<uint64_t>(id) << 32 | times; }
inline uint32_t id_of(Count count) { return static_cast<uint32_t>(count >> 32); }
inline uint32_t times_of(Count count) { return static_cast<uint32_t>(count); }

// How often each number was seen: the size of the table depends on how many numbers there are, not on their values.
class Counter {
public:
    Counter() : slots_(1 << 8, kFree) {}

    void add(uint32_t id, uint32_t times) {
        size_t at = place(id);
        while (slots_[at] != kFree && id_of(slots_[at]) != id) at = (at + 1) & (slots_.size() - 1);
        if (slots_[at] != kFree) {
            slots_[at] += times;
            return;
        }
        slots_[at] = make_count(id, times);
        used_.push_back(static_cast<uint32_t>(at));
        if (used_.size() * 2 > slots_.size()) grow();
    }

    // Calls take(count) for each number, in order of first appearance; afterwards the counter is empty.
    template <typename Take>
    void empty(Take take) {
        for (const uint32_t at : used_) {
            take(slots_[at]);
            slots_[at] = kFree;
        }
        used_.clear();
    }

private:
    static constexpr Count kFree = 0;  // a count of zero never occurs
    std::vector<Count> slots_;         // a power of two
    std::vector<uint32_t> used_;

    size_t place(uint32_t id) const { return (id * 0x9E3779B97F4A7C15ull >> 32) & (slots_.size() - 1); }

    void grow() {
        std::vector<Count> old(slots_.size() * 2, kFree);
        old.swap(slots_);
        for (uint32_t& from : used_) {
            size_t at = place(id_of(old[from]));
            while (slots_[at] != kFree) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = old[from];
            from = static_cast<uint32_t>(at);
        }
    }
};

struct SortSpace {
    std::vector<Count> spare;
};

// Sorts counts whose numbers, all different, are below `bound`: byte by byte if there are many.
inline void sort_counts(Count* counts, int64_t n, uint64_t bound, SortSpace& space) {
    if (n < 64) {
        std::sort(counts, counts + n);
        return;
    }
    if (static_cast<int64_t>(space.spare.size()) < n) space.spare.resize(n);
    Count *from = counts, *to = space.spare.data();
    for (int shift = 32; shift < 64 && (bound - 1) >> (shift - 32); shift += 8) {
        uint32_t starts[257] = {0};
        for (int64_t i = 0; i < n; i++) starts[(from[i] >> shift & 0xFF) + 1]++;
        for (int b = 0; b < 256; b++) starts[b + 1] += starts[b];
        for (int64_t i = 0; i < n; i++) to[starts[from[i] >> shift & 0xFF]++] = from[i];
        std::swap(from, to);
    }
    if (from != counts) std::copy(from, from + n, counts);
}

}  // namespace longtail
