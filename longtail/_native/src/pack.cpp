// Lays the weights of a level out for beam search (level.h).
#include "common.h"
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

struct Sizes {
    std::vector<int64_t> bucket_ptr, data_ptr;
};

// The distinct features of a parent, with how often each occurs; one table over all features per thread.
class Counter {
public:
    explicit Counter(int64_t width) : count(width, 0) {}
    std::vector<uint32_t> count;
    std::vector<int32_t> seen, ordered;
    std::vector<uint32_t> starts;

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
    PerThread<Counter> counters;
    parallel_for(parents, 4, [&](int64_t p) { each(p, counters.mine(width)); }, counters.count());
}

// How many bits of a mixed feature are its rest, for a parent with this many slots.
int shift_for(const Mix& mix, int64_t slots) {
    int shift = mix.bits;
    while (shift > 0 && (slots >> (mix.bits - shift)) > kSlotsPerBucket) shift--;
    return shift;
}

// The slots of a parent, bucket by bucket: calls `each(bucket, first, last)` for all that are not empty; sorts `seen` so.
template <typename Each>
void each_bucket(Counter& counter, const Mix& mix, int shift, Each each) {
    const size_t buckets = size_t(1) << (mix.bits - shift);
    counter.starts.assign(buckets + 1, 0);
    for (int32_t feature : counter.seen) counter.starts[(mixed(mix, feature) >> shift) + 1]++;
    for (size_t b = 0; b < buckets; b++) counter.starts[b + 1] += counter.starts[b];
    counter.ordered.resize(counter.seen.size());
    for (int32_t feature : counter.seen) counter.ordered[counter.starts[mixed(mix, feature) >> shift]++] = feature;
    counter.seen.swap(counter.ordered);
    for (size_t b = 0, first = 0; b < buckets; first = counter.starts[b++])  // each start has moved to the start of the next
        if (first < counter.starts[b]) {
            check(counter.starts[b] - first < (1u << 16), "a bucket of a level has more than 65,535 features");
            each(static_cast<uint32_t>(b), first, size_t(counter.starts[b]));
        }
}

template <typename Child, typename Weight>
class Packer {
public:
    Packer(const Source& source, int64_t parents, int64_t width) : source_(source), parents_(parents), width_(width), mix_(mix_of(width)) {}

    template <typename Store>
    nb::tuple pack(Store store) {
        Sizes sizes;
        {
            nb::gil_scoped_release nogil;
            sizes = measure();
        }
        auto buckets = new_numpy<uint32_t>({size_t(sizes.bucket_ptr.back())});
        auto data = new_numpy<uint8_t>({size_t(sizes.data_ptr.back() + kSlack)});
        uint32_t* bucket_out = buckets.data();
        uint8_t* data_out = data.data();
        {
            nb::gil_scoped_release nogil;
            std::memset(data_out + sizes.data_ptr.back(), 0, kSlack);
            each_parent(parents_, width_, [&](int64_t p, Counter& counter) {
                const int64_t own_buckets = sizes.bucket_ptr[p + 1] - sizes.bucket_ptr[p];
                std::memset(bucket_out + sizes.bucket_ptr[p], 0, own_buckets * sizeof(uint32_t));
                std::memset(data_out + sizes.data_ptr[p], 0, sizes.data_ptr[p + 1] - sizes.data_ptr[p]);
                write(p, counter, bucket_out + sizes.bucket_ptr[p], data_out + sizes.data_ptr[p], store);
            });
        }
        return nb::make_tuple(to_numpy(std::move(sizes.bucket_ptr)), to_numpy(std::move(sizes.data_ptr)), buckets, data);
    }

private:
    const Source& source_;
    int64_t parents_, width_;
    Mix mix_;

    struct Slot {
        uint8_t* at;  // its entries
        size_t size, done;
    };

    Entries entries(int64_t parent) const {
        return entries_of(source_.child_ptr[parent + 1] - source_.child_ptr[parent], sizeof(Child), sizeof(Weight));
    }
    static int64_t head_bytes(int64_t slots, int shift) { return 2 + slots * (int64_t(sizeof(Child)) + (shift > 16 ? 4 : 2)); }
    static int64_t aligned(int64_t bytes) { return (bytes + 3) & ~int64_t(3); }

    Sizes measure() const {
        Sizes sizes{std::vector<int64_t>(parents_ + 1, 0), std::vector<int64_t>(parents_ + 1, 0)};
        each_parent(parents_, width_, [&](int64_t p, Counter& counter) {
            counter.look(source_, p);
            const int shift = shift_for(mix_, static_cast<int64_t>(counter.seen.size()));
            const Entries own = entries(p);
            int64_t bytes = 4;
            each_bucket(counter, mix_, shift, [&](uint32_t, size_t first, size_t last) {
                int64_t record = head_bytes(static_cast<int64_t>(last - first), shift);
                for (size_t i = first; i < last; i++) record += entry_bytes(own, counter.count[counter.seen[i]]);
                bytes += aligned(record);
            });
            check(bytes / 4 < int64_t(1) << 32, "the weights of one parent take more than 16 GB");
            counter.clear();
            sizes.bucket_ptr[p + 1] = int64_t(1) << (mix_.bits - shift);
            sizes.data_ptr[p + 1] = bytes;
        });
        for (int64_t p = 0; p < parents_; p++) {
            sizes.bucket_ptr[p + 1] += sizes.bucket_ptr[p];
            sizes.data_ptr[p + 1] += sizes.data_ptr[p];
        }
        return sizes;
    }

