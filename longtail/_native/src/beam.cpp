// Prediction down a label tree: beam search over the children of each parent. The weights of siblings lie together,
// feature-major: a feature of a query is looked up once per parent and then adds to all children that use it.
#include "common.h"
#include "topk.h"

#include <nanobind/stl/string.h>

#include <cmath>

namespace longtail {
namespace {

// One level: parent p has the children [child_ptr[p], child_ptr[p + 1]), and of its features (rising)
// features[slot_ptr[p] … slot_ptr[p + 1]) each slot s the entries [entry_ptr[s], entry_ptr[s + 1]).
struct Level {
    In<int64_t> child_ptr, slot_ptr;
    In<int32_t> features;
    In<int64_t> entry_ptr;
    In<uint16_t> children;  // within the parent
    In<float> weights;
};

enum class Post { l3_hinge, sigmoid, none };

Post post_of(const std::string& name) {
    if (name == "l3-hinge") return Post::l3_hinge;
    if (name == "sigmoid") return Post::sigmoid;
    check(name == "none", "post must be l3-hinge, sigmoid or none");
    return Post::none;
}

struct Queries {
    const int64_t* ptr;
    const int32_t* features;
    const float* values;
    float bias;
    int32_t bias_feature;  // the highest feature of all
};

// A query that has reached a node, and the score it has there.
struct Visit {
    int32_t node, query;
    float score;
};

// Finds the features of one parent for many queries. Where the queries have more features between them than the parent,
// its slots are first laid out in a table over all features; else each feature is searched for.
class Lookup {
public:
    explicit Lookup(int64_t width) : width_(width) {}

    void open(const Level& level, int64_t parent, int64_t wanted) {
        features_ = level.features.data();
        first_ = level.slot_ptr.data()[parent];
        last_ = level.slot_ptr.data()[parent + 1];
        laid_out_ = wanted > last_ - first_;
        if (laid_out_ && table_.empty()) table_.assign(width_ + 1, -1);  // few single queries need it
        if (laid_out_)
            for (int64_t slot = first_; slot < last_; slot++) table_[features_[slot]] = static_cast<int32_t>(slot - first_);
    }

    void close() {
        if (laid_out_)
            for (int64_t slot = first_; slot < last_; slot++) table_[features_[slot]] = -1;
    }

    // Calls add(slot, value) for every feature that query and parent share.
    template <typename Add>
    void each(const Queries& queries, int64_t query, Add add) const {
        const int64_t begin = queries.ptr[query], end = queries.ptr[query + 1];
        if (laid_out_) {
            for (int64_t j = begin; j < end; j++) {
                const int32_t slot = table_[queries.features[j]];
                if (slot >= 0) add(first_ + slot, queries.values[j]);
            }
        } else {
            const int32_t *at = features_ + first_, *stop = features_ + last_;
            for (int64_t j = begin; j < end; j++) {
                const int32_t wanted = queries.features[j];
                int64_t step = 1;  // gallop, then halve: the next feature is rarely far
                while (step < stop - at && at[step] < wanted) at += step, step *= 2;
                at = std::lower_bound(at, std::min(stop, at + step + 1), wanted);
                if (at == stop) break;
                if (*at == wanted) add(at - features_, queries.values[j]);
            }
        }
        if (queries.bias != 0.0f && last_ > first_ && features_[last_ - 1] == queries.bias_feature) add(last_ - 1, queries.bias);
    }

private:
    int64_t width_;
    std::vector<int32_t> table_;
    const int32_t* features_ = nullptr;
    int64_t first_ = 0, last_ = 0;
    bool laid_out_ = false;
};

// A node's score is its parent's times exp(−max(0, 1 − margin)³), or times σ(margin). Kept as logarithms on the way down:
// l3-hinge then needs no exp until the end, and what would round to 0 keeps its order. Without post the margin stands.
float combine(Post post, float parent, float margin) {
    switch (post) {
        case Post::l3_hinge: {
            const float gap = margin < 1.0f ? 1.0f - margin : 0.0f;
            return parent - gap * gap * gap;
        }
        case Post::sigmoid: return parent - std::log1p(std::exp(-margin));
        default: return margin;
    }
}

class BeamSearch {
public:
    explicit BeamSearch(int64_t width) : width_(width) {}

