// Balanced spherical 2-means, top down: finds the order of labels that a label tree is cut from.
#include "common.h"
#include "prefetch.h"
#include "random.h"

#include <cmath>
#include <limits>

namespace longtail {
namespace {

struct Rows {
    const int64_t* ptr;
    const int32_t* columns;
    const float* values;
};

// order[first, last) is to be divided so that order[first, middle) is one side.
struct Cut {
    int64_t first, middle, last;
};

// Makes a cut by 2-means with sides of given sizes. In each round, members are ordered by how much closer they are to the
// first centre than to the second, and divided at the middle; the new centres are the sums of both sides, scaled to unit
// length.
class Splitter {
public:
    Splitter(const Rows& rows, int64_t width, int rounds, uint64_t seed)
        : rows_(rows), rounds_(rounds), seed_(seed), first_(width), second_(width), lean_(width, 0.0f) {}

    // `number` is the number of the cut. With `shared`, the threads work on it together; else the caller uses one for each.
    void split(int32_t* order, const Cut& cut, uint64_t number, bool shared) {
        const int64_t size = cut.last - cut.first, half = cut.middle - cut.first;
        if (half < 1 || half >= size) return;
        int32_t* members = order + cut.first;  // ascending, as are both sides at the end: sums do not depend on the path
        start(members, size, number);
        scores_.resize(size), keys_.resize(size), sides_.assign(size, 0);
        for (int round = 0; round < rounds_; round++) {
            const auto score = [&](int64_t i) {
                ask_ahead(members, size, i);
                scores_[i] = product(members[i]);
            };
            if (shared) parallel_for(size, 1024, score);
            else for (int64_t i = 0; i < size; i++) score(i);
            for (int64_t i = 0; i < size; i++) keys_[i] = {scores_[i], static_cast<int32_t>(i)};
            std::nth_element(keys_.begin(), keys_.begin() + (half - 1), keys_.end(), nearer);
            const Key last = keys_[half - 1];  // of the first side
            clear();
            int64_t moved = 0;
            for (int64_t i = 0; i < size; i++) {
                const uint8_t side = nearer(last, {scores_[i], static_cast<int32_t>(i)});
                moved += side > sides_[i];
                sides_[i] = side;
            }
            if (round > 0 && moved * kSettled <= size) break;
            const auto sum_up = [&](int64_t side) {
                for (int64_t i = 0; i < size; i++) {
                    if (i + kAhead < size && sides_[i + kAhead] == side) ask_ahead(members, size, i);
                    if (sides_[i] == side) add(members[i], side ? second_ : first_);
                }
            };
            if (shared) parallel_for(2, 1, sum_up);
            else sum_up(0), sum_up(1);
            aim();
        }
        clear();
        std::vector<int32_t> others;
        int64_t at = 0;
        for (int64_t i = 0; i < size; i++) {
            if (sides_[i]) others.push_back(members[i]);
            else members[at++] = members[i];
        }
        std::copy(others.begin(), others.end(), members + at);
    }

private:
    static constexpr int kTried = 10;
    static constexpr int64_t kSettled = 50;  // stop when a round moves fewer than one member in this many: trees are as good

    struct Key {
        float score;
        int32_t place;
    };
    static bool nearer(const Key& a, const Key& b) { return a.score > b.score || (a.score == b.score && a.place < b.place); }
    Rows rows_;
    int rounds_;
    uint64_t seed_;
    struct Side {
        std::vector<float> sum;
        std::vector<uint8_t> seen;
        std::vector<int32_t> touched;  // columns of the sum that may be different from 0
        explicit Side(int64_t width) : sum(width, 0.0f), seen(width, 0) {}
        double square() const {
            double total = 0;
            for (int32_t column : touched) total += double(sum[column]) * sum[column];
            return total;
        }
    };
    Side first_, second_;
    std::vector<float> lean_;  // first centre − second centre
    std::vector<Key> keys_;
    std::vector<float> scores_;          // of each member
    std::vector<uint8_t> sides_;         // of each member: 0 the first, 1 the second

