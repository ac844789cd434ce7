// Σ_i y_il x_i for every label l, scaled to unit length on request: the label vectors of PIFA.
#include "common.h"

#include <cmath>

namespace longtail {
namespace {

struct Sum {
    std::vector<int32_t> columns;
    std::vector<float> values;
};

// A row of X is summed in a table over all columns, one per thread.
struct Table {
    std::vector<float> values;
    std::vector<uint8_t> seen;
    explicit Table(int64_t width) : values(width, 0.0f), seen(width, 0) {}
};

// X (N, d) CSR; Y (N, L) by label (CSC). Returns CSR arrays (L, d) with ascending columns.
nb::tuple label_sums(In<int64_t> x_ptr, In<int32_t> x_columns, In<float> x_values, int64_t width, In<int64_t> y_ptr,
                     In<int32_t> y_rows, In<float> y_values, bool unit) {
    const int64_t labels = static_cast<int64_t>(y_ptr.shape(0)) - 1;
    std::vector<Sum> sums(labels);
    {
        nb::gil_scoped_release nogil;
        PerThread<Table> tables;
        const auto add_up = [&](int64_t l) {
            Table& table = tables.mine(width);
            Sum& sum = sums[l];
            for (int64_t j = y_ptr.data()[l]; j < y_ptr.data()[l + 1]; j++) {
                const int64_t row = y_rows.data()[j];
                for (int64_t i = x_ptr.data()[row]; i < x_ptr.data()[row + 1]; i++) {
                    const int32_t column = x_columns.data()[i];
                    if (!table.seen[column]) {
                        table.seen[column] = 1;
                        sum.columns.push_back(column);
                    }
                    table.values[column] += y_values.data()[j] * x_values.data()[i];
                }
            }
            std::sort(sum.columns.begin(), sum.columns.end());
            double square = 0;
            for (int32_t column : sum.columns) square += double(table.values[column]) * table.values[column];
            const float scale = !unit ? 1.0f : square > 0 ? static_cast<float>(1 / std::sqrt(square)) : 0.0f;
            sum.values.reserve(sum.columns.size());
            for (int32_t column : sum.columns) {
                sum.values.push_back(table.values[column] * scale);
                table.values[column] = 0.0f;
                table.seen[column] = 0;
            }
        };
        parallel_for(labels, 16, add_up, tables.count());
    }
    auto ptr = new_numpy<int64_t>({size_t(labels + 1)});
    ptr.data()[0] = 0;
    for (int64_t l = 0; l < labels; l++) ptr.data()[l + 1] = ptr.data()[l] + static_cast<int64_t>(sums[l].columns.size());
    auto columns = new_numpy<int32_t>({size_t(ptr.data()[labels])});
    auto values = new_numpy<float>({size_t(ptr.data()[labels])});
    {
        nb::gil_scoped_release nogil;
        parallel_for(labels, 256, [&](int64_t l) {
            std::copy(sums[l].columns.begin(), sums[l].columns.end(), columns.data() + ptr.data()[l]);
            std::copy(sums[l].values.begin(), sums[l].values.end(), values.data() + ptr.data()[l]);
            sums[l] = Sum();
        });
    }
    return nb::make_tuple(ptr, columns, values);
}

}  // namespace

void bind_label_sums(nb::module_& m) { m.def("label_sums", &label_sums); }

}  // namespace longtail
