// The calls of a family: what is known of all of them, and bindings to try.
#ifndef ISOMER_VERIFIER_FAMILIES_FAMILY_CALLS_H_
#define ISOMER_VERIFIER_FAMILIES_FAMILY_CALLS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "rules/calls/calls_of_ranks.h"
#include "verifier/families/family.h"
#include "verifier/families/family_types.h"
#include "verifier/values/piece_lemmas.h"

namespace isomer {

// Calls that a pattern node stands for.
//
// A family is stated at ranks up to 6 (kMostShardedRank), and calls that broadcast three operands
// of rank 6 are a hundred thousand. So `bases`, which are tried, are of ranks up to 4, and `facts`,
// which the proof is made of, of all of the rule's ranks.
struct FamilyCalls {
  // True if `facts` are those of every call at the rule's ranks, whatever the sizes. Else they are
  // those of representative calls (representative_calls.h), at every rank.
  bool all = false;
  std::set<std::string> lemmas;  // if `all`, of those that are looked at one by one
  CallFacts facts;
  // Inputs that are not parallel, and the variables in the call's attributes, bound.
  std::vector<Binding> bases;
};

// Keeps what it has proved of calls: the forms of one family have them in common.
class FamilyCallBook {
 public:
  const FamilyCalls& CallsOf(const Rule& rule, const PatternNode& call);

 private:
  // All calls at one rank vector; not `all`: their sizes or attributes must be known.
  struct CallsAtRanks {
    FamilyCalls calls;
    bool alike = true;  // each treats its dims alike
  };
  bool AllCalls(const Rule& bare, FamilyCalls* calls);
  const CallsAtRanks& CallsAt(const Rule& bare, const std::vector<int>& ranks, bool alike);
  void RepresentativesOf(const Rule& bare, FamilyCalls* calls);
  std::map<std::string, FamilyCalls> known_;
  std::map<std::string, CallsAtRanks> at_ranks_;
  std::map<OpKind, std::vector<OperatorCall>> representatives_;  // at every rank
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

#endif  // ISOMER_VERIFIER_FAMILIES_FAMILY_CALLS_H_
