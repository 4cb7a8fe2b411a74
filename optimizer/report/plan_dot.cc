#include "optimizer/report/plan_dot.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "optimizer/machine/machine_units.h"
#include "optimizer/report/devices_text.h"
#include "optimizer/report/folded_graph.h"
#include "optimizer/report/split_text.h"
#include "pcg/support/bytes_text.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// From white to orange: the share of all operators' time.
std::string HeatColour(double share) {
  const double heat = std::sqrt(std::clamp(share, 0.0, 1.0));
  const auto mixed = [&](int cold, int hot) {
    return static_cast<int>(std::lround(cold + heat * (hot - cold)));
  };
  return absl::StrFormat("#%02x%02x%02x", mixed(255, 245), mixed(255, 142), mixed(255, 60));
}

struct FoldedTimes {
  double forward_us = 0, backward_us = 0;  // of all calls
  std::map<std::string, NodeExchange> exchanges;
};

class PlanDrawing {
 public:
  PlanDrawing(const MappedGraph& mapped, const std::vector<NodeTimes>& times,
              const Machine& machine)
      : mapped_(mapped), graph_(mapped.graph), times_(times), machine_(machine) {}

  absl::StatusOr<std::string> Run() {
    ISOMER_RETURN_IF_ERROR(FoldGraph());
    for (const FoldedNode& node : folded_.nodes) sums_.push_back(SumOf(node));
    for (const FoldedTimes& sum : sums_) total_us_ += sum.forward_us + sum.backward_us;
    std::string dot =
        "digraph plan {\n"
        "  node [shape=box, style=\"filled,rounded\", fillcolor=white, fontname=\"Helvetica\", "
        "fontsize=10];\n  edge [fontname=\"Helvetica\", fontsize=9];\n";
    for (size_t i = 0; i < folded_.nodes.size(); ++i) {
      ISOMER_RETURN_IF_ERROR(AddNode(static_cast<int>(i), &dot));
    }
    for (const FoldedEdge& edge : folded_.edges) AddEdge(edge, &dot);
    AddOutputs(&dot);
    return absl::StrCat(dot, "}\n");
  }

 private:
  absl::Status FoldGraph() {
    folded_ = Fold(graph_, /*folds=*/false);
    if (folded_.nodes.size() <= kMostUnfolded) return absl::OkStatus();
    absl::Status error;
    // Layers that are split otherwise are others; the stages of a pipeline are not.
    folded_ = Fold(graph_, /*folds=*/true, [&](NodeId id) {
      const OpKind kind = graph_.node(id).op.kind();
      if (IsLeaf(kind) || IsParallel(kind)) return std::string();
      const auto split = SplitOf(mapped_, id, machine_);
      if (!split.ok()) error = split.status();
      return split.ok() ? split->ToString(/*with_start=*/false) : "";
    });
    return error;
  }

  FoldedTimes SumOf(const FoldedNode& node) const {
    FoldedTimes sum;
    for (NodeId id : node.members) {
      const NodeTimes& times = times_[id.value];
      sum.forward_us += times.forward_us;
      sum.backward_us += times.backward_us;
      for (const auto& [what, exchange] : times.exchanges) {
        sum.exchanges[what].count += exchange.count;
        sum.exchanges[what].us += exchange.us;
        sum.exchanges[what].bytes += exchange.bytes;
      }
    }
    return sum;
  }

  absl::Status AddNode(int number, std::string* dot) const {
    const FoldedNode& node = folded_.nodes[number];
    const FoldedTimes& sum = sums_[number];
    std::vector<std::string> lines;
    if (!node.name.empty()) lines.push_back(node.name);
    lines.push_back(node.count > 1 ? absl::StrCat(node.label, "  x ", node.count) : node.label);
    for (const TensorType& type : graph_.node(node.first.back()).outputs) {
      lines.push_back(type.ToString());
    }
    if (node.kind == FoldedNode::Kind::kCall) {
      ISOMER_ASSIGN_OR_RETURN(const CallSplit split, SplitOf(mapped_, node.first[0], machine_));
      lines.push_back(split.ToString(/*with_start=*/false));
    }
    if (node.kind != FoldedNode::Kind::kMove) {
      lines.push_back(absl::StrCat("devices ", DevicesText(mapped_, node.members)));
    }
    const auto count = static_cast<double>(node.count);
    if (sum.forward_us + sum.backward_us > 0) {
      lines.push_back(absl::StrCat(
          TimeText(sum.forward_us / count), " forward",
          sum.backward_us > 0 ? absl::StrCat(", ", TimeText(sum.backward_us / count), " backward")
                              : "",
          node.count > 1 ? " each" : ""));
    }
    for (const auto& [what, exchange] : sum.exchanges) {
      const auto bytes = static_cast<int64_t>(exchange.bytes / exchange.count);
      lines.push_back(
          absl::StrCat(what, ": ", BytesText(bytes), ", ", TimeText(exchange.us / exchange.count)));
    }
    for (std::string& line : lines) line = absl::CEscape(line);
    absl::StrAppend(dot, "  n", number, " [label=\"", absl::StrJoin(lines, "\\n"), "\"",
                    StyleOf(number), "];\n");
    return absl::OkStatus();
  }

  std::string StyleOf(int number) const {
    const FoldedTimes& sum = sums_[number];
    switch (folded_.nodes[number].kind) {
      case FoldedNode::Kind::kInput:
        return ", style=filled, fillcolor=\"#e4f2e1\"";
      case FoldedNode::Kind::kMove:
        return ", style=filled, fillcolor=\"#dbe9f6\", fontsize=9";
      case FoldedNode::Kind::kCall:
        return absl::StrCat(
            ", fillcolor=\"",
            HeatColour(total_us_ > 0 ? (sum.forward_us + sum.backward_us) / total_us_ : 0), "\"");
    }
    return "";
  }

  static void AddEdge(const FoldedEdge& edge, std::string* dot) {
    absl::StrAppend(dot, "  n", edge.from, " -> n", edge.to, " [");
    if (edge.count > 1) absl::StrAppend(dot, "label=\"x ", edge.count, "\"");
    // From one layer to the next.
    if (edge.returns) {
      absl::StrAppend(dot, edge.count > 1 ? ", " : "", "style=dashed, constraint=false");
    }
    absl::StrAppend(dot, "];\n");
  }

  void AddOutputs(std::string* dot) const {
    int number = 0;
    for (const Graph::NamedOutput& output : graph_.outputs()) {
      const int from = folded_.node_of[output.tensor.node.value];
      if (from < 0) continue;
      absl::StrAppend(dot, "  o", number, " [label=\"", absl::CEscape(output.name),
                      "\", shape=ellipse];\n  n", from, " -> o", number, ";\n");
      ++number;
    }
  }

  const MappedGraph& mapped_;
  const Graph& graph_;
  const std::vector<NodeTimes>& times_;
  const Machine& machine_;
  FoldedGraph folded_;
  std::vector<FoldedTimes> sums_;  // per folded node
  double total_us_ = 0;
};

}  // namespace

absl::StatusOr<std::string> PlanDot(const MappedGraph& mapped, const std::vector<NodeTimes>& times,
                                    const Machine& machine) {
  return PlanDrawing(mapped, times, machine).Run();
}

}  // namespace isomer
