#include "optimizer/proposal/launch_settings.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Settings by name; those that nobody looks at are listed.
class Settings {
 public:
  explicit Settings(std::string name) : name_(std::move(name)) {}

  void Set(const std::string& key, std::string value) { values_[key] = std::move(value); }

  bool Has(const std::string& key) {
    known_.insert(key);
    return values_.count(key) > 0;
  }
  // On, "true" or the like.
  bool IsOn(const std::string& key) {
    if (!Has(key)) return false;
    const std::string value = absl::AsciiStrToLower(values_[key]);
    return value != "false" && value != "0";
  }
  std::string Text(const std::string& key) { return Has(key) ? values_[key] : ""; }
  // A positive number, or `otherwise`.
  absl::StatusOr<int64_t> Count(const std::string& key, int64_t otherwise) {
    if (!Has(key)) return otherwise;
    int64_t count = 0;
    if (!absl::SimpleAtoi(values_[key], &count) || count < 1 || count > kMostDegree) {
      return Error(key, absl::StrCat("'", values_[key], "' is no number from 1 to ", kMostDegree));
    }
    return count;
  }
  // Those of `keys` that are on; a key that ends with a dot stands for all that begin with it.
  std::vector<std::string> On(absl::Span<const absl::string_view> keys) {
    std::vector<std::string> on;
    for (const auto& [name, value] : values_) {
      for (const absl::string_view key : keys) {
        const bool is_meant = absl::EndsWith(key, ".") ? absl::StartsWith(name, key) : name == key;
        if (is_meant && IsOn(name) && value != "none") on.push_back(name);
      }
    }
    return on;
  }
  absl::Status Error(const std::string& key, const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(name_, ": ", key, ": ", what));
  }
  std::vector<std::string> NotRead() const {
    std::vector<std::string> not_read;
    for (const auto& [key, value] : values_) {
      if (known_.count(key) == 0) not_read.push_back(key);
    }
    return not_read;
  }

 private:
  std::string name_;
  std::map<std::string, std::string> values_;
  std::set<std::string> known_;
};

std::string WithoutQuotes(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  for (const char quote : {'"', '\''}) {
    if (text.size() >= 2 && text.front() == quote && text.back() == quote) {
      text = text.substr(1, text.size() - 2);
    }
  }
  return std::string(text);
}

// The text before a comment that is in no quotes.
absl::string_view WithoutComment(absl::string_view line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (line[i] == '#' && !quoted) return line.substr(0, i);
  }
  return line;
}

// Words of a command line: "--key value", "--key=value" or "--key".
Settings MegatronSettings(absl::string_view contents, const std::string& name) {
  std::vector<std::string> words;
  for (absl::string_view line : absl::StrSplit(contents, '\n')) {
    for (absl::string_view word :
         absl::StrSplit(WithoutComment(line), absl::ByAnyChar(" \t\r\\()"), absl::SkipEmpty())) {
      words.push_back(WithoutQuotes(word));
    }
  }
  Settings settings(name);
  for (size_t i = 0; i < words.size(); ++i) {
    if (!absl::StartsWith(words[i], "--")) continue;
    const std::vector<std::string> parts = absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    if (parts.size() == 2) {
      settings.Set(parts[0], WithoutQuotes(parts[1]));
    } else if (i + 1 < words.size() && !absl::StartsWith(words[i + 1], "--")) {
      settings.Set(words[i], words[i + 1]);
      ++i;
    } else {
      settings.Set(words[i], "true");
    }
  }
  return settings;
}

// Keys are "section.key".
Settings TomlSettings(absl::string_view contents, const std::string& name) {
  Settings settings(name);
  std::string section;
  for (absl::string_view line : absl::StrSplit(contents, '\n')) {
    line = absl::StripAsciiWhitespace(WithoutComment(line));
    if (absl::ConsumePrefix(&line, "[")) {
      absl::ConsumeSuffix(&line, "]");
      section = std::string(absl::StripAsciiWhitespace(line));
      continue;
    }
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits('=', 1));
    if (parts.size() != 2) continue;
    settings.Set(absl::StrCat(section, ".", absl::StripAsciiWhitespace(parts[0])),
                 WithoutQuotes(parts[1]));
  }
  return settings;
}

