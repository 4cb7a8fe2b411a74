#include "optimizer/substitution/piece_mapping.h"

#include <algorithm>

#include "optimizer/mapping/mapping.h"
#include "optimizer/mapping/mapping_branches.h"
#include "optimizer/mapping/mapping_enumeration.h"
#include "optimizer/mapping/restrictions.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::StatusOr<const CallTables*> CallOf(const Graph& graph, NodeId id, int moment_dim,
                                         const CallRestriction* restriction, CostTables* tables) {
  std::vector<TensorType> operands;
  for (TensorRef input : graph.node(id).inputs) operands.push_back(graph.type(input));
  return tables->Call(graph.node(id).op, operands, moment_dim, restriction);
}

// Per choice of `set`: its index in `among`, or -1.
std::vector<int> PlacesAmong(const CostTables& tables, PlacementSetId set, PlacementSetId among) {
  const std::vector<int>& domain = tables.PlacementsOf(among);
  std::vector<int> places;
  for (int placement : tables.PlacementsOf(set)) {
    const auto at = std::find(domain.begin(), domain.end(), placement);
    places.push_back(at == domain.end() ? -1 : static_cast<int>(at - domain.begin()));
  }
  return places;
}

}  // namespace

absl::StatusOr<PlacementSetId> PlacementsLeft(const Graph& graph, TensorRef tensor, int moment_dim,
                                              const Restrictions* restrictions,
                                              CostTables* tables) {
  const CallRestriction* restriction =
      restrictions == nullptr ? nullptr : restrictions->Of(tensor.node);
  ISOMER_ASSIGN_OR_RETURN(const CallTables* call,
                          CallOf(graph, tensor.node, moment_dim, restriction, tables));
  std::vector<int> ids;
  for (size_t k = 0; k < call->shares.size(); ++k) {
    if (call->shares[k] != Share::kWhole) continue;
    ids.push_back(tables->PlacementsOf(call->outputs[tensor.output])[k]);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::vector<Placement> placements;
  for (int id : ids) placements.push_back(tables->placement(id));
  return tables->Intern(placements);
}

absl::StatusOr<PieceMapping> PieceMapping::Solve(const Piece& piece, const Graph& graph,
                                                 const Borders& borders, CostTables* tables,
                                                 const Deadline* enumerate_until,
                                                 bool concurrent_branches) {
  const bool training = tables->options().training;
  PieceMapping result;
  result.compute_ = AnalyzeCompute(graph, training, piece.FedWithGradient());
  const auto& nodes = result.compute_.nodes;
  std::vector<int> moment_dims(graph.num_nodes(), -1);
  if (tables->options().moments > 1) {
    moment_dims = BatchDims(graph, piece.fed_roles);
  }
  MappingProblem problem;
  const int in = static_cast<int>(nodes.size());
  for (const auto& node : nodes) {
    ISOMER_ASSIGN_OR_RETURN(
        const CallTables* call,
        CallOf(graph, node.id, moment_dims[node.id.value], piece.RestrictionOf(node.id), tables));
    result.calls_.push_back(call);
    problem.nodes.push_back({tables->NodeUs(*call, node), call->shares});
  }
  if (piece.has_in) {
    const size_t count = tables->PlacementsOf(borders.in).size();
    problem.nodes.push_back({std::vector<float>(count, 0), {}});
    problem.terminals.push_back(in);
  }
  for (int i = 0; i < in; ++i) {
    for (size_t o = 0; o < nodes[i].operands.size(); ++o) {
      const ComputeGraph::Operand& operand = nodes[i].operands[o];
      const bool crosses =
          piece.has_in && graph.node(nodes[i].id).inputs[o] == TensorRef{piece.in_node, 0};
      if (operand.producer < 0 && !crosses) continue;
      const PlacementSetId from =
          crosses ? borders.in : result.calls_[operand.producer]->outputs[operand.output];
      problem.edges.push_back(
          {crosses ? in : operand.producer, i,
           &tables->EdgeUs(from, result.calls_[i]->operands[o], training && operand.gradient)});
    }
  }
  if (piece.has_out) {
    TensorRef out;
    for (const auto& output : graph.outputs()) {
      if (output.name == kCrossingOutput) out = output.tensor;
    }
    result.out_node_ = result.compute_.index[out.node.value];
    if (result.out_node_ < 0) return absl::InternalError("what crosses out is not computed");
    problem.terminals.push_back(result.out_node_);
    result.out_columns_ =
        PlacesAmong(*tables, result.calls_[result.out_node_]->outputs[out.output], borders.out);
  }
  ISOMER_RETURN_IF_ERROR(result.AddCarried(piece, graph, borders, tables, &problem));
  const MappingOptions options{.memo = tables->mapping_memo()};
  if (enumerate_until != nullptr) {
    result.mapping_ = EnumerateMappings(problem, *enumerate_until);
  } else if (concurrent_branches) {
    result.mapping_ = SolveWithConcurrentBranches(problem, options);
  } else {
    result.mapping_ = SolveMapping(problem, options);
  }
  const CostTable& all = result.mapping_.table();
  if (!piece.has_out) {
    result.table_ = all;
    return result;
  }
  // The mapping's table has a column (or, without an in border, a row) per choice of the out node.
  const int rows = piece.has_in ? all.rows : 1;
  result.table_ =
      CostTable(rows, static_cast<int>(tables->PlacementsOf(borders.out).size()), kImpossibleUs);
  for (int r = 0; r < rows; ++r) {
    for (size_t k = 0; k < result.out_columns_.size(); ++k) {
      if (result.out_columns_[k] < 0) continue;
      float& us = result.table_.at(r, result.out_columns_[k]);
      us = std::min(us,
                    piece.has_in ? all.at(r, static_cast<int>(k)) : all.at(static_cast<int>(k), 0));
    }
  }
  return result;
}

absl::Status PieceMapping::AddCarried(const Piece& piece, const Graph& graph,
                                      const Borders& borders, CostTables* tables,
                                      MappingProblem* problem) {
  const bool training = tables->options().training;
  for (size_t c = 0; c < piece.carried_in.size(); ++c) {
    const TensorRef carried = {piece.carried_in[c].node, 0};
    for (int i = 0; i < static_cast<int>(compute_.nodes.size()); ++i) {
      const std::vector<TensorRef>& inputs = graph.node(compute_.nodes[i].id).inputs;
      for (size_t o = 0; o < inputs.size(); ++o) {
        if (inputs[o] != carried) continue;
        carried_uses_.push_back({.carried = c,
                                 .node = i,
                                 .set = calls_[i]->operands[o],
                                 .gradient = training && compute_.nodes[i].operands[o].gradient});
      }
    }
  }
  for (size_t c = 0; c < piece.carried_out.size(); ++c) {
    for (const auto& output : graph.outputs()) {
      if (output.name != CarriedOutput(c)) continue;
      const TensorRef made = output.tensor;
      const int node = compute_.index[made.node.value];
      // A result of weights alone, such as a table that is transposed for the last product, may be
      // computed when these are loaded: then it moves nowhere.
      if (node < 0) continue;
      carried_uses_.push_back({.is_made = true,
                               .times = static_cast<float>(piece.carried_out[c].uses),
                               .carried = c,
                               .node = node,
                               .set = calls_[node]->outputs[made.output],
                               .gradient = training &&
                                           compute_.depends_on_weight[made.node.value] &&
                                           IsFloat(graph.type(made).dtype)});
    }
  }
  for (const CarriedUse& use : carried_uses_) {
    const auto& held = use.is_made ? borders.carried_out : borders.carried_in;
    if (use.carried >= held.size() || held[use.carried] == Borders::kNone) continue;
    const CostTable& moved = use.is_made ? tables->EdgeUs(use.set, held[use.carried], use.gradient)
                                         : tables->EdgeUs(held[use.carried], use.set, use.gradient);
    std::vector<float>& us = problem->nodes[use.node].us;
    for (size_t k = 0; k < us.size(); ++k) us[k] += use.times * moved.us[k];
  }
  return absl::OkStatus();
}

std::map<NodeId, ShardingChoice> PieceMapping::Choices(int in, int out) const {
  const std::vector<int> picks = Picks(in, out);
  std::map<NodeId, ShardingChoice> choices;
  for (size_t i = 0; i < compute_.nodes.size(); ++i) {
    choices[compute_.nodes[i].id] = calls_[i]->space.choices[picks[i]];
  }
  return choices;
}

std::vector<int> PieceMapping::Picks(int in, int out) const {
  const CostTable& all = mapping_.table();
  const bool has_in = compute_.nodes.size() < mapping_.Choices(0, 0).size();
  int first = has_in ? in : 0, second = 0;
  if (out_node_ >= 0) {
    int best = -1;
    auto us = [&](int k) { return has_in ? all.at(in, k) : all.at(k, 0); };
    for (int k = 0; k < static_cast<int>(out_columns_.size()); ++k) {
      if (out_columns_[k] == out && (best < 0 || us(k) < us(best))) best = k;
    }
    (has_in ? second : first) = best;
  }
  return mapping_.Choices(first, second);
}

}  // namespace isomer
