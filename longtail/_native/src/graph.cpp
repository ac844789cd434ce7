// Rows of label graphs: co-occurrence, counted and thresholded row by row, and random walks with restart.
#include "incidence.h"
#include "random.h"

namespace longtail {
namespace {

// Tells whether the texts of two labels point away from each other: with dense vectors, sparse vectors, or neither.
struct Vectors {
    const float* dense;
    int64_t width;
    const int64_t* ptr;
    const int32_t* columns;
    const float* values;

    bool any() const { return dense != nullptr || ptr != nullptr; }

    bool apart(int32_t a, int32_t b) const {
        double product = 0;
        if (dense != nullptr) {
            for (int64_t i = 0; i < width; i++) product += double(dense[a * width + i]) * dense[b * width + i];
        } else {
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

    // Row j: G_ij/(G_jj + shrink), or with `symmetric` ½(G_ij/G_jj + G_ij/G_ii), if above `threshold`; 1 at j itself.
    // At most `top` entries, including j (top < 1: all).
    nb::tuple cooccurrence(In<int32_t> labels, double threshold, double shrink, bool symmetric, int64_t top) const {
        const Incidence& data = *made_;
        return graph_rows(data, labels, [&](int32_t label, Workspace& work) {
            const int32_t self = data.rank_of[label];
            const double whole = double(data.counts[self]) + shrink;
            // G_ij ≤ G_ii: labels too rare to be shared often enough need not be counted
            const int64_t least = symmetric ? 1 : least_count(data.counts[self], whole, threshold);
            const auto limit = static_cast<int32_t>(data.at_least(least));
            data.for_lists(self, [&](const int32_t* list) {
                for (int32_t i = 1; i <= *list && list[i] < limit; i++) work.meet(list[i]);
            });
            work.empty([&](int32_t rank, int32_t count) {
                if (count < least || rank == self) return;
                double value = count / whole;
                if (symmetric) value = (value + double(count) / double(data.counts[rank])) / 2;
                const auto stored = static_cast<float>(value);  // 0 if `shrink` is extremely large
                if (value > threshold && stored > 0) work.add(data.label_of[rank], stored);
            });
            if (top >= 1) work.keep(top - 1);
            work.add(label, 1.0f);
        });
    }

    // Row j: how often each label is visited in `hops` hops from j. A hop goes from a label to a random one of its points
    // and to a random label of that point; the next hop starts at j again with probability `restart`, else where this one
    // ended. Labels with more than `head` points are left out. Random choices depend only on `seed` and j.
    nb::tuple walk(In<int32_t> labels, int64_t hops, double restart, int64_t top, int64_t head, uint64_t seed, In2<float> dense,
                   In<int64_t> vector_ptr, In<int32_t> vector_columns, In<float> vector_values) const {
        const Incidence& data = *made_;
        const Vectors vectors{dense.shape(0) ? dense.data() : nullptr, static_cast<int64_t>(dense.shape(1)),
                              vector_ptr.shape(0) ? vector_ptr.data() : nullptr, vector_columns.data(), vector_values.data()};
        const auto first = static_cast<int32_t>(data.at_least(head + 1));  // lower ranks are the head
        return graph_rows(data, labels, [&](int32_t label, Workspace& work) {
            const int32_t self = data.rank_of[label];
            if (self >= first && data.counts[self] > 0) {
                const uint64_t state = scramble(seed ^ scramble(kRandomStep * (uint64_t(label) + 1)));
                roam(data, self, first, hops, restart, state, work);
            }
            float home = 1.0f;  // a label that is never visited, such as a head label, keeps an edge to itself
            work.empty([&](int32_t rank, int32_t count) {
                if (rank == self) home = static_cast<float>(count);
                else work.add(data.label_of[rank], static_cast<float>(count));
            });
            if (vectors.any()) work.keep_good(top - 1, [&](int32_t other) { return !vectors.apart(label, other); });
            else work.keep(top - 1);
            work.add(label, home);
        });
    }

private:
    struct Trip {
        int32_t at;
        int64_t left;  // hops
    };
    std::unique_ptr<Incidence> made_;

    // The smallest count c ≥ 1 with c/whole > threshold; more than `most` if not even `most` is enough.
    static int64_t least_count(int64_t most, double whole, double threshold) {
        if (!(double(most) / whole > threshold)) return most + 1;
        auto least = std::max<int64_t>(1, static_cast<int64_t>(threshold * whole) - 1);
        while (!(double(least) / whole > threshold)) least++;
        return least;
    }

    // Whether the next hop restarts does not depend on where the walk is. So the restarts are drawn first. They divide the
    // walk into trips, which make their first hops together, then their second, so that no trip waits for another's memory.
    static void roam(const Incidence& data, int32_t self, int32_t first, int64_t hops, double restart, uint64_t state,
                     Workspace& work) {
        std::vector<Trip> trips(1, {self, 0});
        for (int64_t hop = 0; hop < hops; hop++) {
            trips.back().left++;
            if (hop + 1 < hops && double(next_random(state) >> 11) * 0x1p-53 < restart) trips.push_back({self, 0});
        }
        while (!trips.empty()) {
            size_t going = 0;
            for (Trip trip : trips) {
                trip.at = hop_from(data, trip.at, first, state);
                work.meet(trip.at);
                if (--trip.left > 0) trips[going++] = trip;
            }
            trips.resize(going);
        }
    }

    static int32_t hop_from(const Incidence& data, int32_t rank, int32_t first, uint64_t& state) {
        const int32_t* list = data.lists.data() + data.places[data.label_ptr[rank] + random_below(state, data.counts[rank])];
        const int32_t size = *list++;
        int32_t head = 0;
        while (list[head] < first) head++;  // head labels come first; `rank` itself ends the loop
        return list[head + random_below(state, size - head)];
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
