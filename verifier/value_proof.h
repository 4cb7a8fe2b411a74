// The values half of a rule's theorem: the outputs of both sides are equal.
//
// Meanings of parallel graphs are those of sequential ones, call by call (piece_lemmas.h), and
// parallel operators are identities on meanings. So both sides of an instance are terms, whose
// equality Z3 derives from instances of lemmas (saturation.h finds them).
#ifndef ISOMER_VERIFIER_VALUE_PROOF_H_
#define ISOMER_VERIFIER_VALUE_PROOF_H_

#include <map>
#include <set>
#include <string>

#include "verifier/lemma.h"
#include "verifier/piece_lemmas.h"
#include "verifier/rule_instance.h"
#include "verifier/smt.h"

namespace isomer {

struct ValueProof {
  // kInvalid never occurs: lemmas that do not suffice refute nothing.
  SmtVerdict verdict = SmtVerdict::kUnknown;
  std::set<std::string> lemmas;  // those used, if valid
  std::string why;               // if not
};

class ValueProver {
 public:
  // REQUIRES: instance.target_status.ok().
  ValueProof Prove(const RuleInstance& instance);

 private:
  ValueProof ProveGoals(const std::vector<Goal>& goals, TermPool* pool);

  LemmaBook book_;
  PieceLemmas pieces_;
  std::map<std::string, ValueProof> known_;  // by the goals' text, with shapes
};

}  // namespace isomer

#endif  // ISOMER_VERIFIER_VALUE_PROOF_H_
