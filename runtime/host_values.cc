#include "runtime/host_values.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "runtime/elements.h"

namespace isomer {
namespace {

// One stream of random numbers per leaf, so that it does not depend on the others.
class Random {
 public:
  Random(uint64_t seed, const std::string& name) : state_(HashCombine(HashBytes(name), seed)) {}
  uint64_t Next() { return state_ = HashMix(state_); }
  double Uniform() { return (static_cast<double>(Next() >> 11) + 0.5) * 0x1p-53; }
  double Normal() {  // Box and Muller's.
    const double radius = std::sqrt(-2 * std::log(Uniform()));
    return radius * std::cos(2 * 3.14159265358979323846 * Uniform());
  }

 private:
  uint64_t state_;
};

// The first use of each node that is no parallel or layout operator, looked for through those.
struct Role {
  OpKind kind = OpKind::kInput;
  int operand = 0;
  int64_t limit = 2;  // of indices: rows of the table, or classes
};

// How many values the index operand of a call may have.
int64_t IndexLimit(const Graph& graph, const Node& user) {
  const std::vector<Dim>& dims = graph.type(user.inputs[0]).dims;
  switch (user.op.kind()) {
    case OpKind::kEmbedding:
    case OpKind::kEmbeddingBag:
      return dims[0].size;
    case OpKind::kGather:
    case OpKind::kGatherElements:
    case OpKind::kScatterElements: {
      const int64_t axis = user.op.Int("axis");
      return dims[axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis].size;
    }
    case OpKind::kGatherMatMul:
      return graph.type(user.inputs[1]).dims[0].size;
    case OpKind::kOneHot:
      return user.op.Int("depth");
    case OpKind::kCrossEntropy:
      return dims.back().size;
    default:  // A seed.
      return int64_t{1} << 20;
  }
}

Role RoleOf(const Graph& graph, const std::vector<std::vector<Graph::Use>>& users, NodeId id) {
  for (const Graph::Use& use : users[id.value]) {
    const Node& user = graph.node(use.user);
    const OpKind kind = user.op.kind();
    if (IsParallel(kind) || IsLayout(kind) || kind == OpKind::kCast) {
      return RoleOf(graph, users, use.user);
    }
    Role role{.kind = kind, .operand = use.operand};
    if (IsIndexOperand(kind, use.operand)) role.limit = IndexLimit(graph, user);
    return role;
  }
  return {};
}

// 1 for scales and variances.
bool StartsAtOne(const Role& role) {
  switch (role.kind) {
    case OpKind::kLayerNorm:
    case OpKind::kRmsNorm:
    case OpKind::kGroupNorm:
    case OpKind::kBatchNormTraining:
      return role.operand == 1;
    case OpKind::kBatchNorm:
      return role.operand == 1 || role.operand == 4;
    default:
      return false;
  }
}

bool IsConvolution(OpKind kind) {
  return kind == OpKind::kConv1d || kind == OpKind::kConv2d || kind == OpKind::kConv3d ||
         kind == OpKind::kConvTranspose;
}

double Deviation(const Role& role, const std::vector<int64_t>& shape) {
  if (shape.size() < 2 || role.kind == OpKind::kEmbedding) return 0.02;
  int64_t fan_in = shape[shape.size() - 2];
  if (IsConvolution(role.kind)) {
    fan_in = 1;
    for (size_t i = 1; i < shape.size(); ++i) fan_in *= shape[i];
  }
  return 1 / std::sqrt(static_cast<double>(fan_in));
}

// What a buffer of the type would hold, so that what is computed in double starts from the same
// numbers.
void RoundTo(DataType dtype, Array<double>* array) {
  std::vector<int64_t> buffer(array->data.size());  // Large enough for any type.
  StoreElements(array->data.data(), array->size(), dtype, buffer.data());
  LoadElements(dtype, buffer.data(), array->size(), array->data.data());
}

double RandomInput(DataType dtype, const Role& role, Random* random) {
  if (IsInteger(dtype)) {
    return static_cast<double>(random->Next() % static_cast<uint64_t>(role.limit));
  }
  const bool is_target = role.kind == OpKind::kBinaryCrossEntropy && role.operand == 1;
  if (dtype == DataType::kBool || is_target) return static_cast<double>(random->Next() & 1);
  return random->Normal();
}

}  // namespace

absl::StatusOr<HostValues> InitialWeights(const Model& model, uint64_t seed) {
  HostValues values;
  const auto users = model.graph.Users();
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    if (!IsStored(node.op.kind())) continue;
    Array<double> array(node.outputs[0].Sizes());
    const auto given = model.weights.find(node.name);
    if (given != model.weights.end()) {
      if (given->second.size() != array.data.size()) {
        return absl::InvalidArgumentError(absl::StrCat(model.graph.Label(NodeId{id}), ": ",
                                                       given->second.size(), " initial values for ",
                                                       array.data.size(), " elements"));
      }
      array.data.assign(given->second.begin(), given->second.end());
      given->second.LetGo();
    } else {
      const Role role = RoleOf(model.graph, users, NodeId{id});
      const double deviation = Deviation(role, array.shape);
      Random random(seed, node.name);
      for (double& value : array.data) value = StartsAtOne(role) ? 1 : deviation * random.Normal();
    }
    RoundTo(node.outputs[0].dtype, &array);
    values.emplace(node.name, std::move(array));
  }
  return values;
}

HostValues RandomInputs(const Graph& graph, uint64_t seed) {
  HostValues values;
  const auto users = graph.Users();
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.op.kind() != OpKind::kInput) continue;
    const Role role = RoleOf(graph, users, NodeId{id});
    Array<double> array(node.outputs[0].Sizes());
    Random random(seed, node.name);
    const DataType dtype = node.outputs[0].dtype;
    for (double& value : array.data) value = RandomInput(dtype, role, &random);
    RoundTo(dtype, &array);
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