void AddJson(const google::protobuf::Struct& object, const std::string& prefix,
             Settings* settings) {
  for (const auto& [key, value] : object.fields()) {
    const std::string path = prefix.empty() ? key : absl::StrCat(prefix, ".", key);
    switch (value.kind_case()) {
      case google::protobuf::Value::kStructValue:
        AddJson(value.struct_value(), path, settings);
        break;
      case google::protobuf::Value::kNumberValue:
        settings->Set(path, absl::StrFormat("%.17g", value.number_value()));
        break;
      case google::protobuf::Value::kBoolValue:
        settings->Set(path, value.bool_value() ? "true" : "false");
        break;
      default:
        // "auto" is what Hugging Face's trainer fills in: not stated here.
        if (value.string_value() != "auto") settings->Set(path, value.string_value());
    }
  }
}

// Of the frameworks' names those that are one of ours, whatever computes it (fused, on the host).
void ReadOptimizer(const std::string& key, Settings* s, LaunchSettings* launch) {
  const std::string name = absl::AsciiStrToLower(s->Text(key));
  static const auto* const kinds = new std::map<std::string, OptimizerKind>{
      {"adam", OptimizerKind::kAdam},       {"adamw", OptimizerKind::kAdam},
      {"fusedadam", OptimizerKind::kAdam},  {"cpuadam", OptimizerKind::kAdam},
      {"lion", OptimizerKind::kLion},       {"fusedlion", OptimizerKind::kLion},
      {"adagrad", OptimizerKind::kAdagrad}, {"lamb", OptimizerKind::kLamb},
      {"fusedlamb", OptimizerKind::kLamb},  {"muon", OptimizerKind::kMuon}};
  if (const auto kind = kinds->find(name); kind != kinds->end()) {
    launch->optimizer = kind->second;
  } else if (!name.empty()) {
    launch->not_modelled.push_back(key);
  }
}

// Settings of which a step is shorter, longer or larger, and which no plan has. By framework.
constexpr absl::string_view kNotModelledOfMegatron[] = {
    "--account-for-embedding-in-pipeline-split",
    "--account-for-loss-in-pipeline-split",
    "--cpu-offloading",
    "--decoder-first-pipeline-num-layers",
    "--decoder-last-pipeline-num-layers",
    "--defer-embedding-wgrad-compute",
    "--delay-wgrad-compute",
    "--exp-avg-dtype",
    "--exp-avg-sq-dtype",
    "--fp4-format",
    "--fp8-format",
    "--grad-reduce-in-bf16",
    "--main-grads-dtype",
    "--main-params-dtype",
    "--microbatch-group-size-per-virtual-pipeline-stage",
    "--moe-expert-capacity-factor",
    "--num-distributed-optimizer-instances",
    "--optimizer-cpu-offload",
    "--overlap-moe-expert-parallel-comm",
    "--pipeline-model-parallel-layout",
    "--rampup-batch-size",
    "--recompute-modules",
    "--tp-comm-overlap"};
constexpr absl::string_view kNotModelledOfDeepSpeed[] = {
    "activation_checkpointing.cpu_checkpointing",
    "activation_checkpointing.partition_activations",
    "communication_data_type",
    "compression_training.",
    "sparse_attention.",
    "zero_optimization.offload_optimizer.device",
    "zero_optimization.offload_param.device",
    "zero_optimization.zero_quantized_gradients",
    "zero_optimization.zero_quantized_weights"};
constexpr absl::string_view kNotModelledOfTorchtitan[] = {
    "float8.",
    "mx.",
    "parallelism.enable_async_tensor_parallel",
    "parallelism.expert_tensor_parallel_degree",
    "parallelism.module_fqns_per_model_part",
    "parallelism.pipeline_parallel_split_points",
    "quantize.",
    "training.enable_cpu_offload"};

// ZeRO's stages, by Megatron-LM's names for what its FSDP shards.
absl::Status ReadMegatronsUpdate(Settings* s, GridRequest* grid) {
  grid->update =
      s->IsOn("--use-distributed-optimizer") ? UpdateMethod::kSharded : UpdateMethod::kAllReduce;
  if (s->IsOn("--use-torch-fsdp2")) grid->update = UpdateMethod::kShardedWeights;
  const bool shards = s->IsOn("--use-megatron-fsdp") || s->IsOn("--use-custom-fsdp");
  const std::string key = "--data-parallel-sharding-strategy";
  const std::string strategy = s->Text(key);
  const std::map<std::string, UpdateMethod> strategies = {
      {"", UpdateMethod::kAllReduce},
      {"no_shard", UpdateMethod::kAllReduce},
      {"optim", UpdateMethod::kSharded},
      {"optim_grads", UpdateMethod::kShardedGradients},
      {"optim_grads_params", UpdateMethod::kShardedWeights}};
  const auto update = strategies.find(strategy);
  if (update == strategies.end()) {
    return s->Error(key, absl::StrCat("'", strategy,
                                      "': there are no_shard, optim, optim_grads and "
                                      "optim_grads_params"));
  }
  if (shards) grid->update = update->second;
  return absl::OkStatus();
}

