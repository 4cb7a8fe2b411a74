#include "optimizer/bounded_calls.h"

#include <algorithm>

#include "pcg/support/status_macros.h"

namespace isomer {

BoundedGraph::BoundedGraph(const Graph& graph, CostTables* tables)
    : graph_(graph),
      tables_(*tables),
      compute_(AnalyzeCompute(graph, tables->options().training)),
      sources_(FindGradientSources(graph, compute_)),
      end_(FindEnd()) {
  ChargeFirstUses(graph, &compute_);
}

// The call with the loss, or what is made of it, that most calls come before.
int BoundedGraph::FindEnd() const {
  const auto& nodes = compute_.nodes;
  std::vector<std::vector<bool>> before(nodes.size(), std::vector<bool>(nodes.size(), false));
  std::vector<bool> has_loss(nodes.size(), !tables_.options().training);
  int end = 0;
  int64_t most = 0;
  for (size_t n = 0; n < nodes.size(); ++n) {
    before[n][n] = true;
    if (IsLoss(graph_.node(nodes[n].id).op.kind())) has_loss[n] = true;
    for (const auto& operand : nodes[n].operands) {
      if (operand.producer < 0) continue;
      if (has_loss[operand.producer]) has_loss[n] = true;
      for (size_t p = 0; p < n; ++p) {
        if (before[operand.producer][p]) before[n][p] = true;
      }
    }
    const int64_t count = std::count(before[n].begin(), before[n].end(), true);
    if (!has_loss[n] || count < most) continue;
    most = count;
    end = static_cast<int>(n);
  }
  return end;
}

absl::StatusOr<BoundedCalls> BoundedGraph::On(int64_t devices, bool halves) {
  CostOptions options = tables_.options();
  options.halves = halves;
  options.num_devices = devices;
  options.moments = 1;
  tables_.set_options(options);
  BoundedCalls result;
  result.compute = &compute_;
  result.devices = static_cast<double>(devices);
  result.beside = halves;
  result.end = end_;
  for (const Graph::NamedOutput& output : graph_.outputs()) {
    if (compute_.index[output.tensor.node.value] != end_) continue;
    result.outputs.push_back(output.tensor.output);
  }
  for (size_t n = 0; n < compute_.nodes.size(); ++n) {
    const ComputeGraph::ComputeNode& node = compute_.nodes[n];
    std::vector<TensorType> operands;
    for (TensorRef input : graph_.node(node.id).inputs) operands.push_back(graph_.type(input));
    ISOMER_ASSIGN_OR_RETURN(const CallTables* call,
                            tables_.Call(graph_.node(node.id).op, operands));
    result.calls.push_back(call);
    std::string key;
    for (const auto& operand : node.operands) {
      key += operand.stored ? 's' : '-';
      key += operand.gradient ? 'g' : '-';
      key += operand.first_use ? '1' : '-';
    }
    for (bool summed : sources_[n].summed) key += summed ? '+' : '-';
    for (bool filled : sources_[n].filled) key += filled ? '0' : '-';
    auto [it, added] = memo_.try_emplace({call, key});
    if (added) {
      for (const ShardingChoice& choice : call->space.choices) {
        it->second.push_back(PartsOfChoice(call->space, choice, node, sources_[n], tables_));
      }
    }
    result.parts.push_back(&it->second);
  }
  return result;
}

}  // namespace isomer
