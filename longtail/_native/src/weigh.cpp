#include "weigh.h"

#include <cmath>

#include "common.h"

namespace longtail {
namespace {

constexpr int kLogs = 256;
constexpr int64_t kGrain = 64;  // rows

// 1 + ln(count), from a table for small counts, which are almost all.
class Damped {
public:
    Damped() {
        for (int count = 0; count < kLogs; count++) small_[count] = count ? of(static_cast<float>(count)) : 0;
    }
    float operator()(float count) const {
        const int whole = count > 0 && count < kLogs ? static_cast<int>(count) : 0;
        return whole && static_cast<float>(whole) == count ? small_[whole] : of(count);
    }

private:
    float small_[kLogs];
    static float of(float count) { return static_cast<float>(1 + std::log(static_cast<double>(count))); }
};

// Sums go over a row in order and in double precision, on every processor.
void scale_row(const float* in, int64_t size, float* out) {
    double squares = 0;
    for (int64_t i = 0; i < size; i++) squares += static_cast<double>(in[i]) * in[i];
    const double scale = squares > 0 ? 1 / std::sqrt(squares) : 1;
    for (int64_t i = 0; i < size; i++) out[i] = static_cast<float>(in[i] * scale);
}

int64_t check_rows(const In<int64_t>& indptr, int64_t entries) {
    const int64_t n = static_cast<int64_t>(indptr.shape(0)) - 1;
    const int64_t* ptr = indptr.data();
    bool good = n >= 0 && ptr[0] == 0 && ptr[n] <= entries;
    for (int64_t i = 0; good && i < n; i++) good = ptr[i] <= ptr[i + 1];
    check(good, "rows: indptr falls or reaches outside the data");
    return n;
}

Out<float> weigh(In<int64_t> indptr, In<int32_t> indices, In<float> counts, In<float> idf, bool sublinear) {
    const int64_t n = check_rows(indptr, std::min(indices.shape(0), counts.shape(0)));
    auto result = new_numpy<float>({counts.shape(0)});
    float* out = result.data();
    {
        nb::gil_scoped_release nogil;
        const int64_t entries = indptr.data()[n], V = idf.shape(0);
        bool inside = true;
        for (int64_t i = 0; i < entries; i++) inside &= indices.data()[i] >= 0 && indices.data()[i] < V;
        check(inside, "weigh: a term is outside the vocabulary");
        weigh_rows(n, indptr.data(), indices.data(), counts.data(), idf.data(), sublinear, out);
    }
    return result;
}

Out<float> unit_rows(In<int64_t> indptr, In<float> values) {
    const int64_t n = check_rows(indptr, values.shape(0));
    auto result = new_numpy<float>({values.shape(0)});
    float* out = result.data();
    {
        nb::gil_scoped_release nogil;
        const int64_t* ptr = indptr.data();
        parallel_for(n, kGrain, [&](int64_t row) {
            scale_row(values.data() + ptr[row], ptr[row + 1] - ptr[row], out + ptr[row]);
        });
    }
    return result;
}

}  // namespace

void weigh_rows(int64_t n, const int64_t* ptr, const int32_t* indices, const float* counts, const float* idf,
                bool sublinear, float* out) {
    static const Damped damped;
    parallel_for(n, kGrain, [&](int64_t row) {
        for (int64_t i = ptr[row]; i < ptr[row + 1]; i++)
            out[i] = (sublinear ? damped(counts[i]) : counts[i]) * idf[indices[i]];
        scale_row(out + ptr[row], ptr[row + 1] - ptr[row], out + ptr[row]);
    });
}

void bind_weigh(nb::module_& m) {
    m.def("weigh", &weigh);
    m.def("unit_rows", &unit_rows);
}

}  // namespace longtail
