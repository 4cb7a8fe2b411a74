// Chains of parallel operators: what stands between two calls that were split independently.
//
//   f -> combine(-1,4) -> combine(-3,2) -> partition(-3,2) -> replicate(4) -> g
//
// The rules between chains (cancellation of dual pairs, commutation, merging) shorten it as far as
// they can, here to combine(-1,4) -> replicate(4), which lowering makes one all-gather.
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

  // Applies the steps that make the chain shortest, and appends them to `steps`.
  absl::Status Normalize(NodeId user, int operand, GrowingGraph* graph,
                         std::vector<DerivationStep>* steps);

 private:
  // A step on a chain: the nodes it matches begin at place `at`.
  struct ChainStep {
    int at;
    DerivationStep step;
  };
  std::vector<ChainStep> Shorten(const TensorType& type, const std::vector<Operator>& chain) const;
  absl::Status Record(const TensorType& type, const std::vector<Operator>& chain,
                      RecordedSteps* recorded) const;

  const RuleIndex& rules_;
  // By chain: its steps on a graph of it alone, whose node 0 is what it begins with.
  std::map<std::string, RecordedSteps> memo_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_CHAIN_H_
