// Reads the records of a level (level.h). Included once for each instruction set; everything is private to the file.
#pragma once

#include "level.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace longtail {
namespace {

template <typename T>
inline T load(const uint8_t* at, int64_t i = 0) {
    T value;
    std::memcpy(&value, at + i * int64_t(sizeof(T)), sizeof(T));
    return value;
}

inline float weight_of(float stored) { return stored; }
inline float weight_of(Half stored) { return to_float(stored); }
// q·|q|, times the scale of the child: most weights are far smaller than the largest, so they get finer steps
inline float weight_of(int8_t stored) {
    const int16_t wide = stored;
    return static_cast<float>(static_cast<int16_t>(wide * (wide < 0 ? -wide : wide)));
}

// The place of `rest` in a record of n slots, or −1.
inline int64_t find(const uint8_t* record, int64_t n, uint32_t rest, bool wide) {
    const uint8_t *lower = record + 2, *upper = lower + 2 * n;
    for (int64_t i = 0; i < n; i += 8) {
#if defined(__SSE2__)
        const __m128i here = _mm_loadu_si128(reinterpret_cast<const __m128i*>(lower + 2 * i));
        unsigned equal = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi16(here, _mm_set1_epi16(static_cast<int16_t>(rest)))));
        if (n - i < 8) equal &= (1u << 2 * (n - i)) - 1;
        for (; equal; equal &= equal - 1, equal &= equal - 1) {
            const int64_t slot = i + __builtin_ctz(equal) / 2;
            if (!wide || load<uint16_t>(upper, slot) == rest >> 16) return slot;
        }
#else
        for (int64_t slot = i; slot < n && slot < i + 8; slot++)
            if (load<uint16_t>(lower, slot) == (rest & 0xffffu) && (!wide || load<uint16_t>(upper, slot) == rest >> 16)) return slot;
#endif
    }
    return -1;
}

// The bytes of the entries of the first slots of a record.
template <typename Child>
inline int64_t bytes_before(const Entries& entries, const uint8_t* counts, int64_t slot) {
    int64_t bytes = 0, s = 0;
#if defined(__SSE2__)
    if (sizeof(Child) == 1) {  // eight at a time: a loop of unpredictable length costs more than its work
        const auto all = [](int64_t value) { return _mm_set1_epi16(static_cast<int16_t>(value)); };
        const __m128i pair = all(entries.pair), weight = all(entries.weight), bits = all(entries.bits), row = all(entries.row);
        const __m128i numbers = _mm_set_epi16(7, 6, 5, 4, 3, 2, 1, 0), one = _mm_set1_epi16(1);
        __m128i sum = _mm_setzero_si128();
        do {
            const __m128i stored = _mm_unpacklo_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(counts + s)), _mm_setzero_si128());
            const __m128i count = _mm_add_epi16(stored, one);
            const __m128i packed = _mm_min_epi16(_mm_mullo_epi16(count, pair), _mm_add_epi16(_mm_mullo_epi16(count, weight), bits));
            const __m128i size = _mm_min_epi16(packed, row);
            const __m128i before = _mm_cmplt_epi16(numbers, all(slot - s < 8 ? slot - s : 8));
            sum = _mm_add_epi32(sum, _mm_madd_epi16(_mm_and_si128(size, before), one));
            s += 8;
        } while (s < slot);
        sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, _MM_SHUFFLE(1, 0, 3, 2)));
        sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, _MM_SHUFFLE(2, 3, 0, 1)));
        return _mm_cvtsi128_si32(sum);
    }
#endif
    for (; s < slot; s++) bytes += entry_bytes(entries, int64_t(load<Child>(counts, s)) + 1);
    return bytes;
}

// margins[c] += value · weight for a row of children. Goes past the end to a multiple of 8: there is space, and the extra
// values are not used.
template <typename Weight>
inline void add_row(const uint8_t* at, int64_t children, float value, float* __restrict margins) {
    for (int64_t c = 0; c < children; c += 8)
        for (int64_t lane = 0; lane < 8; lane++) margins[c + lane] += value * weight_of(load<Weight>(at, c + lane));
}

// The same for the children whose bit is set.
template <typename Weight>
inline void add_bits(const uint8_t* bits, int64_t children, float value, float* __restrict margins) {
    const uint8_t* weights = bits + (children + 7) / 8;
    for (int64_t c = 0; c < children; c += 8)
        for (unsigned set = bits[c / 8]; set; set &= set - 1, weights += sizeof(Weight))
            margins[c + __builtin_ctz(set)] += value * weight_of(load<Weight>(weights));
}

