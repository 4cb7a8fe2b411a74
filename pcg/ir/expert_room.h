// How many tokens the experts of a mixture have room for, and what a model assumes of their load.
//
// Routing calls (topk_routing, top2_gating) give an expert room for `capacity` tokens of each group
// of tokens, and drop what exceeds it, for sizes follow from types and not from data. A model that
// is to drop nothing assumes how uneven the load is at most. Its experts have room for that, and a
// run with a load that exceeds it is an error, not another result.
#ifndef ISOMER_PCG_IR_EXPERT_ROOM_H_
#define ISOMER_PCG_IR_EXPERT_ROOM_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/plan.h"

namespace isomer {

// Whether calls of this kind send tokens to experts with limited room.
bool SendsToExperts(OpKind kind);

// Whether experts are in groups, of which a token chooses some first. `scores`: sizes of operand 0
// of such a call, [groups.., tokens, experts].
bool HasExpertGroups(absl::Span<const int64_t> scores);

struct ExpertRoom {
  int64_t tokens = 0;    // of a group
  int64_t experts = 0;   // that these choose among
  int64_t choices = 0;   // of a token
  int64_t capacity = 0;  // tokens of a group for which an expert has room

  // What each expert gets of a group if all get the same.
  double even_load() const;
  // Room for `imbalance` times the even load. An expert never gets more than all tokens.
  int64_t CapacityFor(double imbalance) const;
};

// REQUIRES: SendsToExperts(op.kind()). `scores`: sizes of operand 0, [groups.., tokens, experts].
ExpertRoom ExpertRoomOf(const Operator& op, absl::Span<const int64_t> scores);

// A line of Model::assumptions: no expert gets more than `imbalance` times the even load.
std::string ImbalanceAssumption(double imbalance);
// What the line says; 0: it is another one.
double ParseImbalance(const std::string& assumption);
// What `model` assumes; 0: nothing, and its experts drop what they have no room for.
double AssumedImbalance(const Model& model);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_EXPERT_ROOM_H_
