// Models that plans are derived from, and parallel graphs that schedules are made of.
#ifndef ISOMER_VERIFIER_MUTATION_EXAMPLE_GRAPHS_H_
#define ISOMER_VERIFIER_MUTATION_EXAMPLE_GRAPHS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/plan.h"

namespace isomer {

// A multi-layer perceptron, a convolution with pooling, attention; each with a loss.
absl::StatusOr<std::vector<Model>> ExampleModels();

struct ExampleSchedule {
  std::string name;
  MappedGraph mapped;
  int64_t num_devices = 1;
};
// Samples, columns and rows, both; pieces of a vocabulary; from samples to columns and back: every
// collective there is. The loss is the output "loss".
absl::StatusOr<std::vector<ExampleSchedule>> ExampleSchedules();

}  // namespace isomer

#endif  // ISOMER_VERIFIER_MUTATION_EXAMPLE_GRAPHS_H_
