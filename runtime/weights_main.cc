#include "runtime/weights_main.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "models/evaluation_form.h"
#include "models/load.h"
#include "models/loss.h"
#include "models/onnx/export/onnx_export.h"
#include "pcg/support/file.h"
#include "pcg/support/hash.h"
#include "pcg/support/messages.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"
#include "runtime/checkpoint/disk_progress.h"
#include "runtime/weight_files/weight_file.h"
#include "runtime/weight_files/write_weights.h"

ABSL_FLAG(std::string, weights, "",
          "begin with the weights of this file, by name: .safetensors, .npz, a model; or of this "
          "folder: of Hugging Face's, or of checkpoints (docs/training.md)");
ABSL_FLAG(std::vector<std::string>, rename_weights, {},
          "REGEX=TEXT: what matches in a name of --weights is TEXT in the model; several apply one "
          "after the other ('^=network.' puts network. before all)");
ABSL_FLAG(bool, partial_weights, false,
          "weights that --weights lacks keep the model's values, and what the model lacks is left "
          "out; else either is an error");
ABSL_FLAG(std::string, out, "",
          "write the model with the trained weights to this file; .onnx: for inference, without "
          "the loss; .safetensors, .npz: the weights alone");

namespace isomer {
namespace {

// How many names a line shows.
constexpr size_t kShownNames = 3;

std::string Quoted(absl::string_view name) {
  constexpr size_t kShown = 200;
  return absl::StrCat("'", absl::CEscape(name.substr(0, kShown)), name.size() > kShown ? "..." : "",
                      "'");
}

// "'a', 'b', 'c' and 4 more".
std::string ListText(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShownNames); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", Quoted(names[i]));
  }
  if (names.size() > kShownNames) {
    absl::StrAppend(&text, " and ", names.size() - kShownNames, " more");
  }
  return text;
}

using Renaming = std::pair<std::regex, std::string>;

absl::StatusOr<std::vector<Renaming>> RenamingsFromFlags() {
  std::vector<Renaming> renamings;
  for (const std::string& flag : absl::GetFlag(FLAGS_rename_weights)) {
    const size_t at = flag.rfind('=');
    if (at == std::string::npos || at == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--rename_weights=", flag, ": REGEX=TEXT is expected"));
    }
    try {
      renamings.emplace_back(std::regex(flag.substr(0, at)), flag.substr(at + 1));
    } catch (const std::regex_error&) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--rename_weights=", flag, ": '", flag.substr(0, at), "' is no regular expression"));
    }
  }
  return renamings;
}

absl::Status Rename(const std::vector<Renaming>& renamings, WeightFile* file) {
  std::vector<bool> has_matched(renamings.size(), false);
  std::map<std::string, std::string> known;  // new name to old
  for (WeightTensor& tensor : file->tensors) {
    const std::string before = tensor.name;
    for (size_t r = 0; r < renamings.size(); ++r) {
      const auto& [from, to] = renamings[r];
      has_matched[r] = has_matched[r] || std::regex_search(tensor.name, from);
      tensor.name = std::regex_replace(tensor.name, from, to);
    }
    const auto [other, is_new] = known.emplace(tensor.name, before);
    if (is_new) continue;
    return absl::InvalidArgumentError(absl::StrCat("--rename_weights: ", Quoted(other->second),
                                                   " and ", Quoted(before), " are both ",
                                                   Quoted(tensor.name)));
  }
  for (size_t r = 0; r < renamings.size(); ++r) {
    if (has_matched[r]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--rename_weights=", absl::GetFlag(FLAGS_rename_weights)[r],
                     ": it matches no name of ", file->path));
  }
  return absl::OkStatus();
}

// The weights of a file that is read as a model: .onnx, or what --out wrote.
absl::StatusOr<WeightFile> WeightsOfModel(const std::string& path) {
  ISOMER_ASSIGN_OR_RETURN(const Model model, LoadAnyModel(path, {}));
  WeightFile file = {.path = path, .tensors = {}, .fingerprint = 0, .files = {path}};
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    const auto values = model.weights.find(node.name);
    if (node.op.kind() != OpKind::kWeight || values == model.weights.end()) continue;
    file.tensors.push_back(
        {node.name, path, node.outputs[0].Sizes(), [stored = values->second] { return stored; }});
    file.fingerprint = HashCombine(file.fingerprint, HashBytes(node.name), values->second.size());
  }
  if (!file.tensors.empty()) return file;
  return absl::InvalidArgumentError(absl::StrCat("--weights=", path, ": the model has no weights"));
}

absl::StatusOr<WeightFile> OpenWeights(const std::string& path, ProcessCommunicator* processes,
                                       bool speaks) {
  std::vector<std::string> notes;
  ISOMER_ASSIGN_OR_RETURN(std::optional<WeightFile> file, OpenWeightFile(path, processes, &notes));
  for (const std::string& note : notes) {
    if (speaks) PrintNote(note);
  }
  if (file.has_value()) return *std::move(file);
  return WeightsOfModel(path);
}

