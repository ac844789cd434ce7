// Prediction down a label tree: beam search over the children of each parent, node by node for a block of queries.
#include "level.h"
#include "topk.h"

#include <nanobind/stl/string.h>

#include <cmath>

namespace longtail {
namespace {

enum class Post { l3_hinge, sigmoid, none };

Post post_of(const std::string& name) {
    if (name == "l3-hinge") return Post::l3_hinge;
    if (name == "sigmoid") return Post::sigmoid;
    check(name == "none", "post must be l3-hinge, sigmoid or none");
    return Post::none;
}

// A node's score is its parent's times exp(−max(0, 1 − margin)³), or times σ(margin). Kept as logarithms on the way down:
// l3-hinge then needs no exp until the end, and what would round to 0 keeps its order. Without post the margin stands.
void combine(Post post, float parent, float* margins, int64_t count) {
    if (post == Post::l3_hinge)
        for (int64_t c = 0; c < count; c++) {
            const float gap = margins[c] < 1.0f ? 1.0f - margins[c] : 0.0f;
            margins[c] = parent - gap * gap * gap;
        }
    if (post == Post::sigmoid)
        for (int64_t c = 0; c < count; c++) margins[c] = parent - std::log1p(std::exp(-margins[c]));
}

inline void prefetch(const void* address) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(address);
#else
    (void)address;
#endif
}

struct Queries {
    const int64_t* ptr;
    const int32_t* features;
    const float* values;
    float bias;
    int32_t bias_feature;

    int64_t size(int64_t query) const { return ptr[query + 1] - ptr[query]; }
};

// A query that has reached a node, and the score it has there.
struct Visit {
    int32_t node, query;
    float score;
};

// What the nodes of the last level are called, and which of them may be named; null for their numbers, and for all.
struct Names {
    const int32_t* names;
    const uint8_t* usable;
};

// What a thread keeps between nodes and blocks.
struct Workspace {
    struct Place {
        uint32_t entry, size;
    };
    std::vector<Place> table;  // by feature: where its entries are under the node that is laid out; size 0 where nowhere
    std::vector<float> margins;
    std::vector<int64_t> starts;
    std::vector<Visit> sorted;
};

// Visits by node, those of a node by query, as they came.
void sort_by_node(std::vector<Visit>& visits, int64_t nodes, Workspace& work) {
    work.starts.assign(nodes + 1, 0);
    for (const Visit& visit : visits) work.starts[visit.node + 1]++;
    for (int64_t i = 0; i < nodes; i++) work.starts[i + 1] += work.starts[i];
    work.sorted.resize(visits.size());
    for (const Visit& visit : visits) work.sorted[work.starts[visit.node]++] = visit;
    visits.swap(work.sorted);
}

class AnyLevel {
public:
    virtual ~AnyLevel() = default;
    // Offers each query the children of the nodes it has reached; `best` has one list per query from first_query on.
    virtual void descend(const Queries& queries, std::vector<Visit>& visits, Workspace& work, Post post, const Names& names,
                         int64_t first_query, std::vector<TopK>& best) const = 0;
};

template <typename Child, typename Weight>
class LevelSearch : public AnyLevel {
public:
    LevelSearch(const Level<Child, Weight>& level, int64_t width) : level_(level), width_(width) {}

    // Node by node, so that the weights of a node are fetched once for all queries that visit it.
    void descend(const Queries& queries, std::vector<Visit>& visits, Workspace& work, Post post, const Names& names,
                 int64_t first_query, std::vector<TopK>& best) const override {
        const int64_t parents = static_cast<int64_t>(level_.child_ptr.shape(0)) - 1;
        if (visits.size() > 64) sort_by_node(visits, parents, work);
        else {
            std::stable_sort(visits.begin(), visits.end(), [](const Visit& a, const Visit& b) { return a.node < b.node; });
            fetch(queries, visits);
        }
        for (size_t i = 0; i < visits.size();) {
            const int32_t node = visits[i].node;
            size_t end = i;
            int64_t wanted = 0;
            for (; end < visits.size() && visits[end].node == node; end++) wanted += queries.size(visits[end].query);
            const int64_t first = level_.child_ptr.data()[node], count = level_.child_ptr.data()[node + 1] - first;
            // where the queries have more features between them than the node, its slots are laid out in a table first
            const bool laid_out = wanted > level_.slot_ptr.data()[node + 1] - level_.slot_ptr.data()[node];
            if (laid_out) lay_out(node, work, true);
            for (; i < end; i++) {
                work.margins.assign(count, 0.0f);
                if (laid_out) add_laid_out(node, queries, visits[i].query, work);
                else add_looked_up(node, queries, visits[i].query, work.margins.data());
                float* scores = work.margins.data();
                if (level_.scales.shape(0))
                    for (int64_t c = 0; c < count; c++) scores[c] *= level_.scales.data()[first + c];
                combine(post, visits[i].score, scores, count);
                offer(best[visits[i].query - first_query], scores, first, count, names);
            }
            if (laid_out) lay_out(node, work, false);
        }
    }

private:
    Level<Child, Weight> level_;
    int64_t width_;

