#include "optimizer/sharding/constraints.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/text_format.h"
#include "optimizer/sharding/constraints.pb.h"
#include "pcg/support/file.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

using google::protobuf::TextFormat;

// Line numbers of a file's constraints.
class Sources {
 public:
  // REQUIRES: `contents` are those of a valid file.
  Sources(absl::string_view contents, const std::string& name) : name_(name) {
    if (IsBinaryForm(contents)) return;
    TextFormat::Parser parser;
    parser.WriteLocationsTo(&tree_);
    ConstraintsProto again;
    parser.ParseFromString(std::string(contents), &again);
  }

  // `index`: of a field that is repeated.
  std::string Of(const char* field, int index = -1) const {
    const auto* descriptor = ConstraintsProto::descriptor()->FindFieldByName(field);
    const int line = tree_.GetLocation(descriptor, index).line;
    if (line >= 0) return absl::StrCat(name_, ":", line + 1);
    return absl::StrCat(name_, ": ", field, index < 0 ? "" : absl::StrCat(" ", index + 1));
  }

 private:
  const std::string& name_;
  TextFormat::ParseInfoTree tree_;
};

absl::Status Wrong(const std::string& source, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(source, ": ", what));
}

absl::StatusOr<Constraints::OfTensor> TensorOf(const ConstraintsProto::Tensor& proto,
                                               std::string source) {
  Constraints::OfTensor tensor{proto.name(), std::move(source), {}, proto.replicate()};
  if (tensor.name.empty()) return Wrong(tensor.source, "a tensor needs a name");
  if (proto.split().empty() != proto.replicate()) {
    return Wrong(tensor.source, "say of a tensor either how it is split or that it is replicated");
  }
  std::set<int> dims;
  for (const auto& split : proto.split()) {
    if (split.degree() < 1) return Wrong(tensor.source, "the degree of a split is at least 1");
    if (!dims.insert(split.dim()).second) {
      return Wrong(tensor.source, absl::StrCat("dim ", split.dim(), " is named twice"));
    }
    tensor.splits.push_back({split.dim(), split.degree()});
  }
  return tensor;
}

absl::StatusOr<Constraints::OfNode> NodeOf(const ConstraintsProto::Node& proto,
                                           std::string source) {
  Constraints::OfNode node{proto.name(), std::move(source), {}, {}};
  if (node.name.empty()) return Wrong(node.source, "a node needs a name");
  if (!proto.has_devices() && !proto.has_stage()) {
    return Wrong(node.source, "say of a node its devices or its stage");
  }
  if (proto.has_devices()) {
    if (proto.devices().first() < 0 || proto.devices().count() < 1) {
      return Wrong(node.source, "devices are a first one, from 0, and a count of at least 1");
    }
    node.devices = DeviceRange{proto.devices().first(), proto.devices().count()};
  }
  if (proto.has_stage()) {
    if (proto.stage() < 0) return Wrong(node.source, "stages are numbered from 0");
    node.stage = proto.stage();
  }
  return node;
}

// More than any machine has devices, or any batch samples.
constexpr int64_t kMostParts = int64_t{1} << 20;

// "stages: 4, chunks: 2".
std::string PartsOf(const Constraints::OfStep& step) {
  Constraints::OfStep parts;
  parts.stages = step.stages;
  parts.chunks = step.chunks;
  return parts.ToString();
}

absl::StatusOr<Constraints::OfStep> StepOf(const ConstraintsProto::Step& proto,
                                           std::string source) {
  Constraints::OfStep step{std::move(source)};
  if (proto.has_stages()) step.stages = proto.stages();
  if (proto.has_chunks()) step.chunks = proto.chunks();
  if (proto.has_micro_batches()) step.micro_batches = proto.micro_batches();
  for (const auto& [field, parts] :
       {std::pair("stages", step.stages), std::pair("chunks", step.chunks),
        std::pair("micro_batches", step.micro_batches)}) {
    if (!parts || (*parts >= 1 && *parts <= kMostParts)) continue;
    return Wrong(step.source,
                 absl::StrCat(field, ": ", *parts, ": it is a number from 1 to ", kMostParts));
  }
  if (proto.has_update()) {
    const auto update = ParseUpdateMethod(proto.update());
    if (!update.ok()) return Wrong(step.source, update.status().message());
    step.update = *update;
  }
  if (proto.has_recompute()) {
    const auto recompute = ParseRecomputeMode(proto.recompute());
    if (!recompute.ok()) {
      return Wrong(step.source, absl::StrCat("recompute ", recompute.status().message()));
    }
    step.recompute = *recompute;
  }
  if (step.empty()) {
    return Wrong(step.source,
                 "say of the step its stages, chunks, micro_batches, update or recompute");
  }
  if (step.chunks.value_or(1) > 1 && step.stages == 1) {
    return Wrong(step.source, absl::StrCat("chunks: ", *step.chunks,
                                           ": they take turns on several stages, and stages: 1"));
  }
  if (step.IsPipeline() && step.micro_batches == 1) {
    return Wrong(step.source,
                 absl::StrCat("micro_batches: 1: a pipeline of ", PartsOf(step), " has several"));
  }
  return step;
}