// Of the tensors of the file and of the model's weights, those that the others lack.
struct Unmatched {
  std::vector<std::string> missing, extra;
};

// "; --rename_weights='^=network.' would name 12 as the model does", if the names of one side are
// those of the other behind something.
std::string RenamingHint(const Unmatched& unmatched) {
  std::map<std::string, int> prefixes;  // a flag to how many it would bring together
  for (const std::string& missing : unmatched.missing) {
    for (const std::string& extra : unmatched.extra) {
      absl::string_view more = missing, less = extra;
      if (absl::ConsumeSuffix(&more, absl::StrCat(".", extra))) {
        ++prefixes[absl::StrCat("^=", more, ".")];
      } else if (absl::ConsumeSuffix(&less, absl::StrCat(".", missing))) {
        ++prefixes[absl::StrCat("^", less, "\\.=")];
      }
    }
  }
  const auto best =
      std::max_element(prefixes.begin(), prefixes.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (best == prefixes.end()) return "";
  return absl::StrCat("; --rename_weights='", best->first, "' would find ", best->second, " more");
}

absl::Status CheckShape(const WeightTensor& tensor, const std::vector<int64_t>& dims) {
  if (tensor.dims == dims) return absl::OkStatus();
  std::string what = absl::StrCat("it has ", tensor.dims.size(), " dims and not ", dims.size());
  for (size_t d = 0; d < dims.size() && tensor.dims.size() == dims.size(); ++d) {
    if (tensor.dims[d] == dims[d]) continue;
    what = absl::StrCat("dim ", d, " is ", tensor.dims[d], " and not ", dims[d]);
    break;
  }
  return absl::InvalidArgumentError(absl::StrCat(tensor.file, ": ", Quoted(tensor.name), " is ",
                                                 DimsText(tensor.dims), ", and the model's is ",
                                                 DimsText(dims), ": ", what));
}

absl::StatusOr<Unmatched> SetWeights(const WeightFile& file, Model* model) {
  std::map<std::string, int> leaf_of;
  for (int id = 0; id < model->graph.num_nodes(); ++id) {
    const Node& node = model->graph.node(id);
    if (IsStored(node.op.kind())) leaf_of[node.name] = id;
  }
  Unmatched unmatched;
  std::map<std::string, bool> is_set;
  for (const WeightTensor& tensor : file.tensors) {
    const auto leaf = leaf_of.find(tensor.name);
    if (leaf == leaf_of.end()) {
      unmatched.extra.push_back(tensor.name);
      continue;
    }
    ISOMER_RETURN_IF_ERROR(CheckShape(tensor, model->graph.node(leaf->second).outputs[0].Sizes()));
    ISOMER_ASSIGN_OR_RETURN(model->weights[tensor.name], tensor.values());
    is_set[tensor.name] = true;
  }
  // Constants that a file lacks are what the model says.
  for (const auto& [name, id] : leaf_of) {
    if (model->graph.node(id).op.kind() == OpKind::kWeight && !is_set[name]) {
      unmatched.missing.push_back(name);
    }
  }
  if (is_set.empty() || unmatched.missing.size() == leaf_of.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--weights=", file.path, ": it has ", ListText(unmatched.extra), "; the model has ",
        ListText(unmatched.missing), ", and none is in both", RenamingHint(unmatched)));
  }
  return unmatched;
}

absl::Status CheckAllFoundTheSame(const WeightFile& file, ProcessCommunicator* processes) {
  if (processes == nullptr) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> fingerprints,
                          processes->Gather(DigestString(file.fingerprint)));
  for (size_t rank = 1; rank < fingerprints.size(); ++rank) {
    if (fingerprints[rank] == fingerprints[0]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--weights: rank ", rank, " has another ", file.path, " than rank 0"));
  }
  return absl::OkStatus();
}

bool IsOnnxName(const std::string& path) { return absl::EndsWith(path, ".onnx"); }
bool IsSafetensorsName(const std::string& path) { return absl::EndsWith(path, ".safetensors"); }
bool IsNpzName(const std::string& path) { return absl::EndsWith(path, ".npz"); }

// For inference: the loss and what it is compared with are left out, and nothing is dropped.
absl::StatusOr<std::string> OnnxFileOfTrained(Model model) {
  ISOMER_RETURN_IF_ERROR(ToEvaluationForm(&model));
  if (!model.loss.empty()) ISOMER_RETURN_IF_ERROR(DropLoss(&model));
  return OnnxFileOf(model, model.graph);
}

// Weights, not constants, in the order of the model.
std::vector<NamedWeight> WeightsOf(const Model& model) {
  std::vector<NamedWeight> weights;
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    if (node.op.kind() != OpKind::kWeight) continue;
    weights.push_back({node.name, node.outputs[0].Sizes(), model.weights.at(node.name)});
  }
  return weights;
}

}  // namespace

