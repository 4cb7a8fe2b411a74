// Memo of derivations: how rules split calls, and shortest forms of the chains of parallel
// operators between calls.
#ifndef ISOMER_OPTIMIZER_MAPPING_DERIVATION_MEMO_H_
#define ISOMER_OPTIMIZER_MAPPING_DERIVATION_MEMO_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "optimizer/mapping/copied_call.h"
#include "optimizer/sharding/chain.h"
#include "optimizer/sharding/growing_graph.h"
#include "optimizer/sharding/sharding_choice.h"

namespace isomer {

struct DerivationMemo {
  // A call expanded by one choice.
  struct Split {
    RecordedSteps steps;
    SplitCall call;
  };

  explicit DerivationMemo(const RuleIndex& rules) : chains(rules) {}

  // By call, axes and degrees of the choice.
  std::map<std::tuple<const ChoiceSpace*, std::vector<Axis>, std::vector<int64_t>>, Split> splits;
  ChainNormalizer chains;
  // Replicated calls, by operator and operand types.
  std::map<std::string, CopiedCall> copied;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_DERIVATION_MEMO_H_
