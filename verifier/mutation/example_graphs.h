// Models that plans are derived from.
#ifndef ISOMER_VERIFIER_MUTATION_EXAMPLE_GRAPHS_H_
#define ISOMER_VERIFIER_MUTATION_EXAMPLE_GRAPHS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"

namespace isomer {

// A multi-layer perceptron, a convolution with pooling, attention; each with a loss.
absl::StatusOr<std::vector<Model>> ExampleModels();

}  // namespace isomer

#endif  // ISOMER_VERIFIER_MUTATION_EXAMPLE_GRAPHS_H_