absl::Status LoadWeights(ProcessCommunicator* processes, bool speaks, Model* model,
                         std::vector<NamedFile>* read) {
  const std::string path = absl::GetFlag(FLAGS_weights);
  if (path.empty()) {
    if (WasGiven("weights")) {
      return absl::InvalidArgumentError("--weights: a file or a folder is expected");
    }
    return RefuseFlags({"rename_weights", "partial_weights"}, "needs --weights");
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<Renaming> renamings, RenamingsFromFlags());
  ISOMER_ASSIGN_OR_RETURN(WeightFile file, OpenWeights(path, processes, speaks));
  for (const std::string& of : file.files) read->push_back({"--weights", of});
  ISOMER_RETURN_IF_ERROR(CheckAllFoundTheSame(file, processes));
  ISOMER_RETURN_IF_ERROR(Rename(renamings, &file));
  ISOMER_ASSIGN_OR_RETURN(const Unmatched unmatched, SetWeights(file, model));
  const bool is_partial = absl::GetFlag(FLAGS_partial_weights);
  const auto refuse = [&](const auto&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, what..., RenamingHint(unmatched), "; --partial_weights goes on"));
  };
  if (!is_partial && !unmatched.missing.empty()) {
    return refuse(": it lacks ", ListText(unmatched.missing), " of the model");
  }
  if (!is_partial && !unmatched.extra.empty()) {
    return refuse(" has ", ListText(unmatched.extra), ", which the model lacks");
  }
  if (speaks && !unmatched.missing.empty()) {
    PrintNote(absl::StrCat(path, " lacks ", ListText(unmatched.missing),
                           ": they begin as the model says"));
  }
  if (speaks && !unmatched.extra.empty()) {
    PrintNote(absl::StrCat(path, " has ", ListText(unmatched.extra),
                           ", which the model lacks: they are left out"));
  }
  return absl::OkStatus();
}

absl::Status CheckOut(const Model& model) {
  const std::string path = absl::GetFlag(FLAGS_out);
  std::vector<std::string> names;
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    if (node.op.kind() == OpKind::kWeight) names.push_back(node.name);
  }
  if (IsSafetensorsName(path)) return CheckSafetensorsNames(path, names);
  if (IsNpzName(path)) return CheckNpzNames(path, names);
  if (!IsOnnxName(path)) return absl::OkStatus();
  int64_t bytes = 0;
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    if (IsStored(node.op.kind())) bytes += sizeof(float) * node.outputs[0].NumElements();
  }
  constexpr int64_t kMostBytes = std::numeric_limits<int32_t>::max();
  absl::Status status;
  if (bytes > kMostBytes) {
    status = absl::InvalidArgumentError("weights are above 2 GB, the limit of ONNX files");
  } else {
    Model without_values;
    without_values.name = model.name;
    without_values.graph = model.graph;
    without_values.loss = model.loss;
    without_values.statistics = model.statistics;
    status = OnnxFileOfTrained(std::move(without_values)).status();
  }
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("--out=", path, ": ", status.message(),
                                                 "; under another name it is a file of Isomer's"));
}

absl::Status SaveTrainedModel(const Model& model, const LeafValues& initial, bool writes,
                              std::chrono::milliseconds stall_timeout, Job* job) {
  const std::string path = absl::GetFlag(FLAGS_out);
  if (path.empty()) return absl::OkStatus();
  constexpr int32_t kWriter = 0;
  ISOMER_ASSIGN_OR_RETURN(auto parameters, job->ParametersOn(kWriter));
  ISOMER_ASSIGN_OR_RETURN(auto statistics, job->Statistics());
  if (!writes) return absl::OkStatus();
  Model trained = model;
  for (auto& [name, values] : parameters) trained.weights[name] = std::move(values);
  for (auto& [name, values] : statistics) trained.weights[name] = std::move(values);
  // What was not trained is what it was.
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    if (!IsStored(node.op.kind()) || trained.weights.contains(node.name)) continue;
    ISOMER_ASSIGN_OR_RETURN(const LeafValues::Leaf* leaf, initial.Find(model.graph, {id}));
    std::vector<double> values(node.outputs[0].NumElements());
    leaf->Read(0, 1, static_cast<int64_t>(values.size()), values.data());
    trained.weights[node.name] = std::vector<float>(values.begin(), values.end());
  }
  int64_t bytes = 0;
  for (const auto& [name, values] : trained.weights) {
    bytes += static_cast<int64_t>(values.size() * sizeof(float));
  }
  return WriteInTime(stall_timeout, bytes, job->options().control, [&]() -> absl::Status {
    if (IsSafetensorsName(path)) return WriteSafetensors(path, WeightsOf(trained));
    if (IsNpzName(path)) return WriteNpz(path, WeightsOf(trained));
    if (!IsOnnxName(path)) return SaveModel(path, trained);
    ISOMER_ASSIGN_OR_RETURN(const std::string contents, OnnxFileOfTrained(std::move(trained)));
    return WriteFileAtomically(path, contents);
  });
}

}  // namespace isomer
