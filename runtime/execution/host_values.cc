#include "runtime/execution/host_values.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/evaluation/leaf_draws.h"
#include "pcg/support/status_macros.h"
#include "runtime/device/elements.h"
#include "runtime/execution/leaf_values.h"

namespace isomer {
namespace {

double RandomInput(DataType dtype, const LeafRole& role, Random* random) {
  if (IsInteger(dtype)) {
    return static_cast<double>(random->Next() % static_cast<uint64_t>(role.limit));
  }
  const bool is_target = role.kind == OpKind::kBinaryCrossEntropy && role.operand == 1;
  if (dtype == DataType::kBool || is_target) return static_cast<double>(random->Next() & 1);
  return random->Normal();
}

}  // namespace

absl::StatusOr<HostValues> InitialWeights(const Model& model, uint64_t seed) {
  const InitialLeafValues initial(model, seed);
  HostValues values;
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    if (!IsStored(node.op.kind())) continue;
    ISOMER_ASSIGN_OR_RETURN(const LeafValues::Leaf* leaf, initial.Find(model.graph, {id}));
    Array<double> array(node.outputs[0].Sizes());
    leaf->Read(0, 1, array.size(), array.data.data());
    leaf->LetGo();
    values.emplace(node.name, std::move(array));
  }
  return values;
}

HostValues RandomInputs(const Graph& graph, uint64_t seed, const std::set<std::string>& without) {
  HostValues values;
  const auto users = graph.Users();
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.op.kind() != OpKind::kInput || without.contains(node.name)) continue;
    const LeafRole role = RoleOf(graph, users, NodeId{id});
    Array<double> array(node.outputs[0].Sizes());
    Random random(Random::StreamOf(seed, node.name));
    const DataType dtype = node.outputs[0].dtype;
    for (double& value : array.data) value = RandomInput(dtype, role, &random);
    RoundElements(dtype, array.data.data(), array.size());
    values.emplace(node.name, std::move(array));
  }
  return values;
}

namespace {

absl::StatusOr<Declaration> DeclarationOf(const Graph& graph, const Node& node) {
  std::vector<Shape> shapes;
  for (TensorRef input : node.inputs) shapes.push_back(graph.type(input).GlobalShape());
  return Declare(node.op, shapes);
}

}  // namespace

absl::StatusOr<Array<double>> ArrangeHostTensor(const Graph& graph,
                                                const Schedule::HostTensor& tensor,
                                                const HostValues& leaves) {
  std::map<TensorRef, Array<double>> values;
  for (NodeId id : tensor.leaves) {
    const auto found = leaves.find(graph.node(id).name);
    if (found == leaves.end()) {
      return absl::InvalidArgumentError(absl::StrCat(graph.Label(id), ": no value was given"));
    }
    if (found->second.shape != graph.node(id).outputs[0].Sizes()) {
      return absl::InvalidArgumentError(absl::StrCat(graph.Label(id),
                                                     ": the value given has another shape than ",
                                                     graph.node(id).outputs[0].ToString()));
    }
    values[{id, 0}] = found->second;
  }
  for (NodeId id : tensor.operators) {
    const Node& node = graph.node(id);
    if (IsParallel(node.op.kind())) {
      values[{id, 0}] = values.at(node.inputs[0]);
      continue;
    }
    ISOMER_ASSIGN_OR_RETURN(const Declaration declaration, DeclarationOf(graph, node));
    std::vector<const Array<double>*> operands;
    for (TensorRef input : node.inputs) operands.push_back(&values.at(input));
    ISOMER_ASSIGN_OR_RETURN(std::vector<Array<double>> outputs,
                            Evaluate<double>(declaration, FullBox(declaration), operands));
    for (size_t t = 0; t < outputs.size(); ++t) {
      values[{id, static_cast<int32_t>(t)}] = std::move(outputs[t]);
    }
  }
  return std::move(values.at(tensor.tensor));
}

// Layout operators relabel elements one to one, so the inverse is the transpose: the gradient.
absl::StatusOr<HostValues> UnarrangeHostTensor(const Graph& graph,
                                               const Schedule::HostTensor& tensor,
                                               const Array<double>& value) {
  std::map<TensorRef, Array<double>> values;
  auto at = [&](TensorRef ref) -> Array<double>& {
    return values.try_emplace(ref, Array<double>(graph.type(ref).Sizes())).first->second;
  };
  at(tensor.tensor) = value;
  for (size_t i = tensor.operators.size(); i-- > 0;) {
    const NodeId id = tensor.operators[i];
    const Node& node = graph.node(id);
    if (IsParallel(node.op.kind())) {
      at(node.inputs[0]) = at({id, 0});
      continue;
    }
    ISOMER_ASSIGN_OR_RETURN(const Declaration declaration, DeclarationOf(graph, node));
    std::vector<const Array<double>*> operands, seeds;
    std::vector<Array<double>*> gradients;
    std::vector<Array<double>> zeros;
    zeros.reserve(node.inputs.size());
    for (TensorRef input : node.inputs) {
      zeros.emplace_back(graph.type(input).Sizes());
      operands.push_back(&zeros.back());
      gradients.push_back(&at(input));
    }
    for (size_t t = 0; t < node.outputs.size(); ++t) {
      seeds.push_back(&at({id, static_cast<int32_t>(t)}));
    }
    ISOMER_RETURN_IF_ERROR(
        EvaluateGradient<double>(declaration, FullBox(declaration), operands, seeds, gradients));
  }
  HostValues leaves;
  for (NodeId id : tensor.leaves) leaves.emplace(graph.node(id).name, at({id, 0}));
  return leaves;
}

}  // namespace isomer
