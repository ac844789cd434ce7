// Lays the weights of a level out for beam search (level.h).
#include "level.h"

#include <nanobind/stl/string.h>

#include <cmath>

namespace longtail {
namespace {

struct Source {
    const int64_t *child_ptr, *weight_ptr;
    const int32_t* features;
    const float* weights;
};

// What the arrays of a level are written to; entries through a function, since their types differ.
struct Sizes {
    std::vector<int64_t> slot_ptr, entry_ptr, bucket_ptr;
};

// The distinct features of a parent, with how often each occurs; a table over all features per thread.
class Counter {
public:
    explicit Counter(int64_t width) : count(width, 0) {}
    std::vector<uint32_t> count;
    std::vector<int32_t> seen;

    void look(const Source& source, int64_t parent) {
        seen.clear();
        for (int64_t j = source.weight_ptr[source.child_ptr[parent]]; j < source.weight_ptr[source.child_ptr[parent + 1]]; j++)
            if (count[source.features[j]]++ == 0) seen.push_back(source.features[j]);
    }
    void clear() {
        for (int32_t feature : seen) count[feature] = 0;
    }
};

template <typename Each>
void each_parent(int64_t parents, int64_t width, Each each) {
    std::vector<std::unique_ptr<Counter>> counters(std::max(1, threads()));
    parallel_for(parents, 4, [&](int64_t p) {
        auto& own = counters[thread_number()];
        if (!own) own = std::make_unique<Counter>(width);
        each(p, *own);
    });
}

Sizes measure(const Source& source, int64_t parents, int64_t width) {
    Sizes sizes{std::vector<int64_t>(parents + 1, 0), std::vector<int64_t>(parents + 1, 0), std::vector<int64_t>(parents + 1, 0)};
    each_parent(parents, width, [&](int64_t p, Counter& counter) {
        counter.look(source, p);
        counter.clear();
        sizes.slot_ptr[p + 1] = static_cast<int64_t>(counter.seen.size());
    });
    for (int64_t p = 0; p < parents; p++) {
        const int64_t slots = sizes.slot_ptr[p + 1];
        sizes.bucket_ptr[p + 1] = sizes.bucket_ptr[p] + std::max<int64_t>(1, slots / kSlotsPerBucket) + 1;
        sizes.slot_ptr[p + 1] += sizes.slot_ptr[p];
        sizes.entry_ptr[p + 1] = source.weight_ptr[source.child_ptr[p + 1]];
    }
    return sizes;
}

template <typename Child, typename Weight, typename Store>
nb::tuple pack(const Source& source, int64_t parents, int64_t width, Out<float> scales, Store store) {
    Sizes sizes;
    {
        nb::gil_scoped_release nogil;
        sizes = measure(source, parents, width);
    }
    const size_t slots = sizes.slot_ptr.back(), entries = sizes.entry_ptr.back(), buckets = sizes.bucket_ptr.back();
    auto bucket_slots = new_numpy<uint32_t>({buckets}), bucket_entries = new_numpy<uint32_t>({buckets});
    auto features = new_numpy<int32_t>({slots});
    auto counts = new_numpy<Child>({slots}), children = new_numpy<Child>({entries});
    auto weights = new_numpy<Weight>({entries});
    uint32_t *slot_out = bucket_slots.data(), *entry_out = bucket_entries.data();
    int32_t* feature_out = features.data();
    Child *count_out = counts.data(), *child_out = children.data();
    Weight* weight_out = weights.data();
    {
        nb::gil_scoped_release nogil;
        each_parent(parents, width, [&](int64_t p, Counter& counter) {
            counter.look(source, p);
            const int64_t first_bucket = sizes.bucket_ptr[p], own_buckets = sizes.bucket_ptr[p + 1] - first_bucket - 1;
            const auto bucket = [&](int32_t feature) { return bucket_of(hash_feature(feature), own_buckets); };
            std::sort(counter.seen.begin(), counter.seen.end(), [&](int32_t a, int32_t b) {
                const uint32_t x = bucket(a), y = bucket(b);
                return x < y || (x == y && a < b);
            });
            int64_t slot = sizes.slot_ptr[p], at = 0, next_bucket = 0;
            const int64_t base = sizes.entry_ptr[p];
            for (int32_t feature : counter.seen) {
                for (; next_bucket <= bucket(feature); next_bucket++) {
                    slot_out[first_bucket + next_bucket] = static_cast<uint32_t>(slot - sizes.slot_ptr[p]);
                    entry_out[first_bucket + next_bucket] = static_cast<uint32_t>(at);
                }
                feature_out[slot] = feature;
                count_out[slot++] = static_cast<Child>(counter.count[feature] - 1);
                const uint32_t size = counter.count[feature];
                counter.count[feature] = static_cast<uint32_t>(at);  // from here on: where its next entry goes
                at += size;
            }
            for (; next_bucket <= own_buckets; next_bucket++) {
                slot_out[first_bucket + next_bucket] = static_cast<uint32_t>(slot - sizes.slot_ptr[p]);
                entry_out[first_bucket + next_bucket] = static_cast<uint32_t>(at);
            }
            for (int64_t c = source.child_ptr[p]; c < source.child_ptr[p + 1]; c++)
                for (int64_t j = source.weight_ptr[c]; j < source.weight_ptr[c + 1]; j++) {
                    const int64_t entry = base + counter.count[source.features[j]]++;
                    child_out[entry] = static_cast<Child>(c - source.child_ptr[p]);
                    weight_out[entry] = store(source.weights[j], c);
                }
            counter.clear();
        });
    }
    return nb::make_tuple(to_numpy(std::move(sizes.slot_ptr)), to_numpy(std::move(sizes.entry_ptr)),
                          to_numpy(std::move(sizes.bucket_ptr)), bucket_slots, bucket_entries, features, counts, children,
                          weights, scales);
}

template <typename Child>
nb::tuple pack_as(const Source& source, int64_t parents, int64_t width, const std::string& kind) {
    const int64_t nodes = source.child_ptr[parents];
    auto scales = new_numpy<float>({kind == "int8" ? size_t(nodes) : 0});
    if (kind == "float32")
        return pack<Child, float>(source, parents, width, scales, [](float w, int64_t) { return w; });
    if (kind == "float16")
        return pack<Child, uint16_t>(source, parents, width, scales, [](float w, int64_t) { return to_half(w).bits; });
    check(kind == "int8", "weights must be float32, float16 or int8");
    float* scale = scales.data();
    for (int64_t c = 0; c < nodes; c++) {
        float largest = 0.0f;
        for (int64_t j = source.weight_ptr[c]; j < source.weight_ptr[c + 1]; j++) largest = std::max(largest, std::fabs(source.weights[j]));
        scale[c] = largest / (127.0f * 127.0f);
    }
    return pack<Child, int8_t>(source, parents, width, scales, [scale](float w, int64_t c) {
        const long root = scale[c] > 0.0f ? std::lround(std::sqrt(std::fabs(w) / scale[c])) : 0;
        return static_cast<int8_t>(w < 0.0f ? -root : root);
    });
}

// Weights by child (CSC arrays; features below `width`) as the arrays of a Level.
nb::tuple pack_level(In<int64_t> child_ptr, In<int64_t> weight_ptr, In<int32_t> features, In<float> weights, int64_t width,
                     const std::string& kind) {
    const int64_t parents = static_cast<int64_t>(child_ptr.shape(0)) - 1;
    const Source source{child_ptr.data(), weight_ptr.data(), features.data(), weights.data()};
    int64_t most = 0;
    for (int64_t p = 0; p < parents; p++) most = std::max(most, child_ptr.data()[p + 1] - child_ptr.data()[p]);
    if (most <= 1 << 8) return pack_as<uint8_t>(source, parents, width, kind);
    if (most <= 1 << 16) return pack_as<uint16_t>(source, parents, width, kind);
    return pack_as<uint32_t>(source, parents, width, kind);
}

}  // namespace

void bind_pack(nb::module_& m) { m.def("pack_level", &pack_level); }

}  // namespace longtail
