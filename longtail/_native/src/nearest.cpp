// Exact nearest neighbours of sparse rows by inner product, over inverted lists; and their votes.
#include "common.h"
#include "topk.h"

namespace longtail {
namespace {

// The k documents with the largest inner product > 0 for each query: (Q, k) numbers and scores, padded with −1.
// Lists: for term t the documents documents[list_ptr[t] … list_ptr[t + 1]) with their weights.
nb::tuple nearest_sparse(In<int64_t> list_ptr, In<int32_t> documents, In<float> weights, int64_t n_documents,
                         In<int64_t> query_ptr, In<int32_t> query_terms, In<float> query_weights, int64_t k) {
    const int64_t n = static_cast<int64_t>(query_ptr.shape(0)) - 1;
    auto found = new_numpy<int32_t>({size_t(n), size_t(k)});
    auto scores = new_numpy<float>({size_t(n), size_t(k)});
    int32_t* found_out = found.data();
    float* score_out = scores.data();
    const int64_t *lists = list_ptr.data(), *rows = query_ptr.data();
    const int32_t *docs = documents.data(), *terms = query_terms.data();
    const float *doc_weights = weights.data(), *term_weights = query_weights.data();
    {
        nb::gil_scoped_release nogil;
        constexpr int64_t block = 32;  // queries that share one accumulator
        parallel_for((n + block - 1) / block, 1, [&](int64_t b) {
            std::vector<float> sum(n_documents, 0.0f);
            TopK best(k);
            for (int64_t q = b * block; q < std::min(n, (b + 1) * block); q++) {
                int64_t touched = 0;
                for (int64_t j = rows[q]; j < rows[q + 1]; j++) {
                    const int64_t begin = lists[terms[j]], end = lists[terms[j] + 1];
                    const float weight = term_weights[j];
                    for (int64_t i = begin; i < end; i++) sum[docs[i]] += weight * doc_weights[i];
                    touched += end - begin;
                }
                if (touched * 4 < n_documents) {  // few documents: go through the lists again and clear
                    for (int64_t j = rows[q]; j < rows[q + 1]; j++)
                        for (int64_t i = lists[terms[j]]; i < lists[terms[j] + 1]; i++)
                            if (sum[docs[i]] != 0.0f) {
                                if (sum[docs[i]] > 0.0f) best.offer(sum[docs[i]], docs[i]);
                                sum[docs[i]] = 0.0f;
                            }
                } else {
                    offer_dense(best, sum.data(), n_documents, 0.0f);
                    std::fill(sum.begin(), sum.end(), 0.0f);
                }
                best.write(found_out + q * k, score_out + q * k);
            }
        });
    }
    return nb::make_tuple(found, scores);
}

// Adds up the votes and direct matches of each label, and keeps the k best.
// Row q has voters[q, j] with weights[q, j] (adding up to 1; −1 ends the row). They have labels Y and abstain on the
// labels in `abstain`: score(l) = share·Σ w·y_l / (1 − Σ w·[abstains on l]) + matches[q, j] at its label.
nb::tuple vote(In2<int32_t> voters, In2<float> weights, In<int64_t> y_ptr, In<int32_t> y_labels, In<float> y_values,
               In<int64_t> abstain_ptr, In<int32_t> abstain_labels, float share, In2<int32_t> matched,
               In2<float> match_scores, In<uint8_t> removed, int64_t k) {
    const int64_t n = voters.shape(0), m = voters.shape(1), m2 = matched.shape(1), L = removed.shape(0);
    const bool abstentions = abstain_ptr.shape(0) > 0;
    auto found = new_numpy<int32_t>({size_t(n), size_t(k)});
    auto scores = new_numpy<float>({size_t(n), size_t(k)});
    int32_t* found_out = found.data();
    float* score_out = scores.data();
    {
        nb::gil_scoped_release nogil;
        constexpr int64_t block = 256;
        parallel_for((n + block - 1) / block, 1, [&](int64_t b) {
            std::vector<float> sum(L, 0.0f), abstained(abstentions ? L : 0, 0.0f);
            std::vector<uint8_t> seen(L, 0);
            std::vector<int32_t> touched;
            const auto touch = [&](int32_t label) {
                if (!seen[label]) seen[label] = 1, touched.push_back(label);
            };
            TopK best(k);
            for (int64_t q = b * block; q < std::min(n, (b + 1) * block); q++) {
                for (int64_t j = q * m; j < (q + 1) * m && voters.data()[j] >= 0; j++) {
                    const int32_t voter = voters.data()[j];
                    const float weight = weights.data()[j];
                    for (int64_t i = y_ptr.data()[voter]; i < y_ptr.data()[voter + 1]; i++) {
                        touch(y_labels.data()[i]);
                        sum[y_labels.data()[i]] += weight * y_values.data()[i];
                    }
                    if (abstentions)
                        for (int64_t i = abstain_ptr.data()[voter]; i < abstain_ptr.data()[voter + 1]; i++) {
                            touch(abstain_labels.data()[i]);
                            abstained[abstain_labels.data()[i]] += weight;
                        }
                }
                for (int32_t label : touched) {
                    // if (almost) all voters abstain on a label, it has no votes: the bound keeps 0/0 at 0
                    if (abstentions) {
                        sum[label] /= std::max(1.0f - abstained[label], 1e-3f);
                        abstained[label] = 0.0f;
                    }
                    sum[label] *= share;
                }
                for (int64_t j = q * m2; j < (q + 1) * m2 && matched.data()[j] >= 0; j++) {
                    touch(matched.data()[j]);
                    sum[matched.data()[j]] += match_scores.data()[j];
                }
                for (int32_t label : touched) {
                    if (sum[label] > 0.0f && !removed.data()[label]) best.offer(sum[label], label);
                    sum[label] = 0.0f;
                    seen[label] = 0;
                }
                touched.clear();
                best.write(found_out + q * k, score_out + q * k);
            }
        });
    }
    return nb::make_tuple(found, scores);
}

}  // namespace

void bind_nearest(nb::module_& m) {
    m.def("nearest_sparse", &nearest_sparse);
    m.def("vote", &vote);
}

}  // namespace longtail
