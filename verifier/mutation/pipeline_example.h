// A pipeline of two stages, for mutants of what puts micro-batches in order.
#ifndef ISOMER_VERIFIER_MUTATION_PIPELINE_EXAMPLE_H_
#define ISOMER_VERIFIER_MUTATION_PIPELINE_EXAMPLE_H_

#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"

namespace isomer {

// Two products on the first device and one on the second, in three micro-batches; the loss is the
// output "loss".
absl::StatusOr<MappedGraph> PipelineExample();

}  // namespace isomer

#endif  // ISOMER_VERIFIER_MUTATION_PIPELINE_EXAMPLE_H_
