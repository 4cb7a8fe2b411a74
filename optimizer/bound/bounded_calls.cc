#include "optimizer/bound/bounded_calls.h"

#include <algorithm>

#include "pcg/support/status_macros.h"

namespace isomer {

namespace {

ComputeGraph OfLoss(const Graph& graph, const std::string& loss, ComputeGraph compute) {
  DropGradientsWithoutLoss(graph, loss, &compute);
  return compute;
}

}  // namespace

BoundedGraph::BoundedGraph(const Graph& graph, const std::string& loss, CostTables* tables)
    : graph_(graph),
      tables_(*tables),
      compute_(OfLoss(graph, loss, AnalyzeCompute(graph, tables->options().training))),
      sources_(FindGradientSources(graph, compute_)),
      end_(FindEnd(loss)) {
  ChargeFirstUses(graph, &compute_);
}

// In training the call that computes the loss; else the one with the most ancestors.
int BoundedGraph::FindEnd(const std::string& loss) const {
  if (tables_.options().training) {
    for (const Graph::NamedOutput& output : graph_.outputs()) {
      const int maker = compute_.index[output.tensor.node.value];
      if (output.name == loss && maker >= 0) return maker;
    }
  }
  const auto& nodes = compute_.nodes;
  std::vector<std::vector<bool>> before(nodes.size(), std::vector<bool>(nodes.size(), false));
  int end = 0;
  int64_t most = 0;
  for (size_t n = 0; n < nodes.size(); ++n) {
    before[n][n] = true;
    for (const auto& operand : nodes[n].operands) {
      if (operand.producer < 0) continue;
      for (size_t p = 0; p < n; ++p) {
        if (before[operand.producer][p]) before[n][p] = true;
      }
    }
    const int64_t count = std::count(before[n].begin(), before[n].end(), true);
    if (count < most) continue;
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
    // One tensor may have several names.
    const int o = output.tensor.output;
    if (std::find(result.outputs.begin(), result.outputs.end(), o) == result.outputs.end())
      result.outputs.push_back(o);
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
