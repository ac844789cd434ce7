// The sparse text of the Extreme Classification Repository: rows of "index:value", with or without a list of label
// indices in front, read and written. A row with an error is returned empty, together with the place and the reason, so
// that the caller can report them.
#include "common.h"
#include "decimal.h"

#include <charconv>
#include <cstdio>
#include <numeric>

namespace longtail {
namespace {

enum Reason : int64_t {  // the same numbers as in longtail.data.parse.sparse_text
    kGood = 0,
    kNotAnIndex = 1,
    kOutside = 2,
    kNoValue = 3,
    kNotANumber = 4,
    kNotFinite = 5,
    kGarbage = 6,
    kNotAWeight = 7,
    kNotALabel = 8,  // like 1 and 2, in the label list in front
    kLabelOutside = 9,
};

struct Odd {
    Reason reason;
    const char *start, *stop;  // what was found
};

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

class Parser {
public:
    // `labels` < 0: rows have no label list. `weights`: values are label weights, in (0, 1].
    Parser(const char* data, int64_t labels, int64_t columns, bool weights)
        : data_(data), labels_(labels), columns_(columns), weights_(weights) {}

    std::vector<int64_t> label_lengths, lengths, bad;  // bad: row, reason, start, stop of each bad row
    std::vector<int32_t> label_indices, indices;
    std::vector<float> values;
    std::vector<int64_t> merged = {0, -1, 0, -1};  // duplicate labels, duplicate features: how many, first row

    void run(const char* p, const char* end) {
        indices.reserve((end - p) / 8);
        values.reserve((end - p) / 8);
        for (int64_t row = 0; p < end; row++) {
            const auto* next = static_cast<const char*>(std::memchr(p, '\n', end - p));
            if (next == nullptr) next = end;
            const char* stop = next;
            if (stop > p && stop[-1] == '\r') stop--;
            while (stop > p && is_blank(stop[-1])) stop--;
            line(p, stop, row);
            p = next + 1;
        }
    }

private:
    const char* data_;
    const int64_t labels_, columns_;
    const bool weights_;
    std::vector<size_t> order_;
    std::vector<int32_t> row_indices_;
    std::vector<float> row_values_;

    void line(const char* p, const char* end, int64_t row) {
        const size_t labels_before = label_indices.size(), before = indices.size();
        const char* start = p;
        Odd odd{kGood, p, p};
        bool rising_labels = true, rising = true;
        if (labels_ >= 0) odd = label_list(p, end, rising_labels);
        if (odd.reason == kGood) odd = pairs(p, end, rising);
        if (odd.reason == kGood && !rising) odd = {sort_pairs(before, row), start, end};
        if (odd.reason == kGood) {
            if (!rising_labels) sort_labels(labels_before, row);
        } else {
            label_indices.resize(labels_before);
            indices.resize(before);
            values.resize(before);
            bad.insert(bad.end(), {row, odd.reason, odd.start - data_, odd.stop - data_});
        }
        label_lengths.push_back(label_indices.size() - labels_before);
        lengths.push_back(indices.size() - before);
    }

    // "3,1,4" up to a blank. A row that starts with a blank, or with a pair, has no labels.
    Odd label_list(const char*& p, const char* end, bool& rising) {
        const char* start = p;
        while (p < end && !is_blank(*p)) {
            if (*p == ':') {
                p = start;
                return {kGood, p, p};
            }
            p++;
        }
        int64_t last = -1;
        for (const char* q = start; q < p;) {
            const auto* comma = static_cast<const char*>(std::memchr(q, ',', p - q));
            const char* stop = comma == nullptr ? p : comma;
            int64_t index = 0;
            const Reason reason = parse_index(q, stop, labels_, index);
            if (reason != kGood) return {reason == kOutside ? kLabelOutside : kNotALabel, q, stop};
            if (comma != nullptr && comma + 1 == p) return {kNotALabel, q, p};
            rising &= index > last;
            last = index;
            label_indices.push_back(static_cast<int32_t>(index));
            q = stop + 1;
        }
        return {kGood, p, p};
    }

    Odd pairs(const char* p, const char* end, bool& rising) {
        int64_t last = -1;
        for (;;) {
            while (p < end && is_blank(*p)) p++;
            if (p >= end) return {kGood, p, p};
            const char* start = p;
            while (p < end && *p != ':' && !is_blank(*p)) p++;
            const char* colon = p;
            while (p < end && !is_blank(*p)) p++;
            int64_t index = 0;
            float value = 0;
            const Reason wrong = parse_index(start, colon, columns_, index);
            if (wrong != kGood) return {wrong, start, p};
            if (p - colon < 2) return {kNoValue, start, p};
            switch (parse_number(colon + 1, p, value)) {
                case Number::kGood: break;
                case Number::kNone: return {kNotANumber, start, p};
                case Number::kNotFinite: return {kNotFinite, start, p};
                case Number::kGarbage: return {kGarbage, start, p};
            }
            if (weights_ && !(value > 0 && value <= 1)) return {kNotAWeight, start, p};
            rising &= index > last;
            last = index;
            indices.push_back(static_cast<int32_t>(index));
            values.push_back(value);
        }
    }

