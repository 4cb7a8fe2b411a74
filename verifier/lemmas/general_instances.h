// The instances of a lemma of the table: each combination of ranks, axes and broadcastings at which
// both sides are well typed, with symbols for sizes.
#ifndef ISOMER_VERIFIER_LEMMAS_GENERAL_INSTANCES_H_
#define ISOMER_VERIFIER_LEMMAS_GENERAL_INSTANCES_H_

#include <map>
#include <string>
#include <vector>

#include "verifier/exhaustive/equation.h"
#include "verifier/lemma.h"

namespace isomer {

struct GeneralInstance {
  std::map<char, Shape> shapes;
  std::map<char, int64_t> axes;
  std::map<char, std::vector<Extent>> sizes;
  std::map<char, NumberExpr> factors;
};

// Those of ranks 1 to 4 that the prover proves for all sizes, at most `most`, lower ranks first. A
// lemma says not for which shapes it holds: what is not proved is not used.
std::vector<GeneralInstance> ProvedInstances(const Lemma& lemma, int most);

// The instance at sizes from 1 to 4, at most `most` of them, spread over all; those at which a size
// would not be positive are left out.
std::vector<EquationBinding> SmallBindings(const GeneralInstance& instance, int most);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_LEMMAS_GENERAL_INSTANCES_H_
