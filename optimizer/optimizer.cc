#include "optimizer/optimizer.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "optimizer/batch_dims.h"
#include "optimizer/exhaustive_search.h"
#include "optimizer/fitting.h"
#include "optimizer/grid_search.h"
#include "optimizer/mcmc_search.h"
#include "optimizer/refinement.h"
#include "optimizer/restrictions.h"
#include "optimizer/role_mapping.h"
#include "optimizer/sequential_search.h"
#include "optimizer/turns.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// How much of the gradient synchronisation the tables count: all of it, or what may be left when
// it overlaps with the backward pass. The simulator, which knows the overlap, picks the best.
constexpr double kSyncWeights[] = {1, 0.5, 0.25, 0.1, 0};

// Of the budget; the first search has all of it.
constexpr double kPartOfLaterSearches = 0.125;

// Grids are left alone where the devices compute for so much of the step.
constexpr double kBusyEnough = 0.9;
// A plan that needs so much more memory than there is does not get faster: it has to get smaller.
constexpr int64_t kFarTooLarge = 2;
// On part of the machine: by so much algebra may be faster than what is known of it; other weights
// of synchronisation are tried if the first is no slower than the best by so much.
constexpr double kAlgebraSlack = 1.2, kPartSlack = 1.2;

class Optimizer {
 public:
  Optimizer(const Model& model, const RuleIndex& rules, const CostModel& cost,
            const OptimizeOptions& options)
      : model_(model),
        cost_(cost),
        options_(options),
        strategy_(options.strategy),
        deadline_(Deadline::In(options.search.time_limit_s)),
        devices_(cost.machine().num_devices()),
        tables_(rules, cost, BaseOptions()),
        contest_(cost, ThreadsOf(options)) {}

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
      ISOMER_RETURN_IF_ERROR(SearchAndRefine(devices_));
      ISOMER_RETURN_IF_ERROR(ConsiderAlgebraFirst());
    }
    if (options_.plan.empty() || options_.plan == kMegatron) {
      ISOMER_RETURN_IF_ERROR(ConsiderGrids());
    }
    if (options_.plan.empty()) ISOMER_RETURN_IF_ERROR(ConsiderPartsOfTheMachine());
    const FittingOptions fitting{.training = options_.training,
                                 .choose_update_method = options_.choose_update_method};
    ISOMER_RETURN_IF_ERROR(ConsiderUpdateMethods(fitting, &contest_));
    if (options_.training && options_.choose_buckets && contest_.fits()) {
      ISOMER_RETURN_IF_ERROR(ConsiderBuckets(deadline_, &contest_));
    }
    if (options_.plan.empty()) {
      ISOMER_RETURN_IF_ERROR(MakeFit(
          cost_, fitting, deadline_,
          [this](const SmallerPlan& wanted) { return FindSmaller(wanted); }, &contest_));
    }
    Contest::Entry best = contest_.TakeBest();
    result_.plan = std::move(best.plan);
    result_.simulation = std::move(best.simulation);
    result_.origin = std::move(best.origin);
    result_.fits = best.fits;
    const auto has_moments = [](const MachineView& view) { return NumMoments(view) > 1; };
    if (std::any_of(result_.plan.views.begin(), result_.plan.views.end(), has_moments)) {
      ISOMER_ASSIGN_OR_RETURN(const LoweredPlan lowered,
                              LowerForSimulation(cost_.machine(), result_.plan));
      result_.pipeline = SummaryOfPipeline(lowered.schedule, result_.simulation);
    }
    const auto seconds = [](auto since) {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
    };
    result_.seconds = seconds(start);
    const auto searched = std::chrono::steady_clock::now();
    if (Bounds()) ISOMER_RETURN_IF_ERROR(Bound());
    result_.bound_seconds = seconds(searched);
    return std::move(result_);
  }

 private:
  static int ThreadsOf(const OptimizeOptions& options) {
    const int all = static_cast<int>(std::thread::hardware_concurrency());
    return std::max(1, options.threads > 0 ? options.threads : all);
  }

  CostOptions BaseOptions() const {
    return {.training = options_.training,
            .precision = options_.precision,
            .optimizer = options_.update.optimizer};
  }

  absl::Status Baselines() {
    std::vector<std::pair<std::string, int>> entered;
    for (const std::string name : {kSingleDevice, kDataParallel, kZero3, kMegatron, kExpert}) {
      if (name == kZero3 && !options_.training) continue;
      tables_.set_options(BaseOptions());
      auto mapped = MapBaseline(name, model_.graph, &tables_);
      if (absl::IsNotFound(mapped.status())) {
        if (options_.plan == name) return absl::InvalidArgumentError(mapped.status().message());
        continue;
      }
      ISOMER_RETURN_IF_ERROR(mapped.status());
      ISOMER_ASSIGN_OR_RETURN(const int entry, EnterBaseline(*mapped, name));
      entered.emplace_back(name, entry);
    }
    for (const auto& [name, entry] : entered) {
      ISOMER_RETURN_IF_ERROR(SettleBaseline(name, entry).status());
    }
    if (options_.plan != kPipeline) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(Plan plan, PipelinePlan(model_, tables_.rules(), cost_,
                                                    options_.training, options_.pipeline));
    SetOptions(&plan);
    ISOMER_ASSIGN_OR_RETURN(result_.baselines[kPipeline],
                            contest_.Consider(std::move(plan), kPipeline));
    return absl::OkStatus();
  }

  // Steps rather than tables decide: there is nothing to weigh.
  bool Simulates() const {
    return options_.strategy == Strategy::kMcmc || options_.strategy == Strategy::kExhaustive;
  }

  absl::StatusOr<int> EnterBaseline(const MappedModel& mapped, const std::string& name,
                                    const Grid* grid = nullptr) {
    ISOMER_ASSIGN_OR_RETURN(Plan plan, PlanOf(mapped, grid));
    if (name == kZero3) plan.update.method = UpdateMethod::kShardedWeights;
    bool takes_part = options_.plan == name ||
                      (options_.plan.empty() && (options_.choose_update_method ||
                                                 plan.update.method == options_.update.method));
    if (name != kSingleDevice && !restrictions_.Violations(mapped).empty()) {
      result_.ignoring.push_back(name);
      takes_part &= !options_.plan.empty();
    }
    takes_part &= name != kSingleDevice;
    const int entry = contest_.Enter(std::move(plan), name, takes_part);
    if (takes_part) entered_.emplace_back(entry, mapped);
    return entry;
  }

  // A baseline may be several plans: the fastest that fits counts, or the smallest.
  absl::StatusOr<Prediction> SettleBaseline(const std::string& name, int entry) {
    ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, contest_.PredictionOf(entry));
    if (name == kSingleDevice) {
      result_.single_device = prediction;
      return prediction;
    }
    const auto worth = [&](const Prediction& p) {
      const bool fits = p.peak_bytes <= cost_.machine().memory_bytes();
      return std::pair(!fits, fits ? p.step_us : static_cast<double>(p.peak_bytes));
    };
    const auto [known, added] = result_.baselines.try_emplace(name, prediction);
    if (!added && worth(prediction) < worth(known->second)) known->second = prediction;
    return prediction;
  }

  absl::StatusOr<Prediction> ConsiderBaseline(const MappedModel& mapped, const std::string& name,
                                              const Grid* grid = nullptr) {
    ISOMER_ASSIGN_OR_RETURN(const int entry, EnterBaseline(mapped, name, grid));
    return SettleBaseline(name, entry);
  }

  // Enters what is found into the contest; nothing: there was no time.
  absl::StatusOr<std::optional<int>> SearchAt(int64_t devices, int weight) {
    CostOptions options = BaseOptions();
    options.num_devices = devices;
    options.sync_weight = kSyncWeights[weight];
    ISOMER_ASSIGN_OR_RETURN(std::optional<Plan> plan, Find(options));
    if (!plan.has_value()) return std::nullopt;
    const int entry = contest_.Enter(*std::move(plan), "search");
    entered_.emplace_back(entry, mappings_.at(options.sync_weight));
    return entry;
  }
  absl::StatusOr<Prediction> PredictionOf(std::optional<int> entry) {
    if (!entry.has_value()) return Prediction{};
    return contest_.PredictionOf(*entry);
  }

  // The search for plans that use the first `devices`.
  absl::Status SearchOn(int64_t devices) {
    constexpr int kLast = std::size(kSyncWeights) - 1;
    ISOMER_ASSIGN_OR_RETURN(const std::optional<int> at_first, SearchAt(devices, 0));
    // Inference has no gradients to synchronise.
    if (!options_.training || Simulates()) return PredictionOf(at_first).status();
    // On part of the machine: one look, unless it is promising.
    if (devices < devices_) {
      ISOMER_ASSIGN_OR_RETURN(const Prediction first, PredictionOf(at_first));
      if (first.step_us > kPartSlack * contest_.step_us()) return absl::OkStatus();
    }
    ISOMER_ASSIGN_OR_RETURN(const std::optional<int> at_last, SearchAt(devices, kLast));
    ISOMER_ASSIGN_OR_RETURN(const Prediction first, PredictionOf(at_first));
    ISOMER_ASSIGN_OR_RETURN(const Prediction last, PredictionOf(at_last));
    is_far_too_large_ =
        std::min(first.peak_bytes, last.peak_bytes) / kFarTooLarge > cost_.machine().memory_bytes();
    if (is_far_too_large_) return absl::OkStatus();
    return SearchBetween(devices, 0, first, kLast, last);
  }

  // By the tables, a plan's time is linear in the weight, so that one that is best at two weights
  // is best at those between.
  absl::Status SearchBetween(int64_t devices, int low, const Prediction& at_low, int high,
                             const Prediction& at_high) {
    if (high - low < 2 || at_low == at_high) return absl::OkStatus();
    const int middle = (low + high) / 2;
    ISOMER_ASSIGN_OR_RETURN(const std::optional<int> entry, SearchAt(devices, middle));
    ISOMER_ASSIGN_OR_RETURN(const Prediction at_middle, PredictionOf(entry));
    ISOMER_RETURN_IF_ERROR(SearchBetween(devices, low, at_low, middle, at_middle));
    return SearchBetween(devices, middle, at_middle, high, at_high);
  }

  // And what the simulator finds better than that.
  absl::Status SearchAndRefine(int64_t devices) {
    mappings_.clear();
    ISOMER_RETURN_IF_ERROR(SearchOn(devices));
    for (const auto& [entry, mapped] : entered_) {
      ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, contest_.PredictionOf(entry));
      Remember(mapped, prediction);
    }
    entered_.clear();
    if (best_mapping_us_ > kPartSlack * contest_.step_us()) return absl::OkStatus();
    ISOMER_RETURN_IF_ERROR(Splice());
    return WalkFromBest(devices);
  }

  absl::Status Splice() {
    std::vector<MappedModel> mappings;
    for (auto& [weight, mapping] : mappings_) mappings.push_back(std::move(mapping));
    mappings_.clear();
    ISOMER_RETURN_IF_ERROR(ConsiderTurns(&mappings));
    // Splices of what is far too large are, too.
    if (!best_mapping_.has_value() || is_far_too_large_) return absl::OkStatus();
    return ConsiderSplices(mappings, best_mapping_us_, deadline_,
                           [this](const MappedModel& mapped) -> absl::StatusOr<Prediction> {
                             if (!restrictions_.Violations(mapped).empty()) {
                               return Prediction{kImpossibleUs};
                             }
                             return ConsiderMapping(mapped);
                           });
  }

  // Adds those of `mappings` in which calls take turns on devices, where that is faster than all.
  absl::Status ConsiderTurns(std::vector<MappedModel>* mappings) {
    if (!restrictions_.empty() || Simulates()) return absl::OkStatus();
    for (size_t m = 0, found = mappings->size(); m < found; ++m) {
      if (deadline_.Reached().has_value()) break;
      ISOMER_ASSIGN_OR_RETURN(std::optional<MappedModel> turned,
                              TakeTurns((*mappings)[m], &tables_));
      if (!turned.has_value()) continue;
      const double best_us = contest_.step_us();
      ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, ConsiderMapping(*turned));
      if (prediction.step_us < best_us) mappings->push_back(*std::move(turned));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Prediction> ConsiderMapping(const MappedModel& mapped) {
    ISOMER_ASSIGN_OR_RETURN(Plan plan, PlanOf(mapped));
    ISOMER_ASSIGN_OR_RETURN(const Prediction found, contest_.Consider(std::move(plan), kFound));
    Remember(mapped, found);
    return found;
  }

  // As the best mapping on as many devices, if it is. Task graphs have no micro-batches.
  void Remember(const MappedModel& mapped, const Prediction& prediction) {
    if (prediction.peak_bytes > cost_.machine().memory_bytes()) return;
    if (prediction.step_us >= best_mapping_us_) return;
    const auto has_moments = [](const auto& c) { return c.second.moments > 1; };
    if (std::any_of(mapped.choices.begin(), mapped.choices.end(), has_moments)) return;
    best_mapping_ = mapped;
    best_mapping_us_ = prediction.step_us;
  }

  // By simulated steps, in float32, which is what task graphs know.
  absl::Status WalkFromBest(int64_t devices) {
    if (Simulates() || !best_mapping_.has_value() || options_.precision != DataType::kFloat32) {
      return absl::OkStatus();
    }
    CostOptions options = BaseOptions();
    options.num_devices = devices;
    tables_.set_options(options);
    ISOMER_ASSIGN_OR_RETURN(const std::optional<MappedModel> walked,
                            Walk(model_, *best_mapping_, options_.search.seed, deadline_,
                                 restrictions_.empty() ? nullptr : &restrictions_, &tables_));
    if (!walked.has_value() || !restrictions_.Violations(*walked).empty()) return absl::OkStatus();
    return ConsiderMapping(*walked).status();
  }

  // All of the budget for the first costs.
  absl::StatusOr<SearchResult> SearchAlgebra(const SearchOptions& options) {
    const bool first = !searcher_.has_value();
    if (first) searcher_.emplace(model_.graph, options, tables_.rules());
    return searcher_->Search(&tables_, deadline_, first ? 1 : kPartOfLaterSearches);
  }

  absl::StatusOr<SearchResult> SearchAlgebraFirst(const SearchOptions& options) {
    int64_t candidates = 0;
    if (!one_device_algebra_.has_value()) {
      ISOMER_ASSIGN_OR_RETURN(one_device_algebra_,
                              AlgebraOfOneDevice(model_.graph, options, &tables_));
      candidates = one_device_algebra_->candidates;
    }
    ISOMER_ASSIGN_OR_RETURN(SearchResult found,
                            MapAlgebra(*one_device_algebra_, options, &tables_));
    found.candidates += candidates;
    return found;
  }

  // The tables do not know what the simulator overlaps: where devices wait, algebra that they think
  // worse may be better, so the joint search is no slower than algebra first.
  absl::Status ConsiderAlgebraFirst() {
    if (strategy_ != Strategy::kHierarchical || !options_.training || devices_ == 1 ||
        !contest_.fits() || BusyShare() > kBusyEnough || deadline_.Reached().has_value()) {
      return absl::OkStatus();
    }
    strategy_ = Strategy::kSequential;
    ISOMER_RETURN_IF_ERROR(SearchAndRefine(devices_));
    strategy_ = Strategy::kHierarchical;
    return absl::OkStatus();
  }

  absl::StatusOr<SearchResult> SearchBy(Strategy strategy, const SearchOptions& options) {
    switch (strategy) {
      case Strategy::kHierarchical:
        return SearchAlgebra(options);
      case Strategy::kMcmc:
        return McmcSearch(model_, options, &tables_);
      case Strategy::kSequential:
        return SearchAlgebraFirst(options);
      case Strategy::kExhaustive:
        return ExhaustiveSearch(model_, options, &tables_, &result_.proof);
    }
    return absl::InternalError("no such strategy");
  }

  // With no time left, the plans so far are what there is, if any.
  absl::StatusOr<std::optional<Plan>> Find(const CostOptions& options) {
    if (const auto reason = deadline_.Reached(); reason.has_value() && !contest_.empty()) {
      result_.stop = std::max(result_.stop, *reason);
      return std::nullopt;
    }
    ISOMER_ASSIGN_OR_RETURN(MappedModel mapped, SearchMapping(options));
    ISOMER_ASSIGN_OR_RETURN(Plan plan, PlanOf(mapped));
    mappings_[options.sync_weight] = std::move(mapped);
    return plan;
  }

  absl::StatusOr<MappedModel> SearchMapping(const CostOptions& options) {
    SearchOptions search = options_.search;
    if (!restrictions_.empty()) search.restrictions = &restrictions_;
    // The time limit is that of all searches.
    if (search.time_limit_s > 0) search.time_limit_s = std::max(1e-9, deadline_.SecondsLeft());
    tables_.set_options(options);
    ISOMER_ASSIGN_OR_RETURN(SearchResult found, SearchBy(strategy_, search));
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
    if (Bounds() && !found.mapped.steps.empty()) {
      rewritten_.push_back({found.mapped.steps, found.mapped.graph});
    }
    ISOMER_RETURN_IF_ERROR(MapArrangedWeights(&tables_, &found.mapped));
    return std::move(found.mapped);
  }

  // On a grid, if there is one.
  absl::StatusOr<Plan> PlanOf(const MappedModel& mapped, const Grid* grid = nullptr) {
    ISOMER_ASSIGN_OR_RETURN(Plan plan, DerivePlan(model_, mapped, options_.training, &tables_));
    SetOptions(&plan);
    if (grid != nullptr) grid->SetOptions(&plan);
    return plan;
  }

  bool Bounds() const { return model_.graph.num_nodes() <= options_.bound_nodes; }

  // Pipelines, and weights each updated in a way of its own, have none.
  absl::Status Bound() {
    const Plan& plan = result_.plan;
    if (result_.pipeline.has_value() || !plan.update.methods.empty()) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(result_.bound, BoundOf(plan));
    const auto lies_behind = [](const MachineView& view) { return view.start > 0; };
    if (std::any_of(plan.views.begin(), plan.views.end(), lies_behind)) {
      result_.bound->step_us = result_.bound->beside_us;
      result_.bound->by = "resources or a path alone";
    }
    return absl::OkStatus();
  }

  absl::StatusOr<LowerBound> BoundOf(const Plan& plan) {
    CostOptions options = BaseOptions();
    options.update_method = plan.update.method;
    tables_.set_options(options);
    ISOMER_ASSIGN_OR_RETURN(LowerBound least, BoundStep(model_.graph, &tables_));
    // The plan's algebra: its derivation begins with it.
    const Rewritten* algebra = nullptr;
    for (const Rewritten& rewritten : rewritten_) {
      if (rewritten.steps.size() <= plan.steps.size() &&
          (algebra == nullptr || rewritten.steps.size() > algebra->steps.size()) &&
          std::equal(rewritten.steps.begin(), rewritten.steps.end(), plan.steps.begin())) {
        algebra = &rewritten;
      }
    }
    if (algebra == nullptr) return least;
    ISOMER_ASSIGN_OR_RETURN(const LowerBound bound, BoundStep(algebra->graph, &tables_));
    const double beside_us = std::min(least.beside_us, bound.beside_us);
    if (bound.step_us < least.step_us) least = bound;
    least.beside_us = beside_us;
    return least;
  }

  // Constraints are on the whole machine; what simulates takes all of it.
  bool OnPartsToo() const {
    return restrictions_.empty() && !Simulates() && !options_.whole_machine;
  }

  // The share of the step that devices would compute if the model's work were dealt out evenly.
  double BusyShare() const {
    return result_.single_device.step_us / static_cast<double>(devices_) / contest_.step_us();
  }

  // Grids of tensor, pipeline and data parallelism where the best plan so far leaves devices
  // waiting, or does not fit.
  absl::Status ConsiderGrids() {
    if (!OnPartsToo()) return absl::OkStatus();
    if (devices_ == 1 || BusyShare() > kBusyEnough || deadline_.Reached().has_value()) {
      return absl::OkStatus();
    }
    tables_.set_options(BaseOptions());
    GridSearchOptions options;
    options.grids.devices = devices_;
    options.grids.updates = {options_.update.method};
    if (options_.choose_update_method) {
      options.grids.updates = {UpdateMethod::kAllReduce, UpdateMethod::kSharded,
                               UpdateMethod::kShardedWeights};
    }
    options.grids.may_recompute = options_.training;
    options.plan = options_.plan;
    if (options_.plan.empty() && options_.strategy == Strategy::kHierarchical) {
      options.search = [this](const CostOptions& cost) { return SearchMapping(cost); };
    }
    options.consider = [this](const MappedModel& mapped, const Grid& grid,
                              const std::string& origin) -> absl::StatusOr<Prediction> {
      if (origin != kFound) return ConsiderBaseline(mapped, origin, &grid);
      ISOMER_ASSIGN_OR_RETURN(Plan plan, PlanOf(mapped, &grid));
      return contest_.Consider(std::move(plan), kFound);
    };
    return SearchGrids(model_.graph, options, deadline_, contest_, &tables_);
  }

  // What the model takes on one device with the algebra that was found so far, by the tables.
  absl::StatusOr<double> UsOnOneDevice() {
    const double us = result_.single_device.step_us;
    if (!searcher_.has_value()) return us;
    CostOptions options = BaseOptions();
    options.num_devices = 1;
    tables_.set_options(options);
    ISOMER_ASSIGN_OR_RETURN(const SearchResult found,
                            searcher_->Search(&tables_, deadline_, /*part=*/0));
    return std::min(us, found.us);
  }

  // Leaving devices idle is a plan, too: for a small model the fastest. But no plan on d devices
  // takes less than a d-th of the time on one.
  absl::Status ConsiderPartsOfTheMachine() {
    if (!contest_.fits() || !OnPartsToo() || devices_ == 1) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(const double one_us, UsOnOneDevice());
    for (int64_t devices = devices_ / 2; devices >= 1; devices /= 2) {
      if (devices_ % devices != 0) break;
      const double at_best = one_us / static_cast<double>(devices);
      if (at_best > kAlgebraSlack * contest_.step_us()) break;
      best_mapping_us_ = kImpossibleUs;
      best_mapping_.reset();
      entered_.clear();  // grids, which are no mappings of this part
      ISOMER_RETURN_IF_ERROR(MapByHandOn(devices));
      ISOMER_RETURN_IF_ERROR(SearchAndRefine(devices));
    }
    return absl::OkStatus();
  }

  // What a part of the machine would have as baselines, were it all.
  absl::Status MapByHandOn(int64_t devices) {
    for (int64_t tensor_degree : {int64_t{1}, devices}) {
      CostOptions options = BaseOptions();
      options.num_devices = devices;
      tables_.set_options(options);
      const auto mapped = MapTensorParallel(model_.graph, tensor_degree, &tables_);
      if (mapped.ok()) ISOMER_RETURN_IF_ERROR(ConsiderMapping(*mapped).status());
      if (devices == 1 || devices > cost_.machine().devices_per_node()) break;
    }
    return absl::OkStatus();
  }

  void SetOptions(Plan* plan) const {
    plan->precision = options_.precision;
    plan->update = options_.update;
  }

  absl::StatusOr<std::optional<Plan>> FindSmaller(const SmallerPlan& wanted) {
    if (Simulates()) return std::nullopt;
    CostOptions options = BaseOptions();
    options.us_per_byte = wanted.us_per_byte;
    if (wanted.micro_batches == 1) return Find(options);
    const Grid grid{.devices = devices_, .micro_batches = wanted.micro_batches};
    if (!OnPartsToo() || MixesSamples(model_.graph) ||
        BatchSize(model_.graph) % (devices_ * grid.micro_batches) != 0) {
      return std::nullopt;
    }
    if (options_.strategy == Strategy::kHierarchical && options_.plan.empty()) {
      ISOMER_ASSIGN_OR_RETURN(const MappedModel found,
                              SearchMapping(OptionsOfStage(grid, options)));
      return PlanOf(found);
    }
    tables_.set_options(OptionsOfStage(grid, options, /*by_hand=*/true));
    ISOMER_ASSIGN_OR_RETURN(const MappedModel by_hand,
                            MapTensorParallel(model_.graph, grid.tensor_degree, &tables_));
    return PlanOf(by_hand);
  }

  const Model& model_;
  const CostModel& cost_;
  const OptimizeOptions& options_;
  Strategy strategy_;
  const Deadline deadline_;
  const int64_t devices_;
  CostTables tables_;
  Restrictions restrictions_;
  std::optional<HierarchicalSearcher> searcher_;
  std::optional<SearchResult> one_device_algebra_;
  Contest contest_;
  // That searches found, by the weight of synchronisation, the largest first.
  std::map<double, MappedModel, std::greater<>> mappings_;
  bool is_far_too_large_ = false;                     // what the last search found
  std::vector<std::pair<int, MappedModel>> entered_;  // into the contest, not looked at yet
  std::optional<MappedModel> best_mapping_;
  double best_mapping_us_ = kImpossibleUs;
  struct Rewritten {
    std::vector<DerivationStep> steps;
    Graph graph;
  };
  std::vector<Rewritten> rewritten_;  // by them, if there is to be a bound
  OptimizeResult result_;
};

}  // namespace

absl::StatusOr<OptimizeResult> Optimize(const Model& model, const RuleIndex& rules,
                                        const CostModel& cost, const OptimizeOptions& options) {
  return Optimizer(model, rules, cost, options).Run();
}

}  // namespace isomer
