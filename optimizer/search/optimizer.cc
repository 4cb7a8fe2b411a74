#include "optimizer/search/optimizer.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "optimizer/proposal/baseline_proposers.h"
#include "optimizer/proposal/grid_search.h"
#include "optimizer/proposal/parts.h"
#include "optimizer/proposal/plan_bound.h"
#include "optimizer/proposal/proposers.h"
#include "optimizer/proposal/search_context.h"
#include "optimizer/proposal/step_constraint.h"
#include "optimizer/sharding/batch_dims.h"
#include "pcg/ir/precision.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Of the devices that the plan is for, which are the machine's first.
double PeakFlops(const Machine& machine, const Plan& plan) {
  double flops_per_us = 0;
  for (int64_t d = 0; d < std::min(plan.num_devices, machine.num_devices()); ++d) {
    flops_per_us += machine.kind(d).FlopsPerUs(plan.precision) / machine.kind(d).peak_fraction;
  }
  return flops_per_us * 1e6;
}

// Of a plan with its prediction: the closest one, and whether that fits. The plan is still
// explained by its simulation, whose schedule is LowerForSimulation's, and which is the closest
// where only a search had fewer devices. What is far too large is
// that anyhow.
absl::Status PredictResult(const CostModel& cost, const SearchPolicy& policy,
                           PredictionMemo* predictions, OptimizeResult* result) {
  const auto memory = static_cast<double>(cost.machine().memory_bytes());
  Plan& plan = result->plan;
  if (static_cast<double>(plan.predicted_peak_bytes) <= policy.far_too_large * memory) {
    if (!SearchLacksDevices(cost, plan)) {
      ISOMER_RETURN_IF_ERROR(predictions->PredictClosely(cost, &plan));
    } else if (result->simulation.devices == 0) {
      ISOMER_ASSIGN_OR_RETURN(result->simulation, PredictPlan(cost, &plan));
    }
  }
  result->fits = static_cast<double>(plan.predicted_peak_bytes) <= memory;
  plan.peak_flops = PeakFlops(cost.machine(), plan);
  return absl::OkStatus();
}

// Searches that were beside others may lack it, as these simulated the plan.
absl::Status SimulateIfUnknown(const CostModel& cost, OptimizeResult* result) {
  if (result->simulation.devices > 0) return absl::OkStatus();
  Plan& plan = result->plan;
  const double step_us = plan.predicted_step_us;
  const int64_t peak_bytes = plan.predicted_peak_bytes;
  ISOMER_ASSIGN_OR_RETURN(result->simulation, PredictPlan(cost, &plan));
  plan.predicted_step_us = step_us;
  plan.predicted_peak_bytes = peak_bytes;
  return absl::OkStatus();
}

// What the simulation is of, and what pipeline that is.
absl::Status LowerResult(const CostModel& cost, OptimizeResult* result) {
  ISOMER_ASSIGN_OR_RETURN(result->lowered, LowerForSimulation(cost.machine(), result->plan));
  result->pipeline = SummaryOfPipeline(result->lowered.schedule, result->simulation);
  return absl::OkStatus();
}

class Optimizer {
 public:
  Optimizer(const Model& model, const RuleIndex& rules, const CostModel& cost,
            const OptimizeOptions& options, SharedMemos* shared)
      : run_(model, rules, cost, options, shared) {
    if (run_.Bounds()) run_.searches.KeepRewritten();
  }

  absl::StatusOr<OptimizeResult> Run() {
    const auto start = std::chrono::steady_clock::now();
    if (PlansBaselines()) StartBaselines();
    ISOMER_ASSIGN_OR_RETURN(OptimizeResult result, Search());
    TakeBaselines(&result);
    ISOMER_RETURN_IF_ERROR(SimulateIfUnknown(run_.cost, &result));
    ISOMER_RETURN_IF_ERROR(LowerResult(run_.cost, &result));
    if (run_.options.plan == kGrid && run_.options.grid.has_value()) {
      CheckPipeline(*run_.options.grid, &result);
    }
    if (!run_.options.plan.empty()) ISOMER_RETURN_IF_ERROR(CheckStepOfBaseline(&result));
    result.seconds = SecondsSince(start);
    const auto found = std::chrono::steady_clock::now();
    if (run_.Bounds()) {
      BoundOptions bound = run_.options.bound;
      bound.deadline = run_.deadline;
      ISOMER_ASSIGN_OR_RETURN(result.bound, BoundOfPlan(run_.model.graph, result.plan,
                                                        AllRewritten(), run_.BaseOptions(), bound,
                                                        run_.policy().close_bound, &run_.tables));
    }
    result.bound_seconds = SecondsSince(found);
    return result;
  }

