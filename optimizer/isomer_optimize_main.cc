// isomer-optimize: what is the fastest equal plan?
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "models/full_precision.h"
#include "models/load.h"
#include "models/loss.h"
#include "models/onnx/export/onnx_export.h"
#include "models/unfused_attention.h"
#include "models/zoo/listing.h"
#include "optimizer/bound/exhaustive.h"
#include "optimizer/comparison/plan_difference.h"
#include "optimizer/comparison/plan_summary.h"
#include "optimizer/comparison/turning_point.h"
#include "optimizer/comparison/why.h"
#include "optimizer/machine/machine.h"
#include "optimizer/page/report_page.h"
#include "optimizer/proposal/grid_search.h"
#include "optimizer/proposal/launch_settings.h"
#include "optimizer/proposal/proposers.h"
#include "optimizer/proposal/search_policy.h"
#include "optimizer/report/explanation.h"
#include "optimizer/report/machine_text.h"
#include "optimizer/report/report.h"
#include "optimizer/report/timeline_svg.h"
#include "optimizer/search/enough_devices.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/sharding/batch_dims.h"
#include "optimizer/substitution/search_cache.h"
#include "optimizer/walk/mcmc.h"
#include "pcg/profile/profile.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/data_path.h"
#include "pcg/support/file.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"
#include "verifier/certificate/equal_sides.h"

ABSL_FLAG(std::string, machine, "",
          "a machine file or a preset; a name that is neither lists them");
ABSL_FLAG(int64_t, nodes, 0, "number of nodes; 0: as the machine file says");
ABSL_FLAG(int64_t, devices_per_node, 0, "devices of each node; 0: as the machine file says");
ABSL_FLAG(double, device_memory_gib, 0, "memory of every device; 0: as the machine file says");
ABSL_FLAG(int64_t, batch_size, 0, "batch size; 0: as the model has it");
ABSL_FLAG(std::vector<std::string>, dim, {},
          "name=N: the size of a symbolic dim of an .onnx file; may be given several times");
ABSL_FLAG(bool, list_unsupported, false,
          "list what of an .onnx file is not supported, and nothing else; exit 1 if there is any");
ABSL_FLAG(std::string, mode, "training", "training or inference");
ABSL_FLAG(
    bool, loss_alone, false,
    "in training, a step gives back its loss and no other output (the logits of a large batch "
    "fit on no device)");
ABSL_FLAG(std::string, loss, "auto",
          "in training: cross_entropy (of logits and labels), mse, none (the output is a loss), or "
          "auto, which prints what it takes; of the first output, or KIND:OUTPUT");
ABSL_FLAG(
    std::string, precision, "float32",
    "what the plan computes in: float32, bfloat16 or float16; what is trained, the masters of "
    "weights, stays float32");
ABSL_FLAG(std::string, attention, "flash",
          "flash, fused kernels that keep no scores; or unfused, which writes and reads them");
ABSL_FLAG(std::string, gradient_precision, "float32",
          "in what gradients of weights are summed over devices: float32, or what --precision says "
          "(half the bytes)");
ABSL_FLAG(std::string, optimizer, "sgd", "of weights, in training: sgd, momentum or adam");
ABSL_FLAG(std::string, update, "auto",
          "how copies of weights are kept equal: all_reduce, sharded (ZeRO 1), "
          "sharded_gradients (2), sharded_weights (3) or owner; auto: as is "
          "fastest, or fits");
ABSL_FLAG(int64_t, bucket_bytes, -1,
          "gradients are synchronised together up to so many bytes; 0: each by itself; -1: 25 MiB, "
          "or more where that is faster");
ABSL_FLAG(std::string, search, "hierarchical",
          "hierarchical; enumeration, the same but for trying all mappings; egraph, by equality "
          "saturation; algebra, on one device of the machine; sequential, algebra before "
          "parallelism; mcmc, FlexFlow's walk; or exhaustive, "
          "which proves the optimum of small networks");
ABSL_FLAG(std::string, constraints, "",
          "a file of what the plan must keep: splits of tensors, devices of operators; of the "
          "step stages, micro-batches, updates, recomputation");
ABSL_FLAG(
    std::string, plan, "",
    "a baseline instead of a search: data_parallel, zero3, megatron, pipeline or published; or "
    "grid, the parallel configuration of --tensor, --context, --expert and --pipeline");
ABSL_FLAG(bool, sequence_parallel, true,
          "of --plan=grid: what lies between the products that --tensor splits is split in the "
          "sequence; false: each of its devices computes all of it");
ABSL_FLAG(int64_t, tensor, 1,
          "of --plan=grid: devices, next to each other, that share out products with weights, "
          "attention by heads, and the sequence in between");
