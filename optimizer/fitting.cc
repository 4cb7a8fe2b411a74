#include "optimizer/fitting.h"

#include <utility>
#include <vector>

#include "optimizer/segments.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Prices of memory to try until a plan fits, in us per byte.
constexpr double kFirstPrice = 1e-7;
constexpr double kPriceStep = 8;
constexpr double kLastPrice = 1;
// And of plans in micro-batches, for which there is a search each.
constexpr double kPricesInMicroBatches[] = {1e-5, 1e-2};

constexpr int64_t kMostMicroBatches = 64;

// Between nothing and all that is worth it; a plan is simulated with the logarithm of it.
constexpr int kLevelsOfRecomputation = 8;

// That are simulated with every method.
constexpr int64_t kMostCalls = 60000;

// Of gradients that are synchronised together, where memory is short.
constexpr int64_t kSmallBucket = int64_t{1} << 20;

class Fitting {
 public:
  Fitting(const CostModel& cost, const FittingOptions& options, const Deadline& deadline,
          const FindSmallerPlan& find, Contest* contest)
      : cost_(cost), options_(options), deadline_(deadline), find_(find), contest_(*contest) {}

  absl::Status Run() {
    // Copies: what takes part may replace them.
    const Plan fastest = contest_.fastest();
    const std::string origin = contest_.fastest_origin();
    ISOMER_RETURN_IF_ERROR(MakeSmaller(fastest, origin));
    ISOMER_RETURN_IF_ERROR(TryMicroBatches(0));
    for (double price = kFirstPrice; !IsDone() && price <= kLastPrice; price *= kPriceStep) {
      ISOMER_RETURN_IF_ERROR(Try({.us_per_byte = price}).status());
    }
    for (double price : kPricesInMicroBatches) {
      if (!IsDone()) ISOMER_RETURN_IF_ERROR(TryMicroBatches(price));
    }
    return absl::OkStatus();
  }

 private:
  bool IsDone() const { return contest_.fits() || deadline_.Reached().has_value(); }

  // More and more, while that makes a plan fit, smaller, or that fits faster.
  absl::Status TryMicroBatches(double price) {
    if (!options_.training) return absl::OkStatus();
    for (int64_t n = 2; n <= kMostMicroBatches && !deadline_.Reached().has_value(); n *= 2) {
      const double us = contest_.step_us();
      const int64_t bytes = contest_.best().simulation.peak_bytes;
      ISOMER_ASSIGN_OR_RETURN(const std::optional<double> step_us, Try({price, n}));
      const bool is_smaller = contest_.best().simulation.peak_bytes < bytes;
      if (!step_us.has_value() || (contest_.fits() ? *step_us >= us : !is_smaller)) break;
    }
    return absl::OkStatus();
  }

  // The step of such a plan as it is found; absent if none is.
  absl::StatusOr<std::optional<double>> Try(const SmallerPlan& wanted) {
    ISOMER_ASSIGN_OR_RETURN(const std::optional<Plan> plan, find_(wanted));
    if (!plan.has_value()) return std::nullopt;
    const char* origin = "search";
    ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, contest_.Consider(*plan, origin));
    if (!Fits(prediction)) ISOMER_RETURN_IF_ERROR(MakeSmaller(*plan, origin));
    return prediction.step_us;
  }

  bool Fits(const Prediction& prediction) const {
    return prediction.peak_bytes <= cost_.machine().memory_bytes();
  }

  // REQUIRES: `plan`, as it is, took part.
  absl::Status MakeSmaller(const Plan& plan, const std::string& origin) {
    if (!options_.training) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(const std::vector<NodeResults> results, ResultsOfNodes(cost_, plan));
    levels_ =
        LevelsOfRecomputation(SegmentsToRecompute(plan.graph, results), kLevelsOfRecomputation);
    ISOMER_RETURN_IF_ERROR(Recompute(plan, origin).status());
    if (!options_.choose_update_method) return absl::OkStatus();
    bool fits = false;
    for (UpdateMethod method : {UpdateMethod::kSharded, UpdateMethod::kShardedWeights}) {
      Plan sharded = plan;
      sharded.update.method = method;
      ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, contest_.Consider(sharded, origin));
      fits = Fits(prediction);
      // What comes next is slower.
      if (fits) break;
      ISOMER_ASSIGN_OR_RETURN(fits, Recompute(sharded, origin));
    }
    if (fits || plan.update.bucket_bytes <= kSmallBucket) return absl::OkStatus();
    Plan smallest = plan;
    smallest.update.method = UpdateMethod::kShardedWeights;
    smallest.update.bucket_bytes = kSmallBucket;
    return Recompute(smallest, origin).status();
  }

  // As little as makes it fit; false if nothing does. REQUIRES: without, it does not fit.
  absl::StatusOr<bool> Recompute(Plan plan, const std::string& origin) {
    // Of `levels_`: the least that is known to be enough, and the first that may be.
    size_t enough = levels_.size(), first = 0;
    while (first < enough) {
      // All of it, to begin with.
      const size_t level = enough == levels_.size() ? enough - 1 : (first + enough) / 2;
      plan.recomputed = levels_[level];
      ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, contest_.Consider(plan, origin));
      if (Fits(prediction)) {
        enough = level;
      } else if (enough == levels_.size()) {
        return false;
      } else {
        first = level + 1;
      }
    }
    return enough < levels_.size();
  }

  const CostModel& cost_;
  const FittingOptions& options_;
  const Deadline& deadline_;
  const FindSmallerPlan& find_;
  Contest& contest_;
  std::vector<std::vector<NodeId>> levels_;  // of the plan at hand
};

}  // namespace

absl::Status ConsiderUpdateMethods(const FittingOptions& options, Contest* contest) {
  if (!options.training || !options.choose_update_method || contest->empty()) {
    return absl::OkStatus();
  }
  // Copies: what takes part may replace them.
  const Plan best = contest->best().plan;
  const std::string origin = contest->best().origin;
  ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(best.graph, best.views));
  std::vector<int> entries;
  for (UpdateMethod method :
       {UpdateMethod::kSharded, UpdateMethod::kOwner, UpdateMethod::kShardedWeights}) {
    // Of large plans the method that is hardly ever slower.
    if (method != UpdateMethod::kSharded && best.graph.num_nodes() * moments > kMostCalls) break;
    Plan plan = best;
    plan.update.method = method;
    entries.push_back(contest->Enter(std::move(plan), origin));
  }
  for (int entry : entries) ISOMER_RETURN_IF_ERROR(contest->PredictionOf(entry).status());
  return absl::OkStatus();
}

absl::Status MakeFit(const CostModel& cost, const FittingOptions& options, const Deadline& deadline,
                     const FindSmallerPlan& find, Contest* contest) {
  if (contest->fits() && &contest->fastest() == &contest->best().plan) return absl::OkStatus();
  return Fitting(cost, options, deadline, find, contest).Run();
}

}  // namespace isomer
