// Dense tables of which only a few rows are used at a time: products with them, and a step of Adam.
#include "rows.h"

#include "common.h"
#include "simd.h"

namespace longtail {
namespace {

using Table = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// x[b] · table[rows[b, c]] as (B, C); −1 gives 0.
Out<float> dots(In2<float> x, In2<float> table, In2<int64_t> rows) {
    const int64_t B = rows.shape(0), C = rows.shape(1), d = table.shape(1), n = table.shape(0);
    check(static_cast<int64_t>(x.shape(0)) == B, "dots: vectors and rows differ in number");
    check(static_cast<int64_t>(x.shape(1)) == d, "dots: vectors and table differ in width");
    auto made = new_numpy<float>({size_t(B), size_t(C)});
    float* out = made.data();
    const float *vectors = x.data(), *weights = table.data();
    const int64_t* wanted = rows.data();
    {
        nb::gil_scoped_release nogil;
        constexpr int64_t part = 512;  // rows per work item
        const int64_t parts = (C + part - 1) / part;
        parallel_for(B * parts, 4, [&](int64_t i) {
            const int64_t b = i / parts, first = b * C + (i % parts) * part, last = std::min((b + 1) * C, first + part);
            for (int64_t j = first; j < last; j++) check(wanted[j] >= -1 && wanted[j] < n, "dots: no such row");
            simd().row_dots(vectors + b * d, weights, d, wanted + first, last - first, out + first);
        });
    }
    return made;
}

// A step of Adam for the rows `ids`, all different, in place.
void adam_rows(Table weight, Table first, Table second, In<int64_t> ids, In2<float> grad, float part1, float beta2,
               float part2, float scale, float eps, float rate) {
    const int64_t U = ids.shape(0), n = weight.shape(0), d = weight.shape(1);
    for (const Table& moment : {first, second})
        check(static_cast<int64_t>(moment.shape(0)) == n && static_cast<int64_t>(moment.shape(1)) == d,
              "adam_rows: a moment and the table differ in shape");
    check(static_cast<int64_t>(grad.shape(0)) == U && static_cast<int64_t>(grad.shape(1)) == d,
          "adam_rows: a gradient for each row is needed");
    const AdamStep step = {part1, beta2, part2, scale, eps, rate};
    float *w = weight.data(), *m = first.data(), *v = second.data();
    const float* g = grad.data();
    const int64_t* rows = ids.data();
    for (int64_t u = 0; u < U; u++) check(rows[u] >= 0 && rows[u] < n, "adam_rows: no such row");
    {
        nb::gil_scoped_release nogil;
        parallel_for(U, std::max<int64_t>(1, 16384 / std::max<int64_t>(d, 1)), [&](int64_t u) {
            const int64_t at = rows[u] * d;
            simd().adam_row(step, w + at, m + at, v + at, g + u * d, d);
        });
    }
}

}  // namespace

void bind_rows(nb::module_& m) {
    m.def("dots", &dots);
    // these arrays are written to, so arrays that would have to be converted first are refused
    m.def("adam_rows", &adam_rows, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
}

}  // namespace longtail