    template <typename Store>
    void write(int64_t p, Counter& counter, uint32_t* buckets, uint8_t* data, Store store) const {
        counter.look(source_, p);
        const int shift = shift_for(mix_, static_cast<int64_t>(counter.seen.size()));
        const Entries own = entries(p);
        std::vector<Slot> slots(counter.seen.size());
        int64_t begin = 4;
        each_bucket(counter, mix_, shift, [&](uint32_t bucket, size_t first, size_t last) {
            const uint16_t n = static_cast<uint16_t>(last - first);
            buckets[bucket] = static_cast<uint32_t>(begin / 4);
            uint8_t* record = data + begin;
            std::memcpy(record, &n, 2);
            int64_t entry = begin + head_bytes(n, shift);
            for (size_t i = first; i < last; i++) {
                const uint32_t rest = static_cast<uint32_t>(mixed(mix_, counter.seen[i]) & ((uint64_t(1) << shift) - 1));
                const uint16_t lower = static_cast<uint16_t>(rest), upper = static_cast<uint16_t>(rest >> 16);
                const int64_t number = static_cast<int64_t>(i - first);
                std::memcpy(record + 2 + 2 * number, &lower, 2);
                if (shift > 16) std::memcpy(record + 2 + 2 * (n + number), &upper, 2);
                const uint32_t count = counter.count[counter.seen[i]];
                const Child stored = static_cast<Child>(count - 1);
                std::memcpy(record + 2 + (shift > 16 ? 4 : 2) * n + number * int64_t(sizeof(Child)), &stored, sizeof(Child));
                slots[i] = {data + entry, count, 0};
                counter.count[counter.seen[i]] = static_cast<uint32_t>(i);  // from here on, the slot
                entry += entry_bytes(own, count);
            }
            begin += aligned(entry - begin);
        });
        for (int64_t c = source_.child_ptr[p]; c < source_.child_ptr[p + 1]; c++)
            for (int64_t j = source_.weight_ptr[c]; j < source_.weight_ptr[c + 1]; j++) {
                Slot& slot = slots[counter.count[source_.features[j]]];
                const Weight weight = store(source_.weights[j], c);
                const Child child = static_cast<Child>(c - source_.child_ptr[p]);
                const Form form = form_of(own, static_cast<int64_t>(slot.size));
                size_t place = slot.done * sizeof(Weight);
                if (form == Form::row) place = size_t(child) * sizeof(Weight);
                if (form == Form::pairs) {
                    std::memcpy(slot.at + slot.done * sizeof(Child), &child, sizeof(Child));
                    place += slot.size * sizeof(Child);
                }
                if (form == Form::bits) {
                    slot.at[child / 8] = static_cast<uint8_t>(slot.at[child / 8] | 1u << child % 8);
                    place += static_cast<size_t>(own.bits);
                }
                std::memcpy(slot.at + place, &weight, sizeof(Weight));
                slot.done++;
            }
        counter.clear();
    }
};

template <typename Child>
nb::tuple pack_as(const Source& source, int64_t parents, int64_t width, const std::string& kind) {
    const int64_t nodes = source.child_ptr[parents];
    auto scales = new_numpy<float>({kind == "int8" ? size_t(nodes) : 0});
    float* scale = scales.data();
    nb::tuple arrays;
    if (kind == "float32") arrays = Packer<Child, float>(source, parents, width).pack([](float w, int64_t) { return w; });
    else if (kind == "float16") arrays = Packer<Child, Half>(source, parents, width).pack([](float w, int64_t) { return to_half(w); });
    else {
        check(kind == "int8", "weights must be float32, float16 or int8");
        for (int64_t c = 0; c < nodes; c++) {
            float largest = 0.0f;
            for (int64_t j = source.weight_ptr[c]; j < source.weight_ptr[c + 1]; j++) largest = std::max(largest, std::fabs(source.weights[j]));
            scale[c] = largest / (127.0f * 127.0f);
        }
        arrays = Packer<Child, int8_t>(source, parents, width).pack([scale](float w, int64_t c) {
            const long root = scale[c] > 0.0f ? std::lround(std::sqrt(std::fabs(w) / scale[c])) : 0;
            const long held = std::min(root, 127l);  // a scale near 0 is too coarse
            return static_cast<int8_t>(w < 0.0f ? -held : held);
        });
    }
    const size_t bytes = kind == "float32" ? 4 : kind == "float16" ? 2 : 1;
    return nb::make_tuple(arrays, scales, sizeof(Child), bytes);
}

// Weights by child (CSC arrays; features below `width`) as the arrays of a Level: those of Packer::pack, scales, bytes of
// a child's number, bytes of a weight.
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
