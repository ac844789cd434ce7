// Gradient-boosted trees for probabilities: histograms over binned features, trees of one depth grown level by level.
#include "common.h"

#include <cmath>

namespace longtail {
namespace {

struct Sums {
    double gradient = 0, curvature = 0;
};

struct Split {
    int32_t feature = -1;  // −1: none is worth it, everything goes left
    int32_t bin = 0;       // rows in this bin and those below go left
    double gain = 0;
};

struct Settings {
    double ridge, least_curvature, least_gain;
};

double score_of(const Sums& sums, double ridge) { return sums.gradient * sums.gradient / (sums.curvature + ridge); }

// One tree of 2^depth leaves over rows whose gradients are given.
class Grower {
public:
    Grower(const uint8_t* bins, int64_t rows, int64_t features, int64_t depth, Settings settings)
        : bins_(bins), rows_(rows), features_(features), depth_(depth), settings_(settings), node_(rows) {
        for (int64_t i = 0; i < features * rows; i++) width_ = std::max<int64_t>(width_, bins[i] + 1);
        found_.resize((int64_t(1) << depth) * features);
    }

    // Fills the splits of 2^depth − 1 inner nodes and the values of the leaves, both in the order of a heap.
    void grow(const std::vector<Sums>& of_row, std::vector<Split>& splits, std::vector<double>& values) {
        std::fill(node_.begin(), node_.end(), uint16_t(0));
        for (int64_t level = 0; level < depth_; level++) {
            const int64_t nodes = int64_t(1) << level;
            parallel_for(features_, 1, [&](int64_t f) { search(of_row, f, nodes); });
            Split* own = splits.data() + nodes - 1;
            for (int64_t n = 0; n < nodes; n++) {
                own[n] = Split();
                for (int64_t f = 0; f < features_; f++)  // in order, so that of equal gains the first feature is taken
                    if (found_[n * features_ + f].gain > own[n].gain) own[n] = found_[n * features_ + f];
            }
            parallel_for(rows_, 8192, [&](int64_t i) {
                const Split& split = own[node_[i]];
                const bool right = split.feature >= 0 && bins_[split.feature * rows_ + i] > split.bin;
                node_[i] = static_cast<uint16_t>(2 * node_[i] + right);
            });
        }
        std::vector<Sums> leaves(values.size());
        for (int64_t i = 0; i < rows_; i++) add(leaves[node_[i]], of_row[i]);
        for (size_t n = 0; n < values.size(); n++) values[n] = -leaves[n].gradient / (leaves[n].curvature + settings_.ridge);
    }

    int64_t leaf_of(int64_t row) const { return node_[row]; }

private:
    const uint8_t* bins_;  // (features, rows)
    int64_t rows_, features_, depth_;
    int64_t width_ = 2;  // bins of a histogram
    Settings settings_;
    std::vector<uint16_t> node_;  // of each row, in the level that is being split
    std::vector<Split> found_;    // of each node and feature

    static void add(Sums& sums, const Sums& more) {
        sums.gradient += more.gradient;
        sums.curvature += more.curvature;
    }

    // The best split of every node by one feature.
    void search(const std::vector<Sums>& of_row, int64_t f, int64_t nodes) {
        std::vector<Sums> histogram(nodes * width_);
        const uint8_t* own = bins_ + f * rows_;
        for (int64_t i = 0; i < rows_; i++) add(histogram[node_[i] * width_ + own[i]], of_row[i]);
        for (int64_t n = 0; n < nodes; n++) found_[n * features_ + f] = best_cut(histogram.data() + n * width_, f);
    }

