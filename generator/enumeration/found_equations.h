// Equations that enumeration finds, and the candidates that they are.
#ifndef ISOMER_GENERATOR_ENUMERATION_FOUND_EQUATIONS_H_
#define ISOMER_GENERATOR_ENUMERATION_FOUND_EQUATIONS_H_

#include <vector>

#include "generator/assignments/statistics.h"
#include "generator/enumeration/configuration.h"
#include "generator/enumeration/term_store.h"
#include "generator/preconditions/generalize.h"

namespace isomer {

// One output of a term (all of them: -1) and tensors that equal it.
struct FoundEquation {
  FoundEquation(const EnumeratedTerm& term, int output, const TensorList& equals)
      : term(term), output(output), equals(equals) {}
  EnumeratedTerm term;
  int output;
  TensorList equals;
};

// Smallest first, else in the order of the equations; of those that are renamings of one the first.
std::vector<Candidate> CandidatesOf(const std::vector<FoundEquation>& equations,
                                    const EnumeratedNodes& nodes,
                                    const Configuration& configuration, int threads,
                                    Statistics* statistics);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ENUMERATION_FOUND_EQUATIONS_H_
