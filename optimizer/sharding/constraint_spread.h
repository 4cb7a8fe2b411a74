// Propagation of the shardings that constraints ask for.
//
// As in GShard (Lepikhin et al. 2020, section 3.2), a split propagates through operators that map
// element to element, to their other operands and their output, until it meets a dim that has one
// already. The nearer of two wins, then the one written first.
#ifndef ISOMER_OPTIMIZER_SHARDING_CONSTRAINT_SPREAD_H_
#define ISOMER_OPTIMIZER_SHARDING_CONSTRAINT_SPREAD_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/sharding/compute_graph.h"
#include "optimizer/sharding/constraints.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/type_inference.h"

namespace isomer {

class ConstraintSpread {
 public:
  struct Want {
    int64_t degree;
    std::string source;
    int hops;  // operators it propagated through; 0: stated
  };

  // `graph` and `compute` must outlive this. Errors: unknown names, dims that do not exist, degrees
  // that do not divide, contradictions on one tensor.
  static absl::StatusOr<ConstraintSpread> Make(const Constraints& constraints, const Graph& graph,
                                               const ComputeGraph& compute);

  // Null: unconstrained.
  const Want* Find(TensorRef tensor, int dim) const;
  // The source of the constraint that replicates it, or null.
  const std::string* Replicated(TensorRef tensor) const;

 private:
  using TensorDim = std::pair<TensorRef, int>;

  ConstraintSpread(const Graph& graph, const ComputeGraph& compute)
      : graph_(graph), compute_(compute), users_(graph.Users()) {}
  absl::Status Mark(const Constraints::OfTensor& constraint);
  absl::Status MarkDim(const Constraints::OfTensor& constraint, TensorRef tensor,
                       const Constraints::Split& split);
  absl::Status CheckAgainstReplicated(TensorRef tensor, int dim) const;
  absl::Status FollowArrangements();
  bool Arrange(const Declaration& d, NodeId id, int lead, const Want& want);
  void Spread();
  std::vector<TensorDim> Corresponding(NodeId id, const TensorDim& at);
  const Declaration* DeclarationOf(NodeId id);

  const Graph& graph_;
  const ComputeGraph& compute_;
  std::vector<std::vector<Graph::Use>> users_;
  std::map<NodeId, std::optional<Declaration>> declarations_;
  std::map<TensorDim, Want> wants_;
  std::map<TensorRef, std::string> replicated_;  // with the source
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_CONSTRAINT_SPREAD_H_
