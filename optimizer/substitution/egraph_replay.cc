#include "optimizer/substitution/egraph_replay.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "rules/matching/rewrite.h"

namespace isomer {
namespace {

constexpr int kMostSteps = 400;
constexpr int kDeepest = 12;  // nesting of applications that need others

class Replay {
 public:
  Replay(const Piece& piece, const EGraph& egraph) : piece_(piece), egraph_(egraph) {
    const Graph& graph = piece.graph;
    candidate_.graph = graph;
    classes_.resize(graph.num_nodes());
    for (NodeId id : graph.TopologicalOrder()) {
      for (int32_t o = 0; o < static_cast<int32_t>(graph.node(id).outputs.size()); ++o) {
        classes_[id.value].push_back(egraph.ClassOf({id, o}));
      }
    }
    const std::vector<Application>& applications = egraph.applications();
    for (int a = 0; a < static_cast<int>(applications.size()); ++a) {
      const Application& application = applications[a];
      const Rule& rule = *application.rule;
      for (size_t o = 0; o < rule.source.outputs.size(); ++o) {
        const PatternRef from = rule.source.outputs[o], to = rule.target.outputs[o];
        if (from.node < 0) continue;
        const ENodeId source = egraph.FindNode(application.source[from.node]);
        const ENodeId target = to.node < 0 ? kInput : egraph.FindNode(application.target[to.node]);
        if (source == target) continue;
        const ClassId id = egraph.Find(egraph.node(source).outputs[from.index]);
        edges_[id].push_back({a, static_cast<int>(o), source, target});
      }
    }
  }

  SubstitutionResult::Candidate Run(const Extraction& extraction, const Selection& selection) {
    std::set<std::pair<TensorRef, ENodeId>> failed;
    while (static_cast<int>(candidate_.steps.size()) < kMostSteps) {
      const std::optional<std::pair<TensorRef, ENodeId>> wrong =
          FirstWrong(extraction, selection, failed);
      if (!wrong.has_value()) break;
      if (!Become(wrong->first, wrong->second, 0).has_value()) failed.insert(*wrong);
    }
    return std::move(candidate_);
  }

 private:
  static constexpr ENodeId kInput = -2;  // any call that computes an input of the rule
  struct Edge {
    int application, output;
    ENodeId from, to;
  };

  Graph& graph() { return candidate_.graph; }
  ClassId ClassOf(TensorRef tensor) const {
    return egraph_.Find(classes_[tensor.node.value][tensor.output]);
  }
  // The e-node that computes a tensor; -1 for leaves.
  ENodeId CallOf(TensorRef tensor) {
    const Node& node = graph().node(tensor.node);
    if (node.inputs.empty()) return -1;
    std::vector<ClassId> operands;
    for (TensorRef input : node.inputs) operands.push_back(ClassOf(input));
    return egraph_.Lookup(node.op, operands);
  }

  // The tensor nearest to the outputs that is computed by another call than the selected one.
  std::optional<std::pair<TensorRef, ENodeId>> FirstWrong(
      const Extraction& extraction, const Selection& selection,
      const std::set<std::pair<TensorRef, ENodeId>>& failed) {
    const std::vector<NodeId> order = graph().TopologicalOrder();
    const std::set<TensorRef> used = UsedTensors(order);
    for (size_t i = order.size(); i-- > 0;) {
      const Node& node = graph().node(order[i]);
      if (node.inputs.empty()) continue;
      for (int32_t o = 0; o < static_cast<int32_t>(node.outputs.size()); ++o) {
        const TensorRef tensor{order[i], o};
        const ClassId id = ClassOf(tensor);
        if (extraction.IsStored(id) || !used.contains(tensor)) continue;
        const ENodeId wanted = selection.calls[id];
        if (wanted < 0 || egraph_.node(wanted).operands.empty() || wanted == CallOf(tensor) ||
            failed.contains({tensor, wanted})) {
          continue;
        }
        return std::make_pair(tensor, wanted);
      }
    }
    return std::nullopt;
  }

