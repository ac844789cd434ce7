// Which labels stand at which points, ordered so that rows of a label graph can be counted without those that cannot matter.
#pragma once

#include "common.h"

#include <numeric>

namespace longtail {

// Labels are known by their rank, the most frequent first (ties by lower label). The labels of a point rise in rank, so
// that whoever asks only for labels of at least some frequency reads the beginning of each point's list and no more.
struct Incidence {
    std::vector<int32_t> label_of, rank_of;            // by rank; by label
    std::vector<int64_t> counts;                       // by rank, falling: points that have the label
    std::vector<int64_t> label_ptr, point_ptr;         // by rank; by point
    std::vector<int32_t> points, ranks;                // of each label, rising; of each point, rising

    // Y (N, L) CSR without values, a label at most once in a row.
    Incidence(const int64_t* ptr, const int32_t* labels, int64_t rows, int64_t width)
        : label_of(width), rank_of(width), counts(width), label_ptr(width + 1), point_ptr(rows + 1), points(ptr[rows]), ranks(ptr[rows]) {
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
        for (int64_t p = 0; p < rows; p++) {
            point_ptr[p + 1] = ptr[p + 1];
            for (int64_t i = ptr[p]; i < ptr[p + 1]; i++) points[at[rank_of[labels[i]]]++] = static_cast<int32_t>(p);
        }
        at.assign(point_ptr.begin(), point_ptr.end() - 1);  // ranks come in order, so they rise at every point
        for (int64_t r = 0; r < width; r++)
            for (int64_t i = label_ptr[r]; i < label_ptr[r + 1]; i++) ranks[at[points[i]]++] = static_cast<int32_t>(r);
    }

    int64_t width() const { return static_cast<int64_t>(label_of.size()); }

    // How many labels stand at `least` points or more: they have the ranks below it.
    int64_t at_least(int64_t least) const {
        return std::partition_point(counts.begin(), counts.end(), [&](int64_t n) { return n >= least; }) - counts.begin();
    }
};

// How often each rank was met, one table per thread; what was met is listed, so that clearing costs no more than counting.
struct Tally {
    std::vector<int32_t> count, met;
    int64_t size = 0;  // of `met`
    explicit Tally(int64_t width) : count(width, 0), met(width + 1) {}
    void add(int32_t rank) {
        met[size] = rank;  // kept only if new: no branch to mispredict
        size += count[rank]++ == 0;
    }
    // take(rank, count) for all that was met; the tally is empty afterwards.
    template <typename Take>
    void empty(Take take) {
        for (int64_t i = 0; i < size; i++) {
            const int32_t rank = met[i];
            take(rank, count[rank]);
            count[rank] = 0;
        }
        size = 0;
    }
};

struct Edge {
    int32_t label;
    float value;
    static bool stronger(const Edge& a, const Edge& b) { return a.value > b.value || (a.value == b.value && a.label < b.label); }
    static bool before(const Edge& a, const Edge& b) { return a.label < b.label; }
};
using Edges = std::vector<Edge>;

// make(label, tally, edges) for each of `labels`, and the rows as CSR arrays. Long rows come first, so that no thread is
// left with one at the end.
template <typename Make>
nb::tuple graph_rows(const Incidence& data, In<int32_t> labels, Make make) {
    const int64_t n = labels.shape(0);
    std::vector<Edges> rows(n);
    auto ptr = new_numpy<int64_t>({size_t(n + 1)});
    {
        nb::gil_scoped_release nogil;
        std::vector<int64_t> order(n);
        std::iota(order.begin(), order.end(), 0);
        for (int64_t i = 0; i < n; i++) check(labels.data()[i] >= 0 && labels.data()[i] < data.width(), "no such label");
        std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return data.rank_of[labels.data()[a]] < data.rank_of[labels.data()[b]]; });
        std::vector<std::unique_ptr<Tally>> tallies(std::max(1, threads()));
        parallel_for(n, 8, [&](int64_t i) {
            auto& tally = tallies[thread_number()];
            if (!tally) tally = std::make_unique<Tally>(data.width());
            make(labels.data()[order[i]], *tally, rows[order[i]]);
        });
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
            rows[i] = Edges();
        });
    }
    return nb::make_tuple(ptr, columns, values);
}

}  // namespace longtail
