#include "models/loss.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/full_precision.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr char kLossName[] = "loss";

bool HasLeafOrOutput(const Graph& graph, absl::string_view name) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (IsLeaf(graph.node(id).op.kind()) && graph.node(id).name == name) return true;
  }
  for (const Graph::NamedOutput& output : graph.outputs()) {
    if (output.name == name) return true;
  }
  return false;
}

// `name`, or that with a number behind it if something has it already.
std::string FreeName(const Graph& graph, const std::string& name) {
  std::string free = name;
  for (int number = 1; HasLeafOrOutput(graph, free); ++number) {
    free = absl::StrCat(name, "_", number);
  }
  return free;
}

// And what they need.
absl::Status KeepOutputs(absl::FunctionRef<bool(const std::string& name)> keeps, Model* model) {
  std::vector<Node> nodes;
  for (int i = 0; i < model->graph.num_nodes(); ++i) nodes.push_back(model->graph.node(i));
  std::vector<Graph::NamedOutput> outputs;
  for (const Graph::NamedOutput& output : model->graph.outputs()) {
    if (keeps(output.name)) outputs.push_back(output);
  }
  ISOMER_ASSIGN_OR_RETURN(const Graph graph, GraphFromParts(std::move(nodes), std::move(outputs)));
  model->graph = graph.Canonical();
  return absl::OkStatus();
}

absl::Status CannotAttach(const Model& model, absl::string_view kind, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("model '", model.name, "': cannot add the loss ", kind, ": ", why));
}

}  // namespace

absl::Status AttachLoss(Model* model, absl::string_view kind, absl::string_view of) {
  const bool is_auto = kind == "auto";
  if (StatedPrecision(*model) != DataType::kFloat32) ISOMER_RETURN_IF_ERROR(StateFloat32(model));
  if (!model->loss.empty()) {
    if (is_auto) return absl::OkStatus();
    return CannotAttach(*model, kind, absl::StrCat("it has the loss '", model->loss, "'"));
  }
  if (model->graph.outputs().empty()) return CannotAttach(*model, kind, "it has no output");
  const std::vector<Graph::NamedOutput>& outputs = model->graph.outputs();
  const auto found = of.empty() ? outputs.begin()
                                : std::find_if(outputs.begin(), outputs.end(),
                                               [&](const auto& known) { return known.name == of; });
  if (found == outputs.end()) {
    return CannotAttach(
        *model, kind,
        absl::StrCat("it has no output '", of, "'; there are ",
                     absl::StrJoin(outputs, ", ", [](std::string* out, const auto& known) {
                       absl::StrAppend(out, "'", known.name, "'");
                     })));
  }
  const Graph::NamedOutput output = *found;
  const TensorType& type = model->graph.type(output.tensor);
  const bool is_scalar = type.rank() == 0;
  if (is_auto) {
    kind = is_scalar                                     ? "none"
           : type.rank() == 2 && output.name == "logits" ? "cross_entropy"
                                                         : "mse";
  }
  if (kind != "cross_entropy" && kind != "mse" && kind != "none") {
    return CannotAttach(*model, kind, "the losses are cross_entropy, mse, none and auto");
  }
  const std::string place = of.empty() ? "its first output" : "its output";
  const bool is_cross_entropy = kind == "cross_entropy";
  if (type.dtype != DataType::kFloat32 || (is_cross_entropy && type.rank() < 2) ||
      (kind == "none" && !is_scalar)) {
    return CannotAttach(
        *model, kind,
        absl::StrCat(
            place, " '", output.name, "' is ", type.ToString(),
            kind == "none" ? ", not a single number; cross_entropy and mse make one" : ""));
  }
  if (kind == "none") {
    model->loss = output.name;
    return absl::OkStatus();
  }
  std::vector<int64_t> sizes = type.Sizes();
  if (is_cross_entropy) sizes.pop_back();
  const std::string input_name = FreeName(model->graph, is_cross_entropy ? "labels" : "target");
  const std::string loss_name = FreeName(model->graph, kLossName);
  const TensorRef truth = model->graph.AddInput(
      input_name,
      SequentialType(std::move(sizes), is_cross_entropy ? DataType::kInt64 : DataType::kFloat32));
  ISOMER_ASSIGN_OR_RETURN(
      const TensorRef loss,
      model->graph.AddOp(is_cross_entropy ? OpKind::kCrossEntropy : OpKind::kMeanSquaredError,
                         {output.tensor, truth}, loss_name));
  model->graph.AddOutput(loss_name, loss);
  model->loss = loss_name;
  return absl::OkStatus();
}

