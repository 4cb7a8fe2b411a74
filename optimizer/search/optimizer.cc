#include "optimizer/search/optimizer.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "optimizer/proposal/baseline_entries.h"
#include "optimizer/proposal/fitting.h"
#include "optimizer/proposal/grid_search.h"
#include "optimizer/proposal/optimization.h"
#include "optimizer/proposal/overlap_search.h"
#include "optimizer/proposal/plan_bound.h"
#include "optimizer/proposal/update_choice.h"
#include "optimizer/sharding/batch_dims.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Grids are left alone where the devices compute for so much of the step.
constexpr double kBusyEnough = 0.9;
// By so much algebra may be faster on part of the machine than what is known of it.
constexpr double kAlgebraSlack = 1.2;
// A plan on part of the machine that takes no longer than so many times the best is near it.
constexpr double kNearPart = 1.1;
// Models of more operators are searched once.
constexpr int kMostNodesTwice = 1800;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Optimizer {
 public:
  Optimizer(const Model& model, const RuleIndex& rules, const CostModel& cost,
            const OptimizeOptions& options, PredictionMemo* predictions)
      : run_(model, rules, cost, options, predictions),
        baselines_(&run_),
        searches_(model, options.search, run_.restrictions, run_.deadline, &run_.tables),
        overlap_(&run_, &searches_),
        fitting_{.training = options.training,
                 .choose_update_method = options.choose_update_method} {
    if (run_.Bounds()) searches_.KeepRewritten();
  }

  absl::StatusOr<OptimizeResult> Run() {
    const auto start = std::chrono::steady_clock::now();
    ISOMER_ASSIGN_OR_RETURN(OptimizeResult result, Search());
    result.seconds = SecondsSince(start);
    const auto found = std::chrono::steady_clock::now();
    if (run_.Bounds()) {
      BoundOptions bound = run_.options.bound;
      bound.deadline = run_.deadline;
      ISOMER_ASSIGN_OR_RETURN(result.bound,
                              BoundOfPlan(run_.model.graph, result.plan, AllRewritten(),
                                          run_.BaseOptions(), bound, &run_.tables));
    }
    result.bound_seconds = SecondsSince(found);
    return result;
  }

 private:
  // All but the bound.
  absl::StatusOr<OptimizeResult> Search() {
    ISOMER_ASSIGN_OR_RETURN(
        run_.restrictions,
        Restrictions::Resolve(run_.options.constraints, run_.model.graph, &run_.tables));
    ISOMER_RETURN_IF_ERROR(FillContest());
    OptimizeResult result;
    ISOMER_RETURN_IF_ERROR(TakeBest(&result));
    if (algebra_first_ != nullptr) {
      ISOMER_ASSIGN_OR_RETURN(OptimizeResult other, result_of_algebra_first_.get());
      TakeIfBetter(std::move(other), Proposer::kAlgebraFirst, &result);
    }
    ISOMER_RETURN_IF_ERROR(SearchParts(&result));
    return result;
  }

  // A plan that leaves devices idle is what a search of those that it uses would find, and that
  // looks further than ConsiderPartsOfTheMachine: it is done for all parts that a plan near the
  // best uses. What is on one node is searched as a machine of its own, with its parts.
  absl::Status SearchParts(OptimizeResult* result) {
    if (run_.options.strategy != Strategy::kHierarchical || !run_.options.plan.empty() ||
        !SearchesParts() || !result->fits || !run_.Asks(Proposer::kPartSearches)) {
      return absl::OkStatus();
    }
    for (int64_t devices = run_.devices; devices % 2 == 0;) {
      devices /= 2;
      const double near_us = kNearPart * result->plan.predicted_step_us;
      const bool on_node = devices <= DevicesOfNode();
      if (UsOn(devices, on_node ? 0 : devices / 2) > near_us) continue;
      if (run_.deadline.Reached().has_value()) break;
      OptimizeOptions options = OptionsForWhatIsLeft();
      options.devices = devices;
      Optimizer part(run_.model, run_.tables.rules(), run_.cost, options, &run_.predictions);
      ISOMER_ASSIGN_OR_RETURN(OptimizeResult found, part.Search());
      found.baselines.clear();
      found.origin = kFound;
      TakeIfBetter(std::move(found), Proposer::kPartSearches, result);
      const std::vector<Rewritten> rewritten = part.AllRewritten();
      of_parts_.insert(of_parts_.end(), rewritten.begin(), rewritten.end());
      if (on_node) break;
    }
    return absl::OkStatus();
  }

  // The user's, with the time that is left.
  OptimizeOptions OptionsForWhatIsLeft() const {
    OptimizeOptions options = run_.options;
    double& limit_s = options.search.time_limit_s;
    if (limit_s > 0) limit_s = std::max(1e-9, run_.deadline.SecondsLeft());
    return options;
  }

  // As Contest::UsOn, of what was found with algebra first, too.
  double UsOn(int64_t most, int64_t fewer) const {
    const double us = run_.contest.UsOn(most, fewer);
    return algebra_first_ == nullptr ? us : std::min(us, algebra_first_->UsOn(most, fewer));
  }

  int64_t DevicesOfNode() const { return run_.cost.machine().devices_per_node(); }
  // Those of several nodes are parts of the whole.
  bool SearchesParts() const {
    return run_.OnPartsToo() &&
           (run_.options.devices == 0 || run_.options.devices <= DevicesOfNode());
  }

  // What all searches kept for bounds.
  std::vector<Rewritten> AllRewritten() const {
    std::vector<Rewritten> all = searches_.rewritten();
    all.insert(all.end(), of_parts_.begin(), of_parts_.end());
    if (algebra_first_ == nullptr) return all;
    const std::vector<Rewritten> others = algebra_first_->AllRewritten();
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }

  absl::Status FillContest() {
    const OptimizeOptions& options = run_.options;
    const bool searches = options.plan.empty();
    ISOMER_RETURN_IF_ERROR(baselines_.EnterAll());
    if (SearchesAlgebraFirst()) StartAlgebraFirst();
    if (searches && IsBoundToStages()) {
      ISOMER_RETURN_IF_ERROR(ConsiderBoundStages());
    } else if (searches) {
      ISOMER_RETURN_IF_ERROR(overlap_.Run(options.strategy, run_.devices));
    }
    if ((searches || options.plan == kMegatron) && run_.OnPartsToo() && DevicesWait()) {
      ISOMER_RETURN_IF_ERROR(ConsiderGrids());
    }
    if (searches) {
      ISOMER_RETURN_IF_ERROR(ConsiderPartsOfTheMachine());
      ISOMER_RETURN_IF_ERROR(overlap_.WalkUp());
    }
    if (run_.contest.empty()) {
      return absl::ResourceExhaustedError(absl::StrCat("no plan of ", run_.model.graph.num_nodes(),
                                                       " operators and weights on ", run_.devices,
                                                       " devices is small enough to be simulated"));
    }
    if (searches) ISOMER_RETURN_IF_ERROR(ConsiderSpreadBranches());
    ISOMER_RETURN_IF_ERROR(ChooseUpdates());
    if (!searches) return absl::OkStatus();
    const double us = run_.contest.step_us();
    if (run_.Asks(Proposer::kMemory)) {
      const Proposing proposing(&run_.contest.ledger(), Proposer::kMemory);
      ISOMER_RETURN_IF_ERROR(MakeFit(
          run_.cost, fitting_, run_.deadline,
          [this](const SmallerPlan& wanted) { return FindSmaller(wanted); }, &run_.contest));
    }
    return run_.contest.step_us() == us ? absl::OkStatus() : ChooseUpdates();
  }

  // The best plan with its branches in the other order, where some wait for exchanges.
  absl::Status ConsiderSpreadBranches() {
    Plan plan = run_.contest.best().plan;
    ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(plan.graph, plan.views));
    if (moments > 1 || run_.contest.PredictionsAreSlow() || !run_.Asks(Proposer::kSpreadBranches)) {
      return absl::OkStatus();
    }
    const Proposing proposing(&run_.contest.ledger(), Proposer::kSpreadBranches);
    plan.spread_branches = true;
    return run_.contest.Consider(std::move(plan), run_.contest.best().origin).status();
  }

  // Other ways to update the weights of the best plans.
  absl::Status ChooseUpdates() {
    if (!run_.options.training || !run_.Asks(Proposer::kUpdates)) return absl::OkStatus();
    const Proposing proposing(&run_.contest.ledger(), Proposer::kUpdates);
    return ConsiderUpdates(
        {.method = run_.options.choose_update_method, .order = run_.options.choose_buckets},
        run_.deadline, &run_.contest);
  }

  absl::Status TakeBest(OptimizeResult* result) {
    Contest::Entry best = run_.contest.TakeBest();
    result->plan = std::move(best.plan);
    // What explains the plan is the simulation that chose it.
    ISOMER_RETURN_IF_ERROR(PredictPlanClosely(run_.cost, &result->plan).status());
    result->simulation = std::move(best.simulation);
    result->origin = std::move(best.origin);
    result->fits =
        run_.contest.Fits({result->plan.predicted_step_us, result->plan.predicted_peak_bytes});
    result->baselines = baselines_.predictions();
    result->single_device = baselines_.single_device();
    result->ignoring = baselines_.ignoring();
    result->searches = searches_.record();
    result->proposers = run_.contest.ledger();
    const Plan& plan = result->plan;
    ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(plan.graph, plan.views));
    if (moments > 1) {
      ISOMER_ASSIGN_OR_RETURN(const LoweredPlan lowered,
                              LowerForSimulation(run_.cost.machine(), plan));
      result->pipeline = SummaryOfPipeline(lowered.schedule, result->simulation);
    }
    return absl::OkStatus();
  }

  // The joint search is never behind algebra first, as all that a search of that finds, by walks,
  // too, is found beside it: what tables think best need not be what walks begin with best.
  bool SearchesAlgebraFirst() const {
    return run_.Asks(Proposer::kAlgebraFirst) && run_.options.strategy == Strategy::kHierarchical &&
           run_.options.plan.empty() && DevicesWait() && !IsBoundToStages() &&
           run_.model.graph.num_nodes() <= kMostNodesTwice && !run_.contest.PredictionsAreSlow();
  }

  void StartAlgebraFirst() {
    algebra_first_options_ = OptionsForWhatIsLeft();
    algebra_first_options_.strategy = Strategy::kSequential;
    algebra_first_ = std::make_unique<Optimizer>(run_.model, run_.tables.rules(), run_.cost,
                                                 algebra_first_options_, &run_.predictions);
    // The model as it is is theirs, too.
    overlap_.LeaveModelAsItIs();
    result_of_algebra_first_ =
        std::async(run_.threads() > 1 ? std::launch::async : std::launch::deferred,
                   [this] { return algebra_first_->Search(); });
  }

  // `by` found it, in a run of its own.
  void TakeIfBetter(OptimizeResult other, Proposer by, OptimizeResult* result) const {
    result->proposers.AddPartOf(other.proposers);
    SearchRecord& searches = result->searches;
    searches.candidates += other.searches.candidates;
    searches.stop = std::max(searches.stop, other.searches.stop);
    searches.exact_mappings &= other.searches.exact_mappings;
    result->baselines.merge(other.baselines);
    const auto rank = [&](const Plan& plan) {
      return run_.contest.Rank({plan.predicted_step_us, plan.predicted_peak_bytes});
    };
    if (rank(result->plan) <= rank(other.plan)) return;
    const bool improves = result->fits && other.fits;
    result->proposers.CountBest(
        by, improves ? std::optional(result->plan.predicted_step_us) : std::nullopt,
        other.plan.predicted_step_us);
    result->plan = std::move(other.plan);
    result->simulation = std::move(other.simulation);
    result->origin = std::move(other.origin);
    result->fits = other.fits;
    result->pipeline = std::move(other.pipeline);
  }

  // And there is time to do something about it.
  bool DevicesWait() const {
    return run_.devices > 1 && baselines_.BusyShare() <= kBusyEnough &&
           !run_.deadline.Reached().has_value();
  }

  // A user binds calls to stages beyond the first: of all plans, those are pipelines.
  bool IsBoundToStages() const { return run_.restrictions.least_stages() > 1; }

  absl::Status ConsiderBoundStages() {
    ISOMER_RETURN_IF_ERROR(ConsiderGrids());
    if (!run_.contest.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "constraints: no pipeline of ", run_.restrictions.least_stages(),
        " stages or more keeps to them: devices (", run_.devices, ") divide by stages, a batch (",
        BatchSize(run_.model.graph), ") by the other devices and as many micro-batches as stages",
        MixesSamples(run_.model.graph) ? ", and this model needs all samples at once" : ""));
  }

  // Grids of tensor, pipeline and data parallelism, for where the best plan so far leaves devices
  // waiting, or does not fit; then of half of the devices, as long as those are faster.
  absl::Status ConsiderGrids() {
    if (!run_.Asks(Proposer::kGrids) && run_.options.plan.empty() && !IsBoundToStages()) {
      return absl::OkStatus();
    }
    const Proposing proposing(&run_.contest.ledger(), Proposer::kGrids);
    int64_t devices = run_.devices;
    ISOMER_RETURN_IF_ERROR(ConsiderGridsOf(devices));
    while (run_.contest.fits() && SearchesParts() && run_.options.plan.empty() &&
           devices % 2 == 0) {
      const double us = run_.contest.step_us();
      ISOMER_RETURN_IF_ERROR(ConsiderGridsOf(devices /= 2));
      if (run_.contest.step_us() == us) break;
    }
    return absl::OkStatus();
  }

  absl::Status ConsiderGridsOf(int64_t devices) {
    run_.tables.set_options(run_.BaseOptions());
    GridSearchOptions options;
    options.grids.devices = devices;
    options.grids.update = run_.options.update.method;
    options.grids.choose_update = run_.options.choose_update_method;
    options.grids.may_recompute = run_.options.training;
    options.grids.steps_between_flushes = run_.options.steps_between_flushes;
    options.grids.bound_stages = run_.restrictions.stages();
    options.restricted = run_.restrictions.restrict_calls();
    options.plan = run_.options.plan;
    if (SearchesStages()) {
      options.search = [this](const CostOptions& cost) {
        return searches_.Search(Strategy::kHierarchical, cost);
      };
    }
    options.consider = [this](const MappedModel& mapped, const Grid& grid,
                              const std::string& origin) -> absl::StatusOr<Prediction> {
      const bool is_baseline = origin != kFound && grid.devices == run_.devices;
      if (is_baseline) return baselines_.Consider(mapped, origin, &grid);
      ISOMER_ASSIGN_OR_RETURN(Plan plan, run_.PlanOf(mapped, &grid));
      return run_.contest.Consider(std::move(plan), kFound);
    };
    options.foresee = [this](const MappedModel& mapped, const Grid& grid) {
      if (run_.threads() == 1) return;
      absl::StatusOr<Plan> plan = run_.PlanOf(mapped, &grid);
      if (plan.ok()) run_.contest.Foresee(*std::move(plan));
    };
    const absl::Status searched =
        SearchGrids(run_.model.graph, options, run_.deadline, run_.contest, &run_.tables);
    run_.contest.ForgetForeseen();
    return searched;
  }

  // Whether the devices of a stage are mapped by the search.
  bool SearchesStages() const {
    return run_.options.strategy == Strategy::kHierarchical && run_.options.plan.empty();
  }

  // Leaving devices idle is a plan, too: for a small model the fastest. But no plan on d devices
  // takes less than a d-th of the time on one.
  absl::Status ConsiderPartsOfTheMachine() {
    if (!run_.contest.fits() || !SearchesParts() || run_.devices == 1 ||
        !run_.Asks(Proposer::kParts)) {
      return absl::OkStatus();
    }
    const Proposing proposing(&run_.contest.ledger(), Proposer::kParts);
    ISOMER_ASSIGN_OR_RETURN(const std::optional<double> with_algebra_us,
                            searches_.UsOnOneDevice(run_.BaseOptions()));
    const double as_it_is_us = baselines_.single_device().step_us;
    const double one_us = std::min(as_it_is_us, with_algebra_us.value_or(as_it_is_us));
    for (int64_t devices = run_.devices / 2; devices >= 1; devices /= 2) {
      if (run_.devices % devices != 0) break;
      const double at_best = one_us / static_cast<double>(devices);
      if (at_best > kAlgebraSlack * run_.contest.step_us()) break;
      overlap_.Forget();
      ISOMER_RETURN_IF_ERROR(MapByHandOn(devices));
      ISOMER_RETURN_IF_ERROR(overlap_.Run(run_.options.strategy, devices));
    }
    return absl::OkStatus();
  }

  // What a part of the machine would have as baselines, were it all.
  absl::Status MapByHandOn(int64_t devices) {
    for (int64_t tensor_degree : {int64_t{1}, devices}) {
      CostOptions options = run_.BaseOptions();
      options.num_devices = devices;
      run_.tables.set_options(options);
      const auto mapped = MapTensorParallel(run_.model.graph, tensor_degree, &run_.tables);
      if (mapped.ok()) ISOMER_RETURN_IF_ERROR(overlap_.Consider(*mapped).status());
      if (devices == 1 || devices > run_.cost.machine().devices_per_node()) break;
    }
    const auto expert = MapBaseline(kExpert, run_.model.graph, &run_.tables);
    if (expert.ok()) ISOMER_RETURN_IF_ERROR(overlap_.Consider(*expert).status());
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<Plan>> FindSmaller(const SmallerPlan& wanted) {
    if (Simulates(run_.options.strategy) || IsBoundToStages()) return std::nullopt;
    CostOptions options = run_.BaseOptions();
    options.us_per_byte = wanted.us_per_byte;
    if (wanted.micro_batches == 1) return overlap_.Find(run_.options.strategy, options);
    const Graph& graph = run_.model.graph;
    const Grid grid{.devices = run_.devices, .micro_batches = wanted.micro_batches};
    // Fewer samples than devices take calls that are split otherwise, which a mapping by hand has
    // none of, and more time than what fits already.
    const bool few = SearchesStages() && !run_.contest.fits();
    const int64_t parts = few ? grid.micro_batches : run_.devices * grid.micro_batches;
    if (!run_.OnPartsToo() || MixesSamples(graph) || BatchSize(graph) % parts != 0) {
      return std::nullopt;
    }
    if (SearchesStages()) {
      ISOMER_ASSIGN_OR_RETURN(
          const MappedModel found,
          searches_.Search(Strategy::kHierarchical, OptionsOfStage(grid, options)));
      return run_.PlanOf(found);
    }
    run_.tables.set_options(OptionsOfStage(grid, options, /*by_hand=*/true));
    ISOMER_ASSIGN_OR_RETURN(const MappedModel by_hand,
                            MapTensorParallel(graph, grid.tensor_degree, &run_.tables));
    return run_.PlanOf(by_hand);
  }

  Optimization run_;
  BaselineEntries baselines_;
  StrategySearch searches_;
  OverlapSearch overlap_;
  const FittingOptions fitting_;
  // A search for algebra first, beside this one.
  OptimizeOptions algebra_first_options_;
  std::unique_ptr<Optimizer> algebra_first_;
  std::future<absl::StatusOr<OptimizeResult>> result_of_algebra_first_;
  std::vector<Rewritten> of_parts_;  // what searches of fewer devices kept
};

}  // namespace

absl::StatusOr<OptimizeResult> Optimize(const Model& model, const RuleIndex& rules,
                                        const CostModel& cost, const OptimizeOptions& options) {
  const CanonicalModel canonical = Canonicalize(model, options.equal, [&](const std::string& name) {
    return AreAbout(options.constraints, name);
  });
  PredictionMemo predictions;
  ISOMER_ASSIGN_OR_RETURN(OptimizeResult result,
                          Optimizer(canonical.model, rules, cost, options, &predictions).Run());
  result.plan = OverOriginal(std::move(result.plan), model, canonical);
  return result;
}

}  // namespace isomer
