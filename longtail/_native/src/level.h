// The weights of a tree level as they lie on disk and in memory: by parent, then by feature, then by child, so that a
// feature of a query is looked up once per parent and adds to all children that use it.
//
// Parent p has the children [child_ptr[p], child_ptr[p + 1]) and a slot for each feature they use. Slots are ordered by
// the hash of their feature and found through buckets of about eight: bucket b of p begins at slot bucket_slots[…] and
// entry bucket_entries[…], both counted from the parent's own; one more bucket closes each parent. A slot has its feature
// and the number of its entries less one; an entry the child, counted from the parent's first, and the weight.
#pragma once

#include "common.h"
#include "half.h"

namespace longtail {

constexpr int64_t kSlotsPerBucket = 8;

inline uint32_t hash_feature(int32_t feature) { return static_cast<uint32_t>(feature) * 0x9E3779B1u; }

inline uint32_t bucket_of(uint32_t hash, int64_t buckets) {
    return static_cast<uint32_t>(uint64_t(hash) * static_cast<uint64_t>(buckets) >> 32);
}

inline float weight_of(float stored) { return stored; }
inline float weight_of(Half stored) { return to_float(stored); }
// q·|q|, times the scale of the child: most weights are far smaller than the largest, and so get finer steps
inline float weight_of(int8_t stored) { return static_cast<float>(stored * (stored < 0 ? -stored : stored)); }

template <typename Child, typename Weight>
struct Level {
    In<int64_t> child_ptr, slot_ptr, entry_ptr, bucket_ptr;  // (parents + 1) each
    In<uint32_t> bucket_slots, bucket_entries;
    In<int32_t> features;
    In<Child> counts;
    In<Child> children;
    const Weight* weights;
    In<float> scales;  // (children of all parents) for int8, else empty
    nb::object weights_owner;
};

}  // namespace longtail