ABSL_FLAG(int64_t, context, 1,
          "of --plan=grid: devices that share out the sequence; attention gathers keys and values");
ABSL_FLAG(int64_t, expert, 1,
          "of --plan=grid: data-parallel devices that share out the experts of a mixture");
ABSL_FLAG(
    std::string, pipeline, "1",
    "of --plan=grid: stages of equal work. 4x2: four stages with two chunks of the model each "
    "(interleaved 1F1B)");
ABSL_FLAG(int64_t, micro_batch_size, 0,
          "of --plan=grid: samples of a micro-batch on a device; 0: of pipelines 1, else a step is "
          "one micro-batch");
ABSL_FLAG(
    std::string, recompute, "none",
    "of --plan=grid, what the backward pass computes again: none, selective (scores of unfused "
    "attention, what was gathered, activation functions and norms) or full (all but the "
    "borders of segments)");
ABSL_FLAG(std::string, compare, "",
          "a file with the configuration that you run, which is a baseline of the search: the "
          "command line of Megatron-LM, or the settings of DeepSpeed (JSON) or torchtitan (TOML)");
ABSL_FLAG(std::string, price, "",
          "a plan file, which is priced on --machine, with --profile if there is one, and no more; "
          "without MODEL");
ABSL_FLAG(int32_t, steps_between_flushes, 1,
          "how often pipelines are drained; more than 1: weights of two versions (PipeDream-2BW), "
          "gradients are a step late, which is another training");
ABSL_FLAG(
    bool, whole_machine, false,
    "no plan for a part of the machine, nor pipelines; single calls may still leave devices idle");
ABSL_FLAG(std::vector<std::string>, without, {},
          "proposers of plans that are not asked (--list_proposers), separated by commas");
ABSL_FLAG(bool, explain, false,
          "say why this plan: what is split, where the difference to other plans comes from, what "
          "each decision gains, what would have to change for the next best to win");
ABSL_FLAG(bool, verbose, false, "list the rules that made the plan, and say more of the search");
ABSL_FLAG(bool, list_proposers, false,
          "after the search, what each proposer of plans gained in it; without MODEL, a list of "
          "them");
ABSL_FLAG(
    std::string, policy, "",
    "thresholds of the search, NAME=VALUE,.. (--list_policy): they trade search time for the step");
ABSL_FLAG(bool, list_policy, false,
          "print the thresholds of the search with --policy, what each decides and why, and end");
ABSL_FLAG(int, bound_cuts, 0,
          "cuts of the space of plans, for a tighter lower bound on their steps; 0: none, and no "
          "bound for models of more than 400 operators");
ABSL_FLAG(std::string, rules, "", "rules file; the default is the one that comes with Isomer");
ABSL_FLAG(std::string, profile, "", "measured times of kernels; none: the machine's roofline");
ABSL_FLAG(bool, profile_of_another_device, false,
          "take --profile though it was measured on another device than the machine has");
ABSL_FLAG(
    int64_t, budget, 0,
    "how many candidates of the substitution search to map, or proposals of --search=mcmc, or "
    "prefixes of --search=exhaustive; 0: 300, 1000000, 2000000");
ABSL_FLAG(double, alpha, 1.05, "how much slower than the best a candidate may be to be expanded");
ABSL_FLAG(int, threads, 0, "that predict plans; 0: all cores. Does not change the plan");
ABSL_FLAG(double, time_limit, 0,
          "seconds after which the search ends with the best plan so far, as on Ctrl-C; 0: none");
ABSL_FLAG(bool, split, true, "cut the model into pieces, which are searched one by one");
ABSL_FLAG(bool, cache, true, "search equal pieces once, and keep what is found for later runs");
ABSL_FLAG(std::string, cache_dir, "",
          "where it is kept; the default is $XDG_CACHE_HOME/isomer/searches, or below ~/.cache");
ABSL_FLAG(uint64_t, seed, 1, "of --search=mcmc, and of steps that look equally good to others");
ABSL_FLAG(std::string, out, "", "the plan file to write");
ABSL_FLAG(bool, list_models, false,
          "print the networks of the zoo and end; with --out=FILE as a page of Markdown");
ABSL_FLAG(bool, describe, false,
          "print the size of MODEL, or without one what is known of --machine, and end");
ABSL_FLAG(std::string, svg, "", "file for a drawing of --machine; with --describe");
ABSL_FLAG(std::string, export_onnx, "",
          "file for the plan's graph as an .onnx file (opset 17): for inference on one device");
ABSL_FLAG(std::string, dot, "", "file for the plan's graph in DOT");
ABSL_FLAG(std::string, trace, "", "file for the simulated step as a Chrome/Perfetto trace");
ABSL_FLAG(std::string, timeline, "", "file for the simulated step as an SVG timeline");
ABSL_FLAG(std::string, report, "",
          "file for the plan, its step, its derivation and the baselines as one page of HTML");

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

