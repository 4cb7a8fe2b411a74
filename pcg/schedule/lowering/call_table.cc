#include "pcg/schedule/lowering/call_table.h"

#include <utility>

#include "pcg/ir/call_hash.h"
#include "pcg/support/status_macros.h"

namespace isomer {

absl::Status CallTable::Add(const Graph& graph, NodeId node) {
  const Operator& op = graph.node(node).op;
  std::vector<TensorType> operands;
  for (TensorRef input : graph.node(node).inputs) operands.push_back(graph.type(input));
  const uint64_t hash = QuickHashOfCall(op, operands);
  const auto last = last_.find(hash);
  for (int32_t c = last == last_.end() ? kNone : last->second; c != kNone; c = calls_[c].next) {
    if (calls_[c].op != op || calls_[c].operands != operands) continue;
    call_of_[node.value] = c;
    return absl::OkStatus();
  }
  ISOMER_ASSIGN_OR_RETURN(Sharding sharding, InferSharding(op, operands));
  const Work forward = ForwardWork(op, sharding, operands);
  const auto saved = operands.empty() ? std::nullopt
                                      : isomer::SavedBy(op, sharding.declaration, operands[0],
                                                        sharding.outputs[0]);
  call_of_[node.value] = static_cast<int32_t>(calls_.size());
  calls_.push_back({.op = op,
                    .operands = std::move(operands),
                    .sharding = std::move(sharding),
                    .forward = forward,
                    .saved = saved,
                    .next = last == last_.end() ? kNone : last->second});
  last_[hash] = call_of_[node.value];
  return absl::OkStatus();
}

const GradientNeeds& CallTable::NeedsOf(NodeId node) {
  Call& call = At(node);
  if (!call.needs.has_value()) {
    call.needs = NeedsOfGradient(call.op, call.sharding.declaration, call.operands);
  }
  return *call.needs;
}

const Work& CallTable::GradientWorkOf(NodeId node, const std::vector<bool>& wanted) {
  Call& call = At(node);
  const auto [known, added] = call.gradient.try_emplace(wanted);
  if (added) known->second = GradientWork(call.op, call.sharding, call.operands, wanted);
  return known->second;
}

}  // namespace isomer