 private:
  // Everything except the bound, what the plan is lowered to, and perhaps its simulation.
  absl::StatusOr<OptimizeResult> Search() {
    ISOMER_ASSIGN_OR_RETURN(
        run_.restrictions,
        Restrictions::Resolve(run_.options.constraints, run_.model.graph, &run_.tables));
    ISOMER_RETURN_IF_ERROR(FillContest());
    if (run_.contest.empty()) return NoPlan();
    ISOMER_RETURN_IF_ERROR(ImproveBest());
    OptimizeResult result;
    ISOMER_RETURN_IF_ERROR(TakeBest(&result));
    if (algebra_first_ != nullptr) {
      ISOMER_ASSIGN_OR_RETURN(OptimizeResult other, result_of_algebra_first_.get());
      TakeIfBetter(std::move(other), kAlgebraFirst, &result);
    }
    ISOMER_RETURN_IF_ERROR(SearchParts(&result));
    return result;
  }

  // Of a user's search that looks further than they do, for one machine.
  bool PlansBaselines() const {
    const OptimizeOptions& options = run_.options;
    return run_.Searches() && options.constraints.empty() && !Simulates(options.strategy) &&
           options.strategy != Strategy::kExhaustive && run_.devices > 1;
  }

  // Beside the search each baseline is planned as --plan=NAME does, whatever else runs: what the
  // search saves is said against that.
  void StartBaselines() {
    baselines_ =
        std::async(run_.threads() > 1 ? std::launch::async : std::launch::deferred, [this] {
          std::map<std::string, OptimizeResult> results;
          for (const std::string name : kBaselines) {
            OptimizeOptions options = OptionsForWhatIsLeft();
            if (options.without.count(name) > 0 || (name == kZero3 && !options.training)) continue;
            options.AskForBaseline(name);
            options.without.insert(std::begin(kBaselines), std::end(kBaselines));
            options.without.erase(name);
            options.bound_nodes = 0;
            options.threads = 1;
            // A baseline that the model has not is none.
            absl::StatusOr<OptimizeResult> result =
                Optimizer(run_.model, run_.tables.rules(), run_.cost, options, &run_.shared)
                    .Search();
            if (result.ok()) results[name] = *std::move(result);
          }
          return results;
        });
  }

  void TakeBaselines(OptimizeResult* result) {
    if (!baselines_.valid()) return;
    const OptimizeOptions& options = run_.options;
    for (auto& [name, baseline] : baselines_.get()) {
      const Plan& plan = baseline.plan;
      result->baselines[name] = {plan.predicted_step_us, plan.predicted_peak_bytes};
      if (options.keep_baselines) result->baseline_plans[name] = plan;
      const bool takes_part =
          options.choose_update_method || plan.update.method == options.update.method;
      const absl::StatusOr<const Proposer*> proposer = ParseProposer(name);
      baseline.baselines.clear();
      if (takes_part) {
        TakeIfBetter(std::move(baseline), proposer.ok() ? **proposer : kGrids, result);
      }
    }
  }

  // Searches parts of the machine. A plan that leaves devices idle could be found on those that it
  // uses, where a search looks further than proposers on a submachine do: done for all parts that a
  // plan near the best uses. A part within one node is searched as a machine of its own, with its
  // parts.
  absl::Status SearchParts(OptimizeResult* result) {
    if (run_.options.strategy != Strategy::kHierarchical || !run_.options.plan.empty() ||
        !run_.SearchesParts() || !result->fits || !run_.Asks(kPartSearches)) {
      return absl::OkStatus();
    }
    for (int64_t devices = run_.devices; devices % 2 == 0;) {
      devices /= 2;
      const double near_us = run_.policy().near_part * result->plan.predicted_step_us;
      const bool on_node = devices <= DevicesOfNode();
      if (UsOn(devices, on_node ? 0 : devices / 2) > near_us) continue;
      if (run_.deadline.Reached().has_value()) break;
      OptimizeOptions options = OptionsForWhatIsLeft();
      options.devices = devices;
      Optimizer part(run_.model, run_.tables.rules(), run_.cost, options, &run_.shared);
      ISOMER_ASSIGN_OR_RETURN(OptimizeResult found, part.Search());
      found.baselines.clear();
      found.origin = kFound;
      TakeIfBetter(std::move(found), kPartSearches, result);
      const std::vector<Rewritten> rewritten = part.AllRewritten();
      of_parts_.insert(of_parts_.end(), rewritten.begin(), rewritten.end());
      if (on_node) break;
    }
    return absl::OkStatus();
  }

