#include "optimizer/mapping/detours.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"

namespace isomer {
namespace {

constexpr int kNoStep = -1;

class Detours {
 public:
  Detours(const std::vector<DerivationStep>& steps, const Graph& graph, const RuleSet& rules)
      : steps_(steps), graph_(graph), is_left_out_(steps.size(), false) {
    int added = 0;
    for (const DerivationStep& step : steps) {
      rules_.push_back(step.rule.empty() ? nullptr : rules.Find(step.rule));
      added += AddedBy(static_cast<int>(rules_.size()) - 1);
    }
    int next = graph.num_nodes() - added;
    made_by_.assign(graph.num_nodes(), kNoStep);
    for (int s = 0; s < static_cast<int>(steps.size()); ++s) {
      first_.push_back(next);
      for (int n = 0; n < AddedBy(s); ++n) made_by_[next++] = s;
    }
    for (int id = 0; id < graph.num_nodes(); ++id) stands_for_.push_back(NodeId{id});
    readers_.assign(graph.num_nodes(), 0);
    for (const DerivationStep& step : steps) {
      for (const NodeId id : step.nodes) ++readers_[id.value];
      for (const TensorRef input : step.inputs) readers_[input.node.value] += !IsResult(input);
      for (const AddedCall& call : step.calls) {
        for (const TensorRef input : call.inputs) readers_[input.node.value] += !IsResult(input);
      }
    }
  }

  // Whether there are any.
  bool Find() {
    for (int back = 0; back < static_cast<int>(steps_.size()); ++back) LeaveOutReturn(back);
    return absl::c_linear_search(is_left_out_, true);
  }

  // The steps that stay, by the ids that nodes have without the others. REQUIRES: Find().
  std::vector<DerivationStep> Renumbered() const {
    std::vector<NodeId> new_ids;
    int next = 0;
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      const int step = made_by_[id];
      new_ids.push_back(NodeId{step != kNoStep && is_left_out_[step] ? -1 : next++});
    }
    const auto node = [&](NodeId id) { return new_ids[Now(id).value]; };
    const auto tensor = [&](TensorRef ref) {
      for (;;) {
        ref.node = Now(ref.node);
        const auto was = results_.find(ref);
        if (was == results_.end()) return TensorRef{new_ids[ref.node.value], ref.output};
        ref = was->second;
      }
    };
    std::vector<DerivationStep> kept;
    for (size_t s = 0; s < steps_.size(); ++s) {
      if (is_left_out_[s]) continue;
      DerivationStep step = steps_[s];
      for (NodeId& id : step.nodes) id = node(id);
      for (TensorRef& input : step.inputs) input = tensor(input);
      for (AddedCall& call : step.calls) {
        for (TensorRef& input : call.inputs) input = tensor(input);
      }
      for (Replacement& one : step.replaced) one = {tensor(one.from), tensor(one.to)};
      kept.push_back(std::move(step));
    }
    return kept;
  }

 private:
  // For each node that a step makes one that was there before.
  using Places = std::map<NodeId, NodeId>;

  int AddedBy(int step) const {
    const Rule* rule = rules_[step];
    return static_cast<int>(rule == nullptr ? steps_[step].calls.size()
                                            : rule->target.nodes.size());
  }

  // Whether a tensor is what a step puts in the place of another, or was there from the start: what
  // it stands for is known even where the step is left out.
  bool IsResult(TensorRef tensor) const {
    const int step = made_by_[tensor.node.value];
    if (step == kNoStep) return true;
    if (rules_[step] == nullptr) return false;
    return absl::c_any_of(rules_[step]->target.outputs, [&](PatternRef output) {
      return output.node == tensor.node.value - first_[step] && output.index == tensor.output;
    });
  }

  NodeId Now(NodeId id) const {
    while (stands_for_[id.value] != id) id = stands_for_[id.value];
    return id;
  }

  // The only step that made all nodes which `step` matches, if none of these has another reader.
  int Undone(int step) const {
    const std::vector<NodeId>& nodes = steps_[step].nodes;
    if (nodes.empty() || rules_[step] == nullptr) return kNoStep;
    const int made = made_by_[Now(nodes[0]).value];
    if (made == kNoStep || rules_[made] == nullptr || is_left_out_[made]) return kNoStep;
    if (static_cast<int>(nodes.size()) != AddedBy(made)) return kNoStep;
    const bool all = absl::c_all_of(nodes, [&](NodeId id) {
      return made_by_[Now(id).value] == made && readers_[Now(id).value] == 1;
    });
    return all ? made : kNoStep;
  }

