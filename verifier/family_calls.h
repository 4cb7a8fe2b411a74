// The calls of a family: what is known of all of them, and bindings to try.
#ifndef ISOMER_VERIFIER_FAMILY_CALLS_H_
#define ISOMER_VERIFIER_FAMILY_CALLS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "verifier/family.h"
#include "verifier/family_types.h"
#include "verifier/piece_lemmas.h"

namespace isomer {

// Calls that a pattern node stands for.
struct FamilyCalls {
  // True if `bases` cover every call at the rule's ranks, whatever the sizes, and the lemmas on
  // pieces and on linearity of each are proved. Else they are representative calls
  // (sample_calls.h).
  bool all = false;
  std::set<std::string> lemmas;  // if `all`
  CallFacts facts;
  // Inputs that are not parallel, and the variables in the call's attributes, bound.
  std::vector<Binding> bases;
};

// Keeps what it has proved of calls: the forms of one family have them in common.
class FamilyCallBook {
 public:
  const FamilyCalls& CallsOf(const Rule& rule, const PatternNode& call);

 private:
  static bool AllCalls(const Rule& bare, PieceLemmas* pieces, FamilyCalls* calls);
  std::map<std::string, FamilyCalls> known_;
  PieceLemmas pieces_;
};

// Bindings of `rule` at the call of `base`, with a degree of 2, at which its source may type-check:
// with every iteration dim that fits `split` (null: none is named), at degrees that the operators
// of `source` leave or make. Axes that nothing ties to the dim are tried in turn.
std::vector<Binding> TrialBindings(const Rule& rule, const FamilySide& source,
                                   const Condition* split, const Binding& base);

// Bindings at all small combinations of degrees, copies and partials of the inputs, likewise.
std::vector<Binding> WildBindings(const Rule& rule, const FamilySide& source,
                                  const Condition* split, const Binding& base);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_FAMILY_CALLS_H_
