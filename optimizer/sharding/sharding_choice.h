// Shardings of one call over the machine.
//
// A choice assigns the devices to axes: iteration dims of the call that are split, idle devices, or
// devices that compute the same.
// Axes are ordered from outermost to innermost in the numbering of devices, so "batch 2, n 4" on
// two nodes of four splits the batch over nodes and n within them. Only dims that a rule expands
// are split, so that every choice can be derived. Devices may idle: a call too small to split stays
// on one device or within one node (choice_axes.h). Redundant computation is not enumerated: where
// it would pay (as between the products of Megatron-LM) splitting the sequence costs the same
// communication. It is in mappings that ask for it (grid_mapping.h), and in layout calls on weights
// when plans are derived (arranged_weights.h).
#ifndef ISOMER_OPTIMIZER_SHARDING_SHARDING_CHOICE_H_
#define ISOMER_OPTIMIZER_SHARDING_SHARDING_CHOICE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optimizer/sharding/choice_axes.h"
#include "optimizer/sharding/expansion.h"
#include "optimizer/sharding/growing_graph.h"
#include "pcg/ir/plan.h"
#include "pcg/ir/type_inference.h"

namespace isomer {

// A sharded tensor's type and the devices of its shards.
struct Placement {
  TensorType type;
  MachineView view;
  friend bool operator==(const Placement&, const Placement&) = default;
};

struct ShardingChoice {
  std::vector<Axis> axes;        // outermost first
  int64_t start = 0;             // the first device
  std::vector<int64_t> degrees;  // per iteration dim: over devices and micro-batches
  // Micro-batches: every device runs so many pieces of the call, split in `moment_dim`, one after
  // the other (MachineView::moments). 1: moment_dim is -1.
  int64_t moments = 1;
  int moment_dim = -1;
  std::vector<Placement> operands, outputs;

  // Degree of iteration dim `axis` over devices; 1 if it is not split.
  int64_t DegreeOf(int axis) const;
  // How many devices compute each result: that of a kCopyAxis, or 1.
  int64_t copies() const { return outputs[0].type.copies; }
  // "b0 2 x n 4".
  std::string ToString(const Declaration& declaration) const;
};

struct ChoiceOptions {
  int64_t num_devices = 1;
  int max_axes = 2;  // of degree above 1
  int64_t start = 0;
  int64_t moments = 1;  // micro-batches of every choice, if the call has a moment_dim
  int moment_dim = -1;
  int limit = 400;                  // approximate number of choices
  std::vector<int64_t> units = {};  // devices per unit of each level
};

// Memo of whether rules split two dims of a call at once, by class of calls (same rules and ranks).
// Besides divisibility, rules constrain the dims that are already split one by one, so a set of
// dims can be split if all pairs can; the plan's derivation proves it.
class SplitPairs {
 public:
  // nullopt if unknown.
  std::optional<bool>& Of(const std::string& call_class, int a, int b) {
    return known_[{call_class, std::min(a, b), std::max(a, b)}];
  }

 private:
  std::map<std::tuple<std::string, int, int>, std::optional<bool>> known_;
};

// A call with all its choices.
struct ChoiceSpace {
  Operator op;
  std::vector<TensorType> operands;  // sequential
  Sharding sharding;                 // of the unsplit call: declaration and output types
  // Per operand (output) and dim: the iteration dim that leads it, or -1.
  std::vector<std::vector<int>> operand_leads, output_leads;
  Expansions expansions;
  std::string call_class;               // equal for equal kind
  int64_t moments = 1;                  // micro-batches of every choice
  int moment_dim = -1;                  // -1: the call runs once for all micro-batches
  std::vector<ShardingChoice> choices;  // never empty: all devices but one may idle
};

// The choice with these axes and the micro-batches of `space`. Errors: a degree that does not
// divide, an operand or output that no machine view can place (its axes are not adjacent on the
// machine; a dim that has two axes, and copies, may walk over it in two strides).
absl::StatusOr<ShardingChoice> MakeChoice(const ChoiceSpace& space, std::vector<Axis> axes,
                                          int64_t start = 0);

// `choice` with one device computing what several do, the others of them idle.
ShardingChoice WithoutCopies(const ShardingChoice& choice);

// Image of a call under a choice's derivation: operand j of the call at `id` is operand order[j] of
// the choice.
struct SplitCall {
  NodeId id;
  std::vector<int> order;
};
// Records the expansions of `choice`, outermost axis first, on a graph of the call alone
// (GraphOfCall); `call` is the image of the call in it.
absl::Status SplitByRules(const ChoiceSpace& space, const ShardingChoice& choice,
                          RecordedSteps* steps, SplitCall* call);

// The call's space without choices. Errors: it does not type-check.
absl::StatusOr<ChoiceSpace> SpaceOfCall(const RuleIndex& rules, const Operator& op,
                                        absl::Span<const TensorType> operands,
                                        ExpansionMemo* expansions);
// Adds the choices on the devices of `options`.
void AddChoices(const ChoiceOptions& options, SplitPairs* pairs, ChoiceSpace* space);

absl::StatusOr<ChoiceSpace> EnumerateChoices(const RuleIndex& rules, const Operator& op,
                                             absl::Span<const TensorType> operands,
                                             const ChoiceOptions& options);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_SHARDING_CHOICE_H_
