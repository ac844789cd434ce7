#include "newton_hinge.h"
#include "simd.h"
#include "small_newton.h"

#include <limits>

namespace longtail {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kScanned = 512;            // rows of one call of the scan
constexpr size_t kFewest = 256;              // a working set may always grow by this many rows
constexpr int kRough = 2;                    // rounds that only add the worst missing rows
constexpr float kRoughGaps[kRough] = {0.1f, 0.05f};
constexpr double kRidge = 0.3;               // share of the resistance that common features would have with all rows

struct Missed {
    int32_t row;
    float gap;
};

// The progress of one label.
struct Lane {
    int64_t child = -1;  // none
    std::vector<Exception> rows;    // the working set, ascending; it includes ignored pairs
    std::vector<int32_t> columns;   // the columns of its rows (all others have no weight); the bias comes first
    std::vector<Missed> missed;     // of the last scan
    double tolerance = 0, gradient = 0;
    int steps = 0, round = 0;
    bool held = true;  // whether a substitute stands for the rows outside
};

class HingeBlock {
public:
    HingeBlock(const Group& group, int lanes)
        : group_(group), problem_(group.problem()), lanes_(lanes), weights_(group.columns() * lanes, 0.0f),
          bounds_(lanes, kInfinity), found_(kScanned * lanes), place_(group.columns(), -1), sum_(group.columns(), 0.0),
          lane_(lanes) {}

    void run(LabelQueue& queue, std::vector<std::vector<Entry>>& out) {
        for (;;) {
            bool busy = false;
            for (int l = 0; l < lanes_; l++) {
                if (lane_[l].child < 0) start(l, queue.take());
                if (lane_[l].child < 0) continue;
                busy = true;
                solve_working_set(l);
            }
            if (!busy) return;
            scan();
            for (int l = 0; l < lanes_; l++)
                if (lane_[l].child >= 0 && !grow(l)) finish(l, out[lane_[l].child]);
        }
    }

private:
    const Group& group_;
    const LevelProblem& problem_;
    const int lanes_;
    std::vector<float> weights_, bounds_;
    std::vector<FoundMargin> found_;
    std::vector<int32_t> place_;  // place of a column among the columns of the current label
    std::vector<double> sum_;
    std::vector<Lane> lane_;
    SmallNewton newton_;

    float& weight(int32_t column, int l) { return weights_[int64_t(column) * lanes_ + l]; }

    void start(int l, int64_t child) {
        if (child < 0) return;
        Lane& lane = lane_[l];
        lane.child = child;
        lane.rows = group_.exceptions(child);
        lane.tolerance = group_.tolerance(lane.rows, 2.0, sum_);
        lane.steps = problem_.max_passes;
        lane.round = 0;
        lane.held = problem_.bias != 0.0f;
        lane.columns.assign(1, group_.bias_column());
    }

    // How many rows are outside the working set.
    double rest(const Lane& lane) const {
        return static_cast<double>(group_.rows() - static_cast<int64_t>(lane.rows.size()));
    }

    // Solves the label on its working set and stores its weights where the scan reads them. One substitute row, which has
    // only the bias, stands for all rows outside; without it the first few rows would draw the bias far from the others'
    // margin. In the first round, without negatives, a penalty stands for the resistance of common features.
    void solve_working_set(int l) {
        Lane& lane = lane_[l];
        newton_.clear();
        for (size_t c = 0; c < lane.columns.size(); c++) place_[lane.columns[c]] = static_cast<int32_t>(c);
        for (const Exception& row : lane.rows) {
            if (row.positive + row.negative == 0.0f) continue;
            group_.each_value(row.row, [&](int32_t column, float value) {
                if (place_[column] < 0) {
                    place_[column] = static_cast<int32_t>(lane.columns.size());
                    lane.columns.push_back(column);
                }
                newton_.columns.push_back(place_[column]);
                newton_.values.push_back(value);
            });
            end_row(row.positive, row.negative);
        }
        if (lane.held) {
            newton_.columns.push_back(0);
            newton_.values.push_back(problem_.bias);
            end_row(0.0, problem_.cost_negative * rest(lane));
        }
        for (size_t c = 0; c < lane.columns.size(); c++) {
            place_[lane.columns[c]] = -1;
            newton_.weights.push_back(weight(lane.columns[c], l));
            const double resistance = lane.round == 0 && c > 0 ? kRidge * group_.squares(lane.columns[c]) : 0.0;
            newton_.ridge.push_back(1 + problem_.cost_negative * resistance);
        }
        lane.gradient = newton_.solve((lane.round < kRough ? 5.0 : 0.5) * lane.tolerance, lane.steps);
        for (size_t c = 0; c < lane.columns.size(); c++)
            weight(lane.columns[c], l) = static_cast<float>(newton_.weights[c]);
        bounds_[l] = lane.round < kRough ? kRoughGaps[lane.round] - 1.0f : -1.0f;
    }