absl::Status ReadMegatron(Settings* s, LaunchSettings* launch) {
  GridRequest& grid = launch->grid;
  launch->framework = "Megatron-LM";
  ISOMER_ASSIGN_OR_RETURN(grid.degrees.tensor, s->Count("--tensor-model-parallel-size", 1));
  ISOMER_ASSIGN_OR_RETURN(grid.degrees.context, s->Count("--context-parallel-size", 1));
  // A ring (p2p) moves the keys and values that an all-gather does, and a2a+p2p is neither.
  const std::string exchange = s->Text("--cp-comm-type");
  grid.degrees.context_by_heads = exchange == "a2a" && grid.degrees.context > 1;
  grid.degrees.in_stripes = grid.degrees.context > 1;  // Its early and late pieces do the same.
  if (!exchange.empty() && exchange != "a2a" && exchange != "all_gather" && exchange != "p2p") {
    return s->Error("--cp-comm-type", absl::StrCat("'", exchange, "': a2a, all_gather and p2p"));
  }
  ISOMER_ASSIGN_OR_RETURN(grid.degrees.expert, s->Count("--expert-model-parallel-size", 1));
  ISOMER_ASSIGN_OR_RETURN(grid.stages, s->Count("--pipeline-model-parallel-size", 1));
  ISOMER_ASSIGN_OR_RETURN(grid.chunks, s->Count("--num-virtual-stages-per-pipeline-rank", 1));
  const std::string per_chunk = "--num-layers-per-virtual-pipeline-stage";
  if (s->Has(per_chunk)) {
    ISOMER_ASSIGN_OR_RETURN(const int64_t layers, s->Count("--num-layers", 0));
    ISOMER_ASSIGN_OR_RETURN(const int64_t each, s->Count(per_chunk, 1));
    if (layers == 0 || layers % (each * grid.stages) != 0) {
      return s->Error(per_chunk, absl::StrCat(each, " x ", grid.stages,
                                              " stages do not divide --num-layers ", layers));
    }
    grid.chunks = layers / (each * grid.stages);
  }
  ISOMER_ASSIGN_OR_RETURN(grid.micro_batch_size, s->Count("--micro-batch-size", 0));
  if (s->Has("--global-batch-size")) {
    ISOMER_ASSIGN_OR_RETURN(launch->global_batch_size, s->Count("--global-batch-size", 0));
  }
  if (s->IsOn("--recompute-activations")) grid.recomputation = RecomputeMode::kSelective;
  if (s->Has("--recompute-granularity")) {
    const auto mode = ParseRecomputeMode(s->Text("--recompute-granularity"));
    if (!mode.ok()) {
      return s->Error("--recompute-granularity", std::string(mode.status().message()));
    }
    grid.recomputation = *mode;
  }
  // "uniform" with segments of one layer is what it is without the two.
  const std::string layers = "--recompute-num-layers";
  const bool of_one = !s->Has(layers) || s->Text(layers) == "1";
  if (s->Text("--recompute-method") == "block" || !of_one) {
    launch->not_modelled.push_back(layers);
  }
  ISOMER_ASSIGN_OR_RETURN(const int64_t of_experts,
                          s->Count("--expert-tensor-parallel-size", grid.degrees.tensor));
  if (grid.degrees.expert > 1 && of_experts != grid.degrees.tensor) {
    launch->not_modelled.push_back("--expert-tensor-parallel-size");
  }
  ISOMER_RETURN_IF_ERROR(ReadMegatronsUpdate(s, &grid));
  grid.overlaps_gradients = s->IsOn("--overlap-grad-reduce");
  ReadOptimizer("--optimizer", s, launch);
  absl::c_move(s->On(kNotModelledOfMegatron), std::back_inserter(launch->not_modelled));
  if (s->IsOn("--bf16")) launch->precision = DataType::kBFloat16;
  if (s->IsOn("--fp16")) launch->precision = DataType::kFloat16;
  grid.degrees.sequence_parallel = s->IsOn("--sequence-parallel") || grid.degrees.tensor == 1;
  return absl::OkStatus();
}

