// The labels that points are trained on: the true ones, and a shortlist made beforehand.
#include "common.h"

namespace longtail {
namespace {

// Row b: its true labels, padded with −1 to the length of the longest row, then shortlist[b]. Also returns whether each
// one counts (padding and repeated true labels do not), its target, and how many shortlisted labels are true.
nb::tuple join_truth(In<int64_t> true_ptr, In<int64_t> true_labels, In<float> true_values, In2<int64_t> shortlist) {
    const int64_t B = shortlist.shape(0), S = shortlist.shape(1), P = true_labels.shape(0);
    const int64_t* ptr = true_ptr.data();
    check(static_cast<int64_t>(true_ptr.shape(0)) == B + 1, "join_truth: truth and shortlists differ in rows");
    check(ptr[0] == 0 && ptr[B] == P && static_cast<int64_t>(true_values.shape(0)) == P,
          "join_truth: truth does not end where its rows do");
    int64_t most = 0;
    for (int64_t b = 0; b < B; b++) {
        check(ptr[b] <= ptr[b + 1], "join_truth: rows of truth must follow each other");
        most = std::max(most, ptr[b + 1] - ptr[b]);
    }
    const int64_t C = most + S;
    auto candidates = new_numpy<int64_t>({size_t(B), size_t(C)});
    auto counted = new_numpy<float>({size_t(B), size_t(C)});
    auto targets = new_numpy<float>({size_t(B), size_t(C)});
    std::vector<int64_t> hits(B, 0);
    int64_t* candidate_out = candidates.data();
    float *counted_out = counted.data(), *target_out = targets.data();
    {
        nb::gil_scoped_release nogil;
        parallel_for(B, std::max<int64_t>(1, 16384 / std::max<int64_t>(C, 1)), [&](int64_t b) {
            int64_t* own = candidate_out + b * C;
            float *counts = counted_out + b * C, *target = target_out + b * C;
            const int64_t *begin = true_labels.data() + ptr[b], *end = true_labels.data() + ptr[b + 1];
            const float* values = true_values.data() + ptr[b];
            uint64_t ends = 0;  // the last six bits that occur: they rule out most labels that are not true
            for (int64_t i = 0; i < most; i++) {
                const bool there = i < end - begin;
                own[i] = there ? begin[i] : -1;
                counts[i] = there;
                target[i] = there ? values[i] : 0.0f;
                if (there) ends |= uint64_t(1) << (begin[i] & 63);
            }
            for (int64_t i = 0; i < S; i++) {
                const int64_t label = shortlist.data()[b * S + i];
                own[most + i] = label;
                counts[most + i] = label >= 0;
                target[most + i] = 0.0f;
                if (label < 0 || !(ends >> (label & 63) & 1)) continue;
                const int64_t* found = std::lower_bound(begin, end, label);
                if (found == end || *found != label) continue;
                counts[most + i] = 0.0f;
                target[most + i] = values[found - begin];
                hits[b]++;
            }
        });
    }
    int64_t total = 0;
    for (int64_t count : hits) total += count;
    return nb::make_tuple(candidates, counted, targets, total);
}

}  // namespace

void bind_candidates(nb::module_& m) { m.def("join_truth", &join_truth); }

}  // namespace longtail