absl::Status SetGradientPrecision(OptimizeOptions* options) {
  const auto precision = ParsePrecision(absl::GetFlag(FLAGS_gradient_precision));
  if (!precision.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--gradient_precision: ", precision.status().message()));
  }
  if (!options->training) return RefuseFlags({"gradient_precision"}, "is for --mode=training");
  if (*precision != DataType::kFloat32 && *precision != options->precision) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--gradient_precision=", PrecisionName(*precision),
        ": float32 is expected, or that of --precision, ", PrecisionName(options->precision)));
  }
  options->update.low_precision_sums = *precision != DataType::kFloat32;
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

// The user's own configuration, for a search to beat.
absl::Status AddCompared(const Model& model, OptimizeOptions* options) {
  const std::string path = absl::GetFlag(FLAGS_compare);
  if (path.empty()) return absl::OkStatus();
  if (!options->plan.empty()) {
    return RefuseFlags({"compare"},
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
  if (!launch.ignored.empty()) {
    constexpr size_t kShown = 5;
    const std::vector<std::string> shown(
        launch.ignored.begin(), launch.ignored.begin() + std::min(kShown, launch.ignored.size()));
    std::fprintf(stderr,
                 "note: %s: %zu settings of %s that no plan depends on are left out: %s%s\n",
                 path.c_str(), launch.ignored.size(), launch.framework.c_str(),
                 absl::StrJoin(shown, ", ").c_str(), launch.ignored.size() > kShown ? ", .." : "");
  }
  options->grid = launch.grid;
  options->grid_name = path.substr(path.rfind('/') + 1);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<GridRequest>> GridOfFlags(const OptimizeOptions& options) {
  if (options.plan != kGrid) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"tensor", "context", "expert", "pipeline",
                                        "micro_batch_size", "recompute", "sequence_parallel"},
                                       "is for --plan=grid"));
    return std::nullopt;
  }
  GridRequest grid{.degrees = {.tensor = absl::GetFlag(FLAGS_tensor),
                               .context = absl::GetFlag(FLAGS_context),
                               .expert = absl::GetFlag(FLAGS_expert),
                               .sequence_parallel = absl::GetFlag(FLAGS_sequence_parallel)},
                   .micro_batch_size = absl::GetFlag(FLAGS_micro_batch_size)};
  if (grid.degrees.tensor == 1) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"sequence_parallel"}, "is for --tensor of 2 or more"));
  }
  ISOMER_RETURN_IF_ERROR(ParseStages(absl::GetFlag(FLAGS_pipeline), &grid));
  if (!options.training) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"recompute"}, "is for --mode=training"));
  }
  const auto recomputation = ParseRecomputeMode(absl::GetFlag(FLAGS_recompute));
  if (!recomputation.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--recompute: ", recomputation.status().message()));
  }
  grid.recomputation = *recomputation;
  return grid;
}

