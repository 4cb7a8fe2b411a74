#include "optimizer/chain.h"

#include <algorithm>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "rules/rewrite.h"

namespace isomer {
namespace {

// Chains are short; commuting n operators in every way is bounded by this.
constexpr int kMaxStates = 400;

bool IsUnaryParallel(const Node& node) {
  return IsParallel(node.op.kind()) && node.inputs.size() == 1;
}

std::string KeyOf(const std::vector<Operator>& chain) {
  std::string key;
  for (const Operator& op : chain) absl::StrAppend(&key, op.ToString(), ";");
  return key;
}

absl::StatusOr<Graph> GraphOfChain(const TensorType& type, const std::vector<Operator>& chain) {
  Graph graph;
  TensorRef at = graph.AddInput("x0", type);
  for (const Operator& op : chain) {
    ISOMER_ASSIGN_OR_RETURN(at, graph.AddOp(op, {at}));
  }
  graph.AddOutput("y0", at);
  return graph;
}

std::vector<Operator> ChainOfGraph(const Graph& graph) {
  std::vector<Operator> chain;
  for (NodeId id = graph.outputs()[0].tensor.node; IsUnaryParallel(graph.node(id));
       id = graph.node(id).inputs[0].node) {
    chain.push_back(graph.node(id).op);
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

}  // namespace

std::vector<NodeId> ChainTo(const Graph& graph, NodeId user, int operand) {
  std::vector<NodeId> chain;
  for (NodeId id = graph.node(user).inputs[operand].node; IsUnaryParallel(graph.node(id));
       id = graph.node(id).inputs[0].node) {
    chain.push_back(id);
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

// Shortest chains first; among equals, fewest steps.
std::vector<ChainNormalizer::ChainStep> ChainNormalizer::Shorten(
    const TensorType& type, const std::vector<Operator>& chain) const {
  struct State {
    std::vector<Operator> chain;
    std::vector<ChainStep> steps;
  };
  std::vector<State> states = {{chain, {}}};
  std::set<std::string> seen = {KeyOf(chain)};
  std::priority_queue<std::tuple<int, int, int>> open;  // -length, -steps, -state
  auto push = [&](int s) {
    open.push(
        {-static_cast<int>(states[s].chain.size()), -static_cast<int>(states[s].steps.size()), -s});
  };
  push(0);
  int best = 0;
  while (!open.empty() && states.size() < kMaxStates && !states[best].chain.empty()) {
    const int s = -std::get<2>(open.top());
    open.pop();
    const auto graph = GraphOfChain(type, states[s].chain);
    if (!graph.ok()) continue;
    for (const Rule* rule : rules_.chains()) {
      for (const DerivationStep& step : FindMatches(*graph, *rule)) {
        Graph next = *graph;
        if (!ApplyStep(*rule, step, &next).ok()) continue;
        State state{ChainOfGraph(next), states[s].steps};
        if (state.chain.size() > chain.size() || !seen.insert(KeyOf(state.chain)).second) continue;
        // Node 0 is the input, so node i+1 is place i of the chain.
        state.steps.push_back({step.nodes[0].value - 1, step});
        states.push_back(std::move(state));
        const int added = static_cast<int>(states.size()) - 1;
        if (states[added].chain.size() < states[best].chain.size()) best = added;
        push(added);
      }
    }
  }
  return states[best].steps;
}

absl::Status ChainNormalizer::Normalize(NodeId user, int operand, Graph* graph,
                                        std::vector<DerivationStep>* steps) {
  std::vector<NodeId> nodes = ChainTo(*graph, user, operand);
  if (nodes.size() < 2) return absl::OkStatus();
  std::vector<Operator> ops;
  for (NodeId id : nodes) ops.push_back(graph->node(id).op);
  const TensorType& type = graph->type(graph->node(nodes[0]).inputs[0]);
  auto [it, added] = memo_.try_emplace(absl::StrCat(type.ToString(), "|", KeyOf(ops)));
  if (added) it->second = Shorten(type, ops);
  for (const ChainStep& chain_step : it->second) {
    const Rule* rule = rules_.rules().Find(chain_step.step.rule);
    DerivationStep step = chain_step.step;
    const size_t length = step.nodes.size();
    for (size_t i = 0; i < length; ++i) step.nodes[i] = nodes[chain_step.at + i];
    step.inputs[0] = graph->node(step.nodes[0]).inputs[0];
    const int first = graph->num_nodes();
    ISOMER_RETURN_IF_ERROR(ApplyStep(*rule, step, graph));
    const auto at = nodes.begin() + chain_step.at;
    nodes.erase(at, at + static_cast<std::ptrdiff_t>(length));
    for (int id = graph->num_nodes() - 1; id >= first; --id) {
      nodes.insert(nodes.begin() + chain_step.at, NodeId{id});
    }
    steps->push_back(std::move(step));
  }
  return absl::OkStatus();
}

}  // namespace isomer
