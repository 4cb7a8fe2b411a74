#include "optimizer/substitution/egraph_selection.h"

#include <algorithm>

#include "optimizer/mapping/cost_tables.h"

namespace isomer {
namespace {

// Marks a class whose call is being exchanged: needed, but by no counted call yet.
constexpr ENodeId kHeld = -2;

}  // namespace

CountedSelection::CountedSelection(const EGraph& egraph, std::vector<ClassId> outputs,
                                   const std::vector<bool>& stored,
                                   std::function<double(ENodeId)> us_of)
    : operands_(egraph.num_nodes()),
      outputs_(std::move(outputs)),
      us_of_(std::move(us_of)),
      us_(egraph.num_nodes(), -1),
      class_needed_(egraph.num_classes()),
      call_needed_(egraph.num_nodes()),
      visited_(egraph.num_nodes()) {
  for (ENodeId call = 0; call < egraph.num_nodes(); ++call) {
    for (ClassId operand : egraph.node(call).operands) {
      operand = egraph.Find(operand);
      if (!stored[operand]) operands_[call].push_back(operand);
    }
  }
}

bool CountedSelection::Set(const std::vector<ENodeId>& calls) {
  now_ = {calls, 0};
  std::fill(class_needed_.begin(), class_needed_.end(), 0);
  std::fill(call_needed_.begin(), call_needed_.end(), 0);
  counts_before_.clear();
  calls_before_.clear();
  for (ClassId output : outputs_) {
    Count(&class_needed_, output, 1);
    NeedCall(now_.calls[output], 1);
  }
  counts_before_.clear();
  return now_.us < kImpossibleUs && IsAcyclic();
}

bool CountedSelection::IsWorthTrying(const SelectionMove& move) const {
  bool changes = false, needed = false;
  for (const auto& [id, call] : move) {
    changes |= now_.calls[id] != call;
    needed |= class_needed_[id] > 0;
  }
  return changes && needed;
}

void CountedSelection::Make(const SelectionMove& move) {
  us_before_ = now_.us;
  calls_before_.clear();
  counts_before_.clear();
  // Removes all old calls first, so that nothing is counted by old and new calls at once.
  for (const auto& [id, call] : move) {
    const ENodeId old = now_.calls[id];
    calls_before_.emplace_back(id, old);
    now_.calls[id] = kHeld;
    if (class_needed_[id] > 0) NeedCall(old, -class_needed_[id]);
  }
  for (const auto& [id, call] : move) {
    now_.calls[id] = call;
    if (class_needed_[id] > 0) NeedCall(call, class_needed_[id]);
  }
}

bool CountedSelection::Keep() {
  if (now_.us >= kImpossibleUs || !IsAcyclic()) {
    Undo();
    return false;
  }
  return true;
}

void CountedSelection::Undo() {
  now_.us = us_before_;
  for (size_t i = calls_before_.size(); i-- > 0;) {
    now_.calls[calls_before_[i].first] = calls_before_[i].second;
  }
  for (size_t i = counts_before_.size(); i-- > 0;) {
    (*counts_before_[i].counts)[counts_before_[i].at] = counts_before_[i].count;
  }
}

double CountedSelection::UsOf(ENodeId call) {
  if (call < 0) return kImpossibleUs;
  if (us_[call] < 0) us_[call] = us_of_(call);
  return us_[call];
}

void CountedSelection::Count(std::vector<int>* counts, int at, int times) {
  counts_before_.push_back({counts, at, (*counts)[at]});
  (*counts)[at] += times;
}

void CountedSelection::NeedCall(ENodeId call, int times) {
  to_do_.assign(1, {call, times});
  while (!to_do_.empty()) {
    const auto [next, more] = to_do_.back();
    to_do_.pop_back();
    if (next < 0) {  // nothing computes it
      now_.us += more > 0 ? kImpossibleUs : 0;
      continue;
    }
    const bool was_needed = call_needed_[next] > 0;
    Count(&call_needed_, next, more);
    const bool is_needed = call_needed_[next] > 0;
    if (was_needed == is_needed) continue;
    const int sign = is_needed ? 1 : -1;
    now_.us += sign * UsOf(next);
    for (ClassId operand : operands_[next]) {
      Count(&class_needed_, operand, sign);
      if (now_.calls[operand] != kHeld) to_do_.emplace_back(now_.calls[operand], sign);
    }
  }
}

bool CountedSelection::IsAcyclic() {
  ++visit_;
  std::vector<std::pair<ENodeId, size_t>> path;  // calls with the index of their next operand
  // False if it is on the path already.
  const auto enter = [&](ClassId id) {
    const ENodeId call = now_.calls[id];
    if (visited_[call] == 2 * visit_) return false;
    if (visited_[call] == 2 * visit_ + 1) return true;
    visited_[call] = 2 * visit_;
    path.emplace_back(call, 0);
    return true;
  };
  for (ClassId output : outputs_) {
    if (!enter(output)) return false;
    while (!path.empty()) {
      const auto [call, next] = path.back();
      if (next == operands_[call].size()) {
        visited_[call] = 2 * visit_ + 1;
        path.pop_back();
        continue;
      }
      ++path.back().second;
      if (!enter(operands_[call][next])) return false;
    }
  }
  return true;
}

}  // namespace isomer
