// Level 1: cutting a graph into pieces at its post-dominators.
//
// A cut lies behind an operator whose output is the only tensor that anything later uses (of what
// comes before): everything before it acts on everything after it through that tensor alone, so the
// pieces can be solved one by one for every way to hold the tensors that cross. Repeated layers are
// equal pieces, and are solved once. Which cuts are taken: cut_choice.h.
//
// What may cross is how the producer can leave its output, copies and partial sums included; the
// user's piece reshards.
//
// Where skips run over long stretches (a U-Net, an unrolled recurrent network) no such cut exists,
// and the stretch is one piece. But where a stretch is very long because of tensors that run along
// most of it (what an encoder leaves for every layer of a decoder), or that are small (a loss of
// each layer, summed up in the end), these are carried: cuts are where nothing else crosses, and
// all pieces take a carried tensor as it is held in one place, which is chosen for the whole chain
// (carried_tensors.h). So are the layers of such a decoder equal pieces, too.
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

// The graph output of a piece that crosses to the next.
inline constexpr char kCrossingOutput[] = "@crossing";
// Piece::carried_out, by its place.
std::string CarriedOutput(size_t place);

struct Piece {
  struct CarriedIn {
    TensorRef tensor;       // in the whole graph
    NodeId node;            // in `graph`: an input
    bool gradient = false;  // it depends on a weight
  };
  struct CarriedOut {
    TensorRef tensor;  // in the whole graph
    int uses = 0;      // by later pieces
  };

  // Stand-alone: what crosses in is the input "in"; weights and inputs are named in order; what
  // crosses out is the output kCrossingOutput.
  Graph graph;
  std::vector<NodeId> whole_ids;  // per node of `graph`: the node of the whole graph
  bool has_in = false, has_out = false;
  TensorRef in, out;         // in the whole graph
  NodeId in_node;            // in `graph`
  bool in_gradient = false;  // what crosses in depends on a weight
  // Tensors of earlier pieces that are used here, and tensors made here that later pieces use, but
  // for what crosses from a piece to the next.
  std::vector<CarriedIn> carried_in;
  std::vector<CarriedOut> carried_out;
  std::vector<FedRoles> fed_roles;  // of what crosses in, and of what is carried in
  // Per node of `graph` before any rewrite, what a user leaves of its choices, or null; nodes
  // beyond have none. Nodes with one are not rewritten.
  std::vector<const CallRestriction*> restrictions;
  // Equal for equal pieces, roles and restrictions included; whatever the salts are of operators
  // that no rule looks at.
  uint64_t key = 0;
  // Inputs that depend on a weight.
  std::vector<NodeId> FedWithGradient() const;

  const CallRestriction* RestrictionOf(NodeId id) const {
    return id.value < static_cast<int>(restrictions.size()) ? restrictions[id.value] : nullptr;
  }
};

// Pieces in order, of at least `min_nodes` operators each (but for the last). `restrictions`: null,
// or what must outlive the pieces. `matcher`: of the rules whose matches should not be cut, or
// null.
absl::StatusOr<std::vector<Piece>> SplitGraph(const Graph& graph, int min_nodes,
                                              const Restrictions* restrictions = nullptr,
                                              RuleMatcher* matcher = nullptr);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_SPLITTING_H_