  // The user's options with the remaining time.
  OptimizeOptions OptionsForWhatIsLeft() const {
    OptimizeOptions options = run_.options;
    options.grid.reset();  // a user's, of all devices
    double& limit_s = options.search.time_limit_s;
    if (limit_s > 0) limit_s = std::max(1e-9, run_.deadline.SecondsLeft());
    return options;
  }

  // As Contest::UsOn, including the results of algebra first.
  double UsOn(int64_t most, int64_t fewer) const {
    const double us = run_.contest.UsOn(most, fewer);
    return algebra_first_ == nullptr ? us : std::min(us, algebra_first_->UsOn(most, fewer));
  }

  int64_t DevicesOfNode() const { return run_.cost.machine().devices_per_node(); }

  // Rewritten graphs that all searches kept for bounds.
  std::vector<Rewritten> AllRewritten() const {
    std::vector<Rewritten> all = run_.searches.rewritten();
    all.insert(all.end(), of_parts_.begin(), of_parts_.end());
    if (algebra_first_ == nullptr) return all;
    const std::vector<Rewritten> others = algebra_first_->AllRewritten();
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }

  // Runs all proposers except those that improve existing plans.
  absl::Status FillContest() {
    const bool searches = run_.Searches();
    Submachine on{.devices = run_.devices, .is_searched = searches};
    ISOMER_RETURN_IF_ERROR(EnterBaseline(kSingleDevice, &run_, nullptr));
    ISOMER_RETURN_IF_ERROR(AskProposers(Proposer::When::kFirst, &run_, &on));
    ISOMER_RETURN_IF_ERROR(PredictBaselines(&run_));
    std::optional<double> one_us;
    while (true) {
      const int64_t devices = on.devices;
      ISOMER_RETURN_IF_ERROR(AskOn(std::move(on)));
      const bool is_searched = searches && run_.contest.fits() && run_.Asks(kParts);
      if (devices == 1 || devices % 2 != 0 || !run_.SearchesParts()) return absl::OkStatus();
      if (is_searched && !one_us.has_value()) {
        ISOMER_ASSIGN_OR_RETURN(one_us, UsOnOneDevice());
      }
      on = {.devices = devices / 2, .is_whole = false};
      // No plan on d devices takes less than a d-th of the time on one, which further algebra may
      // reduce.
      on.is_searched = is_searched && run_.IsNearBest(*one_us / static_cast<double>(on.devices));
      if (!on.is_searched && !run_.degrees_help) return absl::OkStatus();
    }
  }

  absl::Status AskOn(Submachine on) {
    ISOMER_RETURN_IF_ERROR(AskProposers(Proposer::When::kSearch, &run_, &on));
    if (on.is_whole) ISOMER_RETURN_IF_ERROR(StartAlgebraFirst(on));
    ISOMER_RETURN_IF_ERROR(run_.RememberEntered(&on));
    ISOMER_RETURN_IF_ERROR(AskProposers(Proposer::When::kRefine, &run_, &on));
    if (!on.is_searched || run_.contest.PredictionsAreSlow()) return absl::OkStatus();
    run_.submachines[on.devices] = {.devices = on.devices,
                                    .is_whole = on.is_whole,
                                    .fastest = std::move(on.fastest),
                                    .best = std::move(on.best),
                                    .as_it_is = std::move(on.as_it_is)};
    return absl::OkStatus();
  }

  absl::Status ImproveBest() {
    Submachine whole{.devices = run_.devices};
    return AskProposers(Proposer::When::kAfterwards, &run_, &whole);
  }

  // By the tables with the algebra found so far, or by the simulator without algebra.
  absl::StatusOr<double> UsOnOneDevice() {
    ISOMER_ASSIGN_OR_RETURN(const std::optional<double> with_algebra_us,
                            run_.searches.UsOnOneDevice(run_.BaseOptions()));
    const double as_it_is_us = run_.baselines.single_device.step_us;
    return std::min(as_it_is_us, with_algebra_us.value_or(as_it_is_us));
  }

