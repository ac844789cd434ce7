// Beam search over the children of each parent: node by node for a block of queries, or best first for a few.
#include "common.h"
#include "level.h"
#include "prefetch.h"
#include "topk.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <optional>

namespace longtail {
namespace {

enum class Post { l3_hinge, sigmoid, none };

// How margins become scores: on the levels above, and on the last one.
struct Posts {
    Post above, last;
};

Posts posts_of(const std::string& name) {
    if (name == "l3-hinge") return {Post::l3_hinge, Post::l3_hinge};
    if (name == "sigmoid") return {Post::sigmoid, Post::sigmoid};
    if (name == "l3-hinge+none") return {Post::l3_hinge, Post::none};
    check(name == "none", "post must be l3-hinge, sigmoid, none or l3-hinge+none");
    return {Post::none, Post::none};
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

// Sparse rows, and beside them the rows of a dense block (may have no columns).
struct Queries {
    const int64_t* ptr;
    const int32_t* features;
    const float* values;
    const float* dense;
    int64_t dense_width;
    int32_t first_dense, bias_feature;
    float bias;

    int64_t size(int64_t query) const { return ptr[query + 1] - ptr[query] + dense_width; }
    Query operator[](int64_t query) const {
        return {features + ptr[query], values + ptr[query], ptr[query + 1] - ptr[query], dense + query * dense_width, dense_width,
                first_dense, bias_feature, bias};
    }
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
    std::vector<Place> table;  // over mixed features: the slots of the node that is laid out
    std::vector<float> margins;
    std::vector<int64_t> starts;
    std::vector<Visit> round, sorted;
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

// What is asked of a level: the best children of the nodes that queries have reached.
struct Search {
    const Queries& queries;
    Post post;
    Names names;
    int64_t first_query;
    std::vector<TopK>& best;  // one list per query from first_query on

    TopK& list(const Visit& visit) const { return best[visit.query - first_query]; }

    // No child scores higher than its parent: where the parent is worse than all that is kept, none can come in.
    bool hopeless(const Visit& visit) const {
        return post != Post::none && list(visit).full() && visit.score < list(visit).worst();
    }
};

class LevelSearch {
public:
    LevelSearch(In<int64_t> child_ptr, In<int64_t> bucket_ptr, In<int64_t> data_ptr, In<uint32_t> buckets, In<uint8_t> data,
                In<float> scales, int64_t child_bytes, int64_t weight_bytes, int64_t width)
        : child_ptr_(child_ptr), bucket_ptr_(bucket_ptr), data_ptr_(data_ptr), buckets_(buckets), data_(data), scales_(scales),
          mix_(mix_of(width + 1)), kernels_(simd().node[place(child_bytes)][place(weight_bytes)]) {
        check_sizes(child_bytes, weight_bytes);
        for (int64_t p = 0; p < parents(); p++) {
            int shift = mix_.bits;
            while ((int64_t(1) << (mix_.bits - shift)) < buckets_of(p)) shift--;
            shifts_.push_back(static_cast<uint8_t>(shift));
        }
    }

    int64_t parents() const { return static_cast<int64_t>(child_ptr_.shape(0)) - 1; }
    int64_t nodes() const { return child_ptr_.data()[parents()]; }

    // Visits come query by query, best first.
    void descend(const Search& search, const std::vector<Visit>& visits, Workspace& work) const {
        if (visits.size() <= kFew) few(search, visits, work);
        else many(search, visits, work);
    }

private:
    static constexpr size_t kFew = 64;      // visits that are made as they come
    static constexpr int64_t kAhead = 128;  // features whose weights are asked for ahead of time
    In<int64_t> child_ptr_, bucket_ptr_, data_ptr_;
    In<uint32_t> buckets_;
    In<uint8_t> data_;
    In<float> scales_;
    Mix mix_;
    NodeKernels kernels_;
    std::vector<uint8_t> shifts_;

    static int place(int64_t bytes) {
        check(bytes == 1 || bytes == 2 || bytes == 4, "numbers of children and weights have 1, 2 or 4 bytes");
        return bytes == 1 ? 0 : bytes == 2 ? 1 : 2;
    }
    int64_t buckets_of(int64_t p) const { return bucket_ptr_.data()[p + 1] - bucket_ptr_.data()[p]; }
    int64_t bytes_of(int64_t p) const { return data_ptr_.data()[p + 1] - data_ptr_.data()[p]; }

    // Refuses arrays that do not belong together, such as those of a damaged file. What is in the records is not looked at:
    // that would read all of a file that is mapped.
    void check_sizes(int64_t child_bytes, int64_t weight_bytes) const {
        const size_t ends = child_ptr_.shape(0);
        check(ends > 0 && bucket_ptr_.shape(0) == ends && data_ptr_.shape(0) == ends, "the arrays of a level differ in their parents");
        const int64_t *children = child_ptr_.data(), *buckets = bucket_ptr_.data(), *bytes = data_ptr_.data(), last = parents();
        check(children[0] == 0 && buckets[0] == 0 && bytes[0] == 0, "an array of a level does not begin at 0");
        for (int64_t p = 0; p < last; p++) {
            const int64_t own = children[p + 1] - children[p], count = buckets_of(p);
            check(own >= 0 && own <= int64_t(1) << 8 * child_bytes, "a parent has more children than it can number, or fewer than none");
            check(count > 0 && (count & (count - 1)) == 0 && count <= int64_t(mix_.mask) + 1, "a parent has a wrong number of buckets");
            check(bytes_of(p) >= 4 && bytes_of(p) % 4 == 0, "the records of a parent do not end where they should");
        }
        check(buckets[last] == static_cast<int64_t>(buckets_.shape(0)), "a level has more or fewer buckets than its parents");
        check(bytes[last] + kSlack == static_cast<int64_t>(data_.shape(0)), "a level has more or fewer bytes than its parents");
        check(static_cast<int64_t>(scales_.shape(0)) == (weight_bytes == 1 ? nodes() : 0), "a level has more or fewer scales than nodes");
    }

    Node node(int64_t p) const {
        return {buckets_.data() + bucket_ptr_.data()[p], data_.data() + data_ptr_.data()[p], mix_, shifts_[p],
                child_ptr_.data()[p + 1] - child_ptr_.data()[p]};
    }

    // In the order they come, so that most of what is hopeless is known to be. Single queries spend their time waiting for
    // memory: what they will look at is asked for ahead of time.
    void few(const Search& search, const std::vector<Visit>& visits, Workspace& work) const {
        size_t fetched = 0;
        for (size_t i = 0; i < visits.size(); i++) {
            if (search.hopeless(visits[i])) continue;
            if (i >= fetched) fetched = fetch(search, visits, i);
            const Node own = node(visits[i].node);
            clear(own, work);
            kernels_.add(own, search.queries[visits[i].query], work.margins.data());
            offer(search, visits[i], own, work.margins.data());
        }
    }

    // Asks for the buckets, then for the records of as many visits as have kAhead features between them; returns the end.
    size_t fetch(const Search& search, const std::vector<Visit>& visits, size_t first) const {
        int64_t features = 0;
        size_t last = first;
        for (; last < visits.size() && (last == first || features < kAhead); last++) features += search.queries.size(visits[last].query);
        for (int step = 0; step < 2; step++)
            for (size_t i = first; i < last; i++) {
                const Node own = node(visits[i].node);
                each_feature(search.queries[visits[i].query], [&](int32_t feature, float) {
                    const uint32_t at = mixed(mix_, feature);
                    if (step == 0) prefetch(own.buckets + (at >> own.shift));
                    else prefetch(record_of(own, at)), prefetch(record_of(own, at) + 64);
                });
            }
        return last;
    }

    // In rounds of 2, 4, 8, … visits of every query, the best first, so that hopeless ones are left out of later rounds; in
    // a round node by node, so that the weights of a node are fetched once for all queries that visit it.
    void many(const Search& search, const std::vector<Visit>& visits, Workspace& work) const {
        bool more = true;
        for (int64_t from = 0, size = 2; more; from += size, size *= 2) {
            more = false;
            work.round.clear();
            int64_t rank = 0;
            for (size_t i = 0; i < visits.size(); i++, rank++) {
                if (i > 0 && visits[i].query != visits[i - 1].query) rank = 0;
                more |= rank >= from + size;
                if (rank >= from && rank < from + size && !search.hopeless(visits[i])) work.round.push_back(visits[i]);
            }
            sort_by_node(work.round, parents(), work);
            by_node(search, work.round, work);
        }
    }

    void by_node(const Search& search, const std::vector<Visit>& visits, Workspace& work) const {
        for (size_t i = 0; i < visits.size();) {
            const int32_t number = visits[i].node;
            const Node own = node(number);
            size_t end = i;
            int64_t wanted = 0;
            for (; end < visits.size() && visits[end].node == number; end++) wanted += search.queries.size(visits[end].query);
            // where the queries have more features between them than the node, its slots are laid out in a table first
            const bool laid_out = wanted > kSlotsPerBucket * buckets_of(number) && bytes_of(number) < int64_t(1) << 32;
            if (laid_out) {
                if (work.table.empty()) work.table.assign(size_t(mix_.mask) + 1, {0, 0});
                kernels_.lay_out(own, buckets_of(number), work.table.data(), true);
            }
            for (; i < end; i++) {
                clear(own, work);
                const Query query = search.queries[visits[i].query];
                if (laid_out) kernels_.add_laid_out(own, query, work.table.data(), work.margins.data());
                else kernels_.add(own, query, work.margins.data());
                offer(search, visits[i], own, work.margins.data());
            }
            if (laid_out) kernels_.lay_out(own, buckets_of(number), work.table.data(), false);
        }
    }

    // Room for whole vectors, and for any child that one byte can number: kernels add 0 beyond the last.
    static void clear(const Node& own, Workspace& work) {
        const size_t size = static_cast<size_t>((own.children + 7) & ~int64_t(7));
        if (work.margins.size() < std::max<size_t>(size, 256)) work.margins.resize(std::max<size_t>(size, 256));
        std::fill_n(work.margins.begin(), size, 0.0f);
    }

    void offer(const Search& search, const Visit& visit, const Node& own, float* scores) const {
        const int64_t first = child_ptr_.data()[visit.node];
        if (scales_.shape(0))
            for (int64_t c = 0; c < own.children; c++) scores[c] *= scales_.data()[first + c];
        combine(search.post, visit.score, scores, own.children);
        const Names& names = search.names;
        TopK& best = search.list(visit);
        for (int64_t c = 0; c < own.children; c++)
            if ((!best.full() || scores[c] >= best.worst()) && (!names.usable || names.usable[first + c]))
                best.offer(scores[c], names.names ? names.names[first + c] : static_cast<int32_t>(first + c));
    }
};

class BeamSearch {
public:
    explicit BeamSearch(int64_t width) : width_(width) {}
    BeamSearch(const BeamSearch&) = delete;

    void add_level(In<int64_t> child_ptr, In<int64_t> bucket_ptr, In<int64_t> data_ptr, In<uint32_t> buckets, In<uint8_t> data,
                   In<float> scales, int64_t child_bytes, int64_t weight_bytes) {
        const int64_t reached = levels_.empty() ? 1 : levels_.back().nodes();
        check(static_cast<int64_t>(child_ptr.shape(0)) == reached + 1, "a level has more or fewer parents than the one above has nodes");
        levels_.emplace_back(child_ptr, bucket_ptr, data_ptr, buckets, data, scales, child_bytes, weight_bytes, width_);
    }

    // The k best nodes (N, k) of the last level added, and their scores; ties by lower name. A point is a sparse row and, unless
    // `dense` (N, e) is none, a dense one, whose columns are the last e features. Nodes are named by `names` (K, or none for
    // their numbers); `usable` (K, or none for all) leaves nodes out.
    nb::tuple search(In<int64_t> ptr, In<int32_t> columns, In<float> values, std::optional<In2<float>> dense, float bias, int64_t beam,
                     int64_t k, const std::string& post_name, std::optional<In<int32_t>> names, std::optional<In<uint8_t>> usable) const {
        const Posts posts = posts_of(post_name);
        const int64_t n = static_cast<int64_t>(ptr.shape(0)) - 1;
        const int64_t dense_width = dense ? static_cast<int64_t>(dense->shape(1)) : 0;
        check(!levels_.empty(), "a search needs a level");
        check(!dense || static_cast<int64_t>(dense->shape(0)) == n, "the dense block has more or fewer rows than the sparse one");
        check(dense_width <= width_, "the dense block has more columns than there are features");
        const size_t nodes = static_cast<size_t>(levels_.back().nodes());
        check(!names || names->shape(0) == nodes, "names must be as many as the nodes of the last level");
        check(!usable || usable->shape(0) == nodes, "marks of what is usable must be as many as the nodes of the last level");
        auto found = new_numpy<int32_t>({size_t(n), size_t(k)});
        auto scores = new_numpy<float>({size_t(n), size_t(k)});
        int32_t* found_out = found.data();
        float* score_out = scores.data();
        {
            nb::gil_scoped_release nogil;
            const Queries queries{ptr.data(), columns.data(), values.data(), dense ? dense->data() : nullptr, dense_width,
                                  static_cast<int32_t>(width_ - dense_width), static_cast<int32_t>(width_), bias};
            const Names called{names ? names->data() : nullptr, usable ? usable->data() : nullptr};
            // large enough that queries meet at nodes, small enough that every thread has some
            PerThread<Workspace> work;
            const int64_t parts = 4 * work.count();
            const int64_t block = std::max<int64_t>(1, std::min<int64_t>(kBlock, (n + parts - 1) / parts));
            const auto search = [&](int64_t b) {
                const int64_t first = b * block, last = std::min(n, first + block);
                search_block(queries, first, last, beam, k, posts, called, work.mine(), found_out, score_out);
            };
            parallel_for((n + block - 1) / block, 1, search, work.count());
        }
        return nb::make_tuple(found, scores);
    }

private:
    static constexpr int64_t kBlock = 2048;
    int64_t width_;  // features; the bias is one more
    std::vector<LevelSearch> levels_;

    void search_block(const Queries& queries, int64_t first, int64_t last, int64_t beam, int64_t k, Posts posts, const Names& names,
                      Workspace& work, int32_t* found, float* scores) const {
        std::vector<Visit> visits;
        for (int64_t q = first; q < last; q++) visits.push_back({0, static_cast<int32_t>(q), 0.0f});
        std::vector<int32_t> nodes;
        std::vector<float> reached;
        for (size_t t = 0; t < levels_.size(); t++) {
            const bool bottom = t + 1 == levels_.size();
            const Post post = bottom ? posts.last : posts.above;
            const int64_t kept = bottom ? k : std::min(beam, levels_[t].nodes());  // a beam may be wider than the level
            std::vector<TopK> best(last - first, TopK(kept));
            levels_[t].descend({queries, post, bottom ? names : Names{nullptr, nullptr}, first, best}, visits, work);
            visits.clear();
            for (int64_t q = first; q < last; q++) {
                if (bottom) {
                    best[q - first].write(found + q * k, scores + q * k);
                    for (int64_t i = q * k; post != Post::none && i < (q + 1) * k && found[i] >= 0; i++) scores[i] = std::exp(scores[i]);
                    continue;
                }
                nodes.resize(kept), reached.resize(kept);
                best[q - first].write(nodes.data(), reached.data());
                for (int64_t i = 0; i < kept && nodes[i] >= 0; i++) visits.push_back({nodes[i], static_cast<int32_t>(q), reached[i]});
            }
        }
    }
};

}  // namespace

void bind_beam(nb::module_& m) {
    nb::class_<BeamSearch>(m, "BeamSearch")
        .def(nb::init<int64_t>())
        .def("add_level", &BeamSearch::add_level)
        .def("search", &BeamSearch::search, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg().none(), nb::arg().none());
}

}  // namespace longtail
