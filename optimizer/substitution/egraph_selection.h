// A selection of calls of an e-graph, one per class, with its cost updated incrementally.
//
// The time of a selection is the sum over the calls that the outputs need, each once. Classes and
// calls are reference-counted, so that a change costs as much as it touches. Counts of calls that
// need each other never reach zero, so a change is checked for cycles before it is kept, and
// otherwise undone from a journal.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_SELECTION_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_SELECTION_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "rules/equality/egraph.h"

namespace isomer {

// A call per class; -1 for classes that are not needed.
struct Selection {
  std::vector<ENodeId> calls;  // by canonical class
  double us = 0;
};

// Calls to select together, each for a canonical class.
using SelectionMove = std::vector<std::pair<ClassId, ENodeId>>;

class CountedSelection {
 public:
  // `egraph` outlives this and does not change. `stored`: by canonical class, whether it is loaded
  // before the step; `us_of`: time of a call, asked once each.
  CountedSelection(const EGraph& egraph, std::vector<ClassId> outputs,
                   const std::vector<bool>& stored, std::function<double(ENodeId)> us_of);

  // Starts with these calls. False if they have a cycle, or lack a call for an operand.
  bool Set(const std::vector<ENodeId>& calls);
  const Selection& now() const { return now_; }

  // Whether the move changes a call that the outputs need.
  bool IsWorthTrying(const SelectionMove& move) const;
  // Makes a move; Keep() or Undo() must follow. now().us includes it.
  void Make(const SelectionMove& move);
  // False, and undone, if the selection has a cycle.
  bool Keep();
  void Undo();

 private:
  struct OldCount {
    std::vector<int>* counts;
    int at, count;
  };

  double UsOf(ENodeId call);
  // Adds `times` references to the call, and to its operands as needed.
  void NeedCall(ENodeId call, int times);
  void Count(std::vector<int>* counts, int at, int times);
  bool IsAcyclic();

  std::vector<std::vector<ClassId>> operands_;  // by call; canonical, without stored ones
  const std::vector<ClassId> outputs_;
  const std::function<double(ENodeId)> us_of_;
  std::vector<double> us_;  // by call; -1: unknown
  Selection now_;
  std::vector<int> class_needed_, call_needed_;
  std::vector<std::pair<ENodeId, int>> to_do_;  // stack of NeedCall, kept to avoid allocation
  // Journal of the pending move.
  double us_before_ = 0;
  SelectionMove calls_before_;
  std::vector<OldCount> counts_before_;
  // Marks of IsAcyclic: 2 * visit_ is in progress, 2 * visit_ + 1 done.
  std::vector<int32_t> visited_;
  int32_t visit_ = 0;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_SELECTION_H_
