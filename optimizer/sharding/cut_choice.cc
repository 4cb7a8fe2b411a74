#include "optimizer/sharding/cut_choice.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "pcg/support/hash.h"
#include "rules/matching/matcher.h"
#include "rules/theorems/declaration_facts.h"

namespace isomer {
namespace {

// Operators on each side of a cut that spanning matches may touch: patterns are not longer.
constexpr int kSurroundings = 3;
// Size from which operators of a piece are penalised, and the penalty in lost matches.
constexpr int kLargePiece = 48;
constexpr double kLargePieceCost = 0.5;
// Value of a cut that no match spans, in lost matches.
constexpr double kCutWorth = 0.5;
// Earlier cuts considered as predecessors.
constexpr int kWindow = 256;
// Penalty for an elementwise call after the cut, in lost matches.
constexpr double kFusedLater = kCutWorth;

bool ActsByElement(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::vector<Shape> shapes;
  for (TensorRef input : node.inputs) shapes.push_back(graph.type(input).GlobalShape());
  const auto declaration = Declare(node.op, shapes);
  return declaration.ok() && IsElementwise(*declaration);
}

}  // namespace

std::vector<double> CountSpanningMatches(const Graph& graph, const ComputeGraph& compute,
                                         const std::vector<int>& cuts, RuleMatcher* matcher) {
  const GraphIndex index(graph);
  const int num_nodes = static_cast<int>(compute.nodes.size());
  std::unordered_map<uint64_t, double> known;
  std::vector<double> spanning;
  for (int cut : cuts) {
    uint64_t surroundings = 0;
    const int begin = std::max(0, cut + 1 - kSurroundings);
    const int end = std::min(num_nodes, cut + 1 + kSurroundings);
    for (int i = begin; i < end; ++i) {
      surroundings = HashCombine(surroundings, HashOfCall(graph, compute.nodes[i].id));
      // Their connections.
      for (const auto& operand : compute.nodes[i].operands) {
        surroundings = HashCombine(surroundings, operand.producer < 0 ? 0 : i - operand.producer);
      }
    }
    const auto [at, added] = known.try_emplace(surroundings, 0);
    if (added) {
      if (cut + 1 < num_nodes && ActsByElement(graph, compute.nodes[cut + 1].id)) {
        at->second = kFusedLater;
      }
      for (const RuleMatch& match : matcher->Find(index, {compute.nodes[cut].id})) {
        at->second += std::any_of(match.step.nodes.begin(), match.step.nodes.end(),
                                  [&](NodeId id) { return compute.index[id.value] > cut; });
      }
    }
    spanning.push_back(at->second);
  }
  return spanning;
}

std::vector<int> ChooseCuts(const std::vector<int>& cuts, const std::vector<double>& spanning,
                            int num_nodes, int min_nodes) {
  const int count = static_cast<int>(cuts.size());
  // least[c + 1]: minimum over all selections whose last cut is c; least[0]: no cut.
  std::vector<double> least(count + 1, std::numeric_limits<double>::infinity());
  std::vector<int> before(count + 1, -1);
  least[0] = 0;
  const auto piece_cost = [](int size) {
    return kLargePieceCost * std::max(0, size - kLargePiece);
  };
  const auto start_of = [&](int c) { return c < 0 ? 0 : cuts[c] + 1; };
  for (int c = 0; c < count; ++c) {
    for (int b = c - 1; b >= std::max(-1, c - kWindow); --b) {
      const int size = cuts[c] + 1 - start_of(b);
      if (size < min_nodes) continue;
      const double cost = least[b + 1] + piece_cost(size) + spanning[c] - kCutWorth;
      if (cost >= least[c + 1]) continue;
      least[c + 1] = cost;
      before[c + 1] = b;
    }
  }
  int last = -1;
  double best = least[0] + piece_cost(num_nodes);
  for (int c = 0; c < count; ++c) {
    const double cost = least[c + 1] + piece_cost(num_nodes - start_of(c));
    if (cost >= best) continue;
    best = cost;
    last = c;
  }
  std::vector<int> chosen;
  for (int c = last; c >= 0; c = before[c + 1]) chosen.push_back(c);
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace isomer
