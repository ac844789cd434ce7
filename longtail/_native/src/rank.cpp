// Top-k selection, and look-ups in sorted sparse rows, for rankings and metrics.
#include "common.h"
#include "simd.h"
#include "topk.h"

#include <cmath>
#include <limits>

namespace longtail {
namespace {

// The k best entries of each CSR row: labels (N, k), padded with −1, and their scores.
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

// For each picked label (N, k) the value stored at (row, label); 0 if there is none or the pick is −1.
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
        parallel_for(n, std::max<int64_t>(1, 65536 / std::max<int64_t>(k, 16)), [&](int64_t row) {
            const int32_t *begin = idx + ptr[row], *end = idx + ptr[row + 1];
            uint64_t ends = 0;  // the last six bits that occur: they rule out most picks in a short row
            if (end - begin < k)
                for (const int32_t* at = begin; at < end; at++) ends |= uint64_t(1) << (*at & 63);
            else
                ends = ~uint64_t(0);
            for (int64_t j = row * k; j < (row + 1) * k; j++) {
                if (!(ends >> (want[j] & 63) & 1)) {
                    out[j] = 0.0f;
                    continue;
                }
                const int32_t* at = std::lower_bound(begin, end, want[j]);
                out[j] = at != end && *at == want[j] ? val[at - idx] : 0.0f;
            }
        });
    }
    return found;
}

// Replaces the padding of a ranking (N, k), in place, by labels of `order` that the row does not have. Their scores are
// lowered if needed, so that a row stays sorted best first, ties by lower index.
void fill(nb::ndarray<int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> labels,
          nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu> scores, In<int32_t> order, In<float> order_scores,
          int64_t width) {
    const int64_t n = labels.shape(0), k = labels.shape(1), m = order.shape(0);
    check(order_scores.shape(0) == order.shape(0), "fill: order and scores differ in length");
    int32_t* label = labels.data();
    float* score = scores.data();
    {
        nb::gil_scoped_release nogil;
        constexpr int64_t block = 256;
        parallel_for((n + block - 1) / block, 1, [&](int64_t b) {
            std::vector<uint8_t> held(width, 0);
            for (int64_t row = b * block; row < std::min(n, (b + 1) * block); row++) {
                int32_t* own = label + row * k;
                float* value = score + row * k;
                int64_t at = 0;
                while (at < k && own[at] >= 0) held[own[at++]] = 1;
                const int64_t real = at;
                for (int64_t i = 0; i < m && at < k; i++) {
                    if (held[order.data()[i]]) continue;
                    own[at] = order.data()[i];
                    value[at] = order_scores.data()[i];
                    if (at > 0 && (value[at] > value[at - 1] || (value[at] == value[at - 1] && own[at] < own[at - 1])))
                        value[at] = own[at] > own[at - 1] ? value[at - 1]
                                                          : std::nextafter(value[at - 1], -std::numeric_limits<float>::infinity());
                    at++;
                }
                for (int64_t i = 0; i < real; i++) held[own[i]] = 0;
            }
        });
    }
}

}  // namespace

void bind_rank(nb::module_& m) {
    m.def("top_k_sparse", &top_k_sparse);
    m.def("top_k_dense", &top_k_dense);
    m.def("pick", &pick);
    m.def("fill", &fill);
}

}  // namespace longtail
