#include "rules/matching/rule_matcher.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "pcg/ir/operator_traits.h"
#include "rules/matching/matcher.h"

namespace isomer {
namespace {

// What an output of the pattern depends on: bits of inputs, then of nodes. Sources are small.
uint64_t AncestryOf(const Pattern& pattern, int num_inputs, PatternRef ref) {
  if (ref.node < 0) return uint64_t{1} << ref.index;
  uint64_t bits = uint64_t{1} << (num_inputs + ref.node);
  for (PatternRef input : pattern.nodes[ref.node].inputs) {
    bits |= AncestryOf(pattern, num_inputs, input);
  }
  return bits;
}

// Whether a walk from any output to any other goes through shared tensors alone.
bool IsConnected(const Rule& rule) {
  const Pattern& source = rule.source;
  if (rule.num_inputs + source.nodes.size() > 64) return false;
  std::vector<uint64_t> parts;
  for (PatternRef ref : source.outputs) {
    if (ref.node >= 0) parts.push_back(AncestryOf(source, rule.num_inputs, ref));
  }
  uint64_t reached = parts[0];
  for (size_t round = 0; round < parts.size(); ++round) {
    for (uint64_t part : parts) {
      if ((part & reached) != 0) reached |= part;
    }
  }
  return std::all_of(parts.begin(), parts.end(),
                     [&](uint64_t part) { return (part & reached) != 0; });
}

// Nodes of a graph, and whether each is one of them.
struct Reached {
  std::vector<NodeId> nodes;
  std::vector<bool> is_in;

  void Add(NodeId id) {
    if (is_in[id.value]) return;
    is_in[id.value] = true;
    nodes.push_back(id);
  }
};

// Adds what is one step away, `steps` times.
template <typename Neighbours>
void Spread(int steps, const Neighbours& neighbours, Reached* reached) {
  size_t begin = 0;
  for (int step = 0; step < steps && begin < reached->nodes.size(); ++step) {
    const size_t end = reached->nodes.size();
    for (size_t i = begin; i < end; ++i) {
      neighbours(reached->nodes[i], [&](NodeId other) { reached->Add(other); });
    }
    begin = end;
  }
}

}  // namespace

bool StillMatches(const GraphIndex& index, const RuleMatch& match) {
  const DerivationStep& step = match.step;
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    if (index.PositionOf(step.nodes[n]) < 0) return false;
    const PatternNode& node = match.rule->source.nodes[n];
    const std::vector<TensorRef>& operands = index.graph().node(step.nodes[n]).inputs;
    const auto fits = [&](size_t operand, size_t place) {
      const PatternRef ref = node.inputs[place];
      return operands[operand] ==
             (ref.node < 0 ? step.inputs[ref.index] : TensorRef{step.nodes[ref.node], ref.index});
    };
    bool straight = true;
    for (size_t o = 0; o < operands.size(); ++o) straight = straight && fits(o, o);
    if (!straight && !(IsCommutative(node.kind) && fits(0, 1) && fits(1, 0))) return false;
  }
  return true;
}

RuleMatcher::RuleMatcher(const std::vector<const Rule*>& rules)
    : memo_(std::make_unique<MatchMemo>()) {
  for (const Rule* rule : rules) {
    std::optional<RootShape> root = RootShapeOf(rule->source);
    if (!root.has_value()) continue;
    Entry entry{.rule = rule,
                .root = *std::move(root),
                .kinds = {},
                .outputs = static_cast<int>(rule->source.outputs.size()),
                .connected = IsConnected(*rule)};
    for (const PatternNode& node : rule->source.nodes) {
      entry.kinds.set(static_cast<size_t>(node.kind));
    }
    kinds_ |= entry.kinds;
    for (const PatternNode& node : rule->target.nodes) kinds_.set(static_cast<size_t>(node.kind));
    max_depth_ = std::max(max_depth_, DepthOf(rule->source));
    max_outputs_ = std::max(max_outputs_, entry.outputs);
    entries_.push_back(entry);
  }
}

RuleMatcher::~RuleMatcher() = default;

// The root of a pattern of one output is a user of a user of .. of every node in it. From one
// output of several to the next one goes down to what they share, and up again.
std::vector<std::vector<NodeId>> RuleMatcher::RootsNear(const GraphIndex& index,
                                                        const std::vector<NodeId>& near) const {
  const auto users = [&](NodeId id, const auto& visit) {
    for (const Graph::Use& use : index.UsersOf(id)) visit(use.user);
  };
  const auto operands = [&](NodeId id, const auto& visit) {
    for (TensorRef input : index.graph().node(id).inputs) visit(input.node);
  };
  Reached reached{{}, std::vector<bool>(index.graph().num_nodes(), false)};
  for (NodeId id : near) reached.Add(id);
  Spread(max_depth_ - 1, users, &reached);
  std::vector<std::vector<NodeId>> roots;
  for (int outputs = 1; outputs <= max_outputs_; ++outputs) {
    if (outputs > 1) {
      Spread(max_depth_, operands, &reached);
      Spread(max_depth_, users, &reached);
    }
    roots.push_back(reached.nodes);
    std::sort(roots.back().begin(), roots.back().end());
  }
  return roots;
}

std::vector<RuleMatch> RuleMatcher::Find(const GraphIndex& index, const std::vector<NodeId>& near) {
  const Graph& graph = index.graph();
  OpKindSet present;
  std::vector<uint64_t> call_hashes(graph.num_nodes(), 0);  // as they are asked for
  for (OpKind kind : AllOpKinds()) {
    if (!index.NodesOf(kind).empty()) present.set(static_cast<size_t>(kind));
  }
  NearNodes near_nodes{std::vector<bool>(graph.num_nodes(), false),
                       std::vector<bool>(graph.num_nodes(), false)};
  for (NodeId id : near) near_nodes.is_in[id.value] = true;
  // [outputs - 1][kind]
  std::vector<std::vector<std::vector<NodeId>>> roots;
  if (!near.empty()) {
    const std::vector<std::vector<NodeId>> roots_near = RootsNear(index, near);
    for (NodeId id : roots_near[0]) near_nodes.leads_there[id.value] = true;
    for (const std::vector<NodeId>& ids : roots_near) {
      roots.emplace_back(kNumOpKinds);
      for (NodeId id : ids) {
        if (index.PositionOf(id) < 0) continue;
        roots.back()[static_cast<size_t>(graph.node(id).op.kind())].push_back(id);
      }
    }
  }
  std::vector<RuleMatch> matches;
  for (const Entry& entry : entries_) {
    if ((entry.kinds & ~present).any()) continue;
    const std::vector<NodeId>& candidates =
        near.empty() || !entry.connected
            ? index.NodesOf(entry.root.kind)
            : roots[entry.outputs - 1][static_cast<size_t>(entry.root.kind)];
    std::optional<Matcher> matcher;
    for (NodeId id : candidates) {
      if (!HasShape(graph, id, entry.root)) continue;
      if (!matcher.has_value()) {
        matcher.emplace(index, *entry.rule, Binding(), &call_hashes, memo_.get(),
                        near.empty() ? nullptr : &near_nodes);
      }
      matcher->MatchRoot(id);
    }
    if (!matcher.has_value()) continue;
    for (Matcher::Found& found : matcher->found()) {
      matches.push_back({entry.rule, std::move(found.step), found.signature});
    }
  }
  return matches;
}

}  // namespace isomer