  void LeaveOutReturn(int back) {
    const int there = Undone(back);
    if (there == kNoStep) return;
    const std::optional<Places> places = PlacesOfReturn(there, back);
    if (!places.has_value()) return;
    is_left_out_[there] = is_left_out_[back] = true;
    for (const auto& [made, before] : *places) {
      stands_for_[made.value] = before;
      readers_[before.value] += readers_[made.value];
    }
    for (const NodeId id : steps_[there].nodes) --readers_[Now(id).value];
    results_.merge(ReplacedBy(there));
  }

  // By each result of a step what it put that in the place of; less, if one of the two is an input.
  std::map<TensorRef, TensorRef> ReplacedBy(int step) const {
    const Rule& rule = *rules_[step];
    std::map<TensorRef, TensorRef> replaced;
    for (size_t o = 0; o < rule.source.outputs.size(); ++o) {
      const PatternRef from = rule.source.outputs[o], to = rule.target.outputs[o];
      if (from.node < 0 || to.node < 0) continue;
      replaced[{NodeId{first_[step] + to.node}, to.index}] = {Now(steps_[step].nodes[from.node]),
                                                              from.index};
    }
    return replaced;
  }

  // For each node that `back` makes that of the graph before `there` which is the same.
  std::optional<Places> PlacesOfReturn(int there, int back) const {
    const Rule &away = *rules_[there], &home = *rules_[back];
    if (away.source.outputs.size() != home.target.outputs.size()) return std::nullopt;
    const std::map<TensorRef, TensorRef> before = ReplacedBy(there);
    if (before.size() != away.source.outputs.size()) return std::nullopt;
    Places places;
    for (size_t o = 0; o < home.source.outputs.size(); ++o) {
      const PatternRef from = home.source.outputs[o], to = home.target.outputs[o];
      if (from.node < 0 || to.node < 0) return std::nullopt;
      const auto was = before.find({Now(steps_[back].nodes[from.node]), from.index});
      if (was == before.end() || was->second.output != to.index ||
          !AreSame({first_[back] + to.node}, was->second.node, there, back, &places)) {
        return std::nullopt;
      }
    }
    if (places.size() != home.target.nodes.size()) return std::nullopt;
    return places;
  }

  // Whether `made`, by step `back`, is the call `before`, which step `there` replaced, and so are
  // their operands.
  bool AreSame(NodeId made, NodeId before, int there, int back, Places* places) const {
    const auto known = places->find(made);
    if (known != places->end()) return known->second == before;
    // Where others match it, too, it may stay beside what is made, and be rewritten apart from it.
    const bool was_replaced =
        readers_[before.value] == 1 &&
        absl::c_any_of(steps_[there].nodes, [&](NodeId id) { return Now(id) == before; });
    const Node &a = graph_.node(made), &b = graph_.node(before);
    if (!was_replaced || a.op != b.op || a.name != b.name || a.inputs.size() != b.inputs.size()) {
      return false;
    }
    places->emplace(made, before);
    for (size_t i = 0; i < a.inputs.size(); ++i) {
      const TensorRef of_made = a.inputs[i], of_before = b.inputs[i];
      if (of_made.output != of_before.output) return false;
      if (made_by_[of_made.node.value] == back
              ? !AreSame(of_made.node, Now(of_before.node), there, back, places)
              : Now(of_made.node) != Now(of_before.node)) {
        return false;
      }
    }
    return true;
  }

  const std::vector<DerivationStep>& steps_;
  const Graph& graph_;
  std::vector<const Rule*> rules_;  // per step; null: it has none
  std::vector<int> first_;          // per step: the first node that it adds
  std::vector<bool> is_left_out_;   // per step
  // Per node: the step that makes it; the node that is in its place; how many steps match it, or
  // read of it what is inside a step.
  std::vector<int> made_by_;
  std::vector<NodeId> stands_for_;
  std::vector<int> readers_;
  std::map<TensorRef, TensorRef> results_;  // of steps that are left out: what they would replace
};

}  // namespace

std::vector<DerivationStep> WithoutDetours(std::vector<DerivationStep> steps, const Graph& graph,
                                           const RuleSet& rules) {
  Detours detours(steps, graph, rules);
  return detours.Find() ? detours.Renumbered() : std::move(steps);
}

}  // namespace isomer