  static int64_t NumCalls(const Graph& graph) {
    int64_t calls = 0;
    for (NodeId id : graph.TopologicalOrder()) calls += IsLeaf(graph.node(id).op.kind()) ? 0 : 1;
    return calls;
  }

  // Each stage has as many devices, and a call at least.
  bool HasStages() const {
    const int64_t most = std::min(run_.devices, NumCalls(run_.model.graph));
    for (int64_t stages = 2; stages <= most; ++stages) {
      if (run_.devices % stages == 0) return true;
    }
    return false;
  }

  // What a pipeline needs, beside calls for its stages.
  std::string WhatDivides() const {
    const Graph& graph = run_.model.graph;
    return absl::StrCat("devices (", run_.devices, ") divide by stages, a batch (",
                        BatchSize(graph),
                        ") by the other devices and as many micro-batches as stages",
                        MixesSamples(graph) ? ", and this model needs all samples at once" : "");
  }

  absl::Status NoPlan() const {
    const Graph& graph = run_.model.graph;
    if (run_.step.HasMicroBatches()) return NoPlanOfStep();
    if (run_.options.plan == kPipeline) {
      if (!HasStages()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--plan=pipeline: no number of stages from 2 on divides ", run_.devices,
            " devices and is at most the number of the model's calls, ", NumCalls(graph)));
      }
      return absl::InvalidArgumentError(
          absl::StrCat("--plan=pipeline: none of ", NumCalls(graph), " calls: ", WhatDivides()));
    }
    if (!run_.IsBoundToStages()) {
      return absl::ResourceExhaustedError(absl::StrCat("no plan of ", graph.num_nodes(),
                                                       " operators and weights on ", run_.devices,
                                                       " devices is small enough to be simulated"));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("constraints: no pipeline of ", run_.restrictions.least_stages(),
                     " stages or more keeps to them: ", WhatDivides()));
  }

  // What CheckStepConstraint does not know before the search.
  absl::Status NoPlanOfStep() const {
    const Constraints::OfStep& step = run_.step;
    const std::string& deviation = run_.contest.deviation();
    std::string why = "no mapping of the model is cut so";
    if (!deviation.empty()) {
      why = absl::StrCat("no plan found does so; of the last one, ", deviation);
    } else if (run_.IsBoundToStages()) {
      why = "no cut into such stages keeps nodes in those that they are bound to";
    } else if (step.chunks.value_or(1) > 1) {
      const std::string stages =
          step.stages ? absl::StrCat(*step.stages, " stages")
                      : absl::StrCat("stages that divide ", run_.devices, " devices");
      why = absl::StrCat("cut into chunks of ", stages, ", results of one pass over the next");
    } else if (run_.options.strategy != Strategy::kHierarchical) {
      why = "no configuration by hand does so, and --search=hierarchical alone looks for others";
    }
    return absl::InvalidArgumentError(absl::StrCat(step.source, ": ", step.ToString(), ": ", why));
  }

  // What plans were compared by is not their closest prediction: of those about as fast as the
  // best, at `compared_us`, takes the one that this says is.
  absl::Status TakeCloser(double compared_us, OptimizeResult* result) {
    for (const Contender& contender : run_.contest.contenders()) {
      if (contender.step_us == compared_us) continue;  // the best
      if (contender.step_us > run_.policy().about_as_fast * compared_us) break;
      Plan plan = contender.plan;
      ISOMER_RETURN_IF_ERROR(run_.shared.predictions.PredictClosely(run_.cost, &plan));
      if (plan.predicted_step_us >= result->plan.predicted_step_us ||
          plan.predicted_peak_bytes > run_.cost.machine().memory_bytes()) {
        continue;
      }
      plan.peak_flops = result->plan.peak_flops;
      result->plan = std::move(plan);
      result->simulation = Simulation();
      result->origin = contender.origin;
    }
    return absl::OkStatus();
  }

  absl::Status TakeBest(OptimizeResult* result) {
    Contest::Entry best = run_.contest.TakeBest();
    result->plan = std::move(best.plan);
    if (best.simulation.has_value() && !SearchLacksDevices(run_.cost, result->plan)) {
      result->simulation = *std::move(best.simulation);
    }
    result->origin = std::move(best.origin);
    const double compared_us = best.step.step_us;
    ISOMER_RETURN_IF_ERROR(
        PredictResult(run_.cost, run_.policy(), &run_.shared.predictions, result));
    if (result->fits) ISOMER_RETURN_IF_ERROR(TakeCloser(compared_us, result));
    result->baselines = run_.baselines.predictions;
    result->baseline_plans = std::move(run_.baselines.plans);
    result->single_device = run_.baselines.single_device;
    result->ignoring = run_.baselines.ignoring;
    result->misfit = run_.baselines.misfit;
    result->first_choice = run_.baselines.first_choice;
    result->searches = run_.searches.record();
    result->proposers = run_.contest.ledger();
    result->policy = run_.policy();
    return absl::OkStatus();
  }

  // A plan's stages are what its schedule shows: micro-batches take turns, or wait for each other.
  static void CheckPipeline(const GridRequest& asked, OptimizeResult* result) {
    const std::optional<PipelineSummary>& is = result->pipeline;
    // A schedule may have chunks of its own.
    const int64_t of_schedule = asked.schedule.has_value() ? ChunksOf(*asked.schedule) : 0;
    const int64_t chunks = of_schedule > 0 ? of_schedule : asked.chunks;
    const bool any_chunks = !asked.schedule.has_value();
    if (!is.has_value() || (is->stages == asked.stages && (any_chunks || is->chunks == chunks))) {
      return;
    }
    absl::StrAppend(&result->misfit, result->misfit.empty() ? "" : "; ",
                    "--pipeline=", asked.stages,
                    asked.chunks > 1 ? absl::StrCat("x", asked.chunks) : "",
                    ": calls of a stage wait for later ones, and micro-batches do not take turns");
  }

  // A baseline that is asked for takes no notice of the user's step.
  absl::Status CheckStepOfBaseline(OptimizeResult* result) const {
    const OptimizeOptions& options = run_.options;
    ISOMER_ASSIGN_OR_RETURN(const std::string deviation,
                            DeviationOf(options.constraints.step, run_.cost, result->plan));
    std::vector<std::string>& ignoring = result->ignoring;
    const std::string& name = options.plan == kGrid ? options.grid_name : options.plan;
    if (!deviation.empty() && std::find(ignoring.begin(), ignoring.end(), name) == ignoring.end()) {
      ignoring.push_back(name);
    }
    return absl::OkStatus();
  }

  // Whether to search algebra first, concurrently. The joint search is then never worse than
  // algebra first, whose plans, also of its walks, all take part: the tables' favourite need not be
  // the best start for walks.
  bool SearchesAlgebraFirst() const {
    return run_.Asks(kAlgebraFirst) && run_.options.strategy == Strategy::kHierarchical &&
           run_.Searches() && run_.DevicesWait() &&
           run_.model.graph.num_nodes() <= run_.policy().two_search_nodes;
  }

  // On all devices, `on`; not where plans like those of the joint search take seconds to predict.
  absl::Status StartAlgebraFirst(const Submachine& on) {
    if (!SearchesAlgebraFirst()) return absl::OkStatus();
    if (on.first_search.has_value()) {
      ISOMER_RETURN_IF_ERROR(run_.contest.PredictionOf(*on.first_search).status());
    }
    if (run_.contest.PredictionsAreSlow()) return absl::OkStatus();
    algebra_first_options_ = OptionsForWhatIsLeft();
    algebra_first_options_.strategy = Strategy::kSequential;
    algebra_first_ = std::make_unique<Optimizer>(run_.model, run_.tables.rules(), run_.cost,
                                                 algebra_first_options_, &run_.shared);
    // Those runs cover the unrewritten model, too.
    run_.leaves_model_as_it_is = true;
    result_of_algebra_first_ =
        std::async(run_.threads() > 1 ? std::launch::async : std::launch::deferred,
                   [this] { return algebra_first_->Search(); });
    return absl::OkStatus();
  }

  // `by` found it, in its own run.
  void TakeIfBetter(OptimizeResult other, const Proposer& by, OptimizeResult* result) const {
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
        by.name, improves ? std::optional(result->plan.predicted_step_us) : std::nullopt,
        other.plan.predicted_step_us);
    result->plan = std::move(other.plan);
    result->simulation = std::move(other.simulation);
    result->origin = std::move(other.origin);
    result->fits = other.fits;
  }

  SearchContext run_;
  std::future<std::map<std::string, OptimizeResult>> baselines_;
  // A concurrent search for algebra first.
  OptimizeOptions algebra_first_options_;
  std::unique_ptr<Optimizer> algebra_first_;
  std::future<absl::StatusOr<OptimizeResult>> result_of_algebra_first_;
  std::vector<Rewritten> of_parts_;  // kept by searches of fewer devices
};

}  // namespace

