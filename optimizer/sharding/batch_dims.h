// Roles of the dims of a sequential graph, propagated from its inputs.
//
// Dim 0 of an input is the batch, dim 1 the sequence. An iteration dim of a call has the role of
// the first operand dim that it leads, an output dim that of its lead. Data parallelism and
// micro-batches split the batch. A Reshape that takes the sequence apart leaves the role to the
// outer part; the one that joins both parts, in whichever order they are by then, gives it back.
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
  kWithinSequence,  // the inner part of one that was taken apart
  kModel,           // set by the caller: split by tensor parallelism
  kExpert,          // set by the caller: split by expert parallelism
};

class DimRoles {
 public:
  // Sets the roles of the inputs of `graph`, which must outlive this.
  explicit DimRoles(const Graph& graph);

  // Roles of a call's iteration dims, from its operands'. REQUIRES: operands have roles.
  std::vector<DimRole> OfCall(NodeId call, const Declaration& declaration) const;
  // Sets the roles of the outputs of `call`, whose iteration dims have `roles`.
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

// Per node: the first iteration dim that is the batch, or -1.
std::vector<int> BatchDims(const Graph& graph);
// An input of a piece that stands for a tensor with these roles.
struct FedRoles {
  NodeId input;
  std::vector<DimRole> roles;
};
// The same, for a piece of a graph.
std::vector<int> BatchDims(const Graph& piece, absl::Span<const FedRoles> fed);

// The roles of every tensor.
DimRoles RolesOf(const Graph& graph);

// Per node: whether it depends on an input, rather than on stored tensors alone.
std::vector<bool> OfData(const Graph& graph);

// The greatest number of equal parts, of an integral number of samples, that all inputs can be
// split into.
int64_t BatchSize(const Graph& graph);

// Whether a per-sample call depends on values over several samples (batch statistics): then
// micro-batches are not independent, and pipelines are useless.
bool MixesSamples(const Graph& graph);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_BATCH_DIMS_H_
