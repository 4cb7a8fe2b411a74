#include "optimizer/proposal/grid_search.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "optimizer/proposal/baseline_proposers.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/proposal/grid_estimate.h"
#include "optimizer/proposal/grid_mapping.h"
#include "optimizer/proposal/search_context.h"
#include "optimizer/sharding/batch_dims.h"
#include "optimizer/sharding/choice_axes.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// What a byte costs in the search within a stage, until it fits, in us.
constexpr double kPrices[] = {0, 1e-7, 1e-6, 1e-5};

class GridSearch {
 public:
  GridSearch(GridGraph* graphs, const GridSearchOptions& options, const Deadline& deadline,
             const Contest& contest, CostTables* tables)
      : graphs_(*graphs),
        graph_(graphs->model().graph),
        options_(options),
        policy_(contest.policy()),
        deadline_(deadline),
        contest_(contest),
        tables_(*tables),
        base_(tables->options()),
        memory_bytes_(tables->cost().machine().memory_bytes()),
        without_context_us_(UsWithoutContext()) {}

  absl::Status Run() {
    for (const ConfigEstimate& estimate : options_.estimates) {
      // Estimates of memory may be too low: as long as nothing fits, others may.
      const int64_t most = IsWanted(estimate) ? policy_.grids_until_one_fits : policy_.mapped_grids;
      if (mapped_ >= most) break;
      // Where nothing else does as a user says there is one, whatever the time.
      if (deadline_.Reached().has_value() && !IsAllThereIs()) break;
      if (IsWorthALook(estimate)) ISOMER_RETURN_IF_ERROR(Consider(estimate));
    }
    if (IsAllThereIs()) ISOMER_RETURN_IF_ERROR(SearchWithoutGrid());
    ISOMER_RETURN_IF_ERROR(DrainAfterEachStep());
    tables_.set_options(base_);
    return absl::OkStatus();
  }

 private:
  // A mapping onto one stage, and as it is on all of them.
  struct Pipeline {
    ParallelConfig config;
    MappedModel on_one_stage, mapped;
    std::string origin;
    Prediction prediction = {};
  };

  // Looked at. Of those that differ in chunks alone the estimates say which is the fastest: they
  // are off by the same.
  struct Settled {
    ParallelConfig config;
    bool fits = false;
  };

  static const char* BaselineOf(const ParallelConfig& config) {
    const GridDegrees& degrees = config.degrees;
    if (degrees.tensor > 1 || degrees.expert > 1 || degrees.context > 1) return kMegatron;
    return config.stages > 1 ? kPipeline : kDataParallel;
  }

  // The least estimate of those that should fit and split no sequence; infinity: there is none.
  double UsWithoutContext() const {
    double least = std::numeric_limits<double>::infinity();
    for (const ConfigEstimate& estimate : options_.estimates) {
      const bool counts = estimate.config.degrees.context == 1;
      if (counts && estimate.peak_bytes <= memory_bytes_) least = std::min(least, estimate.step_us);
    }
    return least;
  }

  // Of many micro-batches some are simulated (Simulation::period).
  int64_t CallsOf(const ParallelConfig& config) const {
    constexpr int64_t kPeriods = 3;
    return graph_.num_nodes() *
           std::min(config.micro_batches, kPeriods * std::max<int64_t>(config.stages, 4));
  }

  // Nothing fits yet, and this should.
  bool IsWanted(const ConfigEstimate& estimate) const {
    return !contest_.fits() && estimate.peak_bytes <= memory_bytes_;
  }

  // A split sequence is worth a look where by the estimates it gains more than these are off by.
  bool MayBeFaster(const ConfigEstimate& estimate) const {
    if (estimate.config.degrees.context == 1) {
      return estimate.step_us <= policy_.grid_time_slack * contest_.step_us();
    }
    return estimate.step_us < contest_.step_us() &&
           policy_.other_grid_slack * estimate.step_us < without_context_us_;
  }

