// Top-k selection and look-ups in sorted sparse rows: what rankings and metrics are made of.
#include "common.h"
#include "simd.h"
#include "topk.h"

#include <limits>

namespace longtail {
namespace {

using nb::ndarray;

// The k best entries of each CSR row: labels (N, k), −1 where a row has fewer, and their scores.
nb::tuple top_k_sparse(In<int64_t> indptr, In<int32_t> indices, In<float> data, int64_t k) {
    const int64_t n = static_cast<int64_t>(indptr.shape(0)) - 1;
    auto labels = new_numpy<int32_t>({size_t(n), size_t(k)});
    auto scores = new_numpy<float>({size_t(n), size_t(k)});
    int32_t* label_out = labels.data();
    float* score_out = scores.data();
    const int64_t* ptr = indptr.data();
    const int32_t* idx = indices.data();
    const float* val = data.data();
    {
        nb::gil_scoped_release nogil;
        parallel_for(n, 512, [&](int64_t row) {
            TopK best(k);
            for (int64_t j = ptr[row]; j < ptr[row + 1]; j++) best.offer(val[j], idx[j]);
            best.write(label_out + row * k, score_out + row * k);
        });
    }
    return nb::make_tuple(labels, scores);
}

// The same for a dense block of scores (N, L).
nb::tuple top_k_dense(In2<float> values, int64_t k) {
    const int64_t n = values.shape(0), width = values.shape(1);
    auto labels = new_numpy<int32_t>({size_t(n), size_t(k)});
    auto scores = new_numpy<float>({size_t(n), size_t(k)});
    int32_t* label_out = labels.data();
    float* score_out = scores.data();
    const float* in = values.data();
    {
        nb::gil_scoped_release nogil;
        parallel_for(n, 16, [&](int64_t row) {
            TopK best(k);
            offer_dense(best, in + row * width, width, -std::numeric_limits<float>::infinity());
            best.write(label_out + row * k, score_out + row * k);
        });
    }
    return nb::make_tuple(labels, scores);
}

// For each picked label (N, k) the value stored at (row, label), 0 where there is none or the pick is −1.
// Columns must be sorted within rows.
Out<float> pick(In<int64_t> indptr, In<int32_t> indices, In<float> data, In2<int32_t> picks) {
    const int64_t n = picks.shape(0), k = picks.shape(1);
    check(static_cast<int64_t>(indptr.shape(0)) == n + 1, "pick: the matrix and the picks differ in rows");
    auto found = new_numpy<float>({size_t(n), size_t(k)});
    float* out = found.data();
    const int64_t* ptr = indptr.data();
    const int32_t* idx = indices.data();
    const float* val = data.data();
    const int32_t* want = picks.data();
    {
        nb::gil_scoped_release nogil;
        parallel_for(n, 4096, [&](int64_t row) {
            const int32_t *begin = idx + ptr[row], *end = idx + ptr[row + 1];
            for (int64_t j = row * k; j < (row + 1) * k; j++) {
                const int32_t* at = std::lower_bound(begin, end, want[j]);
                out[j] = at != end && *at == want[j] ? val[at - idx] : 0.0f;
            }
        });
    }
    return found;
}

}  // namespace

void bind_rank(nb::module_& m) {
    m.def("top_k_sparse", &top_k_sparse);
    m.def("top_k_dense", &top_k_dense);
    m.def("pick", &pick);
}

}  // namespace longtail