    Split best_cut(const Sums* histogram, int64_t f) const {
        Sums whole, left;
        for (int64_t b = 0; b < width_; b++) add(whole, histogram[b]);
        Split best;
        for (int64_t b = 0; b + 1 < width_; b++) {
            if (histogram[b].curvature == 0) continue;  // the same cut as the one before
            add(left, histogram[b]);
            const Sums right = {whole.gradient - left.gradient, whole.curvature - left.curvature};
            if (left.curvature < settings_.least_curvature || right.curvature < settings_.least_curvature) continue;
            const double gain = score_of(left, settings_.ridge) + score_of(right, settings_.ridge) - score_of(whole, settings_.ridge);
            if (gain > settings_.least_gain && gain > best.gain) best = {static_cast<int32_t>(f), static_cast<int32_t>(b), gain};
        }
        return best;
    }
};

double probability(double margin) { return 1 / (1 + std::exp(-margin)); }

// Trees whose sum, added to `start`, is the margin of p(y = 1): features and bins (T, 2^depth − 1), values (T, 2^depth).
nb::tuple boost(In2<uint8_t> bins, In<float> targets, In<float> weights, double start, int64_t trees, int64_t depth, double rate,
                double ridge, double least_curvature, double least_gain) {
    const int64_t features = bins.shape(0), rows = bins.shape(1);
    check(static_cast<int64_t>(targets.shape(0)) == rows && static_cast<int64_t>(weights.shape(0)) == rows,
          "boost: a target and a weight for each row are needed");
    check(depth >= 1 && depth <= 12, "boost: trees must have 1 to 12 levels");
    check(trees >= 0 && features > 0, "boost: there must be features");
    const int64_t inner = (int64_t(1) << depth) - 1;
    auto feature_of = new_numpy<int32_t>({size_t(trees), size_t(inner)});
    auto bin_of = new_numpy<int32_t>({size_t(trees), size_t(inner)});
    auto value_of = new_numpy<float>({size_t(trees), size_t(inner + 1)});
    {
        nb::gil_scoped_release nogil;
        Grower grower(bins.data(), rows, features, depth, {ridge, least_curvature, least_gain});
        std::vector<double> margins(rows, start), values(inner + 1);
        std::vector<Sums> of_row(rows);
        std::vector<Split> splits(inner);
        for (int64_t t = 0; t < trees; t++) {
            parallel_for(rows, 8192, [&](int64_t i) {
                const double p = probability(margins[i]), w = weights.data()[i];
                of_row[i] = {w * (p - targets.data()[i]), w * p * (1 - p)};
            });
            grower.grow(of_row, splits, values);
            for (int64_t n = 0; n < inner; n++) {
                feature_of.data()[t * inner + n] = splits[n].feature;
                bin_of.data()[t * inner + n] = splits[n].bin;
            }
            float* stored = value_of.data() + t * (inner + 1);
            for (int64_t n = 0; n <= inner; n++) stored[n] = static_cast<float>(rate * values[n]);
            parallel_for(rows, 8192, [&](int64_t i) { margins[i] += stored[grower.leaf_of(i)]; });
        }
    }
    return nb::make_tuple(feature_of, bin_of, value_of);
}

// The sum of the trees' values for each row of X (N, D): a row goes left where X[feature] ≤ cut, and where feature is −1.
Out<double> boosted(In2<float> X, In2<int32_t> feature_of, In2<float> cut_of, In2<float> value_of) {
    const int64_t N = X.shape(0), D = X.shape(1), trees = feature_of.shape(0), inner = feature_of.shape(1);
    check(static_cast<int64_t>(cut_of.shape(0)) == trees && static_cast<int64_t>(value_of.shape(0)) == trees &&
              static_cast<int64_t>(cut_of.shape(1)) == inner && static_cast<int64_t>(value_of.shape(1)) == inner + 1,
          "boosted: the arrays of the trees differ in shape");
    check(inner > 0 && ((inner + 1) & inner) == 0, "boosted: trees must be complete");
    for (int64_t n = 0; n < trees * inner; n++)
        check(feature_of.data()[n] >= -1 && feature_of.data()[n] < D, "boosted: no such feature");
    auto made = new_numpy<double>({size_t(N)});
    double* out = made.data();
    {
        nb::gil_scoped_release nogil;
        parallel_for(N, 256, [&](int64_t i) {
            const float* row = X.data() + i * D;
            double sum = 0;
            for (int64_t t = 0; t < trees; t++) {
                const int32_t* features = feature_of.data() + t * inner;
                const float* cuts = cut_of.data() + t * inner;
                int64_t at = 0;
                while (at < inner) at = 2 * at + 1 + (features[at] >= 0 && row[features[at]] > cuts[at]);
                sum += value_of.data()[t * (inner + 1) + at - inner];
            }
            out[i] = sum;
        });
    }
    return made;
}

}  // namespace

void bind_boost(nb::module_& m) {
    m.def("boost", &boost);
    m.def("boosted", &boosted);
}

}  // namespace longtail
