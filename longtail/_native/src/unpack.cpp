// Extracts the weights of a level from its records (level.h), child by child.
#include "common.h"
#include "level.h"

namespace longtail {
namespace {

struct Entry {
    int32_t child, feature;  // the child counted from the first extracted one
    float weight;
};

float number_at(const uint8_t* at, int64_t i, int64_t bytes) {
    if (bytes == 4) {
        float value;
        std::memcpy(&value, at + 4 * i, 4);
        return value;
    }
    if (bytes == 2) {
        Half value;
        std::memcpy(&value, at + 2 * i, 2);
        return to_float(value);
    }
    const int value = static_cast<int8_t>(at[i]);
    return static_cast<float>(value * std::abs(value));
}

uint32_t count_at(const uint8_t* at, int64_t i, int64_t bytes) {
    uint32_t value = 0;  // the machine is little-endian, like the files
    std::memcpy(&value, at + bytes * i, bytes);
    return value;
}

class Unpacker {
public:
    Unpacker(int64_t width, int64_t child_bytes, int64_t weight_bytes, const float* scales, In<int32_t> among)
        : mix_(mix_of(width)), inverse_(inverse_of(mix_.factor)), child_bytes_(child_bytes), weight_bytes_(weight_bytes), scales_(scales),
          all_(among.shape(0) == 0), among_(among.data(), among.data() + among.shape(0)) {
        std::sort(among_.begin(), among_.end());
    }

    // The entries of a parent whose first child is `first` in the level and `offset` in the extracted weights.
    void take(const uint32_t* buckets, int64_t count, const uint8_t* data, int64_t children, int64_t first, int64_t offset,
              std::vector<Entry>& out) const {
        int shift = mix_.bits;
        while ((int64_t(1) << (mix_.bits - shift)) < count) shift--;
        const bool wide = shift > 16;
        const Entries entries = entries_of(children, child_bytes_, weight_bytes_);
        for (int64_t b = 0; b < count; b++) {
            const uint8_t* record = data + 4 * uint64_t(buckets[b]);
            const int64_t n = count_at(record, 0, 2);
            const uint8_t* counts = record + 2 + (wide ? 4 : 2) * n;
            const uint8_t* at = counts + n * child_bytes_;
            for (int64_t s = 0; s < n; s++) {
                const uint32_t rest = count_at(record, s + 1, 2) | (wide ? count_at(record, s + 1 + n, 2) << 16 : 0u);
                const int32_t feature = static_cast<int32_t>((static_cast<uint32_t>(uint64_t(b) << shift) | rest) * inverse_ & mix_.mask);
                const int64_t size = int64_t(count_at(counts, s, child_bytes_)) + 1;
                if (all_ || std::binary_search(among_.begin(), among_.end(), feature)) {
                    const auto put = [&](int64_t child, float weight) {
                        if (weight == 0.0f) return;
                        if (scales_) weight *= scales_[first + child];
                        out.push_back({static_cast<int32_t>(offset + child), feature, weight});
                    };
                    each_weight(at, size, children, entries, put);
                }
                at += entry_bytes(entries, size);
            }
        }
    }

private:
    template <typename Put>
    void each_weight(const uint8_t* at, int64_t size, int64_t children, const Entries& entries, Put put) const {
        const Form form = form_of(entries, size);
        int64_t next = 0;
        if (form == Form::row)
            for (int64_t child = 0; child < children; child++) put(child, number_at(at, child, weight_bytes_));
        else if (form == Form::pairs)
            for (; next < size; next++) put(count_at(at, next, child_bytes_), number_at(at + size * child_bytes_, next, weight_bytes_));
        else
            for (int64_t child = 0; child < children; child++)
                if (at[child / 8] >> child % 8 & 1) put(child, number_at(at + entries.bits, next++, weight_bytes_));
    }

    Mix mix_;
    uint32_t inverse_;
    int64_t child_bytes_, weight_bytes_;
    const float* scales_;
    bool all_;
    std::vector<int32_t> among_;
};

// The non-zero weights of the children of the parents first … last, each by ascending feature, as CSC arrays; with
// `among` (not empty), only the weights of these features.
nb::tuple unpack_level(In<int64_t> child_ptr, In<int64_t> bucket_ptr, In<int64_t> data_ptr, In<uint32_t> buckets, In<uint8_t> data,
                       In<float> scales, int64_t child_bytes, int64_t weight_bytes, int64_t width, int64_t first, int64_t last,
                       In<int32_t> among) {
    const int64_t begin = child_ptr.data()[first];
    const size_t nodes = size_t(child_ptr.data()[last] - begin);
    std::vector<int64_t> ptr(nodes + 1, 0);
    std::vector<Entry> entries;
    std::vector<int32_t> features;
    std::vector<float> weights;
    {
        nb::gil_scoped_release nogil;
        const Unpacker unpacker(width, child_bytes, weight_bytes, scales.shape(0) ? scales.data() : nullptr, among);
        for (int64_t p = first; p < last; p++) {
            const int64_t child = child_ptr.data()[p], first_bucket = bucket_ptr.data()[p];
            unpacker.take(buckets.data() + first_bucket, bucket_ptr.data()[p + 1] - first_bucket, data.data() + data_ptr.data()[p],
                          child_ptr.data()[p + 1] - child, child, child - begin, entries);
        }
        std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
            return a.child < b.child || (a.child == b.child && a.feature < b.feature);
        });
        features.reserve(entries.size());
        weights.reserve(entries.size());
        for (const Entry& entry : entries) {
            ptr[entry.child + 1]++;
            features.push_back(entry.feature);
            weights.push_back(entry.weight);
        }
        for (size_t c = 0; c < nodes; c++) ptr[c + 1] += ptr[c];
    }
    return nb::make_tuple(to_numpy(std::move(ptr)), to_numpy(std::move(features)), to_numpy(std::move(weights)));
}

}  // namespace

void bind_unpack(nb::module_& m) { m.def("unpack_level", &unpack_level); }

}  // namespace longtail