absl::StatusOr<SearchPolicy> PolicyOfFlags() {
  SearchPolicy policy;
  const absl::Status set = SetThresholds(absl::GetFlag(FLAGS_policy), &policy);
  if (!set.ok()) return absl::InvalidArgumentError(absl::StrCat("--policy: ", set.message()));
  return policy;
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
absl::StatusOr<std::set<std::string>> LeftOutOfFlags(const std::string& plan) {
  std::set<std::string> left_out;
  for (const std::string& name : absl::GetFlag(FLAGS_without)) {
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

absl::StatusOr<OptimizeOptions> OptionsOfFlags() {
  OptimizeOptions options;
  const std::string mode = absl::GetFlag(FLAGS_mode);
  if (mode != "training" && mode != "inference") {
    return absl::InvalidArgumentError(
        absl::StrCat("--mode=", mode, ": there are training and inference"));
  }
  const std::string search = absl::GetFlag(FLAGS_search);
  options.search.dynamic_program = search != "enumeration";
  if (search == "egraph" || search == "algebra") {
    options.search.engine = search == "egraph" ? Engine::kEGraph : Engine::kBoth;
  } else {
    ISOMER_ASSIGN_OR_RETURN(options.strategy, ParseStrategy(search));
  }
  if (const std::string constraints = absl::GetFlag(FLAGS_constraints); !constraints.empty()) {
    ISOMER_ASSIGN_OR_RETURN(options.constraints, LoadConstraints(constraints));
  }
  options.training = mode == "training";
  const std::string attention = absl::GetFlag(FLAGS_attention);
  if (attention != "flash" && attention != "unfused") {
    return absl::InvalidArgumentError(
        absl::StrCat("--attention=", attention, ": there are flash and unfused"));
  }
  if (options.training && !absl::GetFlag(FLAGS_export_onnx).empty()) {
    return absl::InvalidArgumentError("--export_onnx is for --mode=inference");
  }
  const auto precision = ParsePrecision(absl::GetFlag(FLAGS_precision));
  if (!precision.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--precision: ", precision.status().message()));
  }
  options.precision = *precision;
  ISOMER_RETURN_IF_ERROR(SetGradientPrecision(&options));
  if (options.strategy == Strategy::kExhaustive && options.precision != DataType::kFloat32) {
    return absl::InvalidArgumentError("--search=exhaustive is for --precision=float32");
  }
  ISOMER_ASSIGN_OR_RETURN(options.update.optimizer, ParseOptimizer(absl::GetFlag(FLAGS_optimizer)));
  options.choose_update_method = absl::GetFlag(FLAGS_update) == "auto";
  options.whole_machine = absl::GetFlag(FLAGS_whole_machine);
  options.bound.cuts = absl::GetFlag(FLAGS_bound_cuts);
  constexpr int64_t kUsualNodes = 400;
  options.bound_nodes = options.bound.cuts > 0 ? std::numeric_limits<int64_t>::max() : kUsualNodes;
  if (!options.choose_update_method) {
    ISOMER_ASSIGN_OR_RETURN(options.update.method, ParseUpdateMethod(absl::GetFlag(FLAGS_update)));
  }
  const int64_t bucket_bytes = absl::GetFlag(FLAGS_bucket_bytes);
  options.choose_buckets = bucket_bytes == -1;
  if (bucket_bytes >= 0) options.update.bucket_bytes = bucket_bytes;
  if (bucket_bytes < -1) return absl::InvalidArgumentError("--bucket_bytes must be at least -1");
  const std::string plan = absl::GetFlag(FLAGS_plan);
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
  options.AskForBaseline(plan);
  ISOMER_ASSIGN_OR_RETURN(options.without, LeftOutOfFlags(options.plan));
  ISOMER_ASSIGN_OR_RETURN(options.policy, PolicyOfFlags());
  ISOMER_ASSIGN_OR_RETURN(options.grid, GridOfFlags(options));
  options.steps_between_flushes = absl::GetFlag(FLAGS_steps_between_flushes);
  const absl::Status flushes = CheckStepsBetweenFlushes(options.steps_between_flushes);
  if (!flushes.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--steps_between_flushes: ", flushes.message()));
  }
  if (options.steps_between_flushes > 1 && !options.training) {
    return absl::InvalidArgumentError("--steps_between_flushes is for --mode=training");
  }
  options.search.alpha = absl::GetFlag(FLAGS_alpha);
  options.search.seed = absl::GetFlag(FLAGS_seed);
  options.search.budget = absl::GetFlag(FLAGS_budget);
  if (!(options.search.alpha >= 1) || options.search.budget < 0) {
    return absl::InvalidArgumentError("--alpha must be at least 1 and --budget at least 0");
  }
  if (options.search.budget == 0) {
    options.search.budget = options.strategy == Strategy::kMcmc ? McmcOptions().max_proposals
                            : options.strategy == Strategy::kExhaustive ? ExhaustiveOptions().budget
                                                                        : SearchOptions().budget;
  }
  options.threads = absl::GetFlag(FLAGS_threads);
  if (options.threads < 0 || options.threads > kMostThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("--threads=", options.threads, ": there are 1 to ", kMostThreads, ", or 0"));
  }
  options.search.time_limit_s = absl::GetFlag(FLAGS_time_limit);
  constexpr double kMostSeconds = 1e9;
  if (!(options.search.time_limit_s >= 0 && options.search.time_limit_s <= kMostSeconds)) {
    return absl::InvalidArgumentError(absl::StrCat("--time_limit is 0 to ", kMostSeconds));
  }
  options.search.split = absl::GetFlag(FLAGS_split);
  options.search.cache = absl::GetFlag(FLAGS_cache);
  const std::string cache_dir = absl::GetFlag(FLAGS_cache_dir);
  options.search.cache_folder = cache_dir.empty() ? SearchCache::DefaultFolder() : cache_dir;
  return options;
}

// `notes` receives what the user should see.
LoadOptions LoadOptionsOfFlags(std::vector<std::string>* notes) {
  LoadOptions options;
  options.batch_size = absl::GetFlag(FLAGS_batch_size);
  options.dims = absl::GetFlag(FLAGS_dim);
  options.notes = notes;
  return options;
}

absl::StatusOr<int> ListUnsupported(const std::string& spec) {
  std::vector<std::string> notes;
  ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                          ListUnsupportedOf(spec, LoadOptionsOfFlags(&notes)));
  for (const std::string& note : notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
  return lines.empty() ? kExitDone : kExitNo;
}

absl::StatusOr<Model> ModelOfFlags(const std::string& spec, bool training) {
  std::vector<std::string> notes;
  ISOMER_ASSIGN_OR_RETURN(Model model, LoadAnyModel(spec, LoadOptionsOfFlags(&notes)));
  for (const std::string& note : notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  for (int i = 0; i < model.graph.num_nodes(); ++i) {
    for (const TensorType& type : model.graph.node(i).outputs) {
      if (!type.IsParallel()) continue;
      return absl::InvalidArgumentError(absl::StrCat(spec, ": ", model.graph.Label(NodeId{i}),
                                                     " is parallel already: ", type.ToString()));
    }
  }
  bool has_weights = false;
  for (int i = 0; i < model.graph.num_nodes(); ++i) {
    has_weights |= model.graph.node(NodeId{i}).op.kind() == OpKind::kWeight;
  }
  if (training && !has_weights) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec, ": it has no weights to train; --mode=inference"));
  }
  const std::string flag = absl::GetFlag(FLAGS_loss);
  if (!training && flag != "auto") {
    return absl::InvalidArgumentError("--loss is for --mode=training");
  }
  const auto [loss, of] =
      std::pair<std::string, std::string>(absl::StrSplit(flag, absl::MaxSplits(':', 1)));
  const bool is_guess = loss == "auto" && model.loss.empty() && !absl::StartsWith(spec, "zoo:");
  const DataType stated = StatedPrecision(model);
  if (training) ISOMER_RETURN_IF_ERROR(AttachLoss(&model, loss, of));
  if (absl::GetFlag(FLAGS_attention) == "unfused") {
    ISOMER_ASSIGN_OR_RETURN(const int taken_apart, TakeAttentionApart(&model));
    if (taken_apart == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--attention=unfused: ", model.name, " has no calls of fused attention"));
    }
  }
  if (training && stated != DataType::kFloat32) {
    const std::string name(PrecisionName(stated));
    std::fprintf(stderr,
                 "note: %s: it is in %s, of which training keeps float32; --precision=%s computes "
                 "in it\n",
                 spec.c_str(), name.c_str(), name.c_str());
  }
  if (training && is_guess) {
    std::fprintf(stderr, "note: %s: the loss is %s (--loss)\n", spec.c_str(),
                 LossText(model).c_str());
  }
  if (training && absl::GetFlag(FLAGS_loss_alone)) ISOMER_RETURN_IF_ERROR(KeepLossAlone(&model));
  return model;
}

