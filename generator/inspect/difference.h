// Two rules files compared.
#ifndef ISOMER_GENERATOR_INSPECT_DIFFERENCE_H_
#define ISOMER_GENERATOR_INSPECT_DIFFERENCE_H_

#include <string>
#include <utility>
#include <vector>

#include "rules/language/rule.h"

namespace isomer {

// Rules are the same if their digests are: what the theorem says, not how it was found or proved.
// The order of the files does not matter.
struct RuleSetDifference {
  std::vector<const Rule*> only_first, only_second;
  // Not the same, but of the same patterns: other conditions, ranks or direction. Each rule is in
  // one pair at most, and not in the lists above.
  std::vector<std::pair<const Rule*, const Rule*>> other_conditions;
  // The same, but with another verdict or from other lemmas.
  std::vector<std::pair<const Rule*, const Rule*>> other_proofs;
  int same = 0;  // with other_proofs

  bool empty() const {
    return only_first.empty() && only_second.empty() && other_conditions.empty() &&
           other_proofs.empty();
  }
};

// Pointers are into `first` and `second`; lists are in order of ids.
RuleSetDifference Compare(const RuleSet& first, const RuleSet& second);

// "- rule" for those of the first alone, "+ rule" for those of the second alone, "~" for the rest.
std::string DifferenceText(const RuleSetDifference& difference);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_INSPECT_DIFFERENCE_H_
