#include "optimizer/optimizer.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "optimizer/exhaustive_search.h"
#include "optimizer/mcmc_search.h"
#include "optimizer/restrictions.h"
#include "optimizer/sequential_search.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// How much of the gradient synchronisation the tables count: all of it, or what may be left when
// it overlaps with the backward pass. The simulator, which knows the overlap, picks the best.
constexpr double kSyncWeights[] = {1, 0.5, 0.25, 0.1, 0};

// Of the budget; the first search has all of it.
constexpr double kPartOfLaterSearches = 0.125;

// Prices of memory to try until a plan fits, in us per byte.
constexpr double kFirstPrice = 1e-7;
constexpr double kPriceStep = 8;
constexpr double kLastPrice = 1;

class Optimizer {
 public:
  Optimizer(const Model& model, const RuleIndex& rules, const CostModel& cost,
            const OptimizeOptions& options)
      : model_(model),
        cost_(cost),
        options_(options),
        deadline_(Deadline::In(options.search.time_limit_s)),
        tables_(rules, cost, BaseOptions()) {}

  absl::StatusOr<OptimizeResult> Run() {
    const auto start = std::chrono::steady_clock::now();
    ISOMER_ASSIGN_OR_RETURN(restrictions_,
                            Restrictions::Resolve(options_.constraints, model_.graph, &tables_));
    if (restrictions_.least_stages() > 1) {
      return absl::InvalidArgumentError(
          "constraints: a stage beyond 0; searches make plans of one stage");
    }
    ISOMER_RETURN_IF_ERROR(Baselines());
    if (options_.plan.empty()) {
      for (double weight : kSyncWeights) {
        // Inference has no gradients to synchronise.
        const bool weighs = options_.training && !Simulates();
        if (weighs || weight == 1) ISOMER_RETURN_IF_ERROR(Search(weight, 0));
      }
      ISOMER_RETURN_IF_ERROR(ConsiderUpdateMethods());
      for (double price = kFirstPrice; !Simulates() && !fits_ && price <= kLastPrice;
           price *= kPriceStep) {
        ISOMER_RETURN_IF_ERROR(Search(1, price));
        ISOMER_RETURN_IF_ERROR(ConsiderUpdateMethods());
      }
    } else {
      ISOMER_RETURN_IF_ERROR(ConsiderUpdateMethods());
    }
    result_.fits = fits_;
    if (result_.origin == kPipeline) {
      ISOMER_ASSIGN_OR_RETURN(const LoweredPlan lowered,
                              LowerForSimulation(cost_.machine(), result_.plan));
      result_.pipeline = SummaryOfPipeline(lowered.schedule, result_.simulation);
    }
    result_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(result_);
  }

 private:
  CostOptions BaseOptions() const {
    return {.training = options_.training,
            .precision = options_.precision,
            .optimizer = options_.update.optimizer};
  }

  absl::Status Baselines() {
    for (const char* name : {kSingleDevice, kDataParallel, kMegatron, kExpert}) {
      auto mapped = MapBaseline(name, model_.graph, &tables_);
      if (absl::IsNotFound(mapped.status())) {
        if (options_.plan == name) return absl::InvalidArgumentError(mapped.status().message());
        continue;
      }
      ISOMER_RETURN_IF_ERROR(mapped.status());
      ISOMER_ASSIGN_OR_RETURN(auto predicted, Predict(*mapped));
      const Prediction prediction{predicted.second.step_us, predicted.second.peak_bytes};
      if (name == std::string(kSingleDevice)) {
        result_.single_device = prediction;
        continue;
      }
      result_.baselines[name] = prediction;
      if (!restrictions_.Violations(*mapped).empty()) {
        result_.ignoring.push_back(name);
        if (options_.plan.empty()) continue;
      }
      if (options_.plan.empty() || options_.plan == name) Consider(std::move(predicted), name);
    }
    if (options_.plan != kPipeline) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(Plan plan, PipelinePlan(model_, tables_.rules(), cost_,
                                                    options_.training, options_.pipeline));
    ISOMER_ASSIGN_OR_RETURN(auto predicted, Predict(std::move(plan)));
    result_.baselines[kPipeline] = {predicted.second.step_us, predicted.second.peak_bytes};
    Consider(std::move(predicted), kPipeline);
    return absl::OkStatus();
  }

  // Steps rather than tables decide: there is nothing to weigh.
  bool Simulates() const {
    return options_.strategy == Strategy::kMcmc || options_.strategy == Strategy::kExhaustive;
  }

  // The time limit is that of all searches.
  SearchOptions SearchOptionsNow() const {
    SearchOptions options = options_.search;
    if (!restrictions_.empty()) options.restrictions = &restrictions_;
    if (options.time_limit_s > 0) options.time_limit_s = std::max(1e-9, deadline_.SecondsLeft());
    return options;
  }