absl::StatusOr<RuleSet> RulesOfFlags() {
  const std::string path = absl::GetFlag(FLAGS_rules);
  return LoadRules(path.empty() ? DataPath("rules/default.rules") : path);
}

// Before the search, which may take minutes.
absl::Status CheckReportFlag() {
  return absl::GetFlag(FLAGS_report).empty() ? absl::OkStatus() : CheckHasPage();
}

absl::Status WriteReportPage(const OptimizeResult& result, const Report& report,
                             const RuleSet& rules, const CostModel& cost) {
  const std::string page = absl::GetFlag(FLAGS_report);
  if (page.empty()) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(const Json data, PageJson(result, report, rules, cost));
  return WriteFileAtomically(page, PageWith(data, result.plan.model.name, report.text));
}

absl::Status WriteOutputs(const OptimizeResult& result, const CostModel& cost) {
  if (result.fits && !absl::GetFlag(FLAGS_out).empty()) {
    ISOMER_RETURN_IF_ERROR(SavePlan(absl::GetFlag(FLAGS_out), result.plan));
  }
  if (const std::string onnx = absl::GetFlag(FLAGS_export_onnx); !onnx.empty()) {
    ISOMER_ASSIGN_OR_RETURN(
        const std::string contents,
        OnnxFileOf(result.plan.model, result.plan.graph, StoredWeights::kPrepared));
    ISOMER_RETURN_IF_ERROR(WriteFileAtomically(onnx, contents));
  }
  if (const std::string dot = absl::GetFlag(FLAGS_dot); !dot.empty()) {
    ISOMER_RETURN_IF_ERROR(WriteFileAtomically(dot, result.plan.graph.ToDot()));
  }
  const std::string trace = absl::GetFlag(FLAGS_trace);
  const std::string timeline = absl::GetFlag(FLAGS_timeline);
  if (trace.empty() && timeline.empty()) return absl::OkStatus();
  const LoweredPlan& lowered = result.lowered;
  const Graph& graph = lowered.mapped.graph;
  if (!trace.empty()) {
    ISOMER_RETURN_IF_ERROR(
        WriteTrace(trace, graph, lowered.schedule, result.simulation, cost.machine()));
  }
  if (!timeline.empty()) {
    ISOMER_RETURN_IF_ERROR(WriteFileAtomically(
        timeline, TimelineSvg(graph, lowered.schedule, result.simulation, cost.machine())));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> PrintModels() {
  const std::string out = absl::GetFlag(FLAGS_out);
  ISOMER_ASSIGN_OR_RETURN(const std::string text,
                          out.empty() ? ModelListText() : ModelListMarkdown());
  if (out.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    ISOMER_RETURN_IF_ERROR(WriteFileAtomically(out, text));
  }
  return kExitDone;
}

absl::StatusOr<Machine> MachineOfFlags() {
  const bool one = absl::GetFlag(FLAGS_search) == "algebra";
  ISOMER_ASSIGN_OR_RETURN(
      Machine machine,
      LoadMachine(absl::GetFlag(FLAGS_machine), one ? 1 : absl::GetFlag(FLAGS_nodes),
                  one ? 1 : absl::GetFlag(FLAGS_devices_per_node)));
  const double gib = absl::GetFlag(FLAGS_device_memory_gib);
  constexpr double kMostGib = 1e6;
  if (!(gib >= 0 && gib <= kMostGib)) {
    return absl::InvalidArgumentError(absl::StrCat("--device_memory_gib is 0 to ", kMostGib));
  }
  for (DeviceKind& kind : machine.kinds) {
    if (gib > 0) kind.memory_bytes = static_cast<int64_t>(gib * (1 << 30));
  }
  return machine;
}

absl::StatusOr<int> Describe(const std::vector<std::string>& arguments) {
  const bool of_machine = !absl::GetFlag(FLAGS_machine).empty();
  if (arguments.size() + (of_machine ? 1 : 0) != 1) {
    return absl::InvalidArgumentError("--describe needs one MODEL, or --machine and none");
  }
  if (!of_machine) {
    ISOMER_ASSIGN_OR_RETURN(const Model model, ModelOfFlags(arguments[0], /*training=*/false));
    std::fputs(DescribeModel(model).c_str(), stdout);
    return kExitDone;
  }
  ISOMER_ASSIGN_OR_RETURN(const Machine machine, MachineOfFlags());
  std::fputs(DescribeMachine(machine).c_str(), stdout);
  if (const std::string svg = absl::GetFlag(FLAGS_svg); !svg.empty()) {
    ISOMER_RETURN_IF_ERROR(WriteFileAtomically(svg, MachineSvg(machine)));
  }
  return kExitDone;
}

// The profile of --profile, empty without; checked against the machine.
absl::StatusOr<Profile> ProfileOfFlags(const Machine& machine) {
  Profile profile;
  const std::string path = absl::GetFlag(FLAGS_profile);
  if (path.empty()) return profile;
  ISOMER_ASSIGN_OR_RETURN(profile, LoadProfile(path));
  if (const absl::Status serves = CheckProfileServes(profile, machine);
      !serves.ok() && !absl::GetFlag(FLAGS_profile_of_another_device)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", serves.message()));
  }
  return profile;
}

// With --explain, what WhyOf says is a part of the report.
absl::Status Explained(const OptimizeResult& result, const CostModel& cost, Report* report) {
  if (!absl::GetFlag(FLAGS_explain)) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(Why why, WhyOf(result, *report, cost));
  absl::StrAppend(&report->text, "\n", why.text);
  report->json["why"] = std::move(why.json);
  return absl::OkStatus();
}

absl::StatusOr<int> Diff(const std::vector<std::string>& files) {
  if (files.size() != 2) return absl::InvalidArgumentError("diff takes two plan files");
  ISOMER_RETURN_IF_ERROR(
      RefuseFlagsBut({"machine", "nodes", "devices_per_node", "device_memory_gib", "profile",
                      "profile_of_another_device"},
                     "is of a search, and diff has plans"));
  if (absl::GetFlag(FLAGS_machine).empty()) {
    return absl::InvalidArgumentError("diff needs --machine");
  }
  ISOMER_ASSIGN_OR_RETURN(Machine machine, MachineOfFlags());
  ISOMER_ASSIGN_OR_RETURN(const Profile profile, ProfileOfFlags(machine));
  const CostModel cost(std::move(machine),
                       absl::GetFlag(FLAGS_profile).empty() ? nullptr : &profile);
  std::vector<Plan> plans;
  std::vector<PlanSummary> summaries;
  for (const std::string& file : files) {
    ISOMER_ASSIGN_OR_RETURN(Plan plan, LoadPlan(file));
    // Of a machine with fewer or other devices it is another plan.
    const absl::StatusOr<PlanSummary> summary = SummaryOf(file, plan, cost);
    if (!summary.ok()) {
      return absl::Status(summary.status().code(),
                          absl::StrCat(file, ": ", summary.status().message()));
    }
    plan.predicted_step_us = summary->step_us;
    plans.push_back(std::move(plan));
    summaries.push_back(*summary);
  }
  const PlanSummary &a = summaries[0], &b = summaries[1];
  std::printf("%s: %s\n%s: %s\n", a.name.c_str(), a.headline.c_str(), b.name.c_str(),
              b.headline.c_str());
  if (plans[0].model.graph.StructuralHash() != plans[1].model.graph.StructuralHash()) {
    std::fprintf(stderr, "note: they are plans of different models (%s and %s)\n",
                 plans[0].model.name.c_str(), plans[1].model.name.c_str());
  }
  std::printf("\nOn %s, %s is %s\nSide by side\n%s", cost.machine().ToString().c_str(),
              a.name.c_str(), DifferenceText(a, b).c_str(), SideBySideText(a, b).c_str());
  Json json = DifferenceJson(a, b);
  if (cost.profile() == nullptr && a.step_us != b.step_us) {
    const bool a_wins = a.step_us < b.step_us;
    ISOMER_ASSIGN_OR_RETURN(const std::vector<TurningPoint> points,
                            TurningPointsOf(plans[a_wins ? 0 : 1], plans[a_wins ? 1 : 0], cost));
    std::printf("\nWhat would have to change for %s to win\n%s", (a_wins ? b : a).name.c_str(),
                TurningPointsText(points, (a_wins ? a : b).name, (a_wins ? b : a).name).c_str());
    json["turning_points"] = TurningPointsJson(points);
  }
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(json));
  return kExitDone;
}

absl::StatusOr<int> Price(const std::string& path) {
  ISOMER_RETURN_IF_ERROR(
      RefuseFlagsBut({"price", "machine", "nodes", "devices_per_node", "device_memory_gib",
                      "profile", "profile_of_another_device", "rules", "trace", "timeline", "dot",
                      "report", "verbose", "explain"},
                     "is of a search, and --price has a plan"));
  if (absl::GetFlag(FLAGS_machine).empty()) {
    return absl::InvalidArgumentError("--price needs --machine");
  }
  ISOMER_RETURN_IF_ERROR(CheckReportFlag());
  ISOMER_ASSIGN_OR_RETURN(Plan plan, LoadPlan(path));
  ISOMER_ASSIGN_OR_RETURN(Machine machine, MachineOfFlags());
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, RulesOfFlags());
  ISOMER_ASSIGN_OR_RETURN(const Profile profile, ProfileOfFlags(machine));
  const CostModel cost(std::move(machine),
                       absl::GetFlag(FLAGS_profile).empty() ? nullptr : &profile);
  const absl::StatusOr<OptimizeResult> result = PricePlan(std::move(plan), cost);
  if (!result.ok()) {
    return absl::Status(result.status().code(),
                        absl::StrCat(path, ": ", result.status().message()));
  }
  ISOMER_ASSIGN_OR_RETURN(Report report,
                          ReportOf(*result, rules, cost, absl::GetFlag(FLAGS_verbose)));
  ISOMER_RETURN_IF_ERROR(Explained(*result, cost, &report));
  std::fputs(report.text.c_str(), stdout);
  ISOMER_RETURN_IF_ERROR(WriteOutputs(*result, cost));
  ISOMER_RETURN_IF_ERROR(WriteReportPage(*result, report, rules, cost));
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(report.json));
  if (result->fits) return kExitDone;
  std::fprintf(stderr, "%s\n", DoesNotFitText(*result, cost.machine(), std::nullopt).c_str());
  return kExitNo;
}

