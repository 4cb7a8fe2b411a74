#include "optimizer/request/optimize_request.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "optimizer/bound/exhaustive.h"
#include "optimizer/proposal/grid_search.h"
#include "optimizer/proposal/launch_settings.h"
#include "optimizer/proposal/proposers.h"
#include "optimizer/sharding/batch_dims.h"
#include "optimizer/substitution/search_cache.h"
#include "optimizer/walk/mcmc.h"
#include "pcg/ir/precision.h"
#include "pcg/profile/fp8_errors.h"
#include "pcg/support/data_path.h"
#include "pcg/support/file.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::StatusOr<Strategy> ParseStrategy(const std::string& name) {
  if (name == "hierarchical" || name == "enumeration") return Strategy::kHierarchical;
  if (name == "sequential") return Strategy::kSequential;
  if (name == "mcmc") return Strategy::kMcmc;
  if (name == "exhaustive") return Strategy::kExhaustive;
  return absl::InvalidArgumentError(
      absl::StrCat("--search=", name,
                   ": there are hierarchical, enumeration, egraph, algebra, sequential, mcmc and "
                   "exhaustive"));
}

absl::Status SetPrecision(const OptimizeRequest& request, OptimizeOptions* options) {
  const auto precision = ParsePlanPrecision(request.precision);
  if (!precision.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--precision: ", precision.status().message()));
  }
  std::tie(options->precision, options->fp8) = *precision;
  if (!options->fp8.any()) {
    return RefuseOptions(request, {"fp8_scaling", "fp8_keep", "fp8_errors", "fp8_error"},
                         "is for --precision=fp8");
  }
  const auto scaling = ParseFp8Scaling(request.fp8_scaling);
  if (!scaling.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--fp8_scaling: ", scaling.status().message()));
  }
  options->fp8.scaling = *scaling;
  options->fp8.error_budget = request.fp8_error;
  constexpr double kMostError = 1;
  if (!(request.fp8_error >= 0 && request.fp8_error <= kMostError)) {
    return absl::InvalidArgumentError(absl::StrCat("--fp8_error is 0 to ", kMostError));
  }
  if (!request.fp8_errors.empty() && request.fp8_error == 0) {
    return absl::InvalidArgumentError("--fp8_errors needs --fp8_error, the most that they may be");
  }
  return absl::OkStatus();
}

absl::Status SetGradientPrecision(const OptimizeRequest& request, OptimizeOptions* options) {
  const std::string& name = request.gradient_precision;
  if (!options->training) {
    return RefuseOptions(request, {"gradient_precision"}, "is for --mode=training");
  }
  if (options->strategy == Strategy::kExhaustive && name != "float32") {
    return absl::InvalidArgumentError("--search=exhaustive is for --gradient_precision=float32");
  }
  options->choose_gradient_sums = name == "auto";
  if (options->choose_gradient_sums) return absl::OkStatus();
  const DataType low = LowGradientSums(options->precision);
  for (const DataType sums : {DataType::kFloat32, low}) {
    if (name != PrecisionName(sums)) continue;
    options->update.gradient_sums = sums;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--gradient_precision=", name, ": of --precision=", request.precision,
                   " there are float32, ", PrecisionName(low), " and auto"));
}

// --state_precision and --offload.
absl::Status SetMemory(const OptimizeRequest& request, OptimizeOptions* options) {
  const std::string& states = request.state_precision;
  if (states != "float32" && states != "bfloat16") {
    return absl::InvalidArgumentError(
        absl::StrCat("--state_precision=", states, ": there are float32 and bfloat16"));
  }
  if (states == "bfloat16") options->update.state_precision = DataType::kBFloat16;
  if (const absl::Status together = CheckGoTogether(options->update); !together.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--state_precision=", states, ": ", together.message()));
  }
  if (request.offload != "none" && request.offload != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat("--offload=", request.offload, ": there are none and auto"));
  }
  options->may_offload = request.offload == "auto";
  if (options->may_offload && request.steps_between_flushes > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--offload=auto does not go with --steps_between_flushes=", request.steps_between_flushes));
  }
  return absl::OkStatus();
}