  // Tensors that live nodes or outputs use.
  std::set<TensorRef> UsedTensors(const std::vector<NodeId>& order) {
    std::set<TensorRef> used;
    for (const auto& output : graph().outputs()) used.insert(output.tensor);
    for (NodeId id : order)
      used.insert(graph().node(id).inputs.begin(), graph().node(id).inputs.end());
    return used;
  }

  // The shortest chain of applications from one call of a class to another.
  std::vector<const Edge*> PathBetween(ClassId id, ENodeId from, ENodeId to) const {
    const auto edges = edges_.find(id);
    if (edges == edges_.end()) return {};
    std::map<ENodeId, const Edge*> reached = {{from, nullptr}};
    std::deque<ENodeId> queue = {from};
    while (!queue.empty() && !reached.contains(to)) {
      const ENodeId at = queue.front();
      queue.pop_front();
      for (const Edge& edge : edges->second) {
        if (edge.from != at) continue;
        std::vector<ENodeId> next = {edge.to};
        if (edge.to == kInput) {
          next.clear();
          for (const EGraph::Member& member : egraph_.members(id)) next.push_back(member.node);
        }
        for (ENodeId node : next) {
          if (reached.try_emplace(node, &edge).second) queue.push_back(node);
        }
      }
    }
    std::vector<const Edge*> path;
    for (ENodeId at = to; at != from;) {
      const auto found = reached.find(at);
      if (found == reached.end()) return {};
      path.insert(path.begin(), found->second);
      at = found->second->from;
    }
    return path;
  }

  // Rewrites until `wanted` computes the tensor. Returns its replacement.
  std::optional<TensorRef> Become(TensorRef tensor, ENodeId wanted, int depth) {
    if (depth > kDeepest) return std::nullopt;
    const ClassId id = ClassOf(tensor);
    if (!in_progress_.insert({id, wanted}).second) return std::nullopt;
    std::optional<TensorRef> now = tensor;
    for (int tries = 0; now.has_value() && tries < 8; ++tries) {
      const ENodeId call = CallOf(*now);
      if (call == wanted) break;
      const std::vector<const Edge*> path = PathBetween(id, call, wanted);
      now = path.empty() ? std::nullopt : Make(*path[0], *now, depth);
    }
    in_progress_.erase({id, wanted});
    if (now.has_value() && CallOf(*now) != wanted) return std::nullopt;
    return now;
  }

  // Makes an application whose output `edge.output` is `tensor`; returns its replacement.
  std::optional<TensorRef> Make(const Edge& edge, TensorRef tensor, int depth) {
    const Application& application = egraph_.applications()[edge.application];
    const Rule& rule = *application.rule;
    std::vector<std::optional<TensorRef>> roots(rule.source.outputs.size());
    roots[edge.output] = tensor;
    // Preparing one operand may replace another, so bindings are read again afterwards.
    for (int pass = 0; pass < 4; ++pass) {
      DerivationStep step;
      step.rule = rule.id;
      step.variables = application.variables;
      step.numbers = application.numbers;
      step.nodes.assign(rule.source.nodes.size(), NodeId{-1});
      std::vector<std::optional<TensorRef>> inputs(rule.num_inputs);
      bool changed = false;
      if (!Bind(application, depth, &roots, &step, &inputs, &changed)) return std::nullopt;
      if (changed) continue;
      for (const std::optional<TensorRef>& input : inputs) {
        if (!input.has_value()) return std::nullopt;
        step.inputs.push_back(*input);
      }
      const int first = graph().num_nodes();
      if (!ApplyStep(rule, step, &graph()).ok()) return std::nullopt;
      for (size_t n = 0; n < application.target.size(); ++n) {
        classes_.push_back(egraph_.node(application.target[n]).outputs);
      }
      const PatternRef to = rule.target.outputs[edge.output];
      const TensorRef result =
          to.node < 0 ? step.inputs[to.index] : TensorRef{NodeId{first + to.node}, to.index};
      candidate_.steps.push_back(std::move(step));
      return result;
    }
    return std::nullopt;
  }

