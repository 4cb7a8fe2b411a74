// Calls of which each device that needs their result makes a copy.
#ifndef ISOMER_OPTIMIZER_MAPPING_COPIED_CALL_H_
#define ISOMER_OPTIMIZER_MAPPING_COPIED_CALL_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optimizer/sharding/growing_graph.h"
#include "optimizer/sharding/rule_index.h"
#include "pcg/ir/graph.h"

namespace isomer {

// Makes replicate(f(x, ..)) f(replicate(x), ..), on a graph of these two calls alone: `replicate`
// is the operator, f and the types of its operands are `call`'s. NotFound: no rule says so.
struct CopiedCall {
  RecordedSteps steps;
  NodeId id;  // f, there
};
absl::StatusOr<CopiedCall> CopyCall(const RuleIndex& rules, const Operator& call,
                                    absl::Span<const TensorType> operands,
                                    const Operator& replicate);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_COPIED_CALL_H_
