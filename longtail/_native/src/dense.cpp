// Exact search in dense vectors: selection from blocks of products, and a scan of 8-bit codes whose result is that of the
// float32 vectors, because whatever rounding may have hidden is computed again.
#include "best.h"
#include "common.h"
#include "simd.h"

#include <cmath>
#include <limits>

namespace longtail {
namespace {

template <typename T>
using Rows = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
constexpr float lowest = -std::numeric_limits<float>::infinity();

// What must not be found: vectors (`allowed` is 0), and for each query the sorted columns of a CSR row. Both may be empty.
struct Barred {
    const uint8_t* allowed;
    const int64_t* ptr;
    const int32_t* columns;

    Barred(const In<uint8_t>& mask, const In<int64_t>& indptr, const In<int32_t>& indices, int64_t B, int64_t L)
        : allowed(mask.shape(0) ? mask.data() : nullptr),
          ptr(indptr.shape(0) ? indptr.data() : nullptr),
          columns(indices.data()) {
        check(!allowed || static_cast<int64_t>(mask.shape(0)) == L, "the mask and the vectors differ in number");
        if (!ptr) return;
        check(static_cast<int64_t>(indptr.shape(0)) == B + 1, "excluded pairs and queries differ in number");
        const int64_t n = indices.shape(0);
        check(ptr[0] >= 0 && ptr[B] <= n, "excluded pairs end where their rows do not");
        for (int64_t b = 0; b < B; b++) check(ptr[b] <= ptr[b + 1], "rows of excluded pairs run backwards");
        for (int64_t j = ptr[0]; j < ptr[B]; j++) check(columns[j] >= 0 && columns[j] < L, "no such excluded vector");
    }

    // Sets the products of query b with the vectors first … first + n − 1 that it must not find.
    void apply(int64_t b, float* products, int64_t first, int64_t n) const {
        if (!ptr) return;
        const int32_t* end = columns + ptr[b + 1];
        for (const int32_t* at = std::lower_bound(columns + ptr[b], end, first); at < end && *at < first + n; at++)
            products[*at - first] = lowest;
    }
};

// Improves the best ones so far (B, m), in place, by a block of products (B, n) with the vectors from `first` on.
// Overwrites excluded products.
void offer_block(Rows<float> products, int64_t first, Rows<int32_t> numbers, Rows<float> scores, In<uint8_t> mask,
                 In<int64_t> indptr, In<int32_t> indices, int64_t L) {
    const int64_t B = products.shape(0), n = products.shape(1), m = numbers.shape(1);
    check(static_cast<int64_t>(numbers.shape(0)) == B && static_cast<int64_t>(scores.shape(0)) == B &&
              static_cast<int64_t>(scores.shape(1)) == m,
          "offer_block: a row of results for each query is needed");
    check(first >= 0 && first + n <= L, "offer_block: the block lies outside the vectors");
    const Barred barred(mask, indptr, indices, B, L);
    float *values = products.data(), *score = scores.data();
    int32_t* number = numbers.data();
    nb::gil_scoped_release nogil;
    parallel_for(B, 4, [&](int64_t b) {
        Best best(m);
        best.read(number + b * m, score + b * m);
        barred.apply(b, values + b * n, first, n);
        best.offer_all(values + b * n, n, first, barred.allowed);
        best.write(number + b * m, score + b * m);
    });
}

// A query in 8 bits, and by how much products with codes may differ from those with vectors.
struct CodedQuery {
    std::vector<int8_t> codes;
    float scale = 0, error = 0;

