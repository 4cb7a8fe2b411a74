// What derivations of plans have in common: how calls are split by rules, and how chains of
// parallel operators between them become shortest.
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
  // A call as a choice splits it.
  struct Split {
    RecordedSteps steps;
    SplitCall call;
  };

  explicit DerivationMemo(const RuleIndex& rules) : chains(rules) {}

  // By the call and what a choice splits of it.
  std::map<std::tuple<const ChoiceSpace*, std::vector<Axis>, std::vector<int64_t>>, Split> splits;
  ChainNormalizer chains;
  // Of calls that have copies, by what they are.
  std::map<std::string, CopiedCall> copied;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_DERIVATION_MEMO_H_
