// Replicated calls: each device that needs the result computes it.
#ifndef ISOMER_OPTIMIZER_MAPPING_COPIED_CALL_H_
#define ISOMER_OPTIMIZER_MAPPING_COPIED_CALL_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optimizer/sharding/growing_graph.h"
#include "optimizer/sharding/rule_index.h"
#include "optimizer/sharding/sharding_choice.h"
#include "pcg/ir/graph.h"

namespace isomer {

// Rewrites replicate(f(x, ..)) to f(replicate(x), ..) on a graph of these two calls alone: f is
// `call`, on operands of types `operands`. NotFound: no rule proves it.
struct CopiedCall {
  RecordedSteps steps;
  SplitCall call;  // f in the rewritten graph
};
absl::StatusOr<CopiedCall> CopyCall(const RuleIndex& rules, const Operator& call,
                                    absl::Span<const TensorType> operands,
                                    const Operator& replicate);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_COPIED_CALL_H_