absl::Status ReadDeepSpeed(Settings* s, LaunchSettings* launch) {
  launch->framework = "DeepSpeed";
  GridRequest& grid = launch->grid;
  ISOMER_ASSIGN_OR_RETURN(grid.micro_batch_size, s->Count("train_micro_batch_size_per_gpu", 0));
  if (s->Has("train_batch_size")) {
    ISOMER_ASSIGN_OR_RETURN(launch->global_batch_size, s->Count("train_batch_size", 0));
  }
  ISOMER_ASSIGN_OR_RETURN(grid.degrees.tensor, s->Count("tensor_parallel.autotp_size", 1));
  grid.degrees.sequence_parallel = grid.degrees.tensor == 1;  // AutoTP has none
  const std::string stage = s->Text("zero_optimization.stage");
  const std::map<std::string, UpdateMethod> stages = {{"", UpdateMethod::kAllReduce},
                                                      {"0", UpdateMethod::kAllReduce},
                                                      {"1", UpdateMethod::kSharded},
                                                      {"2", UpdateMethod::kShardedGradients},
                                                      {"3", UpdateMethod::kShardedWeights}};
  const auto update = stages.find(stage);
  if (update == stages.end()) {
    return s->Error("zero_optimization.stage", absl::StrCat("'", stage, "': there are 0 to 3"));
  }
  grid.update = update->second;
  const std::string overlap = "zero_optimization.overlap_comm";
  grid.overlaps_gradients = !s->Has(overlap) || s->IsOn(overlap);
  // Of batch, micro-batch and their number one follows from the others and the devices.
  const std::string steps = "gradient_accumulation_steps";
  ISOMER_ASSIGN_OR_RETURN(const int64_t micro_batches, s->Count(steps, 1));
  if (micro_batches > 1 && (grid.micro_batch_size == 0 || !launch->global_batch_size.has_value())) {
    return s->Error(steps,
                    "it wants train_batch_size and train_micro_batch_size_per_gpu beside it");
  }
  for (const std::string key :
       {"sequence_parallel_size", "zero_optimization.zero_hpz_partition_size",
        "zero_optimization.mics_shard_size"}) {
    const std::string degree = s->Text(key);
    if (!degree.empty() && degree != "1" && degree != "-1") {
      return s->Error(key, absl::StrCat("'", degree, "': no plan is like that"));
    }
  }
  ReadOptimizer("optimizer.type", s, launch);
  absl::c_move(s->On(kNotModelledOfDeepSpeed), std::back_inserter(launch->not_modelled));
  if (s->IsOn("bf16.enabled")) launch->precision = DataType::kBFloat16;
  if (s->IsOn("fp16.enabled")) launch->precision = DataType::kFloat16;
  return absl::OkStatus();
}

// FSDP2, unless its degree is 1. Gathered weights are kept for the backward pass where that is
// said, and by default in a pipeline.
absl::Status ReadTorchtitansUpdate(Settings* s, GridRequest* grid) {
  const std::string shards = s->Text("parallelism.data_parallel_shard_degree");
  const std::string replicas = "parallelism.data_parallel_replicate_degree";
  ISOMER_ASSIGN_OR_RETURN(const int64_t num_replicas, s->Count(replicas, 1));
  const std::string key = "parallelism.fsdp_reshard_after_forward";
  const std::string policy = s->Text(key);
  if (!policy.empty() && policy != "default" && policy != "always" && policy != "never") {
    return s->Error(key, absl::StrCat("'", policy, "': there are default, always and never"));
  }
  if (shards == "1") {
    grid->update = UpdateMethod::kAllReduce;
    return absl::OkStatus();
  }
  if (num_replicas > 1) {
    return s->Error(
        replicas,
        absl::StrCat("'", num_replicas, "' replicas of weights in shards: no plan is like that"));
  }
  const bool keeps = policy == "never" || (policy != "always" && grid->stages > 1);
  grid->update = keeps ? UpdateMethod::kShardedGradients : UpdateMethod::kShardedWeights;
  return absl::OkStatus();
}

