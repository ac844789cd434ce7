// Prediction down a label tree: beam search over the children of each parent. The weights of siblings lie together,
// feature-major: a feature of the query is looked up once per parent and then adds to all children that use it.
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

struct Query {
    const int32_t* features;
    const float* values;
    int64_t size;
    float bias;
    int32_t bias_feature;
};

// Adds value · weight of every feature that query and parent share to `margins` (children of the parent).
void add_margins(const Level& level, int64_t parent, const Query& query, float* margins) {
    const int32_t* features = level.features.data();
    const int64_t *entry_ptr = level.entry_ptr.data(), last = level.slot_ptr.data()[parent + 1];
    const uint16_t* children = level.children.data();
    const float* weights = level.weights.data();
    int64_t slot = level.slot_ptr.data()[parent];
    const auto add = [&](int64_t at, float value) {
        for (int64_t e = entry_ptr[at]; e < entry_ptr[at + 1]; e++) margins[children[e]] += value * weights[e];
    };
    for (int64_t j = 0; j < query.size && slot < last; j++) {
        const int32_t wanted = query.features[j];
        // gallop, then halve: queries are short beside the features of a parent
        int64_t reach = 1;
        while (slot + reach < last && features[slot + reach] < wanted) reach *= 2;
        int64_t low = slot + reach / 2, high = std::min(last, slot + reach + 1);
        if (features[slot] >= wanted) low = slot, high = slot + 1;
        slot = std::lower_bound(features + low, features + high, wanted) - features;
        if (slot < last && features[slot] == wanted) add(slot, query.values[j]);
    }
    // the bias is the highest feature of all
    if (query.bias != 0.0f && last > level.slot_ptr.data()[parent] && features[last - 1] == query.bias_feature)
        add(last - 1, query.bias);
}

float combine(Post post, float parent, float margin) {
    switch (post) {
        case Post::l3_hinge: {
            const float gap = margin < 1.0f ? 1.0f - margin : 0.0f;
            return parent * std::exp(-gap * gap * gap);
        }
        case Post::sigmoid: return parent / (1.0f + std::exp(-margin));
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

    // The k best nodes (N, k) of the last level added, and their scores. `usable` (K) leaves nodes of it out.
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
            parallel_for((n + kBlock - 1) / kBlock, 1, [&](int64_t b) {
                std::vector<float> margins;
                std::vector<int32_t> nodes(std::max(beam, k)), next(std::max(beam, k));
                std::vector<float> reached(std::max(beam, k)), next_reached(std::max(beam, k));
                for (int64_t q = b * kBlock; q < std::min(n, (b + 1) * kBlock); q++) {
                    const int64_t begin = ptr.data()[q];
                    const Query query{columns.data() + begin, values.data() + begin, ptr.data()[q + 1] - begin, bias,
                                      static_cast<int32_t>(width_)};
                    int64_t held = 1;
                    nodes[0] = 0;
                    reached[0] = 1.0f;
                    for (size_t t = 0; t < levels_.size(); t++) {
                        const Level& level = levels_[t];
                        const bool last = t + 1 == levels_.size();
                        const int64_t room = last ? k : beam;
                        TopK best(room);
                        for (int64_t i = 0; i < held; i++) {
                            const int64_t first = level.child_ptr.data()[nodes[i]];
                            const int64_t count = level.child_ptr.data()[nodes[i] + 1] - first;
                            margins.assign(count, 0.0f);
                            add_margins(level, nodes[i], query, margins.data());
                            for (int64_t c = 0; c < count; c++) {
                                if (last && !usable.data()[first + c]) continue;
                                best.offer(combine(post, reached[i], margins[c]), static_cast<int32_t>(first + c));
                            }
                        }
                        best.write(next.data(), next_reached.data());
                        held = 0;
                        while (held < room && next[held] >= 0) held++;
                        if (last) break;
                        nodes.swap(next);
                        reached.swap(next_reached);
                    }
                    std::copy_n(next.data(), k, found_out + q * k);
                    std::copy_n(next_reached.data(), k, score_out + q * k);
                }
            });
        }
        return nb::make_tuple(found, scores);
    }

private:
    static constexpr int64_t kBlock = 64;
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
