// Rows of term counts, made in blocks of texts. Blocks are divided by the size of the texts and joined in order, so the
// result is the same for any number of threads.
#pragma once

#include "common.h"
#include "counter.h"

namespace longtail {

struct Rows {
    std::vector<Count> counts;
    std::vector<int64_t> ends;  // end of each row, in counts
};

// Where blocks start: each has texts of about `bytes`; plus one more value for the end.
inline std::vector<int64_t> cut_blocks(const int64_t* offsets, int64_t n, int64_t bytes) {
    std::vector<int64_t> starts{0};
    for (int64_t row = 0; row < n; row++)
        if (offsets[row + 1] - offsets[starts.back()] >= bytes || row + 1 - starts.back() >= 1 << 16)
            starts.push_back(row + 1);
    if (starts.back() < n) starts.push_back(n);
    return starts;
}

// Replaces the number of each count in some rows by final(number), and drops counts without one (−1).
template <typename Final>
void renumber(Rows& rows, Final final) {
    int64_t at = 0, out = 0;
    for (int64_t& end : rows.ends) {
        for (; at < end; at++) {
            const int32_t id = final(id_of(rows.counts[at]));
            if (id >= 0) rows.counts[out++] = make_count(static_cast<uint32_t>(id), times_of(rows.counts[at]));
        }
        end = out;
    }
    rows.counts.resize(out);
}

// Sorts each row by its numbers, which are below `bound`.
inline void sort_rows(Rows& rows, uint64_t bound) {
    SortSpace space;
    int64_t start = 0;
    for (const int64_t end : rows.ends) {
        sort_counts(rows.counts.data() + start, end - start, bound, space);
        start = end;
    }
}

struct CsrArrays {
    Out<int64_t> indptr;
    Out<int32_t> indices;
    Out<float> values;
    nb::tuple tuple() const { return nb::make_tuple(indptr, indices, values); }
};

// The rows of all blocks as the arrays of a CSR matrix of `n` rows; the blocks are emptied.
inline CsrArrays write_rows(std::vector<Rows>& blocks, int64_t n) {
    auto indptr = new_numpy<int64_t>({size_t(n + 1)});
    int64_t *ptr = indptr.data(), row = 0, total = 0;
    ptr[0] = 0;
    std::vector<int64_t> starts;
    for (const Rows& block : blocks) {
        starts.push_back(total);
        for (const int64_t end : block.ends) ptr[++row] = total + end;
        total = ptr[row];
    }
    auto indices = new_numpy<int32_t>({size_t(total)});
    auto values = new_numpy<float>({size_t(total)});
    int32_t* index_out = indices.data();
    float* value_out = values.data();
    {
        nb::gil_scoped_release nogil;
        parallel_for(static_cast<int64_t>(blocks.size()), 1, [&](int64_t b) {
            int64_t out = starts[b];
            for (const Count count : blocks[b].counts) {
                index_out[out] = static_cast<int32_t>(id_of(count));
                value_out[out++] = static_cast<float>(times_of(count));
            }
            blocks[b] = Rows();
        });
    }
    return {indptr, indices, values};
}

}  // namespace longtail
