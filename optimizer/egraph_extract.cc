#include "optimizer/egraph_extract.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <utility>

#include "pcg/operator_facts.h"
#include "pcg/type_inference.h"
#include "pcg/work.h"

namespace isomer {

double WholeCallUs(const CostModel& cost, const Operator& op,
                   const std::vector<TensorType>& operands) {
  const auto sharding = InferSharding(op, operands);
  if (!sharding.ok()) return kImpossibleUs;
  return cost.CallUs(op, operands, {}, ForwardWork(op, *sharding, operands));
}

Extraction::Extraction(const EGraph& egraph, const Graph& graph,
                       const std::vector<NodeId>& wants_gradient, CostTables* tables)
    : egraph_(egraph),
      tables_(*tables),
      stored_(egraph.num_classes(), false),
      gradient_(egraph.num_classes(), false),
      us_(egraph.num_nodes(), -1),
      needed_(egraph.num_classes(), false),
      stamp_(egraph.num_classes(), 0),
      call_stamp_(egraph.num_nodes(), 0) {
  std::vector<NodeId> wanted = wants_gradient;
  const bool training = tables->options().training;
  for (const auto& output : graph.outputs()) outputs_.push_back(egraph.ClassOf(output.tensor));
  // To a fixed point: classes are in no order.
  for (bool changed = true; changed;) {
    changed = false;
    for (ENodeId id = 0; id < egraph.num_nodes(); ++id) {
      if (!egraph.IsCanonical(id)) continue;
      const ENode& node = egraph.node(id);
      const OpKind kind = egraph.op(id).kind();
      bool stored = isomer::IsStored(kind), gradient = kind == OpKind::kWeight;
      if (!node.operands.empty()) {
        stored = (training ? IsLayout(kind) : IsPreparation(kind)) &&
                 std::all_of(node.operands.begin(), node.operands.end(),
                             [&](ClassId operand) { return IsStored(operand); });
        gradient = std::any_of(node.operands.begin(), node.operands.end(), [&](ClassId operand) {
          return gradient_[egraph.Find(operand)] && IsFloat(egraph.type(operand).dtype);
        });
      }
      for (ClassId output : node.outputs) {
        output = egraph.Find(output);
        if (stored && !stored_[output]) stored_[output] = changed = true;
        if (gradient && !gradient_[output]) gradient_[output] = changed = true;
      }
    }
    for (NodeId id : wanted) {
      gradient_[egraph.ClassOf({id, 0})] = true;
      changed = true;
    }
    wanted.clear();
  }
  start_ = Start(graph);
  FindMoves();
}

bool Extraction::IsLoaded(ENodeId id) const {
  const ENode& node = egraph_.node(id);
  return node.operands.empty() || std::all_of(node.outputs.begin(), node.outputs.end(),
                                              [&](ClassId output) { return IsStored(output); });
}

double Extraction::UsOf(ENodeId id) {
  if (us_[id] >= 0) return us_[id];
  if (IsLoaded(id)) return us_[id] = 0;
  ComputeGraph::ComputeNode compute;
  for (ClassId operand : egraph_.node(id).operands) {
    const TensorType& type = egraph_.type(operand);
    compute.operands.push_back(
        {.stored = IsStored(operand),
         .gradient = gradient_[egraph_.Find(operand)] && IsFloat(type.dtype)});
    compute.operand_types.push_back(type);
  }
  us_[id] = kImpossibleUs;
  const auto call = tables_.Call(egraph_.op(id), compute.operand_types);
  if (!call.ok()) return us_[id];
  const std::vector<float>& us = tables_.NodeUs(**call, compute);
  if (!us.empty()) us_[id] = *std::min_element(us.begin(), us.end());
  return us_[id];
}

double Extraction::WholeUsOf(ENodeId id) const {
  if (IsLoaded(id)) return 0;
  std::vector<TensorType> types;
  for (ClassId operand : egraph_.node(id).operands) types.push_back(egraph_.type(operand));
  return WholeCallUs(tables_.cost(), egraph_.op(id), types);
}

// The piece's own calls; elsewhere, the call that would cost least as a tree, unsplit.
Selection Extraction::Start(const Graph& graph) const {
  Selection start;
  start.calls.assign(egraph_.num_classes(), -1);
  std::vector<double> tree_us(egraph_.num_classes(), kImpossibleUs);
  std::vector<double> call_us(egraph_.num_nodes(), kImpossibleUs);
  for (ENodeId id = 0; id < egraph_.num_nodes(); ++id) {
    if (egraph_.IsCanonical(id)) call_us[id] = WholeUsOf(id);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (ENodeId id = 0; id < egraph_.num_nodes(); ++id) {
      if (!egraph_.IsCanonical(id)) continue;
      double us = call_us[id];
      for (ClassId operand : egraph_.node(id).operands) us += tree_us[egraph_.Find(operand)];
      if (us >= kImpossibleUs) continue;
      for (ClassId output : egraph_.node(id).outputs) {
        output = egraph_.Find(output);
        if (us >= tree_us[output] * (1 - 1e-9) && start.calls[output] >= 0) continue;
        tree_us[output] = us;
        start.calls[output] = id;
        changed = true;
      }
    }
  }
  for (NodeId id : graph.TopologicalOrder()) {
    for (int32_t o = 0; o < static_cast<int32_t>(graph.node(id).outputs.size()); ++o) {
      const ClassId tensor = egraph_.ClassOf({id, o});
      std::vector<ClassId> operands;
      for (TensorRef input : graph.node(id).inputs) operands.push_back(egraph_.ClassOf(input));
      if (!operands.empty()) start.calls[tensor] = egraph_.Lookup(graph.node(id).op, operands);
    }
  }
  return start;
}

void Extraction::FindMoves() {
  std::set<Move> moves;
  for (const Application& application : egraph_.applications()) {
    Move move;
    for (ENodeId id : application.target) {
      id = egraph_.FindNode(id);
      for (ClassId output : egraph_.node(id).outputs) {
        if (!IsStored(output)) move.emplace_back(egraph_.Find(output), id);
      }
    }
    if (!move.empty() && moves.insert(move).second) moves_.push_back(std::move(move));
  }
  for (ClassId id = 0; id < egraph_.num_classes(); ++id) {
    if (egraph_.Find(id) != id || IsStored(id)) continue;
    for (const EGraph::Member& member : egraph_.members(id)) {
      if (!egraph_.IsCanonical(member.node)) continue;
      Move move = {{id, member.node}};
      if (moves.insert(move).second) moves_.push_back(std::move(move));
    }
  }
}

double Extraction::Evaluate(const std::vector<ENodeId>& calls) {
  // 2 * now_: in progress; 2 * now_ + 1: done.
  ++now_;
  double us = 0;
  std::vector<std::pair<ENodeId, size_t>>& stack = stack_;
  stack.clear();
  const auto enter = [&](ClassId id) {
    id = egraph_.Find(id);
    if (IsStored(id)) return true;
    stamp_[id] = now_;
    const ENodeId call = calls[id];
    if (call < 0 || call_stamp_[call] == 2 * now_) return false;
    if (call_stamp_[call] == 2 * now_ + 1) return true;
    call_stamp_[call] = 2 * now_;
    us += UsOf(call);
    stack.emplace_back(call, 0);
    return true;
  };
  for (ClassId output : outputs_) {
    if (!enter(output)) return kImpossibleUs;
    while (!stack.empty()) {
      const auto [call, next] = stack.back();
      if (next == egraph_.node(call).operands.size()) {
        call_stamp_[call] = 2 * now_ + 1;
        stack.pop_back();
        continue;
      }
      ++stack.back().second;
      if (!enter(egraph_.node(call).operands[next])) return kImpossibleUs;
    }
  }
  return us;
}

void Extraction::NoteNeeded() {
  for (size_t id = 0; id < needed_.size(); ++id) needed_[id] = stamp_[id] == now_;
}

// False if nothing changes, or nothing that is needed.
bool Extraction::Make(const Move& move, std::vector<ENodeId>* calls) const {
  bool changes = false, needed = false;
  for (const auto& [id, call] : move) {
    changes |= (*calls)[id] != call;
    needed |= needed_[id];
  }
  if (!changes || !needed) return false;
  for (const auto& [id, call] : move) (*calls)[id] = call;
  return true;
}

void Extraction::Descend(Selection* selection, absl::FunctionRef<bool()> stop) {
  std::vector<ENodeId> old;
  for (bool better = true; better && !stop();) {
    better = false;
    selection->us = Evaluate(selection->calls);
    NoteNeeded();
    for (const Move& move : moves_) {
      old.clear();
      for (const auto& [id, call] : move) old.push_back(selection->calls[id]);
      if (!Make(move, &selection->calls)) continue;
      const double us = Evaluate(selection->calls);
      if (us < selection->us * (1 - 1e-9)) {
        selection->us = us;
        NoteNeeded();
        better = true;
        continue;
      }
      for (size_t i = move.size(); i-- > 0;) selection->calls[move[i].first] = old[i];
    }
  }
}

std::vector<Selection> Extraction::Run(const ExtractionOptions& options,
                                       absl::FunctionRef<bool()> stop) {
  std::vector<Selection> kept;
  const auto keep = [&](const Selection& selection) {
    if (selection.us >= kImpossibleUs) return;
    for (const Selection& other : kept) {
      if (std::abs(other.us - selection.us) <= 1e-6 * selection.us) return;
    }
    kept.push_back(selection);
    std::sort(kept.begin(), kept.end(),
              [](const Selection& a, const Selection& b) { return a.us < b.us; });
    if (static_cast<int>(kept.size()) > options.kept) kept.pop_back();
  };
  Selection best = start_;
  Descend(&best, stop);
  keep(best);
  std::mt19937_64 random(options.seed);
  for (int r = 0; r < options.restarts && !moves_.empty() && !stop(); ++r) {
    Selection other = best;
    Evaluate(other.calls);
    NoteNeeded();
    for (int made = 0, tries = 0; made < 2 && tries < 200; ++tries) {
      std::vector<ENodeId> moved = other.calls;
      if (!Make(moves_[random() % moves_.size()], &moved)) continue;
      if (Evaluate(moved) >= kImpossibleUs) continue;
      NoteNeeded();
      other.calls = std::move(moved);
      ++made;
    }
    Descend(&other, stop);
    keep(other);
    if (other.us < best.us) best = other;
  }
  return kept;
}

}  // namespace isomer
