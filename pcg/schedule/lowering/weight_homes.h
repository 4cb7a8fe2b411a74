// Where weights are stored that several operators read, like a table of embeddings that gives the
// logits, too. Internal to pcg/schedule and to those who price single moves.
//
// A weight is updated in one place, so that at most one of those who read it can have it stored as
// it wants it: its home. The others take theirs from there. If all devices have a whole copy, say,
// a part of it is cut from the own copy and nothing moves; its gradient is added to the copy's, and
// synchronised with it. The home is what leaves the least to be moved for the others.
#ifndef ISOMER_PCG_SCHEDULE_LOWERING_WEIGHT_HOMES_H_
#define ISOMER_PCG_SCHEDULE_LOWERING_WEIGHT_HOMES_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "absl/types/span.h"
#include "pcg/ir/box.h"
#include "pcg/schedule/lowering/builder.h"

namespace isomer {

// What devices have of a tensor.
using HeldBoxes = std::map<int64_t, std::vector<Box>>;
HeldBoxes HeldBoxesOf(const TensorType& type, absl::Span<const int64_t> devices);
// Of the ways to hold a tensor, the first that leaves the least to be moved for the others.
size_t BestHome(absl::Span<const HeldBoxes> wanted);

class WeightHomes {
 public:
  // Both must outlive this. `order`: of all live nodes, topological.
  WeightHomes(ScheduleBuilder* builder, absl::Span<const NodeId> order)
      : builder_(*builder), order_(order) {}

  // In training; without it there are none, as every reader has a copy of its own.
  // Errors: a node has no devices.
  absl::Status Find();

  // What is stored of the tensor: its home, or itself.
  TensorRef Of(TensorRef tensor) const {
    const auto home = homes_.find(tensor);
    return home == homes_.end() ? tensor : home->second;
  }
  bool IsHome(TensorRef tensor) const { return ends_.contains(tensor); }
  // Whether the operator is one of those that bring a weight home.
  bool LeadsHome(NodeId id) const { return on_the_way_.contains(id); }

 private:
  // Of a leaf, or of what is made of one by casts that nothing else reads; else the node's kind.
  OpKind LeafOf(NodeId id) const;
  absl::Status FindHomeOf(TensorRef weight, absl::Span<const Graph::Use> readers);

  ScheduleBuilder& builder_;
  const absl::Span<const NodeId> order_;
  std::vector<std::vector<Graph::Use>> users_;
  std::map<TensorRef, TensorRef> homes_;
  std::set<TensorRef> ends_;
  std::set<NodeId> on_the_way_;
};

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_LOWERING_WEIGHT_HOMES_H_
