// Which labels each point has, ordered so that rows of a label graph can be counted without irrelevant labels.
#pragma once

#include "common.h"
#include "prefetch.h"

#include <numeric>

namespace longtail {

// Labels are identified by their rank, the most frequent first (ties by lower label). The labels of a point have
// ascending ranks, so code that only needs labels of some minimum frequency reads just the beginning of each list.
struct Incidence {
    std::vector<int32_t> label_of, rank_of;  // by rank; by label
    std::vector<int64_t> counts, label_ptr;  // by rank: number of points with the label, descending; where its places start
    std::vector<uint32_t> places;            // of the points of each label in `lists`, ascending; no other table is needed
    std::vector<int32_t> lists;              // for each point: its number of labels, then their ranks

    // Y (N, L) CSR without values, a label at most once in a row.
    Incidence(const int64_t* ptr, const int32_t* labels, int64_t rows, int64_t width)
        : label_of(width), rank_of(width), counts(width), label_ptr(width + 1), places(ptr[rows]), lists(ptr[rows] + rows) {
        check(ptr[rows] + rows < int64_t(1) << 32, "a label graph takes at most 4,294,967,295 points and targets");
        std::vector<int64_t> frequency(width, 0);
        for (int64_t i = 0; i < ptr[rows]; i++) {
            check(labels[i] >= 0 && labels[i] < width, "a label lies outside the columns of Y");
            frequency[labels[i]]++;
        }
        std::iota(label_of.begin(), label_of.end(), 0);
        std::stable_sort(label_of.begin(), label_of.end(), [&](int32_t a, int32_t b) { return frequency[a] > frequency[b]; });
        for (int64_t r = 0; r < width; r++) {
            rank_of[label_of[r]] = static_cast<int32_t>(r);
            counts[r] = frequency[label_of[r]];
            label_ptr[r + 1] = label_ptr[r] + counts[r];
        }
        std::vector<int64_t> at(label_ptr.begin(), label_ptr.end() - 1);
        for (int64_t p = 0; p < rows; p++)
            for (int64_t i = ptr[p]; i < ptr[p + 1]; i++) places[at[rank_of[labels[i]]]++] = static_cast<uint32_t>(ptr[p] + p);
        for (int64_t r = 0; r < width; r++)  // ranks come in order, so they ascend in every list
            for (int64_t i = label_ptr[r]; i < label_ptr[r + 1]; i++) {
                int32_t* list = lists.data() + places[i];
                list[++*list] = static_cast<int32_t>(r);
            }
    }

    // Calls body(list) for the list of each point of a label. Lists are far apart in memory, so the next ones are prefetched.
    template <typename Body>
    void for_lists(int32_t rank, Body body) const {
        constexpr int64_t ahead = 8;
        const int64_t end = label_ptr[rank + 1];
        for (int64_t i = label_ptr[rank]; i < end; i++) {
            prefetch(lists.data() + places[std::min(i + ahead, end - 1)]);
            body(lists.data() + places[i]);
        }
    }

    int64_t width() const { return static_cast<int64_t>(label_of.size()); }

    // How many labels have at least `least` points: these are the ranks below the result.
    int64_t at_least(int64_t least) const {
        return std::partition_point(counts.begin(), counts.end(), [&](int64_t n) { return n >= least; }) - counts.begin();
    }
};

struct Edge {
    int32_t label;
    float value;
};

struct Stronger {  // ties by lower label
    bool operator()(const Edge& a, const Edge& b) const { return a.value > b.value || (a.value == b.value && a.label < b.label); }
};

// Buffers of a thread for making a row: how often each rank was visited, and the resulting edges. Visited ranks are
// listed, so that clearing costs no more than counting.
class Workspace {
public:
    explicit Workspace(int64_t width) : width_(width), count_(width, 0), met_(width + 1), edges_(width), other_(width) {}

    void meet(int32_t rank) {
        met_[met_size_] = rank;  // kept only if new; avoids a branch
        met_size_ += count_[rank]++ == 0;
    }

