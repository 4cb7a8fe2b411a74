// Proves rules: for every size, degree, number of copies and partials that a rule's conditions
// admit, at each of its rank vectors and axes.
//
// The two halves of a rule's theorem are proved separately:
//   types:  degrees, copies and partials only multiply and divide, so the statement is one about
//           exponents of a prime, which is linear and which Z3 decides
//           (verifier/types/type_proof.h);
//   values: parallel operators are identities on meanings, so both sides are terms over declared
//           operators; Z3 derives their equality from instances of lemmas
//           (verifier/proving/value_proof.h), and every lemma instance is proved from the
//           declarations (verifier/elements/normal_form.h).
// A rule that fails is given to the reference evaluator to find a counterexample; a rule that is
// proved is evaluated too, and a difference there aborts the program: one of the two has a bug.
#ifndef ISOMER_VERIFIER_PROVING_PROVER_H_
#define ISOMER_VERIFIER_PROVING_PROVER_H_

#include <memory>
#include <optional>
#include <string>

#include "rules/language/rule.h"
#include "verifier/refutation/counterexample.h"

namespace isomer {

struct Judgement {
  ProofRecord record;
  // Set if and only if record.verdict is kRefuted.
  std::optional<Counterexample> counterexample;
};

// Keeps what it has proved, so that rules with the same terms are proved once. Not thread-safe;
// parallel proofs run in processes.
class Prover {
 public:
  Prover();
  ~Prover();

  // The verdict with its lemmas, solver, time and note. The rule's own record is not read.
  ProofRecord Prove(const Rule& rule) { return Judge(rule).record; }
  // The same with the counterexample of a refutation.
  Judgement Judge(const Rule& rule);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace isomer

#endif  // ISOMER_VERIFIER_PROVING_PROVER_H_
