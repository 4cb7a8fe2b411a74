#include "optimizer/proposal/published_plans.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "optimizer/mapping/role_mapping.h"
#include "optimizer/proposal/expert_calls.h"
#include "optimizer/proposal/grid_mapping.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

bool IsTableLookUp(OpKind kind) {
  return kind == OpKind::kEmbedding || kind == OpKind::kEmbeddingBag;
}

// What published plans ask of a graph.
class Survey {
 public:
  explicit Survey(const Graph& graph) : graph_(graph), uses_(graph.num_nodes(), 0) {
    for (int i = 0; i < graph.num_nodes(); ++i) {
      const Node& node = graph.node(i);
      for (TensorRef input : node.inputs) {
        if (graph.node(input.node).op.kind() != OpKind::kWeight) continue;
        ++uses_[input.node.value];
        const TensorType& type = graph.type(input);
        const int64_t bytes = type.NumElements() * BytesPerElement(type.dtype);
        weight_bytes_ += bytes;
        if (IsTableLookUp(node.op.kind())) tables_.emplace_back(NodeId{i}, bytes);
      }
    }
  }

  bool Has(OpKind kind) const {
    return HasAny([kind](OpKind other) { return other == kind; });
  }
  template <typename IsOne>
  bool HasAny(IsOne is_one) const {
    for (int i = 0; i < graph_.num_nodes(); ++i) {
      if (is_one(graph_.node(i).op.kind())) return true;
    }
    return false;
  }
  // Look-ups in tables that are most of the weights.
  const std::vector<std::pair<NodeId, int64_t>>& tables() const { return tables_; }
  bool MostlyTables() const {
    int64_t bytes = 0;
    for (const auto& [node, size] : tables_) bytes += size;
    return tables_.size() > 1 && 2 * bytes > weight_bytes_;
  }
  // Products with a weight that several share: steps of a recurrent layer.
  bool SharesProducts() const {
    constexpr int kSteps = 2;
    for (int i = 0; i < graph_.num_nodes(); ++i) {
      const Node& node = graph_.node(i);
      if (node.op.kind() == OpKind::kMatMul && uses_[node.inputs[1].node.value] >= kSteps) {
        return true;
      }
    }
    return false;
  }
  int uses(NodeId weight) const { return uses_[weight.value]; }

 private:
  const Graph& graph_;
  std::vector<int> uses_;  // per weight
  std::vector<std::pair<NodeId, int64_t>> tables_;
  int64_t weight_bytes_ = 0;
};

absl::StatusOr<MappedModel> MapMixture(const Graph& graph, CostTables* tables) {
  const int64_t experts = ExpertCalls(graph).num_experts();
  return MapGrid(graph, {.expert = std::gcd(experts, tables->num_devices())}, tables);
}