// A pipeline's stages have devices of their own, in the order of the model.
absl::Status CheckStepSuitsNodes(const Constraints& constraints) {
  const Constraints::OfStep& step = constraints.step;
  const std::string said = absl::StrCat(" (", step.source, ": ", step.ToString(), ")");
  for (const Constraints::OfNode& node : constraints.nodes) {
    if (node.stage && step.stages && *node.stage >= *step.stages) {
      return Wrong(node.source,
                   absl::StrCat("stage ", *node.stage, ": they are 0 to ", *step.stages - 1, said));
    }
    if (node.stage && step.chunks.value_or(1) > 1) {
      return Wrong(node.source, absl::StrCat("stage ", *node.stage,
                                             ": nodes are bound to those of one chunk", said));
    }
    if (node.stage.value_or(0) > 0 && step.micro_batches == 1) {
      return Wrong(node.source,
                   absl::StrCat("stage ", *node.stage, ": a pipeline has micro-batches", said));
    }
    if (node.devices && step.IsPipeline()) {
      return Wrong(node.source, absl::StrCat("a stage has devices of its own", said));
    }
  }
  if (!constraints.colocations.empty() && step.IsPipeline()) {
    return Wrong(constraints.colocations[0].source,
                 absl::StrCat("the cut into stages does not know of colocation", said,
                              "; bind nodes to a stage"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string Constraints::OfStep::ToString() const {
  std::vector<std::string> parts;
  for (const auto& [field, value] : {std::pair("stages", stages), std::pair("chunks", chunks),
                                     std::pair("micro_batches", micro_batches)}) {
    if (value) parts.push_back(absl::StrCat(field, ": ", *value));
  }
  if (update) parts.push_back(absl::StrCat("update: ", UpdateMethodName(*update)));
  if (recompute) parts.push_back(absl::StrCat("recompute: ", RecomputeModeName(*recompute)));
  return absl::StrJoin(parts, ", ");
}

bool Constraints::PlaceNodes() const {
  return !colocations.empty() || std::any_of(nodes.begin(), nodes.end(), [](const OfNode& node) {
    return node.devices.has_value();
  });
}

absl::StatusOr<Constraints> ParseConstraints(absl::string_view contents, const std::string& name) {
  ConstraintsProto proto;
  ISOMER_RETURN_IF_ERROR(ParseProto(contents, name, "constraints", &proto, TextHeader::kOptional));
  const Sources sources(contents, name);
  Constraints constraints;
  for (int i = 0; i < proto.tensor_size(); ++i) {
    ISOMER_ASSIGN_OR_RETURN(auto tensor, TensorOf(proto.tensor(i), sources.Of("tensor", i)));
    constraints.tensors.push_back(std::move(tensor));
  }
  for (int i = 0; i < proto.node_size(); ++i) {
    ISOMER_ASSIGN_OR_RETURN(auto node, NodeOf(proto.node(i), sources.Of("node", i)));
    constraints.nodes.push_back(std::move(node));
  }
  for (int i = 0; i < proto.colocate_size(); ++i) {
    const auto& names = proto.colocate(i).node();
    constraints.colocations.push_back({{names.begin(), names.end()}, sources.Of("colocate", i)});
    if (names.empty()) return Wrong(constraints.colocations.back().source, "names no node");
  }
  if (proto.has_step()) {
    ISOMER_ASSIGN_OR_RETURN(constraints.step, StepOf(proto.step(), sources.Of("step")));
    ISOMER_RETURN_IF_ERROR(CheckStepSuitsNodes(constraints));
  }
  return constraints;
}

absl::StatusOr<Constraints> LoadConstraints(const std::string& path) {
  ISOMER_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  return ParseConstraints(contents, path);
}

bool MatchesGlob(absl::string_view glob, absl::string_view text) {
  size_t g = 0, t = 0;
  size_t star = absl::string_view::npos, resume = 0;  // the last '*', and the end of its match
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (star != absl::string_view::npos) {
      g = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

bool AreAbout(const Constraints& constraints, absl::string_view name) {
  const auto is_meant = [&](const auto& constraint) { return MatchesGlob(constraint.name, name); };
  return std::any_of(constraints.tensors.begin(), constraints.tensors.end(), is_meant) ||
         std::any_of(constraints.nodes.begin(), constraints.nodes.end(), is_meant) ||
         std::any_of(constraints.colocations.begin(), constraints.colocations.end(),
                     [&](const Constraints::Colocation& colocation) {
                       return std::any_of(
                           colocation.names.begin(), colocation.names.end(),
                           [&](const std::string& glob) { return MatchesGlob(glob, name); });
                     });
}

std::string NearestName(absl::string_view name, const std::vector<std::string>& known) {
  std::string nearest;
  size_t least = SIZE_MAX;
  for (const std::string& other : known) {
    // Levenshtein distance, row by row.
    std::vector<size_t> row(other.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (size_t i = 0; i < name.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i + 1;
      for (size_t j = 0; j < other.size(); ++j) {
        const size_t change = diagonal + (name[i] != other[j]);
        diagonal = row[j + 1];
        row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
      }
    }
    if (row.back() >= least) continue;
    least = row.back();
    nearest = other;
  }
  return nearest;
}

}  // namespace isomer