// --pipeline: "4", or "4x2" with chunks.
absl::Status ParseStages(const std::string& text, GridRequest* grid) {
  const std::vector<std::string> parts = absl::StrSplit(text, 'x');
  if (parts.size() > 2 || !absl::SimpleAtoi(parts[0], &grid->stages) ||
      (parts.size() == 2 && !absl::SimpleAtoi(parts[1], &grid->chunks))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--pipeline=", text, ": a number is expected, or two, as in 4x2"));
  }
  return absl::OkStatus();
}

// --schedule, of a pipeline that is drained after each step.
absl::Status SetSchedule(const OptimizeRequest& request, GridRequest* grid) {
  grid->schedule.reset();
  if (request.schedule != kAutoSchedule) {
    const auto schedule = ParsePipelineSchedule(request.schedule);
    if (!schedule.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--schedule=", schedule.status().message(), " and ", kAutoSchedule));
    }
    grid->schedule = *schedule;
  }
  if (grid->schedule != PipelineSchedule::k1F1B && request.steps_between_flushes > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--schedule=", request.schedule,
                     " does not go with --steps_between_flushes=", request.steps_between_flushes));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<GridRequest>> GridOf(const OptimizeRequest& request,
                                                  const OptimizeOptions& options) {
  if (options.plan != kGrid) {
    ISOMER_RETURN_IF_ERROR(RefuseOptions(
        request,
        {"tensor", "context", "context_exchange", "context_order", "expert", "pipeline", "schedule",
         "micro_batch_size", "recompute", "sequence_parallel"},
        "is for --plan=grid"));
    return std::nullopt;
  }
  GridRequest grid{.degrees = {.tensor = request.tensor,
                               .context = request.context,
                               .expert = request.expert,
                               .sequence_parallel = request.sequence_parallel},
                   .micro_batch_size = request.micro_batch_size};
  if (grid.degrees.tensor == 1) {
    ISOMER_RETURN_IF_ERROR(
        RefuseOptions(request, {"sequence_parallel"}, "is for --tensor of 2 or more"));
  }
  if (grid.degrees.context == 1) {
    ISOMER_RETURN_IF_ERROR(RefuseOptions(request, {"context_exchange", "context_order"},
                                         "is for --context of 2 or more"));
  }
  const std::string& exchange = request.context_exchange;
  if (exchange != "auto" && exchange != "all_gather" && exchange != "all_to_all") {
    return absl::InvalidArgumentError(absl::StrCat("--context_exchange=", exchange,
                                                   ": there are all_gather, all_to_all and auto"));
  }
  grid.any_context = exchange == "auto";
  grid.degrees.context_by_heads = exchange == "all_to_all";
  const std::string& order = request.context_order;
  if (order != "auto" && order != "contiguous" && order != "striped") {
    return absl::InvalidArgumentError(
        absl::StrCat("--context_order=", order, ": there are contiguous, striped and auto"));
  }
  grid.degrees.in_stripes = grid.degrees.context > 1 && order != "contiguous";
  grid.must_be_in_stripes = order == "striped";
  ISOMER_RETURN_IF_ERROR(ParseStages(request.pipeline, &grid));
  if (!options.training) {
    ISOMER_RETURN_IF_ERROR(
        RefuseOptions(request, {"recompute", "schedule"}, "is for --mode=training"));
  }
  ISOMER_RETURN_IF_ERROR(SetSchedule(request, &grid));
  const auto recomputation = ParseRecomputeMode(request.recompute);
  if (!recomputation.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--recompute: ", recomputation.status().message()));
  }
  grid.recomputation = *recomputation;
  return grid;
}

// That predict plans.
constexpr int64_t kMostThreads = 1024;

// Of --without: beside a baseline there are the others that it is compared with, and beside a grid
// those of which one may be better.
std::vector<std::string> LeftOutBeside(const std::string& plan) {
  std::vector<std::string> names;
  for (const Proposer* proposer : AllProposers()) {
    const std::string name = proposer->name;
    const bool is_other = proposer->when == Proposer::When::kFirst && name != kGrid && name != plan;
    if (is_other || (plan == kGrid && name == kGrids.name)) names.push_back(name);
  }
  return names;
}