  // Binds source nodes from the roots down, rewriting where a tensor is computed by another call
  // than the matched one.
  bool Bind(const Application& application, int depth, std::vector<std::optional<TensorRef>>* roots,
            DerivationStep* step, std::vector<std::optional<TensorRef>>* inputs, bool* changed) {
    const Pattern& source = application.rule->source;
    for (size_t o = 0; o < source.outputs.size(); ++o) {
      const PatternRef root = source.outputs[o];
      if (root.node < 0) continue;
      if (step->nodes[root.node].value >= 0) continue;
      if (!(*roots)[o].has_value() || !IsUsed(*(*roots)[o])) {
        (*roots)[o] =
            TensorOf(egraph_.Find(egraph_.node(application.source[root.node]).outputs[root.index]));
      }
      if (!(*roots)[o].has_value()) return false;
      if (!BindNode(application, root.node, &*(*roots)[o], depth, step, inputs, changed)) {
        return false;
      }
      if (*changed) return true;
    }
    return true;
  }

  bool BindNode(const Application& application, int pattern, TensorRef* tensor, int depth,
                DerivationStep* step, std::vector<std::optional<TensorRef>>* inputs,
                bool* changed) {
    const ENodeId wanted = egraph_.FindNode(application.source[pattern]);
    if (CallOf(*tensor) != wanted) {
      const std::optional<TensorRef> became = Become(*tensor, wanted, depth + 1);
      if (!became.has_value()) return false;
      *tensor = *became;
      *changed = true;
      return true;
    }
    if (piece_.RestrictionOf(tensor->node) != nullptr) return false;
    step->nodes[pattern] = tensor->node;
    const PatternNode& node = application.rule->source.nodes[pattern];
    std::vector<TensorRef> operands = graph().node(tensor->node).inputs;
    if (application.swapped[pattern]) std::swap(operands[0], operands[1]);
    for (size_t i = 0; i < operands.size(); ++i) {
      const PatternRef ref = node.inputs[i];
      if (ref.node < 0) {
        std::optional<TensorRef>& input = (*inputs)[ref.index];
        if (input.has_value() && *input != operands[i]) return false;
        input = operands[i];
        continue;
      }
      NodeId& bound = step->nodes[ref.node];
      if (bound.value >= 0) {
        if (bound != operands[i].node) return false;
        continue;
      }
      if (operands[i].output != ref.index) return false;
      TensorRef operand = operands[i];
      if (!BindNode(application, ref.node, &operand, depth, step, inputs, changed)) return false;
      if (*changed) return true;
    }
    return true;
  }

  bool IsUsed(TensorRef tensor) { return UsedTensors(graph().TopologicalOrder()).contains(tensor); }

  // A tensor of the class that is in use.
  std::optional<TensorRef> TensorOf(ClassId id) {
    for (TensorRef tensor : UsedTensors(graph().TopologicalOrder())) {
      if (ClassOf(tensor) == id) return tensor;
    }
    return std::nullopt;
  }

  const Piece& piece_;
  const EGraph& egraph_;
  SubstitutionResult::Candidate candidate_;
  std::vector<std::vector<ClassId>> classes_;  // per node of the graph and output
  std::map<ClassId, std::vector<Edge>> edges_;
  std::set<std::pair<ClassId, ENodeId>> in_progress_;
};

}  // namespace

SubstitutionResult::Candidate ReplaySelection(const Piece& piece, const EGraph& egraph,
                                              const Extraction& extraction,
                                              const Selection& selection) {
  return Replay(piece, egraph).Run(extraction, selection);
}

}  // namespace isomer