absl::Status ReadTorchtitan(Settings* s, LaunchSettings* launch) {
  launch->framework = "torchtitan";
  GridRequest& grid = launch->grid;
  ISOMER_ASSIGN_OR_RETURN(grid.degrees.tensor, s->Count("parallelism.tensor_parallel_degree", 1));
  ISOMER_ASSIGN_OR_RETURN(grid.degrees.context, s->Count("parallelism.context_parallel_degree", 1));
  grid.degrees.in_stripes = grid.degrees.context > 1;  // Its load balance does the same.
  // Keys and values are gathered, or go round: the same bytes.
  s->Has("parallelism.context_parallel_rotate_method");
  ISOMER_ASSIGN_OR_RETURN(grid.degrees.expert, s->Count("parallelism.expert_parallel_degree", 1));
  ISOMER_ASSIGN_OR_RETURN(grid.stages, s->Count("parallelism.pipeline_parallel_degree", 1));
  // Its default has two chunks on each stage of an interleaved pipeline.
  const std::string order = "parallelism.pipeline_parallel_schedule";
  const std::string name = s->Text(order);
  const bool is_interleaved = name == "Interleaved1F1B";
  if (grid.stages > 1 && !name.empty() && name != "1F1B" && !is_interleaved) {
    return s->Error(order, absl::StrCat("'", name, "': there are 1F1B and Interleaved1F1B"));
  }
  const std::string layers = "parallelism.pipeline_parallel_layers_per_stage";
  if (grid.stages > 1 && is_interleaved) {
    if (s->Has(layers)) return s->Error(layers, "how many layers there are is not said");
    grid.chunks = 2;
  }
  const std::string pipeline_batch = "parallelism.pipeline_parallel_microbatch_size";
  const std::string local = "training.local_batch_size";
  if (grid.stages > 1) {
    ISOMER_ASSIGN_OR_RETURN(grid.micro_batch_size, s->Count(pipeline_batch, 1));
    s->Has(local);
  } else {
    ISOMER_ASSIGN_OR_RETURN(grid.micro_batch_size, s->Count(local, 0));
  }
  const std::string batch = "training.global_batch_size";
  if (s->Has(batch) && s->Text(batch) != "-1") {
    ISOMER_ASSIGN_OR_RETURN(launch->global_batch_size, s->Count(batch, 0));
  }
  // Where nothing is said, too, it computes again.
  grid.recomputation = RecomputeMode::kSelective;
  if (const std::string mode = s->Text("activation_checkpoint.mode"); !mode.empty()) {
    const auto parsed = ParseRecomputeMode(mode);
    if (!parsed.ok()) {
      return s->Error("activation_checkpoint.mode", std::string(parsed.status().message()));
    }
    grid.recomputation = *parsed;
  }
  // Its "op" keeps products; every second layer, its default, or every N-th is another matter.
  const std::string option = "activation_checkpoint.selective_ac_option";
  const std::string kept = s->Text(option);
  if (grid.recomputation == RecomputeMode::kSelective && kept != "op") {
    launch->not_modelled.push_back(
        kept.empty() ? absl::StrCat(option, " (2, where nothing is said)") : option);
  }
  ISOMER_RETURN_IF_ERROR(ReadTorchtitansUpdate(s, &grid));
  ReadOptimizer("optimizer.name", s, launch);
  absl::c_move(s->On(kNotModelledOfTorchtitan), std::back_inserter(launch->not_modelled));
  launch->precision = s->Text("training.mixed_precision_param") == "float32" ? DataType::kFloat32
                                                                             : DataType::kBFloat16;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LaunchSettings> ParseLaunchSettings(absl::string_view contents,
                                                   const std::string& name) {
  LaunchSettings launch;
  Settings settings(name);
  if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(contents), "{")) {
    google::protobuf::Struct object;
    const auto parsed = google::protobuf::util::JsonStringToMessage(std::string(contents), &object);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": it begins as JSON does, and is none"));
    }
    AddJson(object, "", &settings);
    ISOMER_RETURN_IF_ERROR(ReadDeepSpeed(&settings, &launch));
  } else if (absl::StrContains(contents, "[parallelism]") ||
             absl::StrContains(contents, "[training]")) {
    settings = TomlSettings(contents, name);
    ISOMER_RETURN_IF_ERROR(ReadTorchtitan(&settings, &launch));
  } else if (absl::StrContains(contents, "-parallel-size") ||
             absl::StrContains(contents, "--micro-batch-size")) {
    settings = MegatronSettings(contents, name);
    ISOMER_RETURN_IF_ERROR(ReadMegatron(&settings, &launch));
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat(name,
                     ": neither Megatron-LM's command line (--tensor-model-parallel-size ..), "
                     "nor DeepSpeed's JSON, nor torchtitan's TOML"));
  }
  launch.not_read = settings.NotRead();
  return launch;
}

}  // namespace isomer