    void end_row(double positive, double negative) {
        newton_.ptr.push_back(static_cast<int64_t>(newton_.values.size()));
        newton_.positive.push_back(positive);
        newton_.negative.push_back(negative);
    }

    // Finds the rows outside the working sets that do affect the solution.
    void scan() {
        for (Lane& lane : lane_) lane.missed.clear();
        std::vector<size_t> known(lanes_, 0);
        for (int64_t first = 0; first < group_.rows(); first += kScanned) {
            const MarginScan scan{group_.view(),  lanes_, weights_.data(), bounds_.data(), first,
                                  std::min(first + kScanned, group_.rows()), found_.data()};
            const int64_t count = simd().scan_margins(scan);
            for (int64_t f = 0; f < count; f++) {
                const FoundMargin& found = found_[f];
                Lane& lane = lane_[found.lane];
                size_t& k = known[found.lane];
                while (k < lane.rows.size() && lane.rows[k].row < found.row) k++;
                if (k == lane.rows.size() || lane.rows[k].row != found.row)
                    lane.missed.push_back({found.row, 1.0f + found.margin});
            }
        }
    }

    // Adds the missed rows to the working set, the worst first. Returns false if the label is solved.
    bool grow(int l) {
        Lane& lane = lane_[l];
        if (lane.round++ >= kRough) {
            if (solved(lane, l) || lane.steps <= 0) return false;
            if (lane.missed.empty() && !lane.held) return false;
            if (lane.missed.empty()) lane.held = false;
        }
        const size_t most = std::max(kFewest, lane.rows.size());
        if (lane.missed.size() > most) {
            const auto worse = [](const Missed& a, const Missed& b) {
                return a.gap > b.gap || (a.gap == b.gap && a.row < b.row);
            };
            std::nth_element(lane.missed.begin(), lane.missed.begin() + most, lane.missed.end(), worse);
            lane.missed.resize(most);
        }
        for (const Missed& missed : lane.missed) lane.rows.push_back({missed.row, 0.0f, problem_.cost_negative});
        std::sort(lane.rows.begin(), lane.rows.end(),
                  [](const Exception& a, const Exception& b) { return a.row < b.row; });
        return true;
    }

    // Whether the gradient over all rows is short enough: the gradient over the working set, corrected for the substitute
    // row and the missed rows.
    bool solved(const Lane& lane, int l) {
        if (lane.missed.empty() && !lane.held) return lane.gradient <= lane.tolerance;
        const double bias = problem_.bias, cost = 2 * problem_.cost_negative;
        double along_bias = lane.held ? -rest(lane) * std::max(0.0, 1 + bias * weight(lane.columns[0], l)) : 0.0;
        for (const Missed& missed : lane.missed) along_bias += missed.gap;
        along_bias *= cost * bias;
        if (lane.gradient + std::fabs(along_bias) > lane.tolerance) return false;
        std::vector<int32_t> touched;
        for (const Missed& missed : lane.missed)
            group_.each_value(missed.row, [&](int32_t column, float value) {
                if (sum_[column] == 0) touched.push_back(column);
                sum_[column] += cost * missed.gap * value;
            });
        sum_[group_.bias_column()] = 0;
        double squared = along_bias * along_bias;
        for (int32_t column : touched) {
            squared += sum_[column] * sum_[column];
            sum_[column] = 0;
        }
        return lane.gradient + std::sqrt(squared) <= lane.tolerance;
    }

    void finish(int l, std::vector<Entry>& out) {
        Lane& lane = lane_[l];
        for (int32_t column : lane.columns) {
            out.push_back({group_.feature(column), weight(column, l)});
            weight(column, l) = 0.0f;
        }
        prune(out, problem_.threshold, problem_.weights_per_label);
        lane.child = -1;
        bounds_[l] = kInfinity;
        std::vector<int32_t>().swap(lane.columns);
        std::vector<Exception>().swap(lane.rows);
    }
};

}  // namespace

void solve_hinge(const Group& group, LabelQueue& queue, std::vector<std::vector<Entry>>& out) {
    const int lanes = lanes_for(queue, group.columns(), kNewtonLanes);
    if (lanes > 0) HingeBlock(group, lanes).run(queue, out);
}

}  // namespace longtail
