#include "optimizer/page/graph_json.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "optimizer/report/devices_text.h"
#include "optimizer/report/folded_graph.h"
#include "optimizer/report/split_text.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr size_t kNamesShown = 8;

const char* NameOfKind(FoldedNode::Kind kind) {
  switch (kind) {
    case FoldedNode::Kind::kInput:
      return "input";
    case FoldedNode::Kind::kCall:
      return "call";
    case FoldedNode::Kind::kMove:
      return "move";
  }
  return "?";
}

Json TypesJson(const std::vector<TensorType>& types) {
  Json json = Json::EmptyArray();
  for (const TensorType& type : types) json.Append(type.ToString());
  return json;
}

Json NodeJson(const Graph& graph, const FoldedNode& folded) {
  const Node& first = graph.node(folded.first.front());
  const Node& last = graph.node(folded.first.back());
  std::vector<std::string> operators;
  for (NodeId id : folded.first) operators.push_back(graph.node(id).op.ToString());
  Json json;
  json["kind"] = NameOfKind(folded.kind);
  json["label"] = folded.label;
  json["name"] = folded.name;
  json["count"] = folded.count;
  json["operator"] = absl::StrJoin(operators, ", ");
  json["types"] = TypesJson(last.outputs);
  json["operands"] = Json::EmptyArray();
  for (TensorRef input : first.inputs) {
    Json operand;
    operand["from"] = graph.node(input.node).name;
    operand["type"] = graph.type(input).ToString();
    json["operands"].Append(std::move(operand));
  }
  std::vector<std::string> names;
  for (NodeId id : folded.members) {
    if (names.size() == kNamesShown) break;
    if (!graph.node(id).name.empty()) names.push_back(graph.node(id).name);
  }
  json["members"] = names;
  return json;
}

Json EdgesJson(const Graph& graph, const FoldedGraph& folded) {
  Json json = Json::EmptyArray();
  for (const FoldedEdge& edge : folded.edges) {
    Json one;
    one["from"] = edge.from;
    one["to"] = edge.to;
    one["count"] = edge.count;
    one["type"] = graph.type(edge.tensor).ToString();
    one["returns"] = edge.returns;
    json.Append(std::move(one));
  }
  return json;
}

Json FoldedJson(const Graph& graph, const FoldedGraph& folded) {
  Json json;
  json["nodes"] = Json::EmptyArray();
  for (const FoldedNode& node : folded.nodes) json["nodes"].Append(NodeJson(graph, node));
  json["edges"] = EdgesJson(graph, folded);
  return json;
}

class PlanNodes {
 public:
  explicit PlanNodes(const PlanGraphSources& sources)
      : sources_(sources), graph_(sources.mapped.graph) {
    if (sources.lineage != nullptr) grown_ = sources.lineage->Match(graph_);
  }

  absl::StatusOr<Json> Run(bool folds) const {
    absl::Status error;
    // Layers that are split otherwise are others; the stages of a pipeline are not.
    const auto split_of = [&](NodeId id) {
      const auto split = SplitOf(sources_.mapped, id, sources_.machine);
      if (!split.ok()) error = split.status();
      return split.ok() ? split->ToString(/*with_start=*/false) : "";
    };
    const FoldedGraph folded = Fold(graph_, folds, [&](NodeId id) {
      const OpKind kind = graph_.node(id).op.kind();
      return IsLeaf(kind) || IsParallel(kind) ? "" : split_of(id);
    });
    ISOMER_RETURN_IF_ERROR(error);
    Json json;
    json["nodes"] = Json::EmptyArray();
    for (const FoldedNode& node : folded.nodes) {
      Json one = NodeJson(graph_, node);
      if (node.kind == FoldedNode::Kind::kCall) ISOMER_RETURN_IF_ERROR(AddSplit(node, &one));
      one["devices"] = DevicesText(sources_.mapped, node.members);
      one["first_device"] = sources_.mapped.views[node.first[0].value].start;
      AddTimes(node, &one);
      AddSteps(node, &one);
      json["nodes"].Append(std::move(one));
    }
    json["edges"] = EdgesJson(graph_, folded);
    return json;
  }

