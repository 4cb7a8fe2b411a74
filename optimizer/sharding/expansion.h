// Expansions: the iteration dims of a call that rules split, and how.
//
// Nothing is assumed about operators: every expansion rule of the operator's kind is applied to a
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

// A rule applied to a call, for any position and degree.
struct Expansion {
  int dim = -1;  // the iteration dim split
  const Rule* rule = nullptr;
  std::string degree;                 // the rule's variable for the degree
  DerivationStep step;                // rule, other variables
  std::vector<int> operand_of_input;  // per rule input: the call's operand
  int inner = 0;                      // node of the call in the target pattern
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

// Memo of expansions. Nearly all rules that split an operator require only a dim that leads given
// axes and is divisible (Condition::kSplitsDim): where that holds for all of the operator's rules,
// calls whose dims lead the same axes have the same expansions, whatever their sizes and
// attributes.
class ExpansionMemo {
 public:
  // `sharding`: InferSharding of the call.
  Expansions Find(const RuleIndex& rules, const Operator& op, absl::Span<const TensorType> operands,
                  const Sharding& sharding);

 private:
  // nullopt: the operator's rules depend on more.
  std::optional<std::string> KeyOf(const RuleIndex& rules, const Operator& op,
                                   absl::Span<const TensorType> operands, const Sharding& sharding);

  // Properties of a call, besides its dims, that the rules of an operator depend on.
  enum class Sees { kDims, kAttributes, kMore };
  std::map<OpKind, Sees> sees_;
  std::map<std::string, Expansions> known_;
};

// The step that applies `expansion` with `degree` to the call at `node`, whose operand j is operand
// order[j] of the call that the expansion was found for.
DerivationStep StepAt(const Expansion& expansion, const Graph& graph, NodeId node, int64_t degree,
                      const std::vector<int>& order);

// A graph of this one call on inputs x0, x1, .. of the given types.
absl::StatusOr<Graph> GraphOfCall(const Operator& op, absl::Span<const TensorType> operands);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_EXPANSION_H_