    void add_level(In<int64_t> child_ptr, In<int64_t> slot_ptr, In<int32_t> features, In<int64_t> entry_ptr,
                   In<uint16_t> children, In<float> weights) {
        levels_.push_back({child_ptr, slot_ptr, features, entry_ptr, children, weights});
    }

    // The k best nodes (N, k) of the last level added, and their scores. `usable` (K, or empty for all) leaves nodes out.
    nb::tuple search(In<int64_t> ptr, In<int32_t> columns, In<float> values, float bias, int64_t beam, int64_t k,
                     const std::string& post_name, In<uint8_t> usable) const {
        const Post post = post_of(post_name);
        const int64_t n = static_cast<int64_t>(ptr.shape(0)) - 1;
        auto found = new_numpy<int32_t>({size_t(n), size_t(k)});
        auto scores = new_numpy<float>({size_t(n), size_t(k)});
        int32_t* found_out = found.data();
        float* score_out = scores.data();
        {
            nb::gil_scoped_release nogil;
            const Queries queries{ptr.data(), columns.data(), values.data(), bias, static_cast<int32_t>(width_)};
            // large enough that queries meet at nodes, small enough that every thread has some
            const int64_t block = std::max<int64_t>(1, std::min<int64_t>(kBlock, (n + 4 * threads() - 1) / (4 * threads())));
            std::vector<std::unique_ptr<Lookup>> lookups(std::max(1, threads()));
            parallel_for((n + block - 1) / block, 1, [&](int64_t b) {
                auto& lookup = lookups[thread_number()];
                if (!lookup) lookup = std::make_unique<Lookup>(width_);
                const int64_t first = b * block, last = std::min(n, first + block);
                std::vector<Visit> visits;
                for (int64_t q = first; q < last; q++) visits.push_back({0, static_cast<int32_t>(q), 0.0f});
                std::vector<int32_t> nodes(std::max(beam, k));
                std::vector<float> reached(std::max(beam, k));
                for (size_t t = 0; t < levels_.size(); t++) {
                    const bool bottom = t + 1 == levels_.size();
                    std::vector<TopK> best(last - first, TopK(bottom ? k : beam));
                    descend(levels_[t], queries, visits, *lookup, post, bottom && usable.shape(0) ? usable.data() : nullptr, first, best);
                    visits.clear();
                    for (int64_t q = first; q < last; q++) {
                        if (bottom) {
                            best[q - first].write(found_out + q * k, score_out + q * k);
                            for (int64_t i = q * k; post != Post::none && i < (q + 1) * k && found_out[i] >= 0; i++)
                                score_out[i] = std::exp(score_out[i]);
                            continue;
                        }
                        best[q - first].write(nodes.data(), reached.data());
                        for (int64_t i = 0; i < beam && nodes[i] >= 0; i++)
                            visits.push_back({nodes[i], static_cast<int32_t>(q), reached[i]});
                    }
                }
            });
        }
        return nb::make_tuple(found, scores);
    }

private:
    static constexpr int64_t kBlock = 2048;