    void start(const int32_t* members, int64_t size, uint64_t number) {
        uint64_t state = scramble(seed_ + kRandomStep) + number * kRandomStep;
        const int64_t one = random_below(state, size);
        add(members[one], first_);
        aim();
        int64_t other = one;
        float least = std::numeric_limits<float>::infinity();
        for (int t = 0; t < kTried; t++) {  // of a few, the one least similar to the first: centres that start far apart stay apart
            int64_t tried = random_below(state, size - 1);
            tried += tried >= one;
            const float alike = product(members[tried]);
            if (alike < least) least = alike, other = tried;
        }
        add(members[other], second_);
        aim();
    }

    // Members are scattered over the matrix: prefetches the start of one to come (for a long one, the processor loads the
    // rest by itself).
    static constexpr int64_t kAhead = 8;
    __attribute__((always_inline)) void ask_ahead(const int32_t* members, int64_t size, int64_t i) const {
        if (i + 2 * kAhead >= size) return;
        prefetch(rows_.ptr + members[i + 2 * kAhead]);
        const int64_t begin = rows_.ptr[members[i + kAhead]];
        const int64_t end = std::min(begin + 64, rows_.ptr[members[i + kAhead] + 1]);
        for (int64_t j = begin; j < end; j += 16) prefetch(rows_.columns + j), prefetch(rows_.values + j);
    }

    float product(int32_t row) const {
        float sum = 0.0f;
        for (int64_t j = rows_.ptr[row]; j < rows_.ptr[row + 1]; j++) sum += rows_.values[j] * lean_[rows_.columns[j]];
        return sum;
    }

    void add(int32_t row, Side& side) const {
        for (int64_t j = rows_.ptr[row]; j < rows_.ptr[row + 1]; j++) {
            const int32_t column = rows_.columns[j];
            if (!side.seen[column]) {
                side.seen[column] = 1;
                side.touched.push_back(column);
            }
            side.sum[column] += rows_.values[j];
        }
    }

    void aim() {
        const double a = first_.square(), b = second_.square();
        const float scale_a = a > 0 ? float(1 / std::sqrt(a)) : 0.0f, scale_b = b > 0 ? float(1 / std::sqrt(b)) : 0.0f;
        for (const Side* side : {&first_, &second_})
            for (int32_t column : side->touched) lean_[column] = first_.sum[column] * scale_a - second_.sum[column] * scale_b;
    }

    void clear() {
        for (Side* side : {&first_, &second_}) {
            for (int32_t column : side->touched) {
                side->sum[column] = lean_[column] = 0.0f;
                side->seen[column] = 0;
            }
            side->touched.clear();
        }
    }
};

// The rows of a matrix in an order that results from cuts (C, 3), made round by round: those of round r,
// [round_ptr[r], round_ptr[r + 1]), do not overlap and lie within the sides of earlier ones.
Out<int32_t> cluster_order(In<int64_t> ptr, In<int32_t> columns, In<float> values, int64_t width, In2<int64_t> cuts,
                           In<int64_t> round_ptr, int rounds, uint64_t seed) {
    const int64_t n = static_cast<int64_t>(ptr.shape(0)) - 1;
    auto result = new_numpy<int32_t>({size_t(n)});
    int32_t* order = result.data();
    for (int64_t i = 0; i < n; i++) order[i] = static_cast<int32_t>(i);
    {
        nb::gil_scoped_release nogil;
        const Rows rows{ptr.data(), columns.data(), values.data()};
        PerThread<Splitter> splitters;
        const auto split = [&](int64_t c, bool shared) {
            const int64_t* cut = cuts.data() + 3 * c;
            splitters.mine(rows, width, rounds, seed).split(order, {cut[0], cut[1], cut[2]}, static_cast<uint64_t>(c), shared);
        };
        for (size_t r = 0; r + 1 < round_ptr.shape(0); r++) {
            const int64_t first = round_ptr.data()[r], count = round_ptr.data()[r + 1] - first;
            if (count < splitters.count())  // fewer cuts than threads: the threads share each
                for (int64_t c = 0; c < count; c++) split(first + c, true);
            else
                parallel_for(count, 1, [&](int64_t c) { split(first + c, false); }, splitters.count());
        }
    }
    return result;
}

}  // namespace

void bind_tree(nb::module_& m) { m.def("cluster_order", &cluster_order); }

}  // namespace longtail
