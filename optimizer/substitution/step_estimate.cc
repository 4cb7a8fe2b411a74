#include "optimizer/substitution/step_estimate.h"

#include <algorithm>

#include "pcg/ir/type_inference.h"
#include "pcg/profile/work.h"
#include "pcg/support/hash.h"
#include "rules/matching/matcher.h"

namespace isomer {
namespace {

// The backward pass of expensive operators takes two forward passes.
constexpr double kTrainingPasses = 3;

}  // namespace

StepEstimator::StepEstimator(const CostTables& tables)
    : cost_(tables.cost()),
      launch_us_(tables.cost().machine().kinds[0].launch_us),
      passes_(tables.options().training ? kTrainingPasses : 1),
      devices_(static_cast<double>(tables.num_devices())) {}

float StepEstimator::CallUs(const Graph& graph, NodeId id) {
  const auto [known, added] = calls_.try_emplace(HashOfCall(graph, id), 0);
  if (!added) return known->second;
  const Node& node = graph.node(id);
  std::vector<TensorType> types;
  for (TensorRef input : node.inputs) types.push_back(graph.type(input));
  const auto sharding = InferSharding(node.op, types);
  if (!sharding.ok()) return 0;
  const double us = cost_.CallUs(node.op, types, {}, ForwardWork(node.op, *sharding, types));
  known->second =
      static_cast<float>(passes_ * (launch_us_ + std::max(0.0, us - launch_us_) / devices_));
  return known->second;
}

float StepEstimator::TargetUs(const Graph& graph, const RuleMatch& match,
                              const std::vector<bool>& stored) {
  const auto binding = BindingOf(graph, *match.rule, match.step);
  if (!binding.ok()) return kImpossibleUs;
  const auto target = InstantiatePattern(match.rule->target, *binding);
  if (!target.ok()) return kImpossibleUs;
  std::vector<bool> loaded = stored;
  float us = 0;
  for (int id = static_cast<int>(stored.size()); id < target->num_nodes(); ++id) {
    const Node& node = target->node(id);
    loaded.push_back(IsLayout(node.op.kind()) &&
                     std::all_of(node.inputs.begin(), node.inputs.end(),
                                 [&](TensorRef input) { return loaded[input.node.value]; }));
    if (!loaded.back()) us += CallUs(*target, {id});
  }
  return us;
}

float StepEstimator::DeltaUs(const GraphIndex& index, const ComputeGraph& compute,
                             const RuleMatch& match) {
  const Graph& graph = index.graph();
  const Pattern& source = match.rule->source;
  const std::vector<NodeId>& nodes = match.step.nodes;
  std::vector<bool> is_output(nodes.size(), false), dies(nodes.size(), false);
  for (PatternRef ref : source.outputs) {
    if (ref.node >= 0) is_output[ref.node] = true;
  }
  float us = 0;
  // From the outputs down: a node dies if only dying nodes use it.
  for (size_t n = nodes.size(); n-- > 0;) {
    const auto users = index.UsersOf(nodes[n]);
    dies[n] = is_output[n] || std::all_of(users.begin(), users.end(), [&](const Graph::Use& use) {
                const auto at = std::find(nodes.begin(), nodes.end(), use.user);
                return at != nodes.end() && dies[at - nodes.begin()];
              });
    if (dies[n] && compute.index[nodes[n].value] >= 0) us -= CallUs(graph, nodes[n]);
  }
  std::vector<bool> stored;
  uint64_t key = match.signature;
  for (TensorRef input : match.step.inputs) {
    stored.push_back(compute.index[input.node.value] < 0 &&
                     graph.node(input.node).op.kind() != OpKind::kInput);
    key = HashCombine(key, stored.back());
  }
  const auto [known, added] = targets_.try_emplace(key, 0);
  if (added) known->second = TargetUs(graph, match, stored);
  return us + known->second;
}

}  // namespace isomer
