// The reductions of a mapping, in order: made by mapping.cc, gone back through by
// mapping_choices.cc.
#ifndef ISOMER_OPTIMIZER_MAPPING_TRACE_H_
#define ISOMER_OPTIMIZER_MAPPING_TRACE_H_

#include <array>
#include <vector>

#include "optimizer/mapping.h"

namespace isomer {

inline constexpr int kShares = 3;

// An edge between two nodes that stands for everything that was reduced into it.
struct Composite {
  int a = -1, b = -1;  // a < b
  // The end that data comes from; -1: neither, it was reduced over a fork or a join, and is no
  // branch that could run beside another.
  int from = -1;
  // Per share of the nodes inside; an edge without inner nodes has one table for all three.
  std::array<CostTable, kShares> us;
  bool plain = false;  // no inner node: us[0] serves all
  // Series: inner node and two parts (a-m, m-b); parallel: two parts (a-b, a-b); plain: neither.
  int inner = -1;
  int left = -1, right = -1;
  const CostTable& Us(int share) const { return us[plain ? 0 : share]; }
};

// Two parallel edges are branches with operators of their own.
inline bool RunBeside(const Composite& l, const Composite& r) {
  return !l.plain && !r.plain && l.from >= 0 && l.from == r.from;
}

// What is needed to find the choices again: the reductions, in order.
struct MappingSolution::Trace {
  std::vector<MappingProblem::MappingNode> nodes;  // with the times of folded neighbours
  std::vector<Composite> composites;
  std::vector<int> terminals;
  int last = -1;  // the composite between the terminals, if any
  // Nodes folded into a neighbour (or into nothing: -1), in order of folding. Node -1: a composite
  // one end of which was given its choice for good.
  struct Fold {
    int node, neighbour, composite;
  };
  std::vector<Fold> folds;
  // A conditioned solve: alternatives per choice of `conditioned`.
  int conditioned = -1;
  std::vector<int> conditions;
  std::vector<MappingSolution> alternatives;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_TRACE_H_
