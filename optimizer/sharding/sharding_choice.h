// The ways to spread one call over the machine.
//
// A choice deals the devices to axes: iteration dims of the call that are split, or idle devices.
// Axes are ordered from outermost to innermost in the numbering of
// devices, so "batch 2, n 4" on two nodes of four splits the batch over nodes and n within them.
// Only dims that a rule expands are split, so that every choice can be derived. Devices may idle:
// a call that is not worth spreading stays on one device or within one node (choice_axes.h).
// Redundant equal tasks are not in the space: nothing takes copies away again, and where they would
// pay (as between the products of Megatron-LM) a split of the sequence costs the same
// communication. Calls that arrange weights have some, once plans are derived (arranged_weights.h).
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

// A tensor on the machine.
struct Placement {
  TensorType type;
  MachineView view;
  friend bool operator==(const Placement&, const Placement&) = default;
};

struct ShardingChoice {
  std::vector<Axis> axes;        // outermost first
  int64_t start = 0;             // the first device
  std::vector<int64_t> degrees;  // per iteration dim: over devices and moments
  // Micro-batches: every device works through so many pieces of the call one after the other, which
  // are pieces of `moment_dim` (MachineView::moments). 1: moment_dim is -1.
  int64_t moments = 1;
  int moment_dim = -1;
  std::vector<Placement> operands, outputs;

  // Over devices.
  int64_t DegreeOf(int axis) const;
  // "b0 2 x n 4".
  std::string ToString(const Declaration& declaration) const;
};

struct ChoiceOptions {
  int64_t num_devices = 1;
  int max_axes = 2;  // of degree above 1
  int64_t start = 0;
  int64_t moments = 1;  // of every choice, if the call has a dim for them:
  int moment_dim = -1;
  int limit = 400;                  // choices, about
  std::vector<int64_t> units = {};  // devices in a unit of each level of the machine
};

// Whether the rules split two dims of a call at once, for calls of the same rules and ranks. What
// rules ask of a split but for divisibility is about the dims that are split already, one by one,
// so that dims can be split together if all pairs of them can; a plan's derivation is the proof.
class SplitPairs {
 public:
  // Null if it is not known yet.
  std::optional<bool>& Of(const std::string& call_class, int a, int b) {
    return known_[{call_class, std::min(a, b), std::max(a, b)}];
  }

 private:
  std::map<std::tuple<std::string, int, int>, std::optional<bool>> known_;
};

// A call, and all its choices.
struct ChoiceSpace {
  Operator op;
  std::vector<TensorType> operands;  // sequential
  Sharding sharding;                 // unsplit: declaration and output types
  // Per operand (output) and dim: the iteration dim that leads it, or -1.
  std::vector<std::vector<int>> operand_leads, output_leads;
  Expansions expansions;
  std::string call_class;  // equal for calls of the same kind, ranks, and rules that split them
  int64_t moments = 1;     // of every choice
  int moment_dim = -1;     // -1: the call runs once for all micro-batches
  std::vector<ShardingChoice> choices;  // never empty: all devices but one may idle
};

// The choice with these axes, and the moments of `space`. Errors: a degree that does not divide, an
// operand or output whose shards no machine view places (its axes are not neighbours on the
// machine).
absl::StatusOr<ShardingChoice> MakeChoice(const ChoiceSpace& space, std::vector<Axis> axes,
                                          int64_t start = 0);

// Where a call went when its choice was derived: operand j of the call at `id` is operand order[j]
// of the choice.
struct SplitCall {
  NodeId id;
  std::vector<int> order;
};
// The expansions of `choice`, outermost axis first, on a graph of the call alone (GraphOfCall), in
// which `call` is where the call ends up.
absl::Status SplitByRules(const ChoiceSpace& space, const ShardingChoice& choice,
                          RecordedSteps* steps, SplitCall* call);

// A call without choices. Errors: it does not type-check.
absl::StatusOr<ChoiceSpace> SpaceOfCall(const RuleIndex& rules, const Operator& op,
                                        absl::Span<const TensorType> operands,
                                        ExpansionMemo* expansions);
// Adds the choices on some devices of the machine.
void AddChoices(const ChoiceOptions& options, SplitPairs* pairs, ChoiceSpace* space);

absl::StatusOr<ChoiceSpace> EnumerateChoices(const RuleIndex& rules, const Operator& op,
                                             absl::Span<const TensorType> operands,
                                             const ChoiceOptions& options);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_SHARDING_CHOICE_H_
