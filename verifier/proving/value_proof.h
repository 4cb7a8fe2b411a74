// The values half of a rule's theorem: the outputs of both sides are equal.
//
// Meanings of parallel graphs are those of sequential ones, call by call (piece_lemmas.h), and
// parallel operators are identities on meanings. So both sides of an instance are terms, which are
// equal if they are one term, if a theorem says so (rules/theorems/structure.h), or if their
// elements have one normal form (elements/normal_form.h): the same three as in a certificate
// (certificate/equal_sides.h), here with sizes that are symbols.
#ifndef ISOMER_VERIFIER_PROVING_VALUE_PROOF_H_
#define ISOMER_VERIFIER_PROVING_VALUE_PROOF_H_

#include <map>
#include <set>
#include <string>

#include "verifier/proving/algebra_proof.h"
#include "verifier/terms/rule_instance.h"
#include "verifier/terms/smt.h"
#include "verifier/values/piece_lemmas.h"

namespace isomer {

struct ValueProof {
  // kInvalid never occurs: what is not proved is not refuted.
  SmtVerdict verdict = SmtVerdict::kUnknown;
  std::set<std::string> lemmas;  // those used, if valid
  std::string why;               // if not
};

class ValueProver {
 public:
  // REQUIRES: instance.target_status.ok().
  ValueProof Prove(const RuleInstance& instance);

 private:
  PieceLemmas pieces_;
  std::map<std::string, ValueProof> known_;  // by the goals' text, with shapes
};

}  // namespace isomer

#endif  // ISOMER_VERIFIER_PROVING_VALUE_PROOF_H_
