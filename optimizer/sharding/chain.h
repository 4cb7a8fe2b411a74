// Chains of parallel operators between two calls that were split independently.
//
//   f -> combine(-1,4) -> combine(-3,2) -> partition(-3,2) -> replicate(4) -> g
//
// The rules between chains (cancellation of dual pairs, commutation, merging) shorten it, here to
// combine(-1,4) -> replicate(4), which lowers to one all-gather.
#ifndef ISOMER_OPTIMIZER_SHARDING_CHAIN_H_
#define ISOMER_OPTIMIZER_SHARDING_CHAIN_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "optimizer/sharding/growing_graph.h"
#include "optimizer/sharding/rule_index.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"

namespace isomer {

class ChainNormalizer {
 public:
  explicit ChainNormalizer(const RuleIndex& rules) : rules_(rules) {}

  // Shortens the chain that leads to `operand` of `user`, and appends the steps to `steps`.
  absl::Status Normalize(NodeId user, int operand, GrowingGraph* graph,
                         std::vector<DerivationStep>* steps);

 private:
  // A step on a chain: its match begins at position `at`.
  struct ChainStep {
    int at;
    DerivationStep step;
  };
  std::vector<ChainStep> Shorten(const TensorType& type, const std::vector<Operator>& chain) const;
  absl::Status Record(const TensorType& type, const std::vector<Operator>& chain,
                      RecordedSteps* recorded) const;

  const RuleIndex& rules_;
  // By chain: the steps that shorten it, on a graph of the chain alone, whose node 0 is its input.
  std::map<std::string, RecordedSteps> memo_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_CHAIN_H_