 private:
  absl::Status AddSplit(const FoldedNode& node, Json* json) const {
    ISOMER_ASSIGN_OR_RETURN(const CallSplit split,
                            SplitOf(sources_.mapped, node.first[0], sources_.machine));
    (*json)["split"] = split.ToString(/*with_start=*/false);
    Json& parts = (*json)["parts"] = Json::EmptyArray();
    for (const CallSplit::Part& part : split.parts) {
      Json one;
      one["dim"] = part.dim;
      one["devices"] = part.devices;
      one["micro_batches"] = part.micro_batches;
      if (!part.role.empty()) one["role"] = part.role;
      parts.Append(std::move(one));
    }
    (*json)["copies"] = split.copies;
    return absl::OkStatus();
  }

  // Per call; a folded node has `count`.
  void AddTimes(const FoldedNode& node, Json* json) const {
    NodeTimes sum;
    for (NodeId id : node.members) {
      const NodeTimes& times = sources_.times[id.value];
      sum.forward_us += times.forward_us;
      sum.backward_us += times.backward_us;
      for (const auto& [origin, us] : times.by_origin) sum.by_origin[origin] += us;
      for (const auto& [what, exchange] : times.exchanges) {
        sum.exchanges[what].count += exchange.count;
        sum.exchanges[what].us += exchange.us;
        sum.exchanges[what].bytes += exchange.bytes;
      }
    }
    const auto count = static_cast<double>(node.count);
    (*json)["forward_us"] = sum.forward_us / count;
    (*json)["backward_us"] = sum.backward_us / count;
    double total_us = 0;
    for (const auto& [origin, us] : sum.by_origin) total_us += us;
    (*json)["times_from"] = Json::EmptyObject();
    for (const auto& [origin, us] : sum.by_origin) {
      if (total_us > 0) (*json)["times_from"][TimeOriginName(origin)] = us / total_us;
    }
    (*json)["exchanges"] = Json::EmptyArray();
    for (const auto& [what, exchange] : sum.exchanges) {
      Json one;
      one["what"] = what;
      one["count"] = exchange.count;
      one["us_each"] = exchange.us / exchange.count;
      one["bytes_each"] = exchange.bytes / exchange.count;
      (*json)["exchanges"].Append(std::move(one));
    }
  }

  void AddSteps(const FoldedNode& node, Json* json) const {
    if (sources_.lineage == nullptr) return;
    const NodeId grown = grown_[node.first.back().value];
    if (grown.value < 0) return;
    (*json)["steps"] = sources_.lineage->StepsTo(sources_.plan, grown);
  }

  const PlanGraphSources& sources_;
  const Graph& graph_;
  std::vector<NodeId> grown_;
};

}  // namespace

Json ModelGraphJson(const Graph& graph) {
  Json json = FoldedJson(graph, Fold(graph, /*folds=*/true));
  const FoldedGraph unfolded = Fold(graph, /*folds=*/false);
  if (unfolded.nodes.size() <= kMostUnfolded) json["unfolded"] = FoldedJson(graph, unfolded);
  return json;
}

absl::StatusOr<Json> PlanGraphJson(const PlanGraphSources& sources) {
  const PlanNodes nodes(sources);
  ISOMER_ASSIGN_OR_RETURN(Json json, nodes.Run(/*folds=*/true));
  const FoldedGraph unfolded = Fold(sources.mapped.graph, /*folds=*/false);
  if (unfolded.nodes.size() <= kMostUnfolded) {
    ISOMER_ASSIGN_OR_RETURN(json["unfolded"], nodes.Run(/*folds=*/false));
  }
  return json;
}

}  // namespace isomer