  bool IsWorthALook(const ConfigEstimate& estimate) const {
    const ParallelConfig& config = estimate.config;
    // Data parallelism as it is.
    if (config == ParallelConfig{.devices = config.devices, .update = config.update}) return false;
    if (!options_.plan.empty() && options_.plan != BaselineOf(config)) return false;
    if (!MayBeFaster(estimate)) return false;
    if (contest_.fits() && static_cast<double>(estimate.peak_bytes) >
                               policy_.grid_memory_slack * static_cast<double>(memory_bytes_))
      return false;
    if (fitting_us_ > 0 && estimate.step_us > policy_.other_grid_slack * fitting_us_) return false;
    const int64_t calls = CallsOf(config);
    if (calls > policy_.calls_of_one_grid && !IsAllThereIs()) return false;
    if (mapped_ > 0 && !IsWanted(estimate) && calls_ + calls > policy_.grid_calls) return false;
    return std::none_of(settled_.begin(), settled_.end(), [&](const Settled& other) {
      ParallelConfig alike = other.config;
      if (other.fits) alike.chunks = config.chunks;
      return config.MapsLike(alike);
    });
  }

  absl::Status Consider(const ConfigEstimate& estimate) {
    const ParallelConfig& config = estimate.config;
    ++mapped_;
    calls_ += CallsOf(config);
    const bool searches = options_.search != nullptr && config.micro_batches > 1;
    std::optional<Pipeline> by_hand, found;
    if (!options_.restricted) {
      absl::StatusOr<Pipeline> mapped = MapByHand(config);
      if (absl::IsNotFound(mapped.status())) return absl::OkStatus();
      ISOMER_RETURN_IF_ERROR(mapped.status());
      by_hand = *std::move(mapped);
      if (searches) options_.prefetch(by_hand->mapped, config);
    }
    if (searches) {
      ISOMER_ASSIGN_OR_RETURN(found, SearchStage(estimate));
    }
    if (by_hand.has_value()) EnterByHand(estimate, *by_hand);
    // What no rule or view spreads so is no plan.
    if (found.has_value()) Enter(*found).status().IgnoreError();
    return absl::OkStatus();
  }

  // A user wants micro-batches, and no plan has done so yet.
  bool IsAllThereIs() const { return options_.grids.step.HasMicroBatches() && contest_.empty(); }

  // Stages that no grid suits: by the search alone, which splits a micro-batch of fewer samples
  // than a stage has devices in another way.
  absl::Status SearchWithoutGrid() {
    const Constraints::OfStep& step = options_.grids.step;
    const std::optional<ParallelConfig> config = FirstPipelineOf(step);
    if (options_.search == nullptr || !config.has_value()) return absl::OkStatus();
    CostOptions cost = OptionsOfStage(*config, base_);
    cost.sync_weight = policy_.exposed_synchronisation;
    ISOMER_ASSIGN_OR_RETURN(MappedModel found, options_.search(cost));
    absl::StatusOr<Pipeline> pipeline = OnAllStages(*config, std::move(found), kFound);
    if (absl::IsNotFound(pipeline.status())) return absl::OkStatus();
    ISOMER_RETURN_IF_ERROR(pipeline.status());
    // What no rule or view spreads so is no plan.
    Enter(*std::move(pipeline)).status().IgnoreError();
    return absl::OkStatus();
  }

  // Of what a step leaves free, the fewest stages, and as many micro-batches as those or the next
  // more that divide the batch.
  std::optional<ParallelConfig> FirstPipelineOf(const Constraints::OfStep& step) const {
    ParallelConfig config{.devices = options_.grids.devices,
                          .update = options_.grids.update,
                          .recomputation = step.recompute.value_or(RecomputeMode::kNone),
                          .chunks = step.chunks.value_or(1)};
    for (int64_t stages : DivisorsOf(config.devices)) {
      const int64_t least =
          std::max<int64_t>(options_.grids.LeastStages(), config.chunks > 1 ? 2 : 1);
      if (stages < least || stages != step.stages.value_or(stages)) continue;
      config.stages = stages;
      for (int64_t n : DivisorsOf(BatchSize(graph_))) {
        if (n < 2 || n != step.micro_batches.value_or(n)) continue;
        config.micro_batches = n;
        if (n >= stages) return config;
      }
      // Fewer than stages, or none.
      if (config.micro_batches > 1) return config;
    }
    return std::nullopt;
  }

  // The error: calls do not suit so many stages.
  absl::StatusOr<Pipeline> OnAllStages(const ParallelConfig& config, MappedModel mapped,
                                       const std::string& origin) {
    Pipeline pipeline{config, mapped, std::move(mapped), origin};
    ISOMER_RETURN_IF_ERROR(
        SpreadOverStages(config, options_.grids.bound_stages, &tables_, &pipeline.mapped));
    return pipeline;
  }

