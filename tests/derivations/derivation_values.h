// What a graph computes from numbers that its leaves' names fix.
#ifndef ISOMER_TESTS_DERIVATIONS_DERIVATION_VALUES_H_
#define ISOMER_TESTS_DERIVATIONS_DERIVATION_VALUES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/evaluation/prime_field.h"
#include "pcg/ir/graph.h"

namespace isomer {

struct Computed {
  std::vector<Array<double>> outputs;
  std::vector<Array<double>> gradients;  // by leaf names, of all outputs seeded at random
};

// Leaves of one name and type hold the same in every graph: positive numbers (some are variances),
// indices below 4.
absl::StatusOr<Computed> ComputeInDouble(const Graph& graph);
absl::StatusOr<std::vector<Array<PrimeField>>> OutputsInField(const Graph& graph);

}  // namespace isomer

#endif  // ISOMER_TESTS_DERIVATIONS_DERIVATION_VALUES_H_