absl::StatusOr<OptimizeResult> PricePlan(Plan plan, const CostModel& cost) {
  const Machine& machine = cost.machine();
  if (plan.num_devices != machine.num_devices()) {
    return absl::InvalidArgumentError(absl::StrCat("the plan is for ", plan.num_devices,
                                                   " devices, and the machine has ",
                                                   machine.num_devices()));
  }
  OptimizeResult result;
  result.origin = kPriced;
  result.plan = std::move(plan);
  ISOMER_ASSIGN_OR_RETURN(result.simulation, PredictPlan(cost, &result.plan));
  PredictionMemo predictions;
  ISOMER_RETURN_IF_ERROR(PredictResult(cost, result.policy, &predictions, &result));
  ISOMER_RETURN_IF_ERROR(LowerResult(cost, &result));
  return result;
}

namespace {

// Whether `lossy`, of which gradients are rounded, is worth that.
bool IsWorthRounding(const OptimizeResult& lossy, const OptimizeResult& exact,
                     const SearchPolicy& policy) {
  if (lossy.fits != exact.fits) return lossy.fits;
  return policy.lossy_gain * lossy.plan.predicted_step_us < exact.plan.predicted_step_us;
}

// What is best with gradients that are summed in float32, and in low precision: the costs of
// replicas differ, so plans do, too.
absl::StatusOr<OptimizeResult> ChooseGradientSums(const Model& model, const RuleIndex& rules,
                                                  const CostModel& cost,
                                                  const OptimizeOptions& options) {
  OptimizeOptions with = options;
  with.choose_gradient_sums = false;
  with.search.time_limit_s /= 2;
  with.update.gradient_sums = DataType::kFloat32;
  ISOMER_ASSIGN_OR_RETURN(OptimizeResult exact, Optimize(model, rules, cost, with));
  with.update.gradient_sums = LowGradientSums(options.precision);
  ISOMER_ASSIGN_OR_RETURN(OptimizeResult lossy, Optimize(model, rules, cost, with));
  const bool rounds = IsWorthRounding(lossy, exact, options.policy);
  OptimizeResult& best = rounds ? lossy : exact;
  const Plan& other = (rounds ? exact : lossy).plan;
  best.other_gradient_sums = {other.predicted_step_us, other.predicted_peak_bytes};
  best.seconds = exact.seconds + lossy.seconds;
  return std::move(best);
}

}  // namespace