  // All of the budget for the first costs.
  absl::StatusOr<SearchResult> SearchAlgebra(const SearchOptions& options) {
    const bool first = !searcher_.has_value();
    if (first) searcher_.emplace(model_.graph, options, tables_.rules());
    return searcher_->Search(&tables_, deadline_, first ? 1 : kPartOfLaterSearches);
  }

  absl::StatusOr<SearchResult> SearchBy(Strategy strategy, const SearchOptions& options) {
    switch (strategy) {
      case Strategy::kHierarchical:
        return SearchAlgebra(options);
      case Strategy::kMcmc:
        return McmcSearch(model_, options, &tables_);
      case Strategy::kSequential:
        return SequentialSearch(model_.graph, options, &tables_);
      case Strategy::kExhaustive:
        return ExhaustiveSearch(model_, options, &tables_, &result_.proof);
    }
    return absl::InternalError("no such strategy");
  }

  absl::Status Search(double sync_weight, double us_per_byte) {
    // With no time left, the plans so far are what there is.
    if (const auto reason = deadline_.Reached(); reason.has_value()) {
      result_.stop = std::max(result_.stop, *reason);
      return absl::OkStatus();
    }
    CostOptions cost_options = BaseOptions();
    cost_options.sync_weight = sync_weight;
    cost_options.us_per_byte = us_per_byte;
    tables_.set_options(cost_options);
    ISOMER_ASSIGN_OR_RETURN(SearchResult found, SearchBy(options_.strategy, SearchOptionsNow()));
    if (const auto violations = restrictions_.Violations(found.mapped); !violations.empty()) {
      return absl::InternalError(violations[0]);
    }
    result_.candidates += found.candidates;
    result_.pieces = found.pieces;
    result_.distinct_pieces = found.distinct_pieces;
    result_.remembered_pieces = found.remembered_pieces;
    if (!found.cache_note.empty()) result_.cache_note = found.cache_note;
    result_.series_parallel_pieces = found.series_parallel_pieces;
    result_.stop = std::max(result_.stop, found.stop);
    result_.exact_mappings &= found.exact_mappings;
    ISOMER_ASSIGN_OR_RETURN(auto predicted, Predict(found.mapped));
    Consider(std::move(predicted), "search");
    return absl::OkStatus();
  }

  absl::StatusOr<std::pair<Plan, Simulation>> Predict(const MappedModel& mapped) {
    ISOMER_ASSIGN_OR_RETURN(Plan plan, DerivePlan(model_, mapped, options_.training, &tables_));
    return Predict(std::move(plan));
  }

  absl::StatusOr<std::pair<Plan, Simulation>> Predict(Plan plan) {
    plan.precision = options_.precision;
    plan.update = options_.update;
    return PredictAsItIs(std::move(plan));
  }

  absl::StatusOr<std::pair<Plan, Simulation>> PredictAsItIs(Plan plan) {
    ISOMER_ASSIGN_OR_RETURN(Simulation simulation, PredictPlan(cost_, &plan));
    return std::make_pair(std::move(plan), std::move(simulation));
  }

  // The best plan so far with its weights updated in other ways.
  absl::Status ConsiderUpdateMethods() {
    if (!options_.training || !options_.choose_update_method || !considered_) {
      return absl::OkStatus();
    }
    const Plan best = result_.plan;
    for (UpdateMethod method : {UpdateMethod::kSharded, UpdateMethod::kOwner}) {
      Plan plan = best;
      plan.update.method = method;
      ISOMER_ASSIGN_OR_RETURN(auto predicted, PredictAsItIs(std::move(plan)));
      Consider(std::move(predicted), result_.origin);
    }
    return absl::OkStatus();
  }

  // A plan that fits is better than one that does not; of those that fit the faster, of those that
  // do not the smaller.
  void Consider(std::pair<Plan, Simulation> predicted, std::string origin) {
    const Simulation& now = predicted.second;
    const bool fits = now.peak_bytes <= cost_.machine().memory_bytes();
    if (considered_) {
      if (fits_ && !fits) return;
      if (fits_ == fits && (fits ? now.step_us >= result_.simulation.step_us
                                 : now.peak_bytes >= result_.simulation.peak_bytes)) {
        return;
      }
    }
    considered_ = true;
    fits_ = fits;
    result_.plan = std::move(predicted.first);
    result_.simulation = std::move(predicted.second);
    result_.origin = std::move(origin);
  }

  const Model& model_;
  const CostModel& cost_;
  const OptimizeOptions& options_;
  const Deadline deadline_;
  CostTables tables_;
  Restrictions restrictions_;
  std::optional<HierarchicalSearcher> searcher_;
  OptimizeResult result_;
  bool considered_ = false, fits_ = false;
};

}  // namespace

absl::StatusOr<OptimizeResult> Optimize(const Model& model, const RuleIndex& rules,
                                        const CostModel& cost, const OptimizeOptions& options) {
  return Optimizer(model, rules, cost, options).Run();
}

}  // namespace isomer
