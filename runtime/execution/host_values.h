// Values of leaves as the host has them: whole tensors, in double.
#ifndef ISOMER_RUNTIME_EXECUTION_HOST_VALUES_H_
#define ISOMER_RUNTIME_EXECUTION_HOST_VALUES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// By name of the leaf.
using HostValues = std::map<std::string, Array<double>>;

// The initial weights and constants of the model (runtime/execution/leaf_values.h), whole.
absl::StatusOr<HostValues> InitialWeights(const Model& model, uint64_t seed);
// Random inputs: normal numbers; indices within the table or the classes that use them; zeros and
// ones for truth values and the targets of a binary cross-entropy. Not of inputs whose names are in
// `without`.
HostValues RandomInputs(const Graph& graph, uint64_t seed,
                        const std::set<std::string>& without = {});

// The value of a tensor that the host sets, from the leaves. The error names a missing leaf.
absl::StatusOr<Array<double>> ArrangeHostTensor(const Graph& graph,
                                                const Schedule::HostTensor& tensor,
                                                const HostValues& leaves);
// The inverse for parameters: the leaves (or their gradients) of which `value` is the arrangement.
absl::StatusOr<HostValues> UnarrangeHostTensor(const Graph& graph,
                                               const Schedule::HostTensor& tensor,
                                               const Array<double>& value);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_HOST_VALUES_H_
