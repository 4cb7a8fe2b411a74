#include "models/loss.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

absl::Status CannotAttach(const Model& model, absl::string_view kind, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("model '", model.name, "': cannot add the loss ", kind, ": ", why));
}

}  // namespace

absl::Status AttachLoss(Model* model, absl::string_view kind) {
  const bool is_auto = kind == "auto";
  if (!model->loss.empty()) {
    if (is_auto) return absl::OkStatus();
    return CannotAttach(*model, kind, absl::StrCat("it has the loss '", model->loss, "'"));
  }
  if (model->graph.outputs().empty()) return CannotAttach(*model, kind, "it has no output");
  const Graph::NamedOutput output = model->graph.outputs()[0];
  const TensorType& type = model->graph.type(output.tensor);
  if (is_auto) kind = type.rank() == 2 && output.name == "logits" ? "cross_entropy" : "mse";
  if (kind != "cross_entropy" && kind != "mse") {
    return CannotAttach(*model, kind, "the losses are cross_entropy, mse and auto");
  }
  const bool is_cross_entropy = kind == "cross_entropy";
  if (type.dtype != DataType::kFloat32 || (is_cross_entropy && type.rank() < 2)) {
    return CannotAttach(*model, kind,
                        absl::StrCat("its first output '", output.name, "' is ", type.ToString()));
  }
  std::vector<int64_t> sizes = type.Sizes();
  if (is_cross_entropy) sizes.pop_back();
  const std::string input_name = is_cross_entropy ? "labels" : "target";
  for (const std::string& name : {input_name, std::string(kLossName)}) {
    if (!HasLeafOrOutput(model->graph, name)) continue;
    return CannotAttach(*model, kind, absl::StrCat("the name '", name, "' is taken"));
  }
  const TensorRef truth = model->graph.AddInput(
      input_name,
      SequentialType(std::move(sizes), is_cross_entropy ? DataType::kInt64 : DataType::kFloat32));
  ISOMER_ASSIGN_OR_RETURN(
      const TensorRef loss,
      model->graph.AddOp(is_cross_entropy ? OpKind::kCrossEntropy : OpKind::kMeanSquaredError,
                         {output.tensor, truth}, kLossName));
  model->graph.AddOutput(kLossName, loss);
  model->loss = kLossName;
  return absl::OkStatus();
}

absl::Status KeepLossAlone(Model* model) {
  std::vector<Node> nodes;
  for (int i = 0; i < model->graph.num_nodes(); ++i) nodes.push_back(model->graph.node(i));
  std::vector<Graph::NamedOutput> outputs;
  for (const Graph::NamedOutput& output : model->graph.outputs()) {
    if (output.name == model->loss) outputs.push_back(output);
  }
  auto graph = GraphFromParts(std::move(nodes), std::move(outputs));
  if (!graph.ok()) return graph.status();
  model->graph = graph->Canonical();
  return absl::OkStatus();
}

}  // namespace isomer