// What makes no plan.
bool OnlyLists() {
  return absl::GetFlag(FLAGS_list_models) || absl::GetFlag(FLAGS_describe) ||
         absl::GetFlag(FLAGS_list_policy) || absl::GetFlag(FLAGS_list_unsupported);
}

absl::StatusOr<int> Run(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments[0] == "diff") {
    return Diff({arguments.begin() + 1, arguments.end()});
  }
  if (OnlyLists()) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags(
        {"explain", "report", "dot", "trace", "timeline", "export_onnx"}, "is of a plan"));
  }
  if (absl::GetFlag(FLAGS_list_models)) return PrintModels();
  if (absl::GetFlag(FLAGS_describe)) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"out"}, "is for a plan, and not for --describe"));
    return Describe(arguments);
  }
  ISOMER_RETURN_IF_ERROR(RefuseFlags({"svg"}, "is for --describe"));
  if (absl::GetFlag(FLAGS_list_proposers) && arguments.empty()) {
    std::fputs(ProposerList().c_str(), stdout);
    return kExitDone;
  }
  if (absl::GetFlag(FLAGS_list_policy)) {
    if (!arguments.empty()) return absl::InvalidArgumentError("--list_policy takes no MODEL");
    ISOMER_ASSIGN_OR_RETURN(const SearchPolicy policy, PolicyOfFlags());
    std::fputs(PolicyText(policy).c_str(), stdout);
    return kExitDone;
  }
  if (const std::string plan = absl::GetFlag(FLAGS_price); !plan.empty()) {
    if (!arguments.empty()) return absl::InvalidArgumentError("--price takes no MODEL");
    return Price(plan);
  }
  if (arguments.size() != 1) return absl::InvalidArgumentError("expected one MODEL (see --help)");
  if (absl::GetFlag(FLAGS_list_unsupported)) return ListUnsupported(arguments[0]);
  if (absl::GetFlag(FLAGS_machine).empty() ||
      (absl::GetFlag(FLAGS_out).empty() && absl::GetFlag(FLAGS_export_onnx).empty())) {
    return absl::InvalidArgumentError(
        "--machine and --out (or --export_onnx) are needed (see --help)");
  }
  ISOMER_ASSIGN_OR_RETURN(OptimizeOptions options, OptionsOfFlags());
  ISOMER_RETURN_IF_ERROR(CheckReportFlag());
  options.keep_baselines = !absl::GetFlag(FLAGS_report).empty() || absl::GetFlag(FLAGS_explain);
  ISOMER_ASSIGN_OR_RETURN(Machine machine, MachineOfFlags());
  ISOMER_ASSIGN_OR_RETURN(const Model model, ModelOfFlags(arguments[0], options.training));
  if (const auto text = OutputsDoNotFitText(model, options.training, machine); text.has_value()) {
    std::fprintf(stderr, "%s: %s\n", arguments[0].c_str(), text->c_str());
    return kExitNo;
  }
  ISOMER_RETURN_IF_ERROR(AddCompared(model, &options));
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, RulesOfFlags());
  ISOMER_ASSIGN_OR_RETURN(const Profile profile, ProfileOfFlags(machine));
  const CostModel cost(std::move(machine),
                       absl::GetFlag(FLAGS_profile).empty() ? nullptr : &profile);
  const RuleIndex index(rules);
  EndSearchesOnInterrupt();
  // Calls of unfused attention would be found to be attention.
  if (absl::GetFlag(FLAGS_attention) == "flash") {
    options.equal = [](const ConcreteSide& source, const ConcreteSide& target,
                       const InputNumbers& numbers) {
      std::set<std::string> lemmas;
      return EqualSides(source, target, &lemmas, numbers).ok();
    };
  }
  ISOMER_ASSIGN_OR_RETURN(const OptimizeResult result, Optimize(model, index, cost, options));
  if (const std::string& note = result.searches.cache_note; !note.empty()) {
    std::fprintf(stderr, "%s\n", note.c_str());
  }
  if (!result.misfit.empty()) {
    std::fprintf(stderr, "note: %s\n", result.misfit.c_str());
  }
  ISOMER_ASSIGN_OR_RETURN(Report report,
                          ReportOf(result, rules, cost, absl::GetFlag(FLAGS_verbose)));
  ISOMER_RETURN_IF_ERROR(Explained(result, cost, &report));
  std::fputs(report.text.c_str(), stdout);
  if (absl::GetFlag(FLAGS_list_proposers)) {
    std::printf("\n%s", LedgerText(result.proposers, options.without).c_str());
  }
  ISOMER_RETURN_IF_ERROR(WriteOutputs(result, cost));
  ISOMER_RETURN_IF_ERROR(WriteReportPage(result, report, rules, cost));
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(report.json));
  if (result.fits) return kExitDone;
  std::optional<int64_t> enough;
  if (options.plan.empty() && absl::GetFlag(FLAGS_constraints).empty() &&
      result.searches.stop < StopReason::kTimeLimit) {
    ISOMER_ASSIGN_OR_RETURN(enough, EnoughNodes(model, index, cost, options));
  }
  const Constraints::OfStep& step = options.constraints.step;
  const std::string of_step = options.plan.empty() && !step.empty()
                                  ? absl::StrCat("; ", step.source, ": ", step.ToString())
                                  : "";
  std::fprintf(stderr, "%s%s\n", DoesNotFitText(result, cost.machine(), enough).c_str(),
               of_step.c_str());
  return kExitNo;
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  return isomer::RunProgram(
      {.name = "isomer-optimize",
       .purpose = "Finds the fastest equal plan to run a model on a cluster.",
       .usage = "MODEL --machine=PRESET|FILE --out=FILE | diff PLAN PLAN --machine=PRESET|FILE",
       .example = "isomer-optimize models/data/bert_tiny.onnx --machine=dgx_h100 --nodes=2 "
                  "--devices_per_node=4 --out=bert.plan",
       .outputs = {"out", "svg", "export_onnx", "dot", "trace", "timeline", "report"}},
      argc, argv, isomer::Run);
}
