#include "optimizer/substitution/egraph_extract.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <utility>

#include "pcg/ir/operator_facts.h"
#include "pcg/ir/type_inference.h"
#include "pcg/profile/work.h"

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
      gradient_(egraph.num_classes(), false) {
  std::vector<NodeId> wanted = wants_gradient;
  const bool training = tables->options().training;
  // Iterates to a fixed point: classes are unordered.
  for (bool changed = true; changed;) {
    changed = false;
    for (ENodeId id = 0; id < egraph.num_nodes(); ++id) {
      if (!egraph.IsCanonical(id)) continue;
      const ENode& node = egraph.node(id);
      const OpKind kind = egraph.op(id).kind();
      bool stored = isomer::IsStored(kind), gradient = kind == OpKind::kWeight;
      if (!node.operands.empty()) {
        stored = (training ? IsLayout(kind) : CanRunOnHost(kind)) &&
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
  std::vector<ClassId> outputs;
  for (const auto& output : graph.outputs()) {
    const ClassId id = egraph.ClassOf(output.tensor);
    if (!stored_[id]) outputs.push_back(id);
  }
  selection_ = std::make_unique<CountedSelection>(egraph, std::move(outputs), stored_,
                                                  [this](ENodeId id) { return UsOf(id); });
  start_ = Start(graph);
  FindMoves();
}

bool Extraction::IsLoaded(ENodeId id) const {
  const ENode& node = egraph_.node(id);
  return node.operands.empty() || std::all_of(node.outputs.begin(), node.outputs.end(),
                                              [&](ClassId output) { return IsStored(output); });
}

double Extraction::UsOf(ENodeId id) {
  if (IsLoaded(id)) return 0;
  ComputeGraph::ComputeNode compute;
  for (ClassId operand : egraph_.node(id).operands) {
    const TensorType& type = egraph_.type(operand);
    compute.operands.push_back(
        {.stored = IsStored(operand),
         .gradient = gradient_[egraph_.Find(operand)] && IsFloat(type.dtype)});
    compute.operand_types.push_back(type);
  }
  const auto call = tables_.Call(egraph_.op(id), compute.operand_types);
  if (!call.ok()) return kImpossibleUs;
  const std::vector<float>& us = tables_.NodeUs(**call, compute);
  return us.empty() ? kImpossibleUs : *std::min_element(us.begin(), us.end());
}

double Extraction::WholeUsOf(ENodeId id) const {
  if (IsLoaded(id)) return 0;
  std::vector<TensorType> types;
  for (ClassId operand : egraph_.node(id).operands) types.push_back(egraph_.type(operand));
  return WholeCallUs(tables_.cost(), egraph_.op(id), types);
}

// The piece's own calls; for other classes, the cheapest call as a tree, unsplit.
std::vector<ENodeId> Extraction::Start(const Graph& graph) const {
  std::vector<ENodeId> start(egraph_.num_classes(), -1);
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
        if (us >= tree_us[output] * (1 - 1e-9) && start[output] >= 0) continue;
        tree_us[output] = us;
        start[output] = id;
        changed = true;
      }
    }
  }
  // The first tensor of each class, so that no call needs itself.
  std::vector<bool> known(egraph_.num_classes());
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    std::vector<ClassId> operands;
    for (TensorRef input : node.inputs) operands.push_back(egraph_.ClassOf(input));
    for (int32_t o = 0; o < static_cast<int32_t>(node.outputs.size()); ++o) {
      const ClassId tensor = egraph_.ClassOf({id, o});
      if (known[tensor]) continue;
      known[tensor] = true;
      if (!operands.empty()) start[tensor] = egraph_.Lookup(node.op, operands);
    }
  }
  return start;
}

void Extraction::FindMoves() {
  std::set<SelectionMove> moves;
  for (const Application& application : egraph_.applications()) {
    SelectionMove move;
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
      SelectionMove move = {{id, member.node}};
      if (moves.insert(move).second) moves_.push_back(std::move(move));
    }
  }
}

void Extraction::Descend(absl::FunctionRef<bool()> stop) {
  for (bool better = true; better && !stop();) {
    better = false;
    for (const SelectionMove& move : moves_) {
      if (!selection_->IsWorthTrying(move)) continue;
      const double before_us = selection_->now().us;
      selection_->Make(move);
      if (selection_->now().us < before_us * (1 - 1e-9)) {
        better |= selection_->Keep();
      } else {
        selection_->Undo();
      }
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
  if (!selection_->Set(start_)) return kept;
  Descend(stop);
  keep(selection_->now());
  std::mt19937_64 random(options.seed);
  for (int r = 0; r < options.restarts && !moves_.empty() && !stop(); ++r) {
    selection_->Set(kept[0].calls);
    for (int made = 0, tries = 0; made < 2 && tries < 200; ++tries) {
      const SelectionMove& move = moves_[random() % moves_.size()];
      if (!selection_->IsWorthTrying(move)) continue;
      selection_->Make(move);
      made += selection_->Keep();
    }
    Descend(stop);
    keep(selection_->now());
  }
  return kept;
}

}  // namespace isomer
