// Sums over rows drawn with replacement: the inner loop of the paired bootstrap.
#include "common.h"
#include "random.h"

namespace longtail {
namespace {

constexpr int kGroup = 4;        // resamples computed together, so that each value is loaded once for all
constexpr int64_t kTile = 256;   // rows at a time: they stay in the L1 cache while all columns are summed

// How often each of n rows is drawn in resample r. Draw j depends only on (seed, r, j) (SplitMix64 as a counter-based
// generator), so neither threads nor the number of resamples can change it.
void draw(uint64_t seed, uint64_t r, int64_t n, uint32_t* times) {
    std::fill(times, times + n, 0u);
    uint64_t state = scramble(scramble(seed + kRandomStep) + (r + 1) * kRandomStep);
    for (int64_t j = 0; j < n; j++) times[random_below(state, n)]++;
}

// sums[g][c] += times[i][g] · values[i][c] for the rows of one tile and W columns, rows in ascending order.
template <int W>
void add_columns(const double* values, int64_t stride, const double* times, int64_t rows, double* sums,
                 int64_t width) {
    double held[kGroup][W];
    for (int g = 0; g < kGroup; g++)
        for (int c = 0; c < W; c++) held[g][c] = sums[g * width + c];
    for (int64_t i = 0; i < rows; i++)
        for (int g = 0; g < kGroup; g++)
            for (int c = 0; c < W; c++) held[g][c] += times[i * kGroup + g] * values[i * stride + c];
    for (int g = 0; g < kGroup; g++)
        for (int c = 0; c < W; c++) sums[g * width + c] = held[g][c];
}

struct Scratch {
    std::vector<uint32_t> times;  // (kGroup, n)
    std::vector<double> tile;     // (kTile, kGroup)
    std::vector<double> sums;     // (kGroup, columns)
};

void resample_group(const double* values, int64_t n, int64_t columns, uint64_t seed, uint64_t first, Scratch& scratch) {
    scratch.times.resize(kGroup * n);
    scratch.tile.resize(kGroup * kTile);
    scratch.sums.assign(kGroup * columns, 0.0);
    for (int g = 0; g < kGroup; g++) draw(seed, first + g, n, scratch.times.data() + g * n);
    double *tile = scratch.tile.data(), *sums = scratch.sums.data();
    for (int64_t start = 0; start < n; start += kTile) {
        const int64_t rows = std::min(kTile, n - start);
        for (int g = 0; g < kGroup; g++)
            for (int64_t i = 0; i < rows; i++) tile[i * kGroup + g] = scratch.times[g * n + start + i];
        const double* at = values + start * columns;
        int64_t c = 0;
        for (; c + 4 <= columns; c += 4) add_columns<4>(at + c, columns, tile, rows, sums + c, columns);
        for (; c < columns; c++) add_columns<1>(at + c, columns, tile, rows, sums + c, columns);
    }
}

// For resamples first … first + count − 1: the column sums (count, M) over N rows drawn from values (N, M).
Out<double> bootstrap_sums(In2<double> values, uint64_t seed, int64_t first, int64_t count) {
    const int64_t n = values.shape(0), columns = values.shape(1);
    check(n < int64_t(1) << 32, "bootstrap: too many rows");
    check(first >= 0 && count >= 0, "bootstrap: first and count must not be negative");
    auto result = new_numpy<double>({size_t(count), size_t(columns)});
    double* out = result.data();
    const double* in = values.data();
    {
        nb::gil_scoped_release nogil;
        parallel_for((count + kGroup - 1) / kGroup, 1, [&](int64_t group) {
            Scratch scratch;
            resample_group(in, n, columns, seed, first + group * kGroup, scratch);
            const int64_t kept = std::min<int64_t>(kGroup, count - group * kGroup);
            std::copy_n(scratch.sums.data(), kept * columns, out + group * kGroup * columns);
        });
    }
    return result;
}

}  // namespace

void bind_bootstrap(nb::module_& m) { m.def("bootstrap_sums", &bootstrap_sums); }

}  // namespace longtail
