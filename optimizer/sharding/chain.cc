#include "optimizer/sharding/chain.h"

#include <algorithm>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "rules/matching/rewrite.h"

namespace isomer {
namespace {

// Bounds the search: commuting n operators has many orders.
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

// The unary parallel operators that lead to operand `operand` of `user`, source first.
std::vector<NodeId> ChainTo(const GrowingGraph& graph, NodeId user, int operand) {
  std::vector<NodeId> chain;
  for (NodeId id = graph.node(user).inputs[operand].node; IsUnaryParallel(graph.node(id));
       id = graph.node(id).inputs[0].node) {
    chain.push_back(id);
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

}  // namespace

// Best-first: shortest chains, then fewest steps.
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

absl::Status ChainNormalizer::Record(const TensorType& type, const std::vector<Operator>& chain,
                                     RecordedSteps* recorded) const {
  ISOMER_ASSIGN_OR_RETURN(Graph graph, GraphOfChain(type, chain));
  std::vector<NodeId> nodes;
  for (int id = 1; id < graph.num_nodes(); ++id) nodes.push_back(NodeId{id});
  for (ChainStep& chain_step : Shorten(type, chain)) {
    DerivationStep& step = chain_step.step;
    const Rule* rule = rules_.rules().Find(step.rule);
    const size_t length = step.nodes.size();
    for (size_t i = 0; i < length; ++i) step.nodes[i] = nodes[chain_step.at + i];
    step.inputs[0] = graph.node(step.nodes[0]).inputs[0];
    const int first = graph.num_nodes();
    ISOMER_RETURN_IF_ERROR(recorded->Apply(*rule, std::move(step), &graph));
    const auto at = nodes.begin() + chain_step.at;
    nodes.erase(at, at + static_cast<std::ptrdiff_t>(length));
    for (int id = graph.num_nodes() - 1; id >= first; --id) {
      nodes.insert(nodes.begin() + chain_step.at, NodeId{id});
    }
  }
  return absl::OkStatus();
}

absl::Status ChainNormalizer::Normalize(NodeId user, int operand, GrowingGraph* graph,
                                        std::vector<DerivationStep>* steps) {
  const std::vector<NodeId> nodes = ChainTo(*graph, user, operand);
  if (nodes.size() < 2) return absl::OkStatus();
  std::vector<Operator> ops;
  for (NodeId id : nodes) ops.push_back(graph->node(id).op);
  const TensorRef source = graph->node(nodes[0]).inputs[0];
  const TensorType& type = graph->type(source);
  auto [it, added] = memo_.try_emplace(absl::StrCat(type.ToString(), "|", KeyOf(ops)));
  if (added) ISOMER_RETURN_IF_ERROR(Record(type, ops, &it->second));
  std::vector<TensorRef> place = {source};
  for (NodeId id : nodes) place.push_back({id, 0});
  graph->Apply(it->second, &place, steps);
  return absl::OkStatus();
}

}  // namespace isomer
