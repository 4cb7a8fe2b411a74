// Mixed precision: a plan computes in bfloat16 or float16 what its graph says in float32.
//
// A plan is derived in float32; the lowering applies the precision to its mapped graph, for the
// runtime and the simulator alike:
//   - A weight all of whose users compute low is cast where it comes from the host, before anything
//     arranges it: what devices store is low. Its float32 master is trained where the lowering
//     keeps the optimizer's states, and its gradients are summed in float32
//     (pcg/schedule/schedule.h). One that the loss has no gradient of has no master.
//   - Inputs, constants and other weights stay float32 where they are fed and stored; so does what
//     arranges them on the host. A cast follows on the devices that have them. So it is with
//     weights that are outputs of the graph.
//   - Look-ups read tables as they are stored; of a float32 one they cast the rows they find.
//   - Losses, LogSoftmax, and the reductions that lead to nothing but the loss run in float32, and
//     so does the arithmetic on their results until the next contraction.
//   - What is made from integers and constants alone (positions, masks) is float32 until something
//     else uses it: the low types do not count far.
//   - Everything else runs in the low type; casts lie where the two meet.
//   - Outputs have the types that they had. States (states.h) stay on the devices, and are low.
//   - Of bfloat16, products with weights may be in 8 bits (pcg/ir/fp8.h): where they compute low,
//     their calls get the attribute.
// Micikevicius et al., "Mixed Precision Training" (2018).
#ifndef ISOMER_PCG_IR_PRECISION_H_
#define ISOMER_PCG_IR_PRECISION_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pcg/ir/fp8.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"

namespace isomer {

// "float32", "bfloat16", "float16". REQUIRES: IsFloat(precision).
absl::string_view PrecisionName(DataType precision);
absl::StatusOr<DataType> ParsePrecision(absl::string_view name);
// What --precision may say besides: bfloat16, and products with weights in 8 bits.
inline constexpr absl::string_view kFp8Precision = "fp8";
// Of those names and that one: the type, and products in 8 bits with a scale per tensor.
absl::StatusOr<std::pair<DataType, Fp8Products>> ParsePlanPrecision(absl::string_view name);

// The gradient of the loss that training starts from, so that small gradients of float16 are not
// lost: 1 for the others, which have the range of float32. The update divides by it. isomer-run
// finds a larger one where it can (runtime/execution/loss_scale.h).
double LossScale(DataType precision);

// In what a plan that computes in `precision` may sum gradients of weights over devices, but for
// float32 (UpdateOptions::gradient_sums): in that, or in bfloat16, which has float32's range.
DataType LowGradientSums(DataType precision);

// Half the distance of 1 to the next number: what rounding changes relatively, at most.
double UnitRoundoff(DataType precision);
// The smallest number above 0 of float16; of the others, whose range nothing leaves, 0.
double SmallestPositive(DataType precision);

// `graph` with the float32 of its compute nodes in `precision`. `loss` is the name of the output
// that is trained on, or empty. Casts of what is recomputed or offloaded are so, too. In inference
// what the host prepares (CanRunOnHost) is computed as it is, and weights are converted when
// loaded.
absl::StatusOr<MappedGraph> ApplyPrecision(const Graph& graph, absl::Span<const MachineView> views,
                                           absl::string_view loss, DataType precision,
                                           absl::Span<const NodeId> recomputed = {},
                                           bool training = true, const Fp8Products& fp8 = {},
                                           absl::Span<const NodeId> offloaded = {});
// `graph` in the precision of the plan, which it may be the graph of on fewer devices.
absl::StatusOr<MappedGraph> InPrecisionOf(const Plan& plan, const Graph& graph,
                                          absl::Span<const MachineView> views);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_PRECISION_H_