  absl::StatusOr<Prediction> Enter(Pipeline pipeline) {
    const ParallelConfig& config = pipeline.config;
    ISOMER_ASSIGN_OR_RETURN(pipeline.prediction,
                            options_.consider(pipeline.mapped, config, pipeline.origin));
    const Prediction prediction = pipeline.prediction;
    if (config.stages > 1 &&
        (!best_.has_value() || contest_.Rank(prediction) < contest_.Rank(best_->prediction))) {
      best_ = std::move(pipeline);
    }
    return prediction;
  }

  // The best pipeline as it would be without two versions of weights, if it has them.
  absl::Status DrainAfterEachStep() {
    if (!best_.has_value() || best_->config.steps_between_flushes == 1) return absl::OkStatus();
    ParallelConfig drained = best_->config;
    drained.steps_between_flushes = 1;
    ISOMER_ASSIGN_OR_RETURN(Pipeline pipeline, BestIn(drained));
    Enter(std::move(pipeline)).status().IgnoreError();
    return absl::OkStatus();
  }

  absl::StatusOr<Pipeline> BestIn(const ParallelConfig& config) {
    tables_.set_options(OptionsOfStage(config, base_, best_->origin != kFound));
    return OnAllStages(config, best_->on_one_stage, best_->origin);
  }

  absl::StatusOr<Pipeline> MapByHand(const ParallelConfig& config) {
    tables_.set_options(OptionsOfStage(config, base_, /*by_hand=*/true));
    ISOMER_ASSIGN_OR_RETURN(MappedModel by_hand, graphs_.Map(config.degrees, &tables_));
    return OnAllStages(config, std::move(by_hand), BaselineOf(config));
  }

  void EnterByHand(const ConfigEstimate& estimate, const Pipeline& by_hand) {
    const absl::StatusOr<Prediction> prediction = Enter(by_hand);
    // What no rule or view spreads so is no plan. Of one that does not fit, others that map alike
    // keep less.
    const bool is_allowed = !prediction.ok() || !(*prediction == kNotAllowed);
    const bool fits = prediction.ok() && is_allowed && contest_.Fits(*prediction);
    if (!prediction.ok() || !is_allowed || fits) settled_.push_back({estimate.config, fits});
    if (!is_allowed) --mapped_;
    if (fitting_us_ == 0 && prediction.ok() && contest_.Fits(*prediction)) {
      fitting_us_ = estimate.step_us;
    }
  }

  // Onto one stage. Nothing if it is no better than by hand.
  absl::StatusOr<std::optional<Pipeline>> SearchStage(const ConfigEstimate& by_hand) {
    const ParallelConfig& config = by_hand.config;
    for (double price : kPrices) {
      CostOptions cost = OptionsOfStage(config, base_);
      cost.sync_weight = policy_.exposed_synchronisation;
      cost.us_per_byte = price;
      ISOMER_ASSIGN_OR_RETURN(MappedModel found, options_.search(cost));
      ISOMER_ASSIGN_OR_RETURN(
          const BlockEstimates mapped,
          BlockEstimates::Of(found, config.stage_devices(), config.stages, &tables_));
      if (config.stages > static_cast<int64_t>(mapped.num_calls())) break;
      ParallelConfig one_chunk = config;
      one_chunk.chunks = 1;
      const std::vector<bool> kept = KeptCalls(config.recomputation, found.graph, mapped.compute());
      const std::vector<int> stages =
          CutIntoChunks(one_chunk, options_.grids, tables_.cost(), base_, kept, mapped);
      if (stages.empty()) break;
      const ConfigEstimate estimate =
          EstimateGrid(config, options_.grids, tables_.cost(), base_, kept, mapped, stages);
      if (!options_.restricted && estimate.step_us > by_hand.step_us) break;
      if (estimate.peak_bytes > std::max(memory_bytes_, by_hand.peak_bytes)) continue;
      absl::StatusOr<Pipeline> pipeline = OnAllStages(config, std::move(found), kFound);
      if (absl::IsNotFound(pipeline.status())) break;
      ISOMER_RETURN_IF_ERROR(pipeline.status());
      return *std::move(pipeline);
    }
    return std::nullopt;
  }

