// Plans as JAX: one Python file with the plan as a function of one device's parts, which
// jax.shard_map runs on all of them, and the model as it was to compare it with.
//
// Weights, inputs and outputs are arrays on a jax.sharding.Mesh, each with a PartitionSpec; inside,
// a line for each call and one for each move between placements, which is the plan's collective. So
// XLA's partitioner decides nothing (docs/exports.md says why not sharding constraints). ZeRO is a
// placement, micro-batches are a lax.scan, recomputation is the policy of a jax.checkpoint.
//
// Refused, by a line that names the node: operators without a form in JAX (jax_operators.py),
// shards that are no digits of a mesh. Refused, too, are pipelines: devices of a shard_map run one
// program.
#ifndef ISOMER_MODELS_FRAMEWORKS_JAX_EXPORT_H_
#define ISOMER_MODELS_FRAMEWORKS_JAX_EXPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "models/frameworks/leaf_tables.h"
#include "pcg/ir/plan.h"

namespace isomer {

// As PytorchFileOf (pytorch_export.h).
absl::StatusOr<FrameworkExport> JaxFileOf(const Plan& plan, const std::string& file_name,
                                          const std::string& weights_name);

}  // namespace isomer

#endif  // ISOMER_MODELS_FRAMEWORKS_JAX_EXPORT_H_
