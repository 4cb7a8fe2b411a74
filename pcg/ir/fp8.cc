#include "pcg/ir/fp8.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_facts.h"

namespace isomer {
namespace {

constexpr Fp8Scaling kFp8Scalings[] = {Fp8Scaling::kTensor, Fp8Scaling::kRow, Fp8Scaling::kBlock};

// False: the tensor is made from something else than weights, too.
bool AddWeightsOf(const Graph& graph, TensorRef tensor, std::set<std::string>* names) {
  const Node& node = graph.node(tensor.node);
  if (node.op.kind() == OpKind::kWeight) {
    names->insert(node.name);
    return true;
  }
  const bool arranges =
      IsLayout(node.op.kind()) || IsPlacement(node.op.kind()) || IsFloatCast(node.op);
  return arranges && std::all_of(node.inputs.begin(), node.inputs.end(), [&](TensorRef input) {
           return AddWeightsOf(graph, input, names);
         });
}

// Of each node: whether a contraction is among those that `next` leads to, itself left out.
template <typename Order, typename Next>
std::vector<bool> LeadsToContraction(const Graph& graph, const Order& order, const Next& next) {
  std::vector<bool> leads(graph.num_nodes(), false);
  for (NodeId id : order) {
    next(id, [&](NodeId other) {
      leads[id.value] =
          leads[id.value] || leads[other.value] || IsContraction(graph.node(other).op.kind());
    });
  }
  return leads;
}

}  // namespace

absl::string_view Fp8ScalingName(Fp8Scaling scaling) {
  switch (scaling) {
    case Fp8Scaling::kNone:
      return "none";
    case Fp8Scaling::kTensor:
      return "tensor";
    case Fp8Scaling::kRow:
      return "row";
    case Fp8Scaling::kBlock:
      return "block";
  }
  return "?";
}

absl::StatusOr<Fp8Scaling> ParseFp8Scaling(absl::string_view name) {
  for (Fp8Scaling scaling : kFp8Scalings) {
    if (name == Fp8ScalingName(scaling)) return scaling;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("fp8 scaling '", name, "': there are tensor, row and block"));
}

absl::Status CheckFp8Products(const Fp8Products& products, DataType precision) {
  if (products.any() && precision != DataType::kBFloat16) {
    return absl::InvalidArgumentError("fp8: products in 8 bits are of plans in bfloat16");
  }
  for (size_t i = 1; i < products.kept.size(); ++i) {
    if (products.kept[i - 1] >= products.kept[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("fp8: weight '", products.kept[i], "' is kept twice, or out of order"));
    }
  }
  if (!std::isfinite(products.error_budget) || products.error_budget < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("fp8: an error budget of ", products.error_budget));
  }
  return absl::OkStatus();
}

bool CanBeFp8(OpKind kind) { return kind == OpKind::kMatMul || kind == OpKind::kLinear; }

Fp8Scaling Fp8ScalingOf(const Operator& op) {
  return op.Find(kFp8Attribute) == nullptr ? Fp8Scaling::kNone
                                           : static_cast<Fp8Scaling>(op.Int(kFp8Attribute));
}

Operator WithFp8(Operator op, Fp8Scaling scaling) {
  if (scaling != Fp8Scaling::kNone) {
    op.Set(kFp8Attribute, static_cast<int64_t>(scaling));
    return op;
  }
  std::vector<Attribute> others;
  for (const Attribute& attribute : op.attributes()) {
    if (attribute.name != kFp8Attribute) others.push_back(attribute);
  }
  return Operator(op.kind(), std::move(others));
}

std::vector<std::string> WeightsOf(const Graph& graph, TensorRef tensor) {
  std::set<std::string> names;
  if (!AddWeightsOf(graph, tensor, &names)) return {};
  return {names.begin(), names.end()};
}

std::vector<std::string> WeightsOfProduct(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!CanBeFp8(node.op.kind())) return {};
  std::vector<std::string> first = WeightsOf(graph, node.inputs[0]),
                           second = WeightsOf(graph, node.inputs[1]);
  if (!first.empty() && !second.empty()) return {};
  return first.empty() ? second : first;
}

Fp8Scaling ScalingOfProduct(const Graph& graph, NodeId id, const Fp8Products& products) {
  if (!products.any()) return Fp8Scaling::kNone;
  const std::vector<std::string> weights = WeightsOfProduct(graph, id);
  const bool is_kept = std::any_of(weights.begin(), weights.end(), [&](const std::string& name) {
    return std::binary_search(products.kept.begin(), products.kept.end(), name);
  });
  return weights.empty() || is_kept ? Fp8Scaling::kNone : products.scaling;
}

absl::StatusOr<Graph> WithFp8Products(const Graph& graph, const Fp8Products& products) {
  std::vector<Node> nodes;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    nodes.push_back(graph.node(id));
    nodes.back().op = WithFp8(nodes.back().op, ScalingOfProduct(graph, {id}, products));
  }
  return GraphFromParts(std::move(nodes), graph.outputs());
}

std::vector<std::string> WeightsOfFirstAndLastProducts(const Graph& graph) {
  const std::vector<NodeId> order = graph.TopologicalOrder();
  const std::vector<std::vector<Graph::Use>> users = graph.Users();
  const std::vector<bool> follows =
      LeadsToContraction(graph, order, [&](NodeId id, const auto& see) {
        for (TensorRef input : graph.node(id).inputs) see(input.node);
      });
  const std::vector<NodeId> reversed(order.rbegin(), order.rend());
  const std::vector<bool> precedes =
      LeadsToContraction(graph, reversed, [&](NodeId id, const auto& see) {
        for (const Graph::Use& use : users[id.value]) see(use.user);
      });
  std::set<std::string> names;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (follows[id] && precedes[id]) continue;
    const std::vector<std::string> weights = WeightsOfProduct(graph, {id});
    names.insert(weights.begin(), weights.end());
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> WeightsOfProducts(const Graph& graph) {
  std::set<std::string> names;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const std::vector<std::string> weights = WeightsOfProduct(graph, {id});
    names.insert(weights.begin(), weights.end());
  }
  return {names.begin(), names.end()};
}

}  // namespace isomer
