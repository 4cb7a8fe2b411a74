// Level 1: cutting a graph into pieces at its post-dominators.
//
// A cut lies after an operator whose output is the only earlier tensor that is used later:
// everything before it interacts with everything after it through that tensor alone, so the pieces
// can be solved independently for every placement of the tensors that cross. Repeated layers are
// equal pieces, and are solved once. cut_choice.h chooses the cuts.
//
// The possible placements of a crossing tensor are those its producer can leave it in, copies and
// partial sums included; the user's piece reshards.
//
// Where skip connections are long (a U-Net, an unrolled recurrent network) no such cut exists, and
// the stretch is one piece. But where a stretch is very long because of tensors that live through
// most of it (an encoder's output for every layer of a decoder), or that are small (a loss per
// layer, summed up in the end), these are carried: cuts are where nothing else crosses, and all
// pieces take a carried tensor from one placement, chosen for the full chain (carried_tensors.h).
// So the layers of such a decoder are equal pieces, too.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_SPLITTING_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_SPLITTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/sharding/batch_dims.h"
#include "pcg/ir/graph.h"
#include "rules/matching/rule_matcher.h"

namespace isomer {

struct CallRestriction;
class Restrictions;

// The graph output of a piece that crosses to the next piece.
inline constexpr char kCrossingOutput[] = "@crossing";
// Name of the graph output for Piece::carried_out[place].
std::string CarriedOutput(size_t place);

struct Piece {
  struct CarriedIn {
    TensorRef tensor;       // in the full graph
    NodeId node;            // in `graph`: an input
    bool gradient = false;  // it depends on a weight
  };
  struct CarriedOut {
    TensorRef tensor;  // in the full graph
    int uses = 0;      // in later pieces
  };

  // Stand-alone: the tensor that crosses in is the input "in"; weights and inputs are named in
  // order; the tensor that crosses out is the output kCrossingOutput.
  Graph graph;
  std::vector<NodeId> whole_ids;  // per node of `graph`: the node of the full graph
  bool has_in = false, has_out = false;
  TensorRef in, out;         // in the full graph
  NodeId in_node;            // in `graph`
  bool in_gradient = false;  // the tensor that crosses in depends on a weight
  // Tensors of earlier pieces used here, and tensors produced here that later pieces use, other
  // than those that cross to the next piece.
  std::vector<CarriedIn> carried_in;
  std::vector<CarriedOut> carried_out;
  std::vector<FedRoles> fed_roles;  // roles of crossing and carried inputs
  // Per node of `graph` before rewrites: the user's restriction of its choices, or null; later
  // nodes have none. Restricted nodes are not rewritten.
  std::vector<const CallRestriction*> restrictions;
  // Equal for equal pieces, with equal roles and restrictions; ignores the salts of operators that
  // no rule matches.
  uint64_t key = 0;
  // Inputs that depend on a weight.
  std::vector<NodeId> FedWithGradient() const;

  const CallRestriction* RestrictionOf(NodeId id) const {
    return id.value < static_cast<int>(restrictions.size()) ? restrictions[id.value] : nullptr;
  }
};

// Pieces in order, of at least `min_nodes` operators each (except the last). `restrictions`: null,
// or must outlive the pieces. `matcher`: of the rules whose matches cuts should not split, or null.
absl::StatusOr<std::vector<Piece>> SplitGraph(const Graph& graph, int min_nodes,
                                              const Restrictions* restrictions = nullptr,
                                              RuleMatcher* matcher = nullptr);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_SPLITTING_H_