    static void offer(TopK& best, const float* scores, int64_t first, int64_t count, const Names& names) {
        for (int64_t c = 0; c < count; c++)
            if ((!best.full() || scores[c] >= best.worst()) && (!names.usable || names.usable[first + c]))
                best.offer(scores[c], names.names ? names.names[first + c] : static_cast<int32_t>(first + c));
    }

    // Few queries spend their time waiting for memory: what they will look at is asked for ahead of time.
    void fetch(const Queries& queries, const std::vector<Visit>& visits) const {
        for (int step = 0; step < 2; step++)
            for (const Visit& visit : visits) {
                const int64_t first_bucket = level_.bucket_ptr.data()[visit.node];
                const int64_t buckets = level_.bucket_ptr.data()[visit.node + 1] - first_bucket - 1;
                const uint32_t* slots = level_.bucket_slots.data() + first_bucket;
                const uint32_t* entries = level_.bucket_entries.data() + first_bucket;
                const int64_t slot_base = level_.slot_ptr.data()[visit.node], base = level_.entry_ptr.data()[visit.node];
                for (int64_t j = queries.ptr[visit.query]; j < queries.ptr[visit.query + 1]; j++) {
                    const uint32_t bucket = bucket_of(hash_feature(queries.features[j]), buckets);
                    if (step == 0) {
                        prefetch(slots + bucket);
                        prefetch(entries + bucket);
                        continue;
                    }
                    prefetch(level_.features.data() + slot_base + slots[bucket]);
                    prefetch(level_.counts.data() + slot_base + slots[bucket]);
                    prefetch(level_.children.data() + base + entries[bucket]);
                    prefetch(level_.weights + base + entries[bucket]);
                }
            }
    }

    void add(const Child* children, const Weight* weights, int64_t size, float value, float* margins) const {
        for (int64_t e = 0; e < size; e++) margins[children[e]] += value * weight_of(weights[e]);
    }

    void lay_out(int32_t node, Workspace& work, bool set) const {
        if (work.table.empty()) work.table.assign(width_ + 1, {0, 0});
        uint32_t entry = 0;
        for (int64_t slot = level_.slot_ptr.data()[node]; slot < level_.slot_ptr.data()[node + 1]; slot++) {
            const uint32_t size = uint32_t(level_.counts.data()[slot]) + 1;
            work.table[level_.features.data()[slot]] = {entry, set ? size : 0};
            entry += size;
        }
    }

    void add_laid_out(int32_t node, const Queries& queries, int64_t query, Workspace& work) const {
        const int64_t base = level_.entry_ptr.data()[node];
        const Child* children = level_.children.data() + base;
        const Weight* weights = level_.weights + base;
        const auto take = [&](int32_t feature, float value) {
            const Workspace::Place place = work.table[feature];
            add(children + place.entry, weights + place.entry, place.size, value, work.margins.data());
        };
        for (int64_t j = queries.ptr[query]; j < queries.ptr[query + 1]; j++) take(queries.features[j], queries.values[j]);
        if (queries.bias != 0.0f) take(queries.bias_feature, queries.bias);
    }

    void add_looked_up(int32_t node, const Queries& queries, int64_t query, float* margins) const {
        const int64_t base = level_.entry_ptr.data()[node], first_bucket = level_.bucket_ptr.data()[node];
        const int64_t buckets = level_.bucket_ptr.data()[node + 1] - first_bucket - 1;
        const uint32_t* slots = level_.bucket_slots.data() + first_bucket;
        const uint32_t* entries = level_.bucket_entries.data() + first_bucket;
        const int32_t* features = level_.features.data() + level_.slot_ptr.data()[node];
        const Child* counts = level_.counts.data() + level_.slot_ptr.data()[node];
        const auto take = [&](int32_t feature, float value) {
            const uint32_t bucket = bucket_of(hash_feature(feature), buckets);
            uint32_t slot = slots[bucket];
            const uint32_t last = slots[bucket + 1], first = slot;
            while (slot < last && features[slot] < feature) slot++;
            if (slot == last || features[slot] != feature) return;
            int64_t entry = base + entries[bucket];
            for (uint32_t s = first; s < slot; s++) entry += int64_t(counts[s]) + 1;
            add(level_.children.data() + entry, level_.weights + entry, int64_t(counts[slot]) + 1, value, margins);
        };
        for (int64_t j = queries.ptr[query]; j < queries.ptr[query + 1]; j++) take(queries.features[j], queries.values[j]);
        if (queries.bias != 0.0f) take(queries.bias_feature, queries.bias);
    }
};

class BeamSearch {
public:
    explicit BeamSearch(int64_t width) : width_(width) {}
    BeamSearch(const BeamSearch&) = delete;

