// Whether the records of a level (level.h) hold what the kernels that read them take for granted. A file can come from
// anywhere, and its checksums with it.
#include "common.h"
#include "level.h"

#include <cmath>

namespace longtail {
namespace {

uint32_t number_at(const uint8_t* at, int64_t i, int64_t bytes) {
    uint32_t value = 0;  // the machine is little-endian, like the files
    std::memcpy(&value, at + bytes * i, static_cast<size_t>(bytes));
    return value;
}

bool finite_at(const uint8_t* at, int64_t i, int64_t bytes) {
    if (bytes == 1) return true;
    if (bytes == 2) return (number_at(at, i, 2) & 0x7C00u) != 0x7C00u;
    return (number_at(at, i, 4) & 0x7F800000u) != 0x7F800000u;
}

// The records of one parent: `size` bytes at `data`.
class Records {
public:
    Records(const uint8_t* data, int64_t size, int64_t children, const Mix& mix, int shift, int64_t width, int64_t child_bytes,
            int64_t weight_bytes)
        : data_(data), size_(size), children_(children), width_(width), mix_(mix), inverse_(inverse_of(mix.factor)), shift_(shift),
          child_bytes_(child_bytes), weight_bytes_(weight_bytes), entries_(entries_of(children, child_bytes, weight_bytes)) {}

    // The record of bucket b, which begins at byte `at`. Those of a level that was packed do not overlap, so that all together are not
    // longer than the parent's bytes; a file in which they do could take very long to read.
    void look(int64_t b, int64_t at) {
        const bool wide = shift_ > 16;
        check(at + 2 <= size_, "a record of a level begins beyond its end");
        const uint8_t* record = data_ + at;
        const int64_t n = number_at(record, 0, 2), head = 2 + (wide ? 4 : 2) * n + n * child_bytes_;
        check(at + head <= size_, "a record of a level has more slots than bytes");
        const uint8_t* counts = record + 2 + (wide ? 4 : 2) * n;
        int64_t end = head;
        for (int64_t s = 0; s < n; s++) {
            const uint64_t rest = number_at(record, s + 1, 2) | (wide ? uint64_t(number_at(record, s + 1 + n, 2)) << 16 : 0u);
            check(rest < uint64_t(1) << shift_, "a slot of a level is in the wrong bucket");
            const uint32_t feature = static_cast<uint32_t>(uint64_t(b) << shift_ | rest) * inverse_ & mix_.mask;
            check(int64_t(feature) < width_, "a slot of a level is of a feature that the model does not have");
            const int64_t count = int64_t(number_at(counts, s, child_bytes_)) + 1;
            check(count <= children_, "a slot of a level has more entries than its parent has children");
            const int64_t bytes = entry_bytes(entries_, count);
            check(at + end + bytes <= size_, "the entries of a level end beyond its last byte");
            look_at_entries(record + end, count);
            end += bytes;
        }
        if (n > 0) seen_ += end;
        check(seen_ <= size_, "records of a level overlap");
    }

private:
    const uint8_t* data_;
    int64_t size_, children_, width_, seen_ = 0;
    Mix mix_;
    uint32_t inverse_;
    int shift_;
    int64_t child_bytes_, weight_bytes_;
    Entries entries_;

    void look_at_entries(const uint8_t* at, int64_t count) const {
        const Form form = form_of(entries_, count);
        const uint8_t* weights = at;
        int64_t stored = count;
        if (form == Form::pairs) {
            for (int64_t i = 0; i < count; i++)
                check(number_at(at, i, child_bytes_) < children_, "an entry of a level names a child that its parent does not have");
            weights += count * child_bytes_;
        } else if (form == Form::row) {
            stored = children_;
        } else {
            int64_t set = 0;
            for (int64_t child = 0; child < 8 * entries_.bits; child++)
                if (at[child / 8] >> child % 8 & 1) {
                    check(child < children_, "an entry of a level names a child that its parent does not have");
                    set++;
                }
            check(set == count, "an entry of a level has more or fewer weights than it counts");
            weights += entries_.bits;
        }
        for (int64_t i = 0; i < stored; i++) check(finite_at(weights, i, weight_bytes_), "a weight of a level is not a finite number");
    }
};

// Refuses a level whose records lead outside of it. The sizes of the arrays are checked as `BeamSearch::add_level` does.
void check_records(In<int64_t> child_ptr, In<int64_t> bucket_ptr, In<int64_t> data_ptr, In<uint32_t> buckets, In<uint8_t> data,
                   In<float> scales, int64_t child_bytes, int64_t weight_bytes, int64_t width) {
    nb::gil_scoped_release nogil;
    const Mix mix = mix_of(width);
    for (size_t i = 0; i < scales.shape(0); i++) check(std::isfinite(scales.data()[i]), "a scale of a level is not a finite number");
    parallel_for(static_cast<int64_t>(child_ptr.shape(0)) - 1, 16, [&](int64_t p) {
        const int64_t first = bucket_ptr.data()[p], count = bucket_ptr.data()[p + 1] - first, begin = data_ptr.data()[p];
        int shift = mix.bits;
        while ((int64_t(1) << (mix.bits - shift)) < count) shift--;
        Records records(data.data() + begin, data_ptr.data()[p + 1] - begin, child_ptr.data()[p + 1] - child_ptr.data()[p], mix,
                        shift, width, child_bytes, weight_bytes);
        for (int64_t b = 0; b < count; b++) records.look(b, 4 * int64_t(buckets.data()[first + b]));
    });
}

}  // namespace

void bind_check_level(nb::module_& m) { m.def("check_records", &check_records); }

}  // namespace longtail
