// Expansions: which iteration dims of a call the rules know how to split, and how.
//
// Nothing about operators is known here: every expansion rule of the operator's kind is tried on a
// graph of this call alone, and the dim that it splits is read off the sharding of the result.
#ifndef ISOMER_OPTIMIZER_SHARDING_EXPANSION_H_
#define ISOMER_OPTIMIZER_SHARDING_EXPANSION_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optimizer/sharding/rule_index.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "pcg/ir/type_inference.h"

namespace isomer {

// A rule at a call, but for where the call is and what the degree is.
struct Expansion {
  int dim = -1;  // the iteration dim that it splits
  const Rule* rule = nullptr;
  std::string degree;                 // the degree variable
  DerivationStep step;                // rule, other variables
  std::vector<int> operand_of_input;  // per rule input: the operand of the call
  int inner = 0;                      // the call in the target pattern
  // Operand j of that call is operand order[j] of the call that was matched: rules may exchange
  // the operands of Add and Mul.
  std::vector<int> order;
};

struct Expansions {
  std::vector<Expansion> splits;  // at most one per iteration dim, in order of dims
  const Expansion* SplitOf(int dim) const;
};

// `operands` are sequential types.
Expansions FindExpansions(const RuleIndex& rules, const Operator& op,
                          absl::Span<const TensorType> operands);

// The expansions of many calls. Nearly all rules that split an operator ask of a call just whether
// it has a dim that leads such and such axes and is divisible (Condition::kSplitsDim): where all of
// the operator's rules are of that kind, calls whose dims lead the same axes have the same
// expansions, whatever their sizes and attributes.
class ExpansionMemo {
 public:
  // `sharding`: InferSharding of the call.
  Expansions Find(const RuleIndex& rules, const Operator& op, absl::Span<const TensorType> operands,
                  const Sharding& sharding);

 private:
  // Nothing: the operator's rules ask for more.
  std::optional<std::string> KeyOf(const RuleIndex& rules, const Operator& op,
                                   absl::Span<const TensorType> operands, const Sharding& sharding);

  // What the rules of an operator see of a call besides its dims.
  enum class Sees { kDims, kAttributes, kMore };
  std::map<OpKind, Sees> sees_;
  std::map<std::string, Expansions> known_;
};

// The step that applies `expansion` with `degree` to the call at `node`, whose operand j is operand
// order[j] of the call that the expansion was found for.
DerivationStep StepAt(const Expansion& expansion, const Graph& graph, NodeId node, int64_t degree,
                      const std::vector<int>& order);

// A graph of one call on inputs x0, x1, .. of the given types.
absl::StatusOr<Graph> GraphOfCall(const Operator& op, absl::Span<const TensorType> operands);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_EXPANSION_H_
