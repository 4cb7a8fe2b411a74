#include "runtime/execution/evaluation_calls.h"

#include <utility>

#include "pcg/ir/type_inference.h"
#include "pcg/support/status_macros.h"
#include "runtime/device/task_calls.h"

namespace isomer {
namespace {

constexpr int kScale = 1, kMean = 3, kVariance = 4;  // operands of batch norms

// The entry of the leaf that `tensor` is, split or copied or in another precision; nothing: there
// is none.
std::optional<int32_t> EntryOf(const Graph& graph, TensorRef tensor,
                               absl::Span<const BatchStatistics> statistics) {
  const std::vector<int64_t> sizes = graph.type(tensor).Sizes();
  NodeId id = tensor.node;
  while (graph.node(id).inputs.size() == 1 && graph.node(id).outputs[0].Sizes() == sizes) {
    id = graph.node(id).inputs[0].node;
  }
  if (!IsLeaf(graph.node(id).op.kind()) || graph.node(id).outputs[0].Sizes() != sizes) {
    return std::nullopt;
  }
  for (size_t i = 0; i < statistics.size(); ++i) {
    if (statistics[i].scale == graph.node(id).name) return static_cast<int32_t>(i);
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<EvaluationCall>> OfBatchNorm(
    const Graph& graph, const Schedule& schedule, absl::Span<const BatchStatistics> statistics,
    int32_t t) {
  const Task& task = schedule.tasks[t];
  const Node& node = graph.node(task.node);
  const std::optional<int32_t> entry = EntryOf(graph, node.inputs[kScale], statistics);
  if (!entry.has_value()) return std::nullopt;
  std::vector<TensorType> operands;
  for (TensorRef input : node.inputs) operands.push_back(graph.type(input));
  operands.push_back(operands[kScale]);
  operands.push_back(operands[kScale]);
  const Operator norm(OpKind::kBatchNorm, {{"epsilon", node.op.Number("epsilon")}});
  ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(norm, operands));
  EvaluationCall evaluation = {
      MakeKernelCall(norm, sharding, operands, task.shard, /*gradient=*/false)};
  KernelCall& call = evaluation.call;
  const CallLayouts layouts = LayoutsOf(graph, schedule, task);
  if (!layouts.AreRowMajor()) {
    call.layouts.operands.assign(operands.size(), Layout::kRowMajor);
    for (size_t o = 0; o < node.inputs.size(); ++o) {
      call.layouts.operands[o] = layouts.OfOperand(o);
    }
    call.layouts.outputs = {layouts.OfOutput(0)};
  }
  const Box& channels = call.operands[kMean];
  evaluation.statistics = {
      .entry = *entry, .first = channels.origin[0], .count = channels.Volume()};
  return evaluation;
}

}  // namespace

absl::StatusOr<std::optional<EvaluationCall>> EvaluationCallOf(
    const Graph& graph, const Schedule& schedule, absl::Span<const BatchStatistics> statistics,
    int32_t t) {
  const Task& task = schedule.tasks[t];
  if (task.kind != TaskKind::kCompute) return std::nullopt;
  const Node& node = graph.node(task.node);
  if (node.op.kind() == OpKind::kBatchNormTraining) {
    return OfBatchNorm(graph, schedule, statistics, t);
  }
  if (node.op.kind() != OpKind::kDropout) return std::nullopt;
  std::vector<TensorType> operands;
  for (TensorRef input : node.inputs) operands.push_back(graph.type(input));
  const Operator passes(OpKind::kDropout, {{"rate", 0.0}, {"salt", node.op.Int("salt")}});
  ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(passes, operands));
  EvaluationCall evaluation = {
      MakeKernelCall(passes, sharding, operands, task.shard, /*gradient=*/false)};
  evaluation.call.layouts = LayoutsOf(graph, schedule, task);
  return evaluation;
}

std::vector<std::string> WithoutStatistics(const Graph& graph,
                                           absl::Span<const BatchStatistics> statistics) {
  std::vector<std::string> labels;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.op.kind() != OpKind::kBatchNormTraining) continue;
    if (EntryOf(graph, node.inputs[kScale], statistics).has_value()) continue;
    labels.push_back(graph.Label(NodeId{id}));
  }
  return labels;
}

}  // namespace isomer