    static Reason parse_index(const char* p, const char* end, int64_t limit, int64_t& out) {
        const bool negative = p < end && *p == '-';
        if (negative) p++;
        if (p >= end) return kNotAnIndex;
        int64_t value = 0;
        for (; p < end; p++) {
            if (!is_digit(*p)) return kNotAnIndex;
            value = value < INT32_MAX ? value * 10 + (*p - '0') : value;
        }
        out = value;
        return negative || value >= limit || value >= INT32_MAX ? kOutside : kGood;
    }

    void sort_labels(size_t before, int64_t row) {
        const auto first = label_indices.begin() + before;
        std::sort(first, label_indices.end());
        const auto last = std::unique(first, label_indices.end());
        note(0, label_indices.end() - last, row);
        label_indices.erase(last, label_indices.end());
    }

    // Sorts the pairs of a row; of duplicate weights the largest is used, duplicate features are summed.
    Reason sort_pairs(size_t before, int64_t row) {
        const size_t n = indices.size() - before;
        row_indices_.assign(indices.begin() + before, indices.end());
        row_values_.assign(values.begin() + before, values.end());
        order_.resize(n);
        std::iota(order_.begin(), order_.end(), size_t(0));
        std::stable_sort(order_.begin(), order_.end(),
                         [&](size_t a, size_t b) { return row_indices_[a] < row_indices_[b]; });
        size_t kept = 0;
        Reason reason = kGood;
        for (size_t i = 0; i < n;) {
            const int32_t index = row_indices_[order_[i]];
            double value = row_values_[order_[i]];
            for (i++; i < n && row_indices_[order_[i]] == index; i++) {
                const double other = row_values_[order_[i]];
                value = weights_ ? std::max(value, other) : value + other;
            }
            if (std::fabs(value) > FLT_MAX) reason = kNotFinite;
            indices[before + kept] = index;
            values[before + kept++] = static_cast<float>(value);
        }
        indices.resize(before + kept);
        values.resize(before + kept);
        note(2, n - kept, row);
        return reason;
    }

    void note(int which, int64_t count, int64_t row) {
        if (count > 0 && merged[which + 1] < 0) merged[which + 1] = row;
        merged[which] += count;
    }
};

nb::tuple sparse_rows(nb::bytes block, int64_t start, int64_t labels, int64_t columns, bool weights) {
    const char* data = block.c_str();
    check(start >= 0 && start <= static_cast<int64_t>(block.size()), "sparse_rows: start lies outside the block");
    Parser parser(data, labels, columns, weights);
    {
        nb::gil_scoped_release nogil;
        parser.run(data + start, data + block.size());
    }
    return nb::make_tuple(to_numpy(std::move(parser.label_lengths)), to_numpy(std::move(parser.label_indices)),
                          to_numpy(std::move(parser.lengths)), to_numpy(std::move(parser.indices)),
                          to_numpy(std::move(parser.values)), to_numpy(std::move(parser.bad)),
                          to_numpy(std::move(parser.merged)));
}

void append_index(std::string& out, int32_t index) {
    char digits[16];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, index).ptr);
}

// The shortest digits that read back as the same float, if the standard library supports it.
void append_float(std::string& out, float value) {
    char digits[32];
#if defined(__cpp_lib_to_chars)
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
#else
    const int size = std::snprintf(digits, sizeof digits, "%.9g", static_cast<double>(value));
    std::replace(digits, digits + size, ',', '.');
    out.append(digits, size);
#endif
}

// Rows first … last - 1 of a CSR matrix as text; with `has_labels`, the rows of a second matrix in front.
nb::bytes sparse_lines(In<int64_t> indptr, In<int32_t> indices, In<float> values, In<int64_t> label_indptr,
                       In<int32_t> label_indices, bool has_labels, int64_t first, int64_t last) {
    const int64_t rows = static_cast<int64_t>(indptr.shape(0)) - 1;
    check(first >= 0 && first <= last && last <= rows, "sparse_lines: rows out of range");
    check(indices.shape(0) == values.shape(0) && indptr.data()[last] <= static_cast<int64_t>(indices.shape(0)),
          "sparse_lines: indptr reaches outside the data");
    check(!has_labels || (label_indptr.shape(0) == indptr.shape(0) &&
                          label_indptr.data()[last] <= static_cast<int64_t>(label_indices.shape(0))),
          "sparse_lines: label rows differ");
    std::string out;
    {
        nb::gil_scoped_release nogil;
        for (int64_t row = first; row < last; row++) {
            if (has_labels) {
                for (int64_t i = label_indptr.data()[row]; i < label_indptr.data()[row + 1]; i++) {
                    if (i > label_indptr.data()[row]) out.push_back(',');
                    append_index(out, label_indices.data()[i]);
                }
            }
            for (int64_t i = indptr.data()[row]; i < indptr.data()[row + 1]; i++) {
                if (has_labels || i > indptr.data()[row]) out.push_back(' ');
                append_index(out, indices.data()[i]);
                out.push_back(':');
                append_float(out, values.data()[i]);
            }
            out.push_back('\n');
        }
    }
    return nb::bytes(out.data(), out.size());
}

}  // namespace

void bind_sparse_text(nb::module_& m) {
    m.def("sparse_rows", &sparse_rows);
    m.def("sparse_lines", &sparse_lines);
}

}  // namespace longtail