    // Calls take(rank, count) for all visited ranks; afterwards the tally is empty.
    template <typename Take>
    void empty(Take take) {
        for (int64_t i = 0; i < met_size_; i++) {
            const int32_t rank = met_[i];
            take(rank, count_[rank]);
            count_[rank] = 0;
        }
        met_size_ = 0;
    }

    void add(int32_t label, float value) { edges_[size_++] = {label, value}; }

    // The `count` strongest edges.
    void keep(int64_t count) {
        if (size_ <= count) return;
        std::nth_element(edges_.begin(), edges_.begin() + count, edges_.begin() + size_, Stronger());
        size_ = count;
    }

    // The `count` strongest edges to labels that are `good`; the strongest are checked first, so that few are checked.
    template <typename Good>
    void keep_good(int64_t count, Good good) {
        std::sort(edges_.begin(), edges_.begin() + size_, Stronger());
        int64_t kept = 0;
        for (int64_t i = 0; i < size_ && kept < count; i++)
            if (good(edges_[i].label)) edges_[kept++] = edges_[i];
        size_ = kept;
    }

    // Returns the edges by ascending label; afterwards there are none.
    std::vector<Edge> take_row() {
        sort();
        std::vector<Edge> row(edges_.begin(), edges_.begin() + size_);
        size_ = 0;
        return row;
    }

private:
    int64_t width_, met_size_ = 0, size_ = 0;
    std::vector<int32_t> count_, met_;
    std::vector<Edge> edges_, other_;

    // Sorts long rows digit by digit, which is much faster than comparing.
    void sort() {
        constexpr int bits = 11;
        if (size_ < 512) {
            std::sort(edges_.begin(), edges_.begin() + size_, [](const Edge& a, const Edge& b) { return a.label < b.label; });
            return;
        }
        for (int shift = 0; (width_ - 1) >> shift > 0; shift += bits) {
            const auto digit = [&](const Edge& edge) { return edge.label >> shift & ((1 << bits) - 1); };
            int64_t starts[(1 << bits) + 1] = {};
            for (int64_t i = 0; i < size_; i++) starts[digit(edges_[i]) + 1]++;
            for (int d = 0; d < 1 << bits; d++) starts[d + 1] += starts[d];
            for (int64_t i = 0; i < size_; i++) other_[starts[digit(edges_[i])]++] = edges_[i];
            edges_.swap(other_);
        }
    }
};

// Calls make(label, workspace) for each of `labels`, and returns the rows as CSR arrays. Long rows come first, so that
// no thread is left with one at the end.
template <typename Make>
nb::tuple graph_rows(const Incidence& data, In<int32_t> labels, Make make) {
    const int64_t n = labels.shape(0);
    std::vector<std::vector<Edge>> rows(n);
    auto ptr = new_numpy<int64_t>({size_t(n + 1)});
    {
        nb::gil_scoped_release nogil;
        std::vector<int64_t> order(n);
        std::iota(order.begin(), order.end(), 0);
        for (int64_t i = 0; i < n; i++) check(labels.data()[i] >= 0 && labels.data()[i] < data.width(), "no such label");
        std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return data.rank_of[labels.data()[a]] < data.rank_of[labels.data()[b]]; });
        PerThread<Workspace> works;
        const auto make_row = [&](int64_t i) {
            Workspace& work = works.mine(data.width());
            make(labels.data()[order[i]], work);
            rows[order[i]] = work.take_row();
        };
        parallel_for(n, 8, make_row, works.count());
        ptr.data()[0] = 0;
        for (int64_t i = 0; i < n; i++) ptr.data()[i + 1] = ptr.data()[i] + static_cast<int64_t>(rows[i].size());
    }
    auto columns = new_numpy<int32_t>({size_t(ptr.data()[n])});
    auto values = new_numpy<float>({size_t(ptr.data()[n])});
    {
        nb::gil_scoped_release nogil;
        parallel_for(n, 256, [&](int64_t i) {
            int64_t at = ptr.data()[i];
            for (const Edge& edge : rows[i]) columns.data()[at] = edge.label, values.data()[at++] = edge.value;
            rows[i] = {};
        });
    }
    return nb::make_tuple(ptr, columns, values);
}

}  // namespace longtail
