// Balanced spherical 2-means, top down: the order of labels that a label tree is cut from.
#include "common.h"
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

struct Node {
    int64_t first, last;  // members are order[first, last)
    uint64_t number;      // of the node in its tree, the root being 1
};

// Cuts a node in two of equal size (the first has one more where the number is odd). Each round, members are ordered by
// how much nearer they are to the first centre than to the second and cut in the middle; the new centres are the sums
// of both sides, scaled to unit length.
class Splitter {
public:
    Splitter(const Rows& rows, int64_t width, int rounds, uint64_t seed)
        : rows_(rows), rounds_(rounds), seed_(seed), first_(width, 0.0f), second_(width, 0.0f), lean_(width, 0.0f),
          seen_(width, 0) {}

    // With `shared`, the threads work together on this node; else the caller has one thread for each.
    void split(int32_t* order, const Node& node, bool shared) {
        const int64_t size = node.last - node.first, half = (size + 1) / 2;
        int32_t* members = order + node.first;
        start(members, size, node.number);
        std::vector<int32_t> now(size);
        keys_.resize(size);
        for (int round = 0; round < rounds_; round++) {
            const auto score = [&](int64_t i) { keys_[i] = {product(members[i]), members[i]}; };
            if (shared) parallel_for(size, 1024, score);
            else for (int64_t i = 0; i < size; i++) score(i);
            std::nth_element(keys_.begin(), keys_.begin() + (half - 1), keys_.end(), [](const Key& a, const Key& b) {
                return a.score > b.score || (a.score == b.score && a.member < b.member);
            });
            // rising on both sides: sums then do not depend on how the selection left them
            for (int64_t i = 0; i < size; i++) now[i] = keys_[i].member;
            std::sort(now.begin(), now.begin() + half);
            std::sort(now.begin() + half, now.end());
            // two sorted sides: what moved is what the first side has now and had not before
            int64_t stayed = 0;
            for (int64_t a = 0, b = 0; round > 0 && a < half && b < half;)
                if (now[a] == members[b]) stayed++, a++, b++;
                else now[a] < members[b] ? a++ : b++;
            const bool settled = round > 0 && (half - stayed) * kSettled <= size;
            std::copy(now.begin(), now.end(), members);
            clear();
            if (settled) break;
            for (int64_t i = 0; i < half; i++) add(members[i], first_);
            for (int64_t i = half; i < size; i++) add(members[i], second_);
            aim();
        }
        clear();
    }

private:
    static constexpr int kTried = 10;
    static constexpr int64_t kSettled = 200;  // a round that moves less than one member in so many is the last

    struct Key {
        float score;
        int32_t member;
    };
    Rows rows_;
    int rounds_;
    uint64_t seed_;
    std::vector<float> first_, second_;  // the sums of both sides
    std::vector<float> lean_;            // first centre − second centre
    std::vector<uint8_t> seen_;
    std::vector<int32_t> touched_;       // columns in which anything above is not 0
    std::vector<Key> keys_;

    void start(const int32_t* members, int64_t size, uint64_t number) {
        uint64_t state = scramble(seed_ + kRandomStep) + number * kRandomStep;
        const int64_t one = random_below(state, size);
        add(members[one], first_);
        aim();
        int64_t other = one;
        float least = std::numeric_limits<float>::infinity();
        for (int t = 0; t < kTried; t++) {  // of a few, the one least like the first: centres that start apart stay apart
            int64_t tried = random_below(state, size - 1);
            tried += tried >= one;
            const float alike = product(members[tried]);
            if (alike < least) least = alike, other = tried;
        }
        add(members[other], second_);
        aim();
    }

    float product(int32_t row) const {
        float sum = 0.0f;
        for (int64_t j = rows_.ptr[row]; j < rows_.ptr[row + 1]; j++) sum += rows_.values[j] * lean_[rows_.columns[j]];
        return sum;
    }

    void add(int32_t row, std::vector<float>& sum) {
        for (int64_t j = rows_.ptr[row]; j < rows_.ptr[row + 1]; j++) {
            const int32_t column = rows_.columns[j];
            if (!seen_[column]) {
                seen_[column] = 1;
                touched_.push_back(column);
            }
            sum[column] += rows_.values[j];
        }
    }

    void aim() {
        double a = 0, b = 0;
        for (int32_t column : touched_) {
            a += double(first_[column]) * first_[column];
            b += double(second_[column]) * second_[column];
        }
        const float scale_a = a > 0 ? float(1 / std::sqrt(a)) : 0.0f, scale_b = b > 0 ? float(1 / std::sqrt(b)) : 0.0f;
        for (int32_t column : touched_) lean_[column] = first_[column] * scale_a - second_[column] * scale_b;
    }

    void clear() {
        for (int32_t column : touched_) {
            first_[column] = second_[column] = lean_[column] = 0.0f;
            seen_[column] = 0;
        }
        touched_.clear();
    }
};

// The rows of a matrix in an order whose 2^depth equal stretches are the clusters of a binary tree.
Out<int32_t> cluster_order(In<int64_t> ptr, In<int32_t> columns, In<float> values, int64_t width, int depth, int rounds,
                           uint64_t seed) {
    const int64_t n = static_cast<int64_t>(ptr.shape(0)) - 1;
    auto result = new_numpy<int32_t>({size_t(n)});
    int32_t* order = result.data();
    for (int64_t i = 0; i < n; i++) order[i] = static_cast<int32_t>(i);
    {
        nb::gil_scoped_release nogil;
        const Rows rows{ptr.data(), columns.data(), values.data()};
        std::vector<std::unique_ptr<Splitter>> splitters(std::max(1, threads()));
        const auto splitter = [&](int number) -> Splitter& {
            if (!splitters[number]) splitters[number] = std::make_unique<Splitter>(rows, width, rounds, seed);
            return *splitters[number];
        };
        std::vector<Node> level{{0, n, 1}};
        for (int d = 0; d < depth; d++) {
            const int64_t count = static_cast<int64_t>(level.size());
            if (count < 4)  // too few nodes to go round: the threads share each
                for (const Node& node : level)
                    if (node.last - node.first > 1) splitter(0).split(order, node, true);
            if (count >= 4)
                parallel_for(count, 1, [&](int64_t i) {
                    if (level[i].last - level[i].first > 1) splitter(thread_number()).split(order, level[i], false);
                });
            std::vector<Node> next;
            for (const Node& node : level) {
                const int64_t middle = node.first + (node.last - node.first + 1) / 2;
                next.push_back({node.first, middle, node.number * 2});
                next.push_back({middle, node.last, node.number * 2 + 1});
            }
            level = std::move(next);
        }
    }
    return result;
}

}  // namespace

void bind_tree(nb::module_& m) { m.def("cluster_order", &cluster_order); }

}  // namespace longtail