    template <typename Child, typename Weight>
    void add_level(In<int64_t> child_ptr, In<int64_t> slot_ptr, In<int64_t> entry_ptr, In<int64_t> bucket_ptr,
                   In<uint32_t> bucket_slots, In<uint32_t> bucket_entries, In<int32_t> features, In<Child> counts,
                   In<Child> children, nb::ndarray<const Weight, nb::ndim<1>, nb::c_contig, nb::device::cpu> weights, In<float> scales) {
        using Stored = std::conditional_t<std::is_same_v<Weight, uint16_t>, Half, Weight>;
        levels_.push_back(std::make_unique<LevelSearch<Child, Stored>>(
            Level<Child, Stored>{child_ptr, slot_ptr, entry_ptr, bucket_ptr, bucket_slots, bucket_entries, features, counts, children,
                                 reinterpret_cast<const Stored*>(weights.data()), scales, nb::cast(weights)}, width_));
    }

    // The k best nodes (N, k) of the last level added, and their scores; ties by lower name. They are named by `names`
    // (K, or empty for their numbers); `usable` (K, or empty for all) leaves nodes out.
    nb::tuple search(In<int64_t> ptr, In<int32_t> columns, In<float> values, float bias, int64_t beam, int64_t k,
                     const std::string& post_name, In<int32_t> names, In<uint8_t> usable) const {
        const Post post = post_of(post_name);
        const int64_t n = static_cast<int64_t>(ptr.shape(0)) - 1;
        auto found = new_numpy<int32_t>({size_t(n), size_t(k)});
        auto scores = new_numpy<float>({size_t(n), size_t(k)});
        int32_t* found_out = found.data();
        float* score_out = scores.data();
        {
            nb::gil_scoped_release nogil;
            const Queries queries{ptr.data(), columns.data(), values.data(), bias, static_cast<int32_t>(width_)};
            const Names called{names.shape(0) ? names.data() : nullptr, usable.shape(0) ? usable.data() : nullptr};
            // large enough that queries meet at nodes, small enough that every thread has some
            const int64_t block = std::max<int64_t>(1, std::min<int64_t>(kBlock, (n + 4 * threads() - 1) / (4 * threads())));
            std::vector<std::unique_ptr<Workspace>> work(std::max(1, threads()));
            parallel_for((n + block - 1) / block, 1, [&](int64_t b) {
                auto& own = work[thread_number()];
                if (!own) own = std::make_unique<Workspace>();
                const int64_t first = b * block, last = std::min(n, first + block);
                search_block(queries, first, last, beam, k, post, called, *own, found_out, score_out);
            });
        }
        return nb::make_tuple(found, scores);
    }

private:
    static constexpr int64_t kBlock = 2048;
    int64_t width_;  // features; the bias is one more
    std::vector<std::unique_ptr<AnyLevel>> levels_;

    void search_block(const Queries& queries, int64_t first, int64_t last, int64_t beam, int64_t k, Post post, const Names& names,
                      Workspace& work, int32_t* found, float* scores) const {
        std::vector<Visit> visits;
        for (int64_t q = first; q < last; q++) visits.push_back({0, static_cast<int32_t>(q), 0.0f});
        std::vector<int32_t> nodes(beam);
        std::vector<float> reached(beam);
        for (size_t t = 0; t < levels_.size(); t++) {
            const bool bottom = t + 1 == levels_.size();
            std::vector<TopK> best(last - first, TopK(bottom ? k : beam));
            levels_[t]->descend(queries, visits, work, post, bottom ? names : Names{nullptr, nullptr}, first, best);
            visits.clear();
            for (int64_t q = first; q < last; q++) {
                if (bottom) {
                    best[q - first].write(found + q * k, scores + q * k);
                    for (int64_t i = q * k; post != Post::none && i < (q + 1) * k && found[i] >= 0; i++) scores[i] = std::exp(scores[i]);
                    continue;
                }
                best[q - first].write(nodes.data(), reached.data());
                for (int64_t i = 0; i < beam && nodes[i] >= 0; i++) visits.push_back({nodes[i], static_cast<int32_t>(q), reached[i]});
            }
        }
    }
};

template <typename Child>
void bind_levels(nb::class_<BeamSearch>& search) {
    search.def("add_level", &BeamSearch::add_level<Child, float>)
        .def("add_level", &BeamSearch::add_level<Child, uint16_t>)
        .def("add_level", &BeamSearch::add_level<Child, int8_t>);
}

}  // namespace

void bind_beam(nb::module_& m) {
    nb::class_<BeamSearch> search(m, "BeamSearch");
    search.def(nb::init<int64_t>()).def("search", &BeamSearch::search);
    bind_levels<uint8_t>(search);
    bind_levels<uint16_t>(search);
    bind_levels<uint32_t>(search);
}

}  // namespace longtail
