#include "optimizer/guided_walk.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Of proposals, so many are any choice at all, and so many are followed by a neighbour's.
constexpr double kAnyChoice = 0.2, kFollowed = 0.5;
// The choice of rank r by the tables is proposed with a probability of about exp(-r / kRanks).
constexpr double kRanks = 4;

class Guide {
 public:
  absl::Status Create(const TaskGraph& graph, const Restrictions* restrictions,
                      CostTables* tables) {
    const ComputeGraph& compute = graph.compute();
    const bool training = tables->options().training;
    std::vector<const CallTables*> calls;
    for (const ComputeGraph::ComputeNode& node : compute.nodes) {
      const CallRestriction* restriction =
          restrictions == nullptr ? nullptr : restrictions->Of(node.id);
      ISOMER_ASSIGN_OR_RETURN(
          const CallTables* call,
          tables->Call(graph.graph().node(node.id).op, node.operand_types, -1, restriction));
      calls.push_back(call);
      own_us_.push_back(tables->NodeUs(*call, node));
    }
    edges_.resize(compute.nodes.size());
    for (int n = 0; n < static_cast<int>(compute.nodes.size()); ++n) {
      const auto& operands = compute.nodes[n].operands;
      for (size_t o = 0; o < operands.size(); ++o) {
        const int from = operands[o].producer;
        if (from < 0) continue;
        const CostTable& us =
            tables->EdgeUs(calls[from]->outputs[operands[o].output], calls[n]->operands[o],
                           training && operands[o].gradient);
        edges_[from].push_back({n, &us, /*is_user=*/true});
        edges_[n].push_back({from, &us, /*is_user=*/false});
      }
    }
    movable_ = MovableNodes(graph);
    return absl::OkStatus();
  }

  absl::Status Propose(std::mt19937_64* random, TaskGraph* graph) const {
    const int node = movable_[Below(random, static_cast<int>(movable_.size()))];
    int choice;
    if (Chance(random) < kAnyChoice) {
      choice = Below(random, graph->num_choices(node));
    } else {
      const double rank = -std::log(1 - Chance(random)) * kRanks;
      choice = OfRank(*graph, node, static_cast<int>(rank));
    }
    if (choice != graph->choice(node)) ISOMER_RETURN_IF_ERROR(graph->SetChoice(node, choice));
    while (Chance(random) < kFollowed) {
      const std::vector<Edge>& edges = edges_[node];
      if (edges.empty()) break;
      const int other = edges[Below(random, static_cast<int>(edges.size()))].other;
      const int best = OfRank(*graph, other, 0);
      if (best != graph->choice(other)) ISOMER_RETURN_IF_ERROR(graph->SetChoice(other, best));
    }
    return absl::OkStatus();
  }

 private:
  struct Edge {
    int other;
    const CostTable* us;  // rows: choices of the producer
    bool is_user;         // the other
  };

  // The choice of the tables that comes `rank`-th where the neighbours are as they are. What they
  // have beside the tables costs nothing.
  int OfRank(const TaskGraph& graph, int node, int rank) const {
    std::vector<float> us = own_us_[node];
    for (const Edge& edge : edges_[node]) {
      const int at = graph.choice(edge.other);
      if (at >= (edge.is_user ? edge.us->cols : edge.us->rows)) continue;
      for (size_t k = 0; k < us.size(); ++k) {
        const int own = static_cast<int>(k);
        us[k] += edge.is_user ? edge.us->at(own, at) : edge.us->at(at, own);
      }
    }
    std::vector<int> order(us.size());
    std::iota(order.begin(), order.end(), 0);
    const int place = std::min(rank, static_cast<int>(us.size()) - 1);
    std::nth_element(order.begin(), order.begin() + place, order.end(),
                     [&](int a, int b) { return us[a] != us[b] ? us[a] < us[b] : a < b; });
    return order[place];
  }

  std::vector<std::vector<float>> own_us_;  // per node and choice
  std::vector<std::vector<Edge>> edges_;    // per node
  std::vector<int> movable_;
};

}  // namespace

absl::StatusOr<Proposer> GuidedProposer(const TaskGraph& graph, const Restrictions* restrictions,
                                        CostTables* tables) {
  auto guide = std::make_shared<Guide>();
  ISOMER_RETURN_IF_ERROR(guide->Create(graph, restrictions, tables));
  return Proposer(
      [guide](std::mt19937_64* random, TaskGraph* to) { return guide->Propose(random, to); });
}

}  // namespace isomer
