#include "optimizer/splitting.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "optimizer/compute_graph.h"
#include "optimizer/cut_choice.h"
#include "optimizer/restrictions.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

struct Cut {
  int after;  // place in ComputeGraph::nodes
  TensorRef tensor;
};

std::vector<Cut> FindCuts(const Graph& graph, const ComputeGraph& compute) {
  const int n = static_cast<int>(compute.nodes.size());
  std::map<TensorRef, int> last_use;
  for (int i = 0; i < n; ++i) {
    for (TensorRef input : graph.node(compute.nodes[i].id).inputs) {
      if (compute.index[input.node.value] >= 0) last_use[input] = i;
    }
  }
  // change[i]: how many more tensors are alive behind node i than behind node i-1.
  std::vector<int> change(n + 1, 0);
  for (const auto& [tensor, last] : last_use) {
    ++change[compute.index[tensor.node.value]];
    --change[last];
  }
  std::vector<Cut> cuts;
  int alive = 0;
  for (int i = 0; i + 1 < n; ++i) {
    alive += change[i];
    if (alive != 1) continue;
    const NodeId id = compute.nodes[i].id;
    for (int o = 0; o < static_cast<int>(graph.node(id).outputs.size()); ++o) {
      auto it = last_use.find({id, o});
      if (it != last_use.end() && it->second > i) cuts.push_back({i, {id, o}});
    }
  }
  return cuts;
}

class PieceBuilder {
 public:
  PieceBuilder(const Graph& whole, const ComputeGraph& compute)
      : whole_(whole), compute_(compute) {}

  absl::StatusOr<Piece> Build(int begin, int end, const Cut* in, const Cut* out) {
    piece_ = Piece();
    ids_.clear();
    if (in != nullptr) {
      piece_.has_in = true;
      piece_.in = in->tensor;
      piece_.in_gradient = compute_.depends_on_weight[in->tensor.node.value];
      piece_.in_node = piece_.graph.AddInput("in", whole_.type(in->tensor)).node;
      piece_.whole_ids.push_back(in->tensor.node);
    }
    for (int i = begin; i < end; ++i) {
      ISOMER_RETURN_IF_ERROR(Copy(compute_.nodes[i].id));
    }
    if (out != nullptr) {
      piece_.has_out = true;
      piece_.out = out->tensor;
      piece_.graph.AddOutput(kCrossingOutput, {ids_.at(out->tensor.node), out->tensor.output});
    }
    for (const auto& output : whole_.outputs()) {
      auto it = ids_.find(output.tensor.node);
      if (it == ids_.end()) continue;
      piece_.graph.AddOutput(absl::StrCat("output", piece_.graph.outputs().size()),
                             {it->second, output.tensor.output});
    }
    piece_.key = HashCombine(piece_.graph.StructuralHash(), piece_.in_gradient);
    return std::move(piece_);
  }

 private:
  absl::Status Copy(NodeId id) {
    if (ids_.count(id) > 0) return absl::OkStatus();
    const Node& node = whole_.node(id);
    NodeId copy;
    if (node.op.kind() == OpKind::kInput) {
      copy = piece_.graph.AddInput(absl::StrCat("input", ids_.size()), node.outputs[0]).node;
    } else if (node.op.kind() == OpKind::kConstant) {
      copy = piece_.graph.AddConstant(absl::StrCat("constant", ids_.size()), node.outputs[0]).node;
    } else if (node.op.kind() == OpKind::kWeight) {
      copy = piece_.graph.AddWeight(absl::StrCat("weight", ids_.size()), node.outputs[0]).node;
    } else {
      std::vector<TensorRef> inputs;
      for (TensorRef input : node.inputs) {
        if (piece_.has_in && input == piece_.in) {
          inputs.push_back({piece_.in_node, 0});
          continue;
        }
        ISOMER_RETURN_IF_ERROR(Copy(input.node));
        inputs.push_back({ids_.at(input.node), input.output});
      }
      ISOMER_ASSIGN_OR_RETURN(copy, piece_.graph.Add(node.op, inputs, node.name));
    }
    ids_[id] = copy;
    piece_.whole_ids.resize(copy.value + 1);
    piece_.whole_ids[copy.value] = id;
    return absl::OkStatus();
  }

  const Graph& whole_;
  const ComputeGraph& compute_;
  Piece piece_;
  std::map<NodeId, NodeId> ids_;
};

void Mark(const std::vector<DimRole>& roles, Piece* piece) {
  piece->in_roles = roles;
  for (DimRole role : roles) piece->key = HashCombine(piece->key, static_cast<uint64_t>(role));
}

void Restrict(const Restrictions& restrictions, Piece* piece) {
  for (size_t i = 0; i < piece->whole_ids.size(); ++i) {
    const CallRestriction* restriction =
        piece->has_in && NodeId{static_cast<int32_t>(i)} == piece->in_node
            ? nullptr
            : restrictions.Of(piece->whole_ids[i]);
    piece->restrictions.push_back(restriction);
    if (restriction == nullptr) continue;
    piece->key = HashCombine(piece->key, i, HashBytes(restriction->Key()));
  }
}

}  // namespace

absl::StatusOr<std::vector<Piece>> SplitGraph(const Graph& graph, int min_nodes,
                                              const Restrictions* restrictions,
                                              RuleMatcher* matcher) {
  const ComputeGraph compute = AnalyzeCompute(graph);
  const int n = static_cast<int>(compute.nodes.size());
  const std::vector<Cut> cuts = FindCuts(graph, compute);
  std::vector<int> places;
  for (const Cut& cut : cuts) places.push_back(cut.after);
  const std::vector<double> spanning = matcher == nullptr
                                           ? std::vector<double>(cuts.size(), 0)
                                           : CountSpanningMatches(graph, compute, places, matcher);
  const std::vector<int> chosen = ChooseCuts(places, spanning, n, min_nodes);
  const DimRoles roles = RolesOf(graph);
  std::vector<Piece> pieces;
  PieceBuilder builder(graph, compute);
  int begin = 0;
  for (size_t c = 0; c <= chosen.size(); ++c) {
    const Cut* in = c == 0 ? nullptr : &cuts[chosen[c - 1]];
    const Cut* out = c == chosen.size() ? nullptr : &cuts[chosen[c]];
    const int end = out == nullptr ? n : out->after + 1;
    ISOMER_ASSIGN_OR_RETURN(Piece piece, builder.Build(begin, end, in, out));
    if (in != nullptr) Mark(roles.of(in->tensor), &piece);
    if (restrictions != nullptr) Restrict(*restrictions, &piece);
    pieces.push_back(std::move(piece));
    begin = end;
  }
  return pieces;
}

}  // namespace isomer