absl::StatusOr<OptimizeResult> Optimize(const Model& model, const RuleIndex& rules,
                                        const CostModel& cost, const OptimizeOptions& options) {
  if (options.choose_gradient_sums) return ChooseGradientSums(model, rules, cost, options);
  OptimizeOptions wanted = options;
  if (const Constraints::OfStep& step = options.constraints.step; options.plan.empty()) {
    ISOMER_RETURN_IF_ERROR(CheckStepConstraint(
        options, model, options.devices > 0 ? options.devices : cost.machine().num_devices()));
    if (step.update) {
      wanted.update.method = *step.update;
      wanted.choose_update_method = false;
    }
  }
  const CanonicalModel canonical = Canonicalize(model, options.equal, [&](const std::string& name) {
    return AreAbout(options.constraints, name);
  });
  const bool looks_at_even = LooksAtEvenClusters(cost.machine(), options);
  const Deadline deadline = Deadline::In(options.search.time_limit_s, options.search.watch);
  if (looks_at_even) wanted.search.time_limit_s /= 2;
  SharedMemos shared;
  ISOMER_ASSIGN_OR_RETURN(OptimizeResult result,
                          Optimizer(canonical.model, rules, cost, wanted, &shared).Run());
  result.plan = OverOriginal(std::move(result.plan), model, canonical);
  if (looks_at_even) {
    ISOMER_RETURN_IF_ERROR(TryEvenClusters(model, rules, cost, options, deadline, &result));
  }
  return result;
}

}  // namespace isomer
