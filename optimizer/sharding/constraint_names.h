// Resolves the names in constraints to tensors and operators of a model.
#ifndef ISOMER_OPTIMIZER_SHARDING_CONSTRAINT_NAMES_H_
#define ISOMER_OPTIMIZER_SHARDING_CONSTRAINT_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "optimizer/sharding/compute_graph.h"
#include "pcg/ir/graph.h"

namespace isomer {

// InvalidArgument "mine.txt:3: `what`".
absl::Status ConstraintError(absl::string_view source, absl::string_view what);

// Tensors whose name matches `name` (constraints.proto). Errors: no such tensor; names the nearest.
absl::StatusOr<std::vector<TensorRef>> TensorsNamed(const Graph& graph, const std::string& name,
                                                    const std::string& source);
// Likewise operators, among those that run in every step.
absl::StatusOr<std::vector<NodeId>> OperatorsNamed(const Graph& graph, const ComputeGraph& compute,
                                                   const std::string& name,
                                                   const std::string& source);

// The tensor's name in messages.
std::string TensorLabel(const Graph& graph, TensorRef tensor);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_CONSTRAINT_NAMES_H_
