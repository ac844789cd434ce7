// The weights of a tree level as they lie on disk and in memory: by parent, then by feature, then by child, so that a
// feature of a query is looked up once per parent and adds to all children that use it.
//
// Parent p has the children [child_ptr[p], child_ptr[p + 1]) and a slot for each feature they use. Features are mixed by
// a permutation of [0, 2^bits); the upper bits of a mixed feature number the bucket its slot lies in, the others, its
// rest, tell the slots of a bucket apart. Bucket b of p is a record 4 · buckets[bucket_ptr[p] + b] bytes after
// data[data_ptr[p]], so that a lookup touches two or three lines of memory:
//
//     uint16 n, uint16 rest[n], uint16 upper[n] if a rest has more than 16 bits, Child count[n] (less one),
//     then of each slot, whichever is smallest:
//     pairs: Child child[count] (counted from the parent's first), Weight weight[count];
//     bits: uint8 bits[⌈children of p / 8⌉], Weight weight[count] of the children whose bit is set;
//     a row: Weight weight[children of p], 0 for those without
//
// The first four bytes of each parent are the record of all its empty buckets. Nothing but records is aligned (to 4).
// Functions here are static: two instruction sets include them, and the linker must not mix them up.
#pragma once

#include "half.h"

#include <cstdint>
#include <cstring>

namespace longtail {

constexpr int64_t kSlotsPerBucket = 8;  // at most, on average; at least half of that
constexpr int64_t kSlack = 64;          // bytes after the last record, so that a vector may be read from any place

// The permutation of features: multiplied by an odd number close to the golden section of 2^bits.
struct Mix {
    uint32_t factor, mask;
    int bits;
};

static inline Mix mix_of(int64_t width) {
    int bits = 1;
    while ((int64_t(1) << bits) < width) bits++;
    const uint64_t golden = 0x9E3779B97F4A7C15ull;
    return {static_cast<uint32_t>(golden >> (64 - bits)) | 1u, static_cast<uint32_t>((uint64_t(1) << bits) - 1), bits};
}
// The inverse of Mix: the inverse of its odd factor mod 2^32, by Newton's method.
static inline uint32_t inverse_of(uint32_t factor) {
    uint32_t inverse = factor;
    for (int step = 0; step < 5; step++) inverse *= 2 - factor * inverse;
    return inverse;
}
static inline uint32_t mixed(const Mix& mix, int32_t feature) { return static_cast<uint32_t>(feature) * mix.factor & mix.mask; }

// How the entries of a slot lie; the same rule for who writes and who reads them.
enum class Form { pairs, bits, row };

struct Entries {
    int64_t pair, weight, bits, row;  // bytes of a child's number and its weight, of a weight, of all bits, of a row
};

static inline Entries entries_of(int64_t children, int64_t child_bytes, int64_t weight_bytes) {
    return {child_bytes + weight_bytes, weight_bytes, (children + 7) / 8, children * weight_bytes};
}
static inline int64_t entry_bytes(const Entries& entries, int64_t count) {
    const int64_t pairs = count * entries.pair, bits = entries.bits + count * entries.weight;
    const int64_t smaller = bits < pairs ? bits : pairs;
    return smaller < entries.row ? smaller : entries.row;
}
static inline Form form_of(const Entries& entries, int64_t count) {
    const int64_t bytes = entry_bytes(entries, count);
    return bytes == entries.row ? Form::row : bytes == count * entries.pair ? Form::pairs : Form::bits;
}

// A parent as the kernels see it.
struct Node {
    const uint32_t* buckets;
    const uint8_t* data;
    Mix mix;
    int shift;  // bits of a rest
    int64_t children;
};

static inline const uint8_t* record_of(const Node& node, uint32_t mixed) { return node.data + 4 * uint64_t(node.buckets[mixed >> node.shift]); }
static inline uint32_t rest_of(const Node& node, uint32_t mixed) { return static_cast<uint32_t>(mixed & ((uint64_t(1) << node.shift) - 1)); }

// A point: its sparse features, the dense ones, which follow each other from first_dense on, and the bias.
struct Query {
    const int32_t* features;
    const float* values;
    int64_t size;
    const float* dense;
    int64_t dense_size;
    int32_t first_dense, bias_feature;
    float bias;
};

// take(feature, value) for all features that are not 0, the bias last. The order is fixed: sums depend on it.
template <typename Take>
static inline void each_feature(const Query& query, Take take) {
    for (int64_t j = 0; j < query.size; j++) take(query.features[j], query.values[j]);
    for (int64_t j = 0; j < query.dense_size; j++)
        if (query.dense[j] != 0.0f) take(query.first_dense + static_cast<int32_t>(j), query.dense[j]);
    if (query.bias != 0.0f) take(query.bias_feature, query.bias);
}

// Where the entries of a feature are under a parent that is laid out; size 0 where nowhere.
struct Place {
    uint32_t at, size;
};

// What reads the records of a level; there is one for each size of children and of weights.
struct NodeKernels {
    // Adds value · weight of every feature of the query to the margins of the children (room for a multiple of 8).
    void (*add)(const Node& node, const Query& query, float* margins);
    // Writes the places of the parent's slots to a table over mixed features, or clears them.
    void (*lay_out)(const Node& node, int64_t buckets, Place* table, bool set);
    // `add` with such a table.
    void (*add_laid_out)(const Node& node, const Query& query, const Place* table, float* margins);
};

}  // namespace longtail
