// What follows from linear facts by substitution alone: most of what types require. The rest is for
// Z3 (smt.h), which takes a hundred times longer to be asked.
#ifndef ISOMER_VERIFIER_TYPES_LINEAR_FACTS_H_
#define ISOMER_VERIFIER_TYPES_LINEAR_FACTS_H_

#include <map>
#include <vector>

#include "verifier/terms/smt.h"

namespace isomer {

class LinearFacts {
 public:
  // Variables are at least 0.
  explicit LinearFacts(const std::vector<ExponentFact>& facts);
  // True if `fact` follows from one of the facts after the equations among them were solved; false
  // if that is not seen.
  bool Imply(const ExponentFact& fact) const;

 private:
  Extent Reduced(Extent form) const;
  std::map<int, Extent> solved_;  // a variable and what it equals, in variables not solved before
  std::vector<Extent> nonnegative_;  // reduced forms that are at least 0
};

}  // namespace isomer

#endif  // ISOMER_VERIFIER_TYPES_LINEAR_FACTS_H_