    // Vectors are at most `longest` long, and at most `rounding` away from their codes.
    CodedQuery(const float* x, int64_t d, float longest, float rounding) : codes(d) {
        float largest = 0;
        for (int64_t i = 0; i < d; i++) largest = std::max(largest, std::fabs(x[i]));
        scale = largest / 127;
        const float inverse = largest > 0 ? 127 / largest : 0;
        double coded = 0, rest = 0;
        for (int64_t i = 0; i < d; i++) {
            codes[i] = static_cast<int8_t>(std::lrint(std::min(127.0f, std::max(-127.0f, x[i] * inverse))));
            const double value = double(codes[i]) * scale;
            coded += value * value;
            rest += (x[i] - value) * (x[i] - value);
        }
        // x·v − x̂·v̂ = x̂·(v − v̂) + (x − x̂)·v, by Cauchy–Schwarz; and the rounding of sums in float32
        const double exact = std::sqrt(coded) * rounding + std::sqrt(rest) * longest;
        const double sums = (std::sqrt(coded) + std::sqrt(rest)) * longest * double(d + 8) * 1.2e-7;
        error = static_cast<float>(1.0001 * (exact + sums));
    }
};

struct Vectors {
    const float* table;
    int64_t L, d;
};

// Offers table[i] · x for the rows i in `rows`, which rise.
void offer_rows(Best& best, const float* x, const Vectors& v, const std::vector<int64_t>& rows, std::vector<float>& exact) {
    exact.resize(rows.size());
    simd().row_dots(x, v.table, v.d, rows.data(), static_cast<int64_t>(rows.size()), exact.data());
    for (size_t i = 0; i < rows.size(); i++) best.offer(exact[i], static_cast<int32_t>(rows[i]));
}

// The k best vectors of query x, whose products with the codes are `rough` (in units of `scale`).
void search_rough(const float* x, const CodedQuery& query, const float* rough, const Vectors& v, const uint8_t* allowed,
                  int64_t k, int32_t* numbers, float* scores) {
    constexpr int64_t spare = 16;
    Best candidates(k + spare), best(k);
    candidates.offer_all(rough, v.L, 0, allowed);
    const auto& found = candidates.sorted();
    std::vector<int64_t> rows;
    std::vector<float> exact;
    for (const auto& entry : found) rows.push_back(entry.second);
    std::sort(rows.begin(), rows.end());
    offer_rows(best, x, v, rows, exact);
    best.write(numbers, scores);
    // a vector that is better than the worst of these has a product of at least `least` with the codes
    const bool all = static_cast<int64_t>(found.size()) < k + spare;
    if (all || k == 0 || query.scale == 0) return;
    const float least = (scores[k - 1] - query.error) / query.scale, under = least - std::fabs(least) * 1e-6f;
    if (found.back().first < under) return;
    Best again(k);
    constexpr int64_t block = 1024;
    int32_t above[block];
    for (int64_t start = 0; start < v.L; start += block) {
        const int64_t count = simd().positions_above(rough + start, std::min(block, v.L - start), under, above);
        rows.clear();
        for (int64_t i = 0; i < count; i++)
            if (!allowed || allowed[start + above[i]]) rows.push_back(start + above[i]);
        offer_rows(again, x, v, rows, exact);
    }
    again.write(numbers, scores);
}

// The k best of the vectors (L, d) for each query (B, d), by a scan of their codes (L, d): numbers and products (B, k).
nb::tuple search_codes(In2<float> queries, In2<float> vectors, In2<int8_t> codes, In<float> scales, float longest,
                       float rounding, int64_t k, In<uint8_t> mask, In<int64_t> indptr, In<int32_t> indices) {
    const int64_t B = queries.shape(0), d = queries.shape(1), L = vectors.shape(0);
    check(static_cast<int64_t>(vectors.shape(1)) == d, "search_codes: queries and vectors differ in width");
    check(static_cast<int64_t>(codes.shape(0)) == L && static_cast<int64_t>(codes.shape(1)) == d &&
              static_cast<int64_t>(scales.shape(0)) == L,
          "search_codes: codes and vectors differ in shape");
    check(d < (1 << 17), "search_codes: the vectors are too wide for 32-bit sums");
    const Barred barred(mask, indptr, indices, B, L);
    auto numbers = new_numpy<int32_t>({size_t(B), size_t(k)});
    auto scores = new_numpy<float>({size_t(B), size_t(k)});
    int32_t* number = numbers.data();
    float* score = scores.data();
    const Vectors v = {vectors.data(), L, d};
    const float *x = queries.data(), *scale = scales.data();
    const int8_t* coded = codes.data();
    {
        nb::gil_scoped_release nogil;
        std::vector<CodedQuery> small;
        for (int64_t b = 0; b < B; b++) small.emplace_back(x + b * d, d, longest, rounding);
        std::unique_ptr<float[]> rough(new float[std::max<int64_t>(B * L, 1)]);
        const int64_t part = std::max<int64_t>(64, 262144 / std::max<int64_t>(d, 1));  // rows that stay in a cache
        parallel_for((L + part - 1) / part, 1, [&](int64_t p) {
            const int64_t first = p * part, n = std::min(part, L - first);
            for (int64_t b = 0; b < B; b++)
                simd().scan_codes(small[b].codes.data(), coded + first * d, d, n, scale + first, rough.get() + b * L + first);
        });
        parallel_for(B, 1, [&](int64_t b) {
            barred.apply(b, rough.get() + b * L, 0, L);
            search_rough(x + b * d, small[b], rough.get() + b * L, v, barred.allowed, k, number + b * k, score + b * k);
        });
    }
    return nb::make_tuple(numbers, scores);
}

// 16-bit floats, given as their bits, as 32-bit ones.
Out<float> widen(In2<uint16_t> halves) {
    const int64_t n = halves.shape(0), d = halves.shape(1);
    auto made = new_numpy<float>({size_t(n), size_t(d)});
    float* out = made.data();
    const uint16_t* in = halves.data();
    {
        nb::gil_scoped_release nogil;
        parallel_for(n, std::max<int64_t>(1, 65536 / std::max<int64_t>(d, 1)),
                     [&](int64_t i) { simd().widen(in + i * d, d, out + i * d); });
    }
    return made;
}

}  // namespace

void bind_dense(nb::module_& m) {
    // these arrays are written to, so arrays that would have to be converted first are refused
    m.def("offer_block", &offer_block, nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg());
    m.def("search_codes", &search_codes);
    m.def("widen", &widen);
}

}  // namespace longtail