namespace {

// The call whose output the loss is; null if there is no such output.
const Node* NodeOfLoss(const Model& model) {
  const std::vector<Graph::NamedOutput>& outputs = model.graph.outputs();
  const auto loss = std::find_if(outputs.begin(), outputs.end(),
                                 [&](const auto& output) { return output.name == model.loss; });
  return loss == outputs.end() ? nullptr : &model.graph.node(loss->tensor.node);
}

}  // namespace

std::string KindOfLoss(const Model& trained) {
  const Node* const loss = NodeOfLoss(trained);
  if (loss == nullptr) return "none";
  switch (loss->op.kind()) {
    case OpKind::kCrossEntropy:
      return "cross_entropy";
    case OpKind::kMeanSquaredError:
      return "mse";
    default:
      return "none";
  }
}

std::string LossText(const Model& model) {
  const std::string kind = KindOfLoss(model);
  if (kind == "none") return absl::StrCat("its output '", model.loss, "'");
  const Node& loss = *NodeOfLoss(model);
  const auto name = [&](TensorRef tensor) {
    for (const Graph::NamedOutput& output : model.graph.outputs()) {
      if (output.tensor == tensor) return output.name;
    }
    return model.graph.node(tensor.node).name;
  };
  return absl::StrCat(kind, " of '", name(loss.inputs[0]), "' ",
                      model.graph.type(loss.inputs[0]).ToString(), " and '", name(loss.inputs[1]),
                      "'");
}

absl::Status DropUnusedInputs(const std::set<std::string>& names, Model* model) {
  const auto users = model->graph.Users();
  std::set<int> outputs;
  for (const Graph::NamedOutput& output : model->graph.outputs()) {
    outputs.insert(output.tensor.node.value);
  }
  Graph kept;
  std::vector<NodeId> ids(model->graph.num_nodes());
  for (int id = 0; id < model->graph.num_nodes(); ++id) {
    const Node& node = model->graph.node(id);
    const OpKind kind = node.op.kind();
    const bool is_dropped = kind == OpKind::kInput && users[id].empty() && outputs.count(id) == 0 &&
                            names.count(node.name) > 0;
    if (is_dropped) continue;
    if (IsLeaf(kind)) {
      ids[id] = kept.AddLeaf(kind, node.name, node.outputs[0]).node;
      continue;
    }
    std::vector<TensorRef> inputs = node.inputs;
    for (TensorRef& input : inputs) input.node = ids[input.node.value];
    ISOMER_ASSIGN_OR_RETURN(ids[id], kept.Add(node.op, std::move(inputs), node.name));
  }
  for (const Graph::NamedOutput& output : model->graph.outputs()) {
    kept.AddOutput(output.name, {ids[output.tensor.node.value], output.tensor.output});
  }
  model->graph = std::move(kept);
  return absl::OkStatus();
}

absl::Status KeepLossAlone(Model* model) {
  return KeepOutputs([model](const std::string& name) { return name == model->loss; }, model);
}

absl::Status DropLoss(Model* model) {
  std::set<std::string> used;
  const auto users = model->graph.Users();
  for (int id = 0; id < model->graph.num_nodes(); ++id) {
    if (!users[id].empty()) used.insert(model->graph.node(id).name);
  }
  ISOMER_RETURN_IF_ERROR(
      KeepOutputs([model](const std::string& name) { return name != model->loss; }, model));
  ISOMER_RETURN_IF_ERROR(DropUnusedInputs(used, model));
  if (model->graph.outputs().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(model->name, ": it has no output but the loss '", model->loss, "'"));
  }
  model->loss.clear();
  return absl::OkStatus();
}

}  // namespace isomer