// --without, of a search or beside the plan that is asked for.
absl::StatusOr<std::set<std::string>> LeftOutOf(const OptimizeRequest& request,
                                                const std::string& plan) {
  std::set<std::string> left_out;
  for (const std::string& name : request.without) {
    const absl::StatusOr<const Proposer*> proposer = ParseProposer(name);
    if (!proposer.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--without: ", proposer.status().message()));
    }
    const std::vector<std::string> beside = LeftOutBeside(plan);
    if (!plan.empty() && absl::c_find(beside, name) == beside.end()) {
      return absl::InvalidArgumentError(absl::StrCat("--without=", name, ": beside --plan=", plan,
                                                     " there are ", absl::StrJoin(beside, ", ")));
    }
    left_out.insert(name);
  }
  return left_out;
}

}  // namespace

absl::Status RefuseOptions(const OptimizeRequest& request,
                           std::initializer_list<absl::string_view> options,
                           absl::string_view why) {
  for (absl::string_view option : options) {
    if (request.given.count(std::string(option)) > 0) {
      return absl::InvalidArgumentError(absl::StrCat("--", option, " ", why));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckExpertOptions(const OptimizeRequest& request) {
  if (request.given.contains("expert_imbalance")) {
    constexpr double kMost = 1e6;
    if (!(request.expert_imbalance >= 1 && request.expert_imbalance <= kMost)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--expert_imbalance=", request.expert_imbalance, ": it is 1, the even load, to ", kMost));
    }
    return RefuseOptions(request, {"expert_loads"}, "does not go with --expert_imbalance");
  }
  if (request.given.contains("expert_loads") && request.expert_loads.empty()) {
    return absl::InvalidArgumentError("--expert_loads: a file is expected");
  }
  return absl::OkStatus();
}

absl::StatusOr<SearchPolicy> PolicyOf(const OptimizeRequest& request) {
  SearchPolicy policy;
  const absl::Status set = SetThresholds(request.policy, &policy);
  if (!set.ok()) return absl::InvalidArgumentError(absl::StrCat("--policy: ", set.message()));
  return policy;
}

// What only some searches look at, and a baseline does not.
absl::Status CheckSearchOptions(const OptimizeRequest& request) {
  if (!request.plan.empty()) {
    ISOMER_RETURN_IF_ERROR(RefuseOptions(request, {"search", "budget", "alpha", "seed", "split"},
                                         absl::StrCat("does not go with --plan=", request.plan)));
  }
  if (request.whole_machine && request.plan == kPipeline) {
    return absl::InvalidArgumentError(
        "--whole_machine does not go with --plan=pipeline: it has no pipelines");
  }
  if (request.whole_machine && request.plan == kGrid) {
    return absl::InvalidArgumentError(
        "--whole_machine does not go with --plan=grid, whose degrees say the devices");
  }
  const std::string why = absl::StrCat("does not go with --search=", request.search);
  const bool is_without_algebra = request.search == "mcmc" || request.search == "exhaustive";
  if (is_without_algebra || request.search == "egraph") {
    ISOMER_RETURN_IF_ERROR(RefuseOptions(request, {"alpha"}, why));
  }
  if (is_without_algebra) ISOMER_RETURN_IF_ERROR(RefuseOptions(request, {"split"}, why));
  return absl::OkStatus();
}

absl::StatusOr<OptimizeOptions> OptionsOf(const OptimizeRequest& request) {
  OptimizeOptions options;
  const std::string mode = request.mode;
  if (mode != "training" && mode != "inference") {
    return absl::InvalidArgumentError(
        absl::StrCat("--mode=", mode, ": there are training and inference"));
  }
  const std::string search = request.search;
  options.search.dynamic_program = search != "enumeration";
  if (search == "egraph" || search == "algebra") {
    options.search.engine = search == "egraph" ? Engine::kEGraph : Engine::kBoth;
  } else {
    ISOMER_ASSIGN_OR_RETURN(options.strategy, ParseStrategy(search));
  }
  if (const std::string constraints = request.constraints; !constraints.empty()) {
    ISOMER_ASSIGN_OR_RETURN(options.constraints, LoadConstraints(constraints));
  }
  options.training = mode == "training";
  const std::string attention = request.attention;
  if (attention != "flash" && attention != "unfused") {
    return absl::InvalidArgumentError(
        absl::StrCat("--attention=", attention, ": there are flash and unfused"));
  }
  ISOMER_RETURN_IF_ERROR(CheckExpertOptions(request));
  ISOMER_RETURN_IF_ERROR(SetPrecision(request, &options));
  ISOMER_RETURN_IF_ERROR(SetGradientPrecision(request, &options));
  if (options.strategy == Strategy::kExhaustive && options.precision != DataType::kFloat32) {
    return absl::InvalidArgumentError("--search=exhaustive is for --precision=float32");
  }
  ISOMER_ASSIGN_OR_RETURN(options.update.optimizer, ParseOptimizer(request.optimizer));
  if (!options.training) {
    ISOMER_RETURN_IF_ERROR(RefuseOptions(request,
                                         {"optimizer", "update", "bucket_bytes", "clip_norm",
                                          "average", "loss_alone", "state_precision", "offload"},
                                         "is for --mode=training"));
  }
  ISOMER_RETURN_IF_ERROR(SetMemory(request, &options));
  options.update.clips = request.clip_norm;
  options.update.averages = request.average;
  options.choose_update_method = request.update == "auto";
  options.whole_machine = request.whole_machine;
  options.bound.cuts = request.bound_cuts;
  constexpr int64_t kUsualNodes = 400;
  options.bound_nodes = options.bound.cuts > 0 ? std::numeric_limits<int64_t>::max() : kUsualNodes;
  if (!options.choose_update_method) {
    ISOMER_ASSIGN_OR_RETURN(options.update.method, ParseUpdateMethod(request.update));
  }
  const int64_t bucket_bytes = request.bucket_bytes;
  options.choose_buckets = bucket_bytes == -1;
  if (bucket_bytes >= 0) options.update.bucket_bytes = bucket_bytes;
  if (bucket_bytes < -1) return absl::InvalidArgumentError("--bucket_bytes must be at least -1");
  const std::string plan = request.plan;
  std::vector<std::string> plans(std::begin(kBaselines), std::end(kBaselines));
  plans.push_back(kGrid);
  if (!plan.empty() && std::find(plans.begin(), plans.end(), plan) == plans.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--plan=", plan, ": there are ", absl::StrJoin(plans, ", ")));
  }
  if (plan == kZero3) {
    if (!options.training) {
      return absl::InvalidArgumentError("--plan=zero3 is for --mode=training");
    }
    if (!options.choose_update_method && options.update.method != UpdateMethod::kShardedWeights) {
      return absl::InvalidArgumentError(
          absl::StrCat("--plan=zero3 is --update=sharded_weights, not ",
                       UpdateMethodName(options.update.method)));
    }
  }
  ISOMER_RETURN_IF_ERROR(CheckSearchOptions(request));
  options.AskForBaseline(plan);
  ISOMER_ASSIGN_OR_RETURN(options.without, LeftOutOf(request, options.plan));
  ISOMER_ASSIGN_OR_RETURN(options.policy, PolicyOf(request));
  ISOMER_ASSIGN_OR_RETURN(options.grid, GridOf(request, options));
  options.steps_between_flushes = request.steps_between_flushes;
  const absl::Status flushes = CheckStepsBetweenFlushes(options.steps_between_flushes);
  if (!flushes.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--steps_between_flushes: ", flushes.message()));
  }
  UpdateOptions flushed = options.update;
  flushed.steps_between_flushes = options.steps_between_flushes;
  if (const absl::Status together = CheckGoTogether(flushed); !together.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--steps_between_flushes: ", together.message()));
  }
  if (options.steps_between_flushes > 1 && !options.training) {
    return absl::InvalidArgumentError("--steps_between_flushes is for --mode=training");
  }
  if (options.steps_between_flushes > 1 && options.whole_machine) {
    return absl::InvalidArgumentError(
        "--steps_between_flushes is for pipelines, and --whole_machine has none");
  }
  options.search.alpha = request.alpha;
  options.search.seed = request.seed;
  options.search.budget = request.budget;
  if (!(options.search.alpha >= 1) || options.search.budget < 0) {
    return absl::InvalidArgumentError("--alpha must be at least 1 and --budget at least 0");
  }
  if (options.search.budget == 0) {
    options.search.budget = options.strategy == Strategy::kMcmc ? McmcOptions().max_proposals
                            : options.strategy == Strategy::kExhaustive ? ExhaustiveOptions().budget
                                                                        : SearchOptions().budget;
  }
  options.threads = request.threads;
  if (options.threads < 0 || options.threads > kMostThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("--threads=", options.threads, ": there are 1 to ", kMostThreads, ", or 0"));
  }
  options.search.time_limit_s = request.time_limit;
  constexpr double kMostSeconds = 1e9;
  if (!(options.search.time_limit_s >= 0 && options.search.time_limit_s <= kMostSeconds)) {
    return absl::InvalidArgumentError(absl::StrCat("--time_limit is 0 to ", kMostSeconds));
  }
  options.search.split = request.split;
  options.search.cache = request.cache;
  if (!request.cache) {
    ISOMER_RETURN_IF_ERROR(RefuseOptions(request, {"cache_dir"}, "does not go with --nocache"));
  }
  const std::string cache_dir = request.cache_dir;
  options.search.cache_folder = cache_dir.empty() ? SearchCache::DefaultFolder() : cache_dir;
  return options;
}

namespace {

// More weights, until the errors that were measured are within --fp8_error.
absl::Status KeepWithin(const OptimizeRequest& request, const Model& model,
                        std::set<std::string>* kept) {
  ISOMER_ASSIGN_OR_RETURN(const Fp8Errors errors, LoadFp8Errors(request.fp8_errors));
  const std::string& path = request.fp8_errors;
  if (errors.mode != request.mode) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": errors of ", errors.mode, ", and --mode=", request.mode));
  }
  if (Fp8ScalingName(errors.scaling) != request.fp8_scaling) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": errors with a scale per ",
                                                   Fp8ScalingName(errors.scaling),
                                                   ", and --fp8_scaling=", request.fp8_scaling));
  }
  const auto within =
      KeptWithin(request.fp8_error, model.graph, errors, {kept->begin(), kept->end()});
  if (!within.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", within.status().message()));
  }
  kept->insert(within->begin(), within->end());
  return absl::OkStatus();
}

}  // namespace