#if defined(__AVX2__)
// For each byte of bits: which of the packed weights goes to each of eight lanes; 0x80 gives 0.
struct Spread {
    uint8_t lanes[256][8];
};
constexpr Spread spread_table() {
    Spread spread{};
    for (int bits = 0; bits < 256; bits++)
        for (int lane = 0, next = 0; lane < 8; lane++) spread.lanes[bits][lane] = bits >> lane & 1 ? uint8_t(next++) : uint8_t(0x80);
    return spread;
}
constexpr Spread kSpread = spread_table();

template <>
inline void add_bits<int8_t>(const uint8_t* bits, int64_t children, float value, float* __restrict margins) {
    const uint8_t* weights = bits + (children + 7) / 8;
    const __m256 times = _mm256_set1_ps(value);
    for (int64_t c = 0; c < children; c += 8) {
        const unsigned set = bits[c / 8];
        const __m128i packed = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(weights));
        const __m128i lanes = _mm_shuffle_epi8(packed, _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kSpread.lanes[set])));
        const __m128i stored = _mm_cvtepi8_epi16(lanes);
        const __m256 weight = _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm_mullo_epi16(stored, _mm_abs_epi16(stored))));
        _mm256_storeu_ps(margins + c, _mm256_add_ps(_mm256_loadu_ps(margins + c), _mm256_mul_ps(times, weight)));
        weights += __builtin_popcount(set);
    }
}
#endif

template <typename Child, typename Weight>
struct Reader {
    static Entries entries(const Node& node) { return entries_of(node.children, sizeof(Child), sizeof(Weight)); }

    static void add_slot(const uint8_t* at, int64_t count, const Entries& entries, int64_t children, float value, float* __restrict margins) {
        switch (form_of(entries, count)) {
            case Form::row: return add_row<Weight>(at, children, value, margins);
            case Form::bits: return add_bits<Weight>(at, children, value, margins);
            case Form::pairs: break;
        }
        const uint8_t* weights = at + count * int64_t(sizeof(Child));
        for (int64_t e = 0; e < count; e++) margins[load<Child>(at, e)] += value * weight_of(load<Weight>(weights, e));
    }

    static void add(const Node& node, const Query& query, float* margins) {
        const Entries entries = Reader::entries(node);
        const bool wide = node.shift > 16;
        const auto take = [&](int32_t feature, float value) {
            const uint32_t place = mixed(node.mix, feature);
            const uint8_t* record = record_of(node, place);
            const int64_t n = load<uint16_t>(record), slot = find(record, n, rest_of(node, place), wide);
            if (slot < 0) return;
            const uint8_t* counts = record + 2 + (wide ? 4 : 2) * n;
            const uint8_t* at = counts + n * int64_t(sizeof(Child));
            at += bytes_before<Child>(entries, counts, slot);
            const int64_t count = int64_t(load<Child>(counts, slot)) + 1;
            add_slot(at, count, entries, node.children, value, margins);
        };
        each_feature(query, take);
    }

    static void lay_out(const Node& node, int64_t buckets, Place* table, bool set) {
        const Entries entries = Reader::entries(node);
        const bool wide = node.shift > 16;
        for (int64_t b = 0; b < buckets; b++) {
            const uint32_t upper_bits = static_cast<uint32_t>(b) << node.shift;
            const uint8_t* record = record_of(node, upper_bits);
            const int64_t n = load<uint16_t>(record);
            const uint8_t* counts = record + 2 + (wide ? 4 : 2) * n;
            const uint8_t* at = counts + n * int64_t(sizeof(Child));
            for (int64_t s = 0; s < n; s++) {
                uint32_t rest = load<uint16_t>(record, s + 1);
                if (wide) rest |= uint32_t(load<uint16_t>(record, s + 1 + n)) << 16;
                const int64_t count = int64_t(load<Child>(counts, s)) + 1;
                table[upper_bits | rest] = {static_cast<uint32_t>(at - node.data), set ? static_cast<uint32_t>(count) : 0u};
                at += entry_bytes(entries, count);
            }
        }
    }

    static void add_laid_out(const Node& node, const Query& query, const Place* table, float* margins) {
        const Entries entries = Reader::entries(node);
        const auto take = [&](int32_t feature, float value) {
            const Place place = table[mixed(node.mix, feature)];
            if (place.size) add_slot(node.data + place.at, place.size, entries, node.children, value, margins);
        };
        each_feature(query, take);
    }

    static constexpr NodeKernels kernels = {add, lay_out, add_laid_out};
};

constexpr NodeKernels node_kernels[3][3] = {
    {Reader<uint8_t, int8_t>::kernels, Reader<uint8_t, Half>::kernels, Reader<uint8_t, float>::kernels},
    {Reader<uint16_t, int8_t>::kernels, Reader<uint16_t, Half>::kernels, Reader<uint16_t, float>::kernels},
    {Reader<uint32_t, int8_t>::kernels, Reader<uint32_t, Half>::kernels, Reader<uint32_t, float>::kernels},
};

}  // namespace
}  // namespace longtail
