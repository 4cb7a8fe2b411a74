// What tells terms apart: fingerprints of their values.
#ifndef ISOMER_GENERATOR_ENUMERATION_TERM_EVALUATOR_H_
#define ISOMER_GENERATOR_ENUMERATION_TERM_EVALUATOR_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "generator/enumeration/term_store.h"
#include "pcg/evaluation/prime_field.h"

namespace isomer {

using Fingerprints = absl::InlinedVector<Fingerprint, 2>;  // of the outputs

Fingerprint FingerprintOf(absl::Span<const PrimeField> meaning, int type);

// Evaluates terms over the tensors of a store, with the buffers of one thread.
class TermEvaluator {
 public:
  explicit TermEvaluator(const TermStore* store) : store_(store) {}

  // False: the term cannot be evaluated.
  bool Evaluate(const EnumeratedTerm& term, Fingerprints* fingerprints);
  // Only the samples; what is whole is unknown where the sample is not.
  bool Sample(const EnumeratedTerm& term, Fingerprints* fingerprints);
  // One output of the term last evaluated.
  absl::Span<const PrimeField> MeaningOf(const EnumeratedCall& call, int output) const;

  // The hash of the whole of a term's output, and of that which stands for a class.
  uint64_t WholeOf(const EnumeratedTerm& term, int output);
  uint64_t WholeOf(const TensorClass& known);

 private:
  void GatherOperands(const EnumeratedTerm& term);

  const TermStore* store_;
  std::vector<PrimeField> meanings_, scratch_;
  absl::InlinedVector<const PrimeField*, 4> operands_;
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ENUMERATION_TERM_EVALUATOR_H_
