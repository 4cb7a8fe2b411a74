// What the dims of a sequential graph stand for, followed from its inputs.
//
// Dim 0 of what is fed is the batch, dim 1 the sequence. An iteration dim of a call stands for what
// the first operand dim that it leads stands for, an output dim for what its lead does. Data
// parallelism and micro-batches split the batch.
#ifndef ISOMER_OPTIMIZER_SHARDING_BATCH_DIMS_H_
#define ISOMER_OPTIMIZER_SHARDING_BATCH_DIMS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "pcg/ir/declaration.h"
#include "pcg/ir/graph.h"

namespace isomer {

enum class DimRole : char {
  kNone,
  kBatch,
  kSequence,
  kModel,  // marked by who follows: split by tensor parallelism
};

class DimRoles {
 public:
  // Marks the inputs of `graph`, which must outlive this.
  explicit DimRoles(const Graph& graph);

  // Of the iteration dims of a call, by its operands. REQUIRES: what they need was marked.
  std::vector<DimRole> OfCall(NodeId call, const Declaration& declaration) const;
  // The outputs of `call`, if its iteration dims stand for `roles`.
  void Mark(NodeId call, const Declaration& declaration, const std::vector<DimRole>& roles);
  void set(TensorRef tensor, const std::vector<DimRole>& roles) {
    roles_[tensor.node.value][tensor.output] = roles;
  }
  const std::vector<DimRole>& of(TensorRef tensor) const {
    return roles_[tensor.node.value][tensor.output];
  }

 private:
  const Graph& graph_;
  std::vector<std::vector<std::vector<DimRole>>> roles_;  // [node][output][dim]
};

// Per node: the iteration dim that the batch leads, or -1. If there are several, the first.
std::vector<int> BatchDims(const Graph& graph);
// An input of a piece of a graph that stands for a tensor whose dims have these roles.
struct FedRoles {
  NodeId input;
  std::vector<DimRole> roles;
};
// The same of a piece.
std::vector<int> BatchDims(const Graph& piece, absl::Span<const FedRoles> fed);

// Of every tensor.
DimRoles RolesOf(const Graph& graph);

// The greatest number of equal parts, each of whole samples, that all that is fed can be cut into.
int64_t BatchSize(const Graph& graph);

// Whether a call that works on samples apart needs what is made of several (the statistics of a
// batch): then micro-batches have no order, and pipelines no use.
bool MixesSamples(const Graph& graph);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_BATCH_DIMS_H_
