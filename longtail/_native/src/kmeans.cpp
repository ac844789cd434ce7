// Unbalanced spherical k-means, for wide and shallow trees (Bonsai).
#include "common.h"
#include "random.h"

#include <cmath>

namespace longtail {
namespace {

constexpr int64_t kSettled = 200;  // stop when a round moves fewer than one row in this many

class WideMeans {
public:
    WideMeans(In<int64_t> ptr, In<int32_t> columns, In<float> values, int64_t width, int64_t k)
        : ptr_(ptr.data()), columns_(columns.data()), values_(values.data()), n_(static_cast<int64_t>(ptr.shape(0)) - 1), k_(k) {
        std::vector<int32_t> place(width, -1);  // centres are stored only for the columns in use
        places_.resize(columns.shape(0));
        for (size_t j = 0; j < columns.shape(0); j++) {
            int32_t& own = place[columns_[j]];
            if (own < 0) own = used_++;
            places_[j] = own;
        }
        centres_.assign(int64_t(used_) * k_, 0.0f);
    }

    void run(int rounds, uint64_t seed, int32_t* cluster) {
        start(seed);
        for (int64_t i = 0; i < n_; i++) cluster[i] = -1;
        for (int round = 0; round < rounds; round++) {
            std::vector<uint8_t> moved(n_, 0);
            parallel_for((n_ + kRows - 1) / kRows, 1, [&](int64_t block) {
                std::vector<float> alike(k_);
                for (int64_t i = block * kRows; i < std::min(n_, (block + 1) * kRows); i++) {
                    const int32_t best = nearest(i, alike);
                    moved[i] = best != cluster[i];
                    cluster[i] = best;
                }
            });
            int64_t count = 0;
            for (uint8_t one : moved) count += one;
            if (count * kSettled <= n_) break;
            update(cluster);
        }
    }

private:
    static constexpr int64_t kRows = 256;
    const int64_t* ptr_;
    const int32_t* columns_;
    const float* values_;
    int64_t n_, k_;
    int32_t used_ = 0;
    std::vector<int32_t> places_;
    std::vector<float> centres_;  // (columns in use, k): feature-major: a row is compared with all centres at once

    void add(int64_t row, int64_t centre) {
        for (int64_t j = ptr_[row]; j < ptr_[row + 1]; j++) centres_[int64_t(places_[j]) * k_ + centre] += values_[j];
    }

    void start(uint64_t seed) {
        uint64_t state = scramble(seed + kRandomStep);
        std::vector<int32_t> order(n_);
        for (int64_t i = 0; i < n_; i++) order[i] = static_cast<int32_t>(i);
        for (int64_t c = 0; c < std::min(k_, n_); c++) {
            std::swap(order[c], order[c + random_below(state, n_ - c)]);
            add(order[c], c);
        }
    }

    int32_t nearest(int64_t row, std::vector<float>& alike) const {
        std::fill(alike.begin(), alike.end(), 0.0f);
        for (int64_t j = ptr_[row]; j < ptr_[row + 1]; j++) {
            const float* centre = centres_.data() + int64_t(places_[j]) * k_;
            for (int64_t c = 0; c < k_; c++) alike[c] += values_[j] * centre[c];
        }
        const auto best = std::max_element(alike.begin(), alike.end());
        // a row similar to no centre (a label without examples) goes to the clusters in turn, so that these do not pile up
        return static_cast<int32_t>(*best > 0.0f ? best - alike.begin() : row % k_);
    }

    void update(const int32_t* cluster) {
        std::fill(centres_.begin(), centres_.end(), 0.0f);
        for (int64_t i = 0; i < n_; i++) add(i, cluster[i]);
        std::vector<double> square(k_, 0.0);
        for (int64_t f = 0; f < used_; f++)
            for (int64_t c = 0; c < k_; c++) square[c] += double(centres_[f * k_ + c]) * centres_[f * k_ + c];
        std::vector<float> scale(k_);
        for (int64_t c = 0; c < k_; c++) scale[c] = square[c] > 0 ? static_cast<float>(1 / std::sqrt(square[c])) : 0.0f;
        for (int64_t f = 0; f < used_; f++)
            for (int64_t c = 0; c < k_; c++) centres_[f * k_ + c] *= scale[c];
    }
};

Out<int32_t> cluster_wide(In<int64_t> ptr, In<int32_t> columns, In<float> values, int64_t width, int64_t k, int rounds, uint64_t seed) {
    auto cluster = new_numpy<int32_t>({ptr.shape(0) - 1});
    int32_t* out = cluster.data();
    {
        nb::gil_scoped_release nogil;
        WideMeans(ptr, columns, values, width, k).run(rounds, seed, out);
    }
    return cluster;
}

}  // namespace

void bind_kmeans(nb::module_& m) { m.def("cluster_wide", &cluster_wide); }

}  // namespace longtail
