#include "optimizer/proposal/launch_settings.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Settings by name; each is looked at once, and the others are listed.
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
  absl::Status Error(const std::string& key, const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(name_, ": ", key, ": ", what));
  }
  std::vector<std::string> Ignored() const {
    std::vector<std::string> ignored;
    for (const auto& [key, value] : values_) {
      if (known_.count(key) == 0) ignored.push_back(key);
    }
    return ignored;
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
  grid.update =
      s->IsOn("--use-distributed-optimizer") ? UpdateMethod::kSharded : UpdateMethod::kAllReduce;
  grid.overlaps_gradients = s->IsOn("--overlap-grad-reduce");
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
  if (s->IsOn("bf16.enabled")) launch->precision = DataType::kBFloat16;
  if (s->IsOn("fp16.enabled")) launch->precision = DataType::kFloat16;
  return absl::OkStatus();
}

absl::Status ReadTorchtitan(Settings* s, LaunchSettings* launch) {
  launch->framework = "torchtitan";
  GridRequest& grid = launch->grid;
  ISOMER_ASSIGN_OR_RETURN(grid.degrees.tensor, s->Count("parallelism.tensor_parallel_degree", 1));
  ISOMER_ASSIGN_OR_RETURN(grid.degrees.context, s->Count("parallelism.context_parallel_degree", 1));
  grid.degrees.in_stripes = grid.degrees.context > 1;  // Its load balance does the same.
  ISOMER_ASSIGN_OR_RETURN(grid.degrees.expert, s->Count("parallelism.expert_parallel_degree", 1));
  ISOMER_ASSIGN_OR_RETURN(grid.stages, s->Count("parallelism.pipeline_parallel_degree", 1));
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
  const std::string mode = s->Text("activation_checkpoint.mode");
  if (!mode.empty()) {
    const auto parsed = ParseRecomputeMode(mode);
    if (!parsed.ok()) {
      return s->Error("activation_checkpoint.mode", std::string(parsed.status().message()));
    }
    grid.recomputation = *parsed;
  }
  // FSDP2, unless its degree is 1; parameters are gathered again for the backward pass.
  const std::string shards = s->Text("parallelism.data_parallel_shard_degree");
  grid.update = shards == "1" ? UpdateMethod::kAllReduce : UpdateMethod::kShardedWeights;
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
  launch.ignored = settings.Ignored();
  return launch;
}

}  // namespace isomer
