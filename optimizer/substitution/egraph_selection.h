// A selection of calls of an e-graph, one per class, and what it takes, kept up to date as calls
// change.
//
// The time of a selection is the sum over the calls that the outputs need, each once. How often
// each class and call is needed is counted, so that a change costs what it touches: what is no
// longer needed, and what is needed in its place, rather than all of the selection. Counts of calls
// that need each other never come down to zero, so a change is looked through for cycles before it
// is kept, and undone from a journal if it is not.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_SELECTION_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_SELECTION_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "optimizer/substitution/egraph.h"

namespace isomer {

// A call per class; -1 for classes that no selection needs.
struct Selection {
  std::vector<ENodeId> calls;  // by canonical class
  double us = 0;
};

// Calls that are taken together, each for a canonical class.
using SelectionMove = std::vector<std::pair<ClassId, ENodeId>>;

class CountedSelection {
 public:
  // `egraph` outlives this and does not change. `stored`: by canonical class, whether it is there
  // before the step, whatever computes it; `us_of`: what a call takes, asked once each.
  CountedSelection(const EGraph& egraph, std::vector<ClassId> outputs,
                   const std::vector<bool>& stored, std::function<double(ENodeId)> us_of);

  // Begins with these calls. False if a call needs itself, or has nothing to compute an operand.
  bool Set(const std::vector<ENodeId>& calls);
  const Selection& now() const { return now_; }

  // Whether the move changes anything that the outputs need.
  bool IsWorthTrying(const SelectionMove& move) const;
  // To be kept or undone before the next one; now().us has it already.
  void Make(const SelectionMove& move);
  // False if a call needs itself now: then it is undone.
  bool Keep();
  void Undo();

 private:
  struct OldCount {
    std::vector<int>* counts;
    int at, count;
  };

  double UsOf(ENodeId call);
  // `times` more, or less; and what that needs, or no longer needs.
  void NeedCall(ENodeId call, int times);
  void Count(std::vector<int>* counts, int at, int times);
  bool IsAcyclic();

  std::vector<std::vector<ClassId>> operands_;  // by call; canonical, what is stored left out
  const std::vector<ClassId> outputs_;
  const std::function<double(ENodeId)> us_of_;
  std::vector<double> us_;  // by call; -1: not asked for yet
  Selection now_;
  std::vector<int> class_needed_, call_needed_;
  std::vector<std::pair<ENodeId, int>> to_do_;  // of NeedCall, kept for its memory
  // Of the move that is neither kept nor undone.
  double us_before_ = 0;
  SelectionMove calls_before_;
  std::vector<OldCount> counts_before_;
  // Of IsAcyclic: 2 * visit_ is in progress, 2 * visit_ + 1 done.
  std::vector<int32_t> visited_;
  int32_t visit_ = 0;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_SELECTION_H_