    // Offers each query the children of the nodes it has reached. Node by node, so that the weights of a node are
    // fetched once for all queries that visit it; what is kept does not depend on the order.
    static void descend(const Level& level, const Queries& queries, std::vector<Visit>& visits, Lookup& lookup, Post post,
                        const uint8_t* usable, int64_t first_query, std::vector<TopK>& best) {
        std::sort(visits.begin(), visits.end(), [](const Visit& a, const Visit& b) {
            return a.node < b.node || (a.node == b.node && a.query < b.query);
        });
        const int64_t* entry_ptr = level.entry_ptr.data();
        const uint16_t* children = level.children.data();
        const float* weights = level.weights.data();
        std::vector<float> margins;
        for (size_t i = 0; i < visits.size();) {
            const int32_t node = visits[i].node;
            const int64_t first = level.child_ptr.data()[node], count = level.child_ptr.data()[node + 1] - first;
            size_t end = i;
            int64_t wanted = 0;
            for (; end < visits.size() && visits[end].node == node; end++)
                wanted += queries.ptr[visits[end].query + 1] - queries.ptr[visits[end].query];
            lookup.open(level, node, wanted);
            for (; i < end; i++) {
                margins.assign(count, 0.0f);
                lookup.each(queries, visits[i].query, [&](int64_t slot, float value) {
                    for (int64_t e = entry_ptr[slot]; e < entry_ptr[slot + 1]; e++) margins[children[e]] += value * weights[e];
                });
                TopK& own = best[visits[i].query - first_query];
                for (int64_t c = 0; c < count; c++)
                    if (!usable || usable[first + c])
                        own.offer(combine(post, visits[i].score, margins[c]), static_cast<int32_t>(first + c));
            }
            lookup.close();
        }
    }

    int64_t width_;  // features; the bias is one more
    std::vector<Level> levels_;
};

// Weights by child (CSC arrays) as the arrays of a Level.
nb::tuple pack_level(In<int64_t> child_ptr, In<int64_t> weight_ptr, In<int32_t> features, In<float> weights) {
    const int64_t parents = static_cast<int64_t>(child_ptr.shape(0)) - 1;
    struct Cell {
        int32_t feature;
        uint16_t child;
        float weight;
    };
    std::vector<std::vector<Cell>> cells(parents);
    auto slot_ptr = new_numpy<int64_t>({size_t(parents + 1)});
    int64_t* slots = slot_ptr.data();
    slots[0] = 0;
    {
        nb::gil_scoped_release nogil;
        parallel_for(parents, 16, [&](int64_t p) {
            auto& own = cells[p];
            for (int64_t c = child_ptr.data()[p]; c < child_ptr.data()[p + 1]; c++)
                for (int64_t j = weight_ptr.data()[c]; j < weight_ptr.data()[c + 1]; j++)
                    own.push_back({features.data()[j], static_cast<uint16_t>(c - child_ptr.data()[p]), weights.data()[j]});
            std::sort(own.begin(), own.end(), [](const Cell& a, const Cell& b) {
                return a.feature < b.feature || (a.feature == b.feature && a.child < b.child);
            });
            int64_t distinct = 0;
            for (size_t i = 0; i < own.size(); i++) distinct += i == 0 || own[i].feature != own[i - 1].feature;
            slots[p + 1] = distinct;
        });
        for (int64_t p = 0; p < parents; p++) slots[p + 1] += slots[p];
    }
    const size_t total = weights.shape(0);
    auto slot_features = new_numpy<int32_t>({size_t(slots[parents])});
    auto entry_ptr = new_numpy<int64_t>({size_t(slots[parents] + 1)});
    auto children = new_numpy<uint16_t>({total});
    auto values = new_numpy<float>({total});
    int64_t slot = 0, entry = 0;
    for (int64_t p = 0; p < parents; p++) {
        for (size_t i = 0; i < cells[p].size(); i++) {
            const Cell& cell = cells[p][i];
            if (i == 0 || cell.feature != cells[p][i - 1].feature) {
                slot_features.data()[slot] = cell.feature;
                entry_ptr.data()[slot++] = entry;
            }
            children.data()[entry] = cell.child;
            values.data()[entry++] = cell.weight;
        }
        std::vector<Cell>().swap(cells[p]);
    }
    entry_ptr.data()[slot] = entry;
    return nb::make_tuple(slot_ptr, slot_features, entry_ptr, children, values);
}

}  // namespace

void bind_beam(nb::module_& m) {
    m.def("pack_level", &pack_level);
    nb::class_<BeamSearch>(m, "BeamSearch")
        .def(nb::init<int64_t>())
        .def("add_level", &BeamSearch::add_level)
        .def("search", &BeamSearch::search);
}

}  // namespace longtail