absl::Status AddKeptWeights(const OptimizeRequest& request, const Model& model,
                            OptimizeOptions* options) {
  if (!options->fp8.any()) return absl::OkStatus();
  const std::vector<std::string> all = WeightsOfProducts(model.graph);
  if (all.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--precision=fp8: ", model.name, " has no products with weights that can be in 8 bits"));
  }
  if (request.fp8_keep.empty()) {
    return absl::InvalidArgumentError("--fp8_keep: names of weights, ends or none are expected");
  }
  std::set<std::string> kept;
  for (const std::string& name : request.fp8_keep) {
    if (name == "none" && request.fp8_keep.size() > 1) {
      return absl::InvalidArgumentError("--fp8_keep: none does not go with others");
    }
    if (name == "none") break;
    if (name == "ends") {
      const std::vector<std::string> ends = WeightsOfFirstAndLastProducts(model.graph);
      kept.insert(ends.begin(), ends.end());
    } else if (std::binary_search(all.begin(), all.end(), name)) {
      kept.insert(name);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("--fp8_keep: no product is with a weight '",
                                                     name, "', as one is with '", all.front(),
                                                     "'; there are ends and none, too"));
    }
  }
  if (!request.fp8_errors.empty()) ISOMER_RETURN_IF_ERROR(KeepWithin(request, model, &kept));
  if (kept.size() == all.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--fp8_keep: it keeps all ", all.size(),
                     " weights of products in bfloat16 (--precision=bfloat16)"));
  }
  options->fp8.kept.assign(kept.begin(), kept.end());
  return absl::OkStatus();
}