  GridGraph& graphs_;
  const Graph& graph_;  // the model's own
  const GridSearchOptions& options_;
  const SearchPolicy& policy_;
  const Deadline& deadline_;
  const Contest& contest_;
  CostTables& tables_;
  const CostOptions base_;
  const int64_t memory_bytes_;
  const double without_context_us_;
  int mapped_ = 0;
  double fitting_us_ = 0;  // the estimate of the first that fits; 0: none yet
  int64_t calls_ = 0;
  std::vector<Settled> settled_;
  std::optional<Pipeline> best_;
};

// Baselines of all devices are known by their names; with --plan=megatron there is nothing else.
bool MayHelp(const SearchContext& context, const Submachine& on) {
  if (context.WantsMicroBatches()) return on.is_whole;
  if (!context.OnPartsToo()) return false;
  if (!on.is_whole) return context.degrees_help;
  return (context.Searches() || context.options.plan == kMegatron ||
          context.options.plan == kPipeline) &&
         context.DevicesWait();
}

// Whether the devices of a stage are mapped by the search.
bool SearchesStages(const SearchContext& context) {
  return context.options.strategy == Strategy::kHierarchical && context.options.plan.empty();
}

absl::Status ProposeGrids(SearchContext* context, Submachine* on) {
  context->tables.set_options(context->BaseOptions());
  const double before_us = context->contest.step_us();
  GridSearchOptions options;
  options.grids = GridOptionsOf(*context, on->devices);
  ISOMER_ASSIGN_OR_RETURN(options.estimates, GridsOf(context, on->devices));
  options.restricted = context->restrictions.restrict_calls();
  options.plan = context->options.plan;
  if (SearchesStages(*context)) {
    options.search = [context](const CostOptions& cost) {
      return context->searches.Search(Strategy::kHierarchical, cost);
    };
  }
  options.consider = [context](const MappedModel& mapped, const ParallelConfig& config,
                               const std::string& origin) -> absl::StatusOr<Prediction> {
    const bool is_baseline =
        origin != kFound && config.devices == context->devices && context->step.empty();
    if (is_baseline) return ConsiderAsBaseline(mapped, origin, config, context);
    ISOMER_ASSIGN_OR_RETURN(Plan plan, context->PlanOf(mapped, &config));
    return context->contest.Consider(std::move(plan), kFound);
  };
  options.prefetch = [context](const MappedModel& mapped, const ParallelConfig& config) {
    if (context->threads() == 1) return;
    absl::StatusOr<Plan> plan = context->PlanOf(mapped, &config);
    if (plan.ok()) context->contest.Prefetch(*std::move(plan));
  };
  const absl::Status searched =
      SearchGrids(&context->graphs, options, context->deadline, context->contest, &context->tables);
  context->contest.ForgetPrefetched();
  context->degrees_help = context->contest.fits() && context->Searches() &&
                          (on->is_whole || context->contest.step_us() < before_us);
  return searched;
}

}  // namespace

GridOptions GridOptionsOf(const SearchContext& context, int64_t devices) {
  const OptimizeOptions& options = context.options;
  Constraints::OfStep step = context.step;
  const bool is_whole = options.whole_machine || options.constraints.PlaceNodes();
  if (is_whole && step.HasMicroBatches()) step.stages = 1;
  return {.devices = devices,
          .policy = context.policy(),
          .update = options.update.method,
          .choose_update = options.choose_update_method,
          .steps_between_flushes = options.steps_between_flushes,
          .may_recompute = options.training,
          .bound_stages = context.restrictions.stages(),
          .step = std::move(step)};
}

absl::StatusOr<std::vector<ConfigEstimate>> GridsOf(SearchContext* context, int64_t devices) {
  const GridOptions options = GridOptionsOf(*context, devices);
  context->tables.set_options(context->BaseOptions());
  return context->shared.grids.Of(
      {options.devices, options.update, options.choose_update, options.steps_between_flushes}, [&] {
        return EnumerateGrids(&context->graphs, options, context->cost.machine().memory_bytes(),
                              &context->tables);
      });
}

constinit const Proposer kGrids = {"grids",
                                   "tensor x pipeline x data parallel degrees, with micro-batches",
                                   Proposer::When::kRefine, MayHelp, ProposeGrids};

absl::Status SearchGrids(GridGraph* graphs, const GridSearchOptions& options,
                         const Deadline& deadline, const Contest& contest, CostTables* tables) {
  return GridSearch(graphs, options, deadline, contest, tables).Run();
}

}  // namespace isomer
