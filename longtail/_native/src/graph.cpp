// Rows of label graphs: co-occurrence, counted and thresholded row by row, and random walks with restart.
#include "incidence.h"
#include "random.h"

namespace longtail {
namespace {

// What tells whether the texts of two labels point away from each other: dense or sparse vectors, or none of both.
struct Vectors {
    const float* dense;
    int64_t width;
    const int64_t* ptr;
    const int32_t* columns;
    const float* values;

    bool apart(int32_t a, int32_t b) const {
        double product = 0;
        if (dense != nullptr) {
            for (int64_t i = 0; i < width; i++) product += double(dense[a * width + i]) * dense[b * width + i];
        } else if (ptr != nullptr) {
            for (int64_t i = ptr[a], j = ptr[b]; i < ptr[a + 1] && j < ptr[b + 1];) {
                if (columns[i] == columns[j]) product += double(values[i]) * values[j];
                const int32_t left = columns[i], right = columns[j];
                i += left <= right, j += right <= left;
            }
        }
        return product < 0;
    }
};

class LabelGraph {
public:
    LabelGraph(In<int64_t> ptr, In<int32_t> labels, int64_t width) {
        nb::gil_scoped_release nogil;
        made_ = std::make_unique<Incidence>(ptr.data(), labels.data(), static_cast<int64_t>(ptr.shape(0)) - 1, width);
    }
    LabelGraph(const LabelGraph&) = delete;

    // Row j: G_ij/(G_jj + shrink), or with `symmetric` ½(G_ij/G_jj + G_ij/G_ii), where above `threshold`; 1 at j itself.
    // At most `top` entries, j among them (top < 1: all).
    nb::tuple cooccurrence(In<int32_t> labels, double threshold, double shrink, bool symmetric, int64_t top) const {
        const Incidence& data = *made_;
        return graph_rows(data, labels, [&](int32_t label, Tally& tally, Edges& row) {
            const int32_t self = data.rank_of[label];
            const double whole = double(data.counts[self]) + shrink;
            // G_ij ≤ G_ii: what is too rare to be shared often enough need not be counted
            const int64_t least = symmetric ? 1 : least_count(whole, threshold);
            const auto limit = static_cast<int32_t>(data.at_least(least));
            for (int64_t i = data.label_ptr[self]; i < data.label_ptr[self + 1]; i++) {
                const int64_t end = data.point_ptr[data.points[i] + 1];
                for (int64_t j = data.point_ptr[data.points[i]]; j < end && data.ranks[j] < limit; j++) tally.add(data.ranks[j]);
            }
            tally.empty([&](int32_t rank, int32_t count) {
                if (count < least || rank == self) return;
                double value = count / whole;
                if (symmetric) value = (value + double(count) / double(data.counts[rank])) / 2;
                if (value > threshold) row.push_back({data.label_of[rank], static_cast<float>(value)});
            });
            keep_strongest(row, top - 1, top >= 1);
            add_self(row, {label, 1.0f});
        });
    }

    // Row j: how often each label is met in `hops` hops from j. A hop goes from a label to a random one of its points and
    // to a random label of that point; the next one begins at j again with probability `restart`, else where this ended.
    // Labels with more than `head` points take no part. What is random follows from `seed` and j alone.
    nb::tuple walk(In<int32_t> labels, int64_t hops, double restart, int64_t top, int64_t head, uint64_t seed, In2<float> dense,
                   In<int64_t> vector_ptr, In<int32_t> vector_columns, In<float> vector_values) const {
        const Incidence& data = *made_;
        const Vectors vectors{dense.shape(0) ? dense.data() : nullptr, static_cast<int64_t>(dense.shape(1)),
                              vector_ptr.shape(0) ? vector_ptr.data() : nullptr, vector_columns.data(), vector_values.data()};
        const auto first = static_cast<int32_t>(data.at_least(head + 1));  // ranks below are the head
        return graph_rows(data, labels, [&](int32_t label, Tally& tally, Edges& row) {
            const int32_t self = data.rank_of[label];
            if (self >= first && data.counts[self] > 0)
                roam(data, self, first, hops, restart, scramble(seed ^ scramble(kRandomStep * (uint64_t(label) + 1))), tally);
            float home = 1.0f;  // a label that is never met, as the head is not, keeps an edge to itself
            tally.empty([&](int32_t rank, int32_t count) {
                if (rank == self) home = static_cast<float>(count);
                else row.push_back({data.label_of[rank], static_cast<float>(count)});
            });
            prune(row, label, top - 1, vectors);
            add_self(row, {label, home});
        });
    }

private:
    std::unique_ptr<Incidence> made_;

    // The smallest count c ≥ 1 with c/whole > threshold.
    static int64_t least_count(double whole, double threshold) {
        auto least = std::max<int64_t>(1, static_cast<int64_t>(threshold * whole) - 1);
        while (whole > 0 && !(double(least) / whole > threshold)) least++;
        return least;
    }

    // The `count` strongest edges; ties by lower label.
    static void keep_strongest(Edges& row, int64_t count, bool limited) {
        if (!limited || static_cast<int64_t>(row.size()) <= count) return;
        std::nth_element(row.begin(), row.begin() + count, row.end(), Edge::stronger);
        row.resize(count);
    }

    static void add_self(Edges& row, Edge self) {
        row.push_back(self);
        std::sort(row.begin(), row.end(), Edge::before);
        row.shrink_to_fit();
    }

    // The strongest edges to labels whose texts do not point away; looked at best first, so that few texts are compared.
    static void prune(Edges& row, int32_t label, int64_t count, const Vectors& vectors) {
        if (vectors.dense == nullptr && vectors.ptr == nullptr) return keep_strongest(row, count, true);
        std::sort(row.begin(), row.end(), Edge::stronger);
        int64_t kept = 0;
        for (size_t i = 0; i < row.size() && kept < count; i++)
            if (!vectors.apart(label, row[i].label)) row[kept++] = row[i];
        row.resize(kept);
    }

    static void roam(const Incidence& data, int32_t self, int32_t first, int64_t hops, double restart, uint64_t state, Tally& tally) {
        int32_t at = self;
        for (int64_t hop = 0; hop < hops; hop++) {
            const int64_t point = data.points[data.label_ptr[at] + random_below(state, data.counts[at])];
            int64_t begin = data.point_ptr[point];
            while (data.ranks[begin] < first) begin++;  // the head stands in front; `at` itself ends it
            at = data.ranks[begin + random_below(state, data.point_ptr[point + 1] - begin)];
            tally.add(at);
            if (double(next_random(state) >> 11) * 0x1p-53 < restart) at = self;
        }
    }
};

}  // namespace

void bind_graph(nb::module_& m) {
    nb::class_<LabelGraph>(m, "LabelGraph")
        .def(nb::init<In<int64_t>, In<int32_t>, int64_t>())
        .def("cooccurrence", &LabelGraph::cooccurrence)
        .def("walk", &LabelGraph::walk);
}

}  // namespace longtail