absl::Status AddCompared(const OptimizeRequest& request, const Model& model,
                         OptimizeOptions* options, std::vector<std::string>* notes) {
  const std::string path = request.compare;
  if (path.empty()) return absl::OkStatus();
  if (!options->plan.empty()) {
    return RefuseOptions(request, {"compare"},
                         absl::StrCat("is for a search, and not for --plan=", options->plan));
  }
  ISOMER_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  ISOMER_ASSIGN_OR_RETURN(const LaunchSettings launch, ParseLaunchSettings(contents, path));
  const int64_t batch = BatchSize(model.graph);
  if (launch.global_batch_size.has_value() && *launch.global_batch_size != batch) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": its global batch is ", *launch.global_batch_size, ", the model's ",
                     batch, " (--batch_size=", *launch.global_batch_size, ")"));
  }
  if (launch.precision.has_value() && *launch.precision != options->precision) {
    const std::string name(PrecisionName(*launch.precision));
    return absl::InvalidArgumentError(absl::StrCat(path, ": it computes in ", name,
                                                   ", and --precision is ",
                                                   PrecisionName(options->precision)));
  }
  if (launch.optimizer.has_value() && *launch.optimizer != options->update.optimizer) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": it trains by ", OptimizerName(*launch.optimizer),
                     ", and --optimizer is ", OptimizerName(options->update.optimizer)));
  }
  if (!launch.not_modelled.empty()) {
    notes->push_back(absl::StrCat(path, ": its predicted step is one without ",
                                  absl::StrJoin(launch.not_modelled, ", ")));
  }
  if (!launch.not_read.empty()) {
    constexpr size_t kShown = 5;
    const std::vector<std::string> shown(
        launch.not_read.begin(),
        launch.not_read.begin() + std::min(kShown, launch.not_read.size()));
    notes->push_back(absl::StrCat(path, ": of ", launch.framework, "'s settings ",
                                  launch.not_read.size(),
                                  " are not read: ", absl::StrJoin(shown, ", "),
                                  launch.not_read.size() > kShown ? ", .." : ""));
  }
  options->grid = launch.grid;
  options->grid_name = path.substr(path.rfind('/') + 1);
  return absl::OkStatus();
}