absl::StatusOr<MappedModel> MapTables(const Graph& graph, const Survey& survey,
                                      CostTables* tables) {
  // The largest first, each to the device that holds least.
  const int64_t devices = tables->num_devices();
  std::vector<std::pair<NodeId, int64_t>> by_size = survey.tables();
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  const bool one_each = static_cast<int64_t>(by_size.size()) >= devices;
  std::map<NodeId, int64_t> device_of;
  std::vector<int64_t> held(one_each ? devices : 0, 0);
  std::map<NodeId, int64_t> rank;
  for (const auto& [node, bytes] : by_size) rank[node] = static_cast<int64_t>(rank.size());
  if (one_each) {
    for (const auto& [node, bytes] : by_size) {
      const auto least = std::min_element(held.begin(), held.end());
      *least += bytes;
      device_of[node] = least - held.begin();
    }
  }
  const PreferencesOfCall preferences = [&](const CallToMap& call) {
    std::vector<ShardingPreference> preferred;
    const Declaration& d = call.declaration();
    if (const auto placed = device_of.find(call.id); placed != device_of.end()) {
      preferred.push_back({{}, placed->second});
    } else if (IsTableLookUp(call.space.op.kind()) && call.node.operands[0].stored) {
      // By columns, else rows, whichever goes over more devices; tables take turns where that
      // leaves devices over.
      std::vector<std::pair<int64_t, int>> ways;  // -degree, iteration dim
      for (int dim : {1, 0}) {
        const int lead = d.LeadOfOperandDim(0, dim);
        if (lead >= 0) ways.emplace_back(-call.DegreeFor(lead, call.devices), lead);
      }
      std::stable_sort(ways.begin(), ways.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      for (const auto& [degree, lead] : ways) {
        const int64_t turns = call.devices / -degree;
        preferred.push_back({{{lead, -degree}}, rank.at(call.id) % turns});
      }
    }
    call.AddDataParallel(&preferred);
    return preferred;
  };
  return MapByRoles(graph, preferences, /*by_place=*/true, tables);
}

absl::StatusOr<MappedModel> MapRecurrent(const Graph& graph, const Survey& survey,
                                         CostTables* tables) {
  const Machine& machine = tables->cost().machine();
  const int64_t devices = tables->num_devices();
  const int64_t node_devices = std::min(devices, machine.devices_per_node());
  // A layer begins where a weight that several calls share is first used; calls without one belong
  // to the layer of what they are made from.
  std::map<NodeId, int> layer_of_weight;
  std::vector<int> layer(graph.num_nodes(), 0);
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    bool has_own = false;
    for (TensorRef input : node.inputs) {
      const bool is_weight = graph.node(input.node).op.kind() == OpKind::kWeight;
      if (is_weight && node.op.kind() == OpKind::kMatMul) {
        // Both products of a cell, by the input and by the state, have inputs of the layer below
        // or of their own: the weight that comes first decides.
        int below = 0;
        for (TensorRef other : node.inputs) below = std::max(below, layer[other.node.value]);
        const int next = survey.uses(input.node) > 1 ? below + 1 : below;
        const auto [it, added] = layer_of_weight.try_emplace(input.node, next);
        layer[id.value] = it->second;
        has_own = true;
      }
    }
    if (has_own) continue;
    for (TensorRef input : node.inputs) {
      layer[id.value] = std::max(layer[id.value], layer[input.node.value]);
    }
  }
  const int64_t layers = *std::max_element(layer.begin(), layer.end()) + 1;
  const PreferencesOfCall preferences = [&](const CallToMap& call) {
    std::vector<ShardingPreference> preferred;
    const int batch = call.DimOf(DimRole::kBatch);
    const int64_t device = layer[call.id.value] * node_devices / layers;
    const int64_t data = call.DegreeFor(batch, devices / node_devices);
    preferred.push_back({{{batch, data}, {kIdleAxis, node_devices}}, device});
    preferred.push_back({{}, device});
    return preferred;
  };
  return MapByRoles(graph, preferences, /*by_place=*/true, tables);
}

absl::StatusOr<MappedModel> MapConvolutions(const Graph& graph, CostTables* tables) {
  const PreferencesOfCall preferences = [&](const CallToMap& call) {
    std::vector<ShardingPreference> preferred;
    const Declaration& d = call.declaration();
    int dense = call.DimOf(DimRole::kModel);
    if (call.IsProductWithWeight()) {
      dense = d.LeadOfOutputDim(0, static_cast<int>(d.outputs[0].size()) - 1);
    }
    if (dense >= 0 && d.dims[dense].kind == DimKind::kParallel &&
        call.DegreeFor(dense, call.devices) == call.devices) {
      preferred.push_back({{{dense, call.devices}}, 0, dense});
    }
    call.AddDataParallel(&preferred);
    return preferred;
  };
  return MapByRoles(graph, preferences, /*by_place=*/false, tables);
}

}  // namespace

std::optional<PublishedKind> PublishedKindOf(const Graph& graph) {
  const Survey survey(graph);
  if (survey.Has(OpKind::kTop2Gating) || survey.Has(OpKind::kTopKRouting)) {
    return PublishedKind::kMixture;
  }
  if (survey.HasAny(IsAttention)) return std::nullopt;
  if (survey.MostlyTables()) return PublishedKind::kTables;
  if (survey.SharesProducts() && survey.Has(OpKind::kLstmCell)) return PublishedKind::kRecurrent;
  if (survey.Has(OpKind::kConv2d)) return PublishedKind::kConvolution;
  return std::nullopt;
}

absl::StatusOr<MappedModel> MapPublished(const Graph& graph, CostTables* tables) {
  const std::optional<PublishedKind> kind = PublishedKindOf(graph);
  if (!kind.has_value()) {
    return absl::NotFoundError(
        "there are plans for mixtures of experts, tables, recurrent and convolutional "
        "networks; this is none of them");
  }
  switch (*kind) {
    case PublishedKind::kMixture:
      return MapMixture(graph, tables);
    case PublishedKind::kTables:
      return MapTables(graph, Survey(graph), tables);
    case PublishedKind::kRecurrent:
      return MapRecurrent(graph, Survey(graph), tables);
    case PublishedKind::kConvolution:
      break;
  }
  return MapConvolutions(graph, tables);
}

}  // namespace isomer
