// How a call is spread over devices, in words.
#ifndef ISOMER_OPTIMIZER_REPORT_SPLIT_TEXT_H_
#define ISOMER_OPTIMIZER_REPORT_SPLIT_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optimizer/machine/machine.h"
#include "optimizer/sharding/rule_index.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/plan.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// The sharding of one call. The first dim of an output is called its batch.
struct CallSplit {
  struct Part {
    std::string dim;  // "batch", "columns", "contraction"
    int64_t micro_batches = 1, devices = 1;
    std::string place;  // of the devices: "4 devices of a node"
    // Of a product with a stored matrix, in Megatron-LM's words (Shoeybi et al., 2019): by columns
    // of the matrix "column-parallel", by its rows, so that results are partial sums,
    // "row-parallel". Of causal attention on parts with tokens from all over the sequence "in
    // stripes" (striped_order.h). Else "".
    std::string role = {};
  };
  std::vector<Part> parts;
  int64_t copies = 1;  // devices that compute the same
  std::string copies_place;
  int64_t first_device = 0;

  // "batch over 2 nodes, columns over 4 devices of a node (column-parallel)", "whole, on device 0".
  // `with_start`: of what is split, also the first device, where it is not device 0.
  std::string ToString(bool with_start = true) const;
};
// Errors: the call does not type-check.
absl::StatusOr<CallSplit> SplitOf(const MappedGraph& mapped, NodeId id, const Machine& machine);

// Explains why a call on tensors of these (sequential) types is unsplit on so many devices:
// "because no rule splits it", "because none of its sizes has a divisor in common with 8 devices",
// "though batch or dim 2 could be split". Errors: the call does not type-check.
absl::StatusOr<std::string> WhyWhole(const Operator& op, absl::Span<const TensorType> operands,
                                     int64_t devices, const RuleIndex& rules);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_SPLIT_TEXT_H_