absl::StatusOr<Machine> MachineOf(const MachineRequest& request, absl::string_view search) {
  const bool one = search == "algebra";
  ISOMER_ASSIGN_OR_RETURN(Machine machine, LoadMachine(request.machine, one ? 1 : request.nodes,
                                                       one ? 1 : request.devices_per_node));
  const double gib = request.device_memory_gib;
  constexpr double kMostGib = 1e6;
  if (!(gib >= 0 && gib <= kMostGib)) {
    return absl::InvalidArgumentError(absl::StrCat("--device_memory_gib is 0 to ", kMostGib));
  }
  for (DeviceKind& kind : machine.kinds) {
    if (gib > 0) kind.memory_bytes = static_cast<int64_t>(gib * (1 << 30));
  }
  return machine;
}

absl::StatusOr<RuleSet> RulesOf(const OptimizeRequest& request) {
  return LoadRuleFiles(request.rules);
}

absl::StatusOr<MachineCosts> CostsOf(const OptimizeRequest& request, Machine machine) {
  MachineCosts costs;
  if (const std::string path = request.profile; !path.empty()) {
    ISOMER_ASSIGN_OR_RETURN(Profile profile, LoadProfile(path));
    if (const absl::Status serves = CheckProfileServes(profile, machine);
        !serves.ok() && !request.profile_of_another_device) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": ", serves.message()));
    }
    costs.profile = std::make_unique<const Profile>(std::move(profile));
  } else {
    ISOMER_RETURN_IF_ERROR(
        RefuseOptions(request, {"profile_of_another_device"}, "needs --profile"));
  }
  costs.model = std::make_unique<const CostModel>(std::move(machine), costs.profile.get());
  return costs;
}

}  // namespace isomer
