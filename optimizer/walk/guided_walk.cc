#include "optimizer/walk/guided_walk.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Fractions of proposals that are uniformly random, and that are followed by a neighbour's.
constexpr double kAnyChoice = 0.2, kFollowed = 0.5;
// The choice of rank r by the tables is proposed with a probability of about exp(-r / kRanks).
constexpr double kRanks = 4;
// Pairs of choices tried per two neighbours, and rounds over all.
constexpr size_t kPairs = 24;
constexpr int kMostRounds = 4;

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

  // `try_pair`: of two neighbours; returns whether it improved them.
  absl::Status ForPairs(
      const TaskGraph& graph,
      absl::FunctionRef<absl::StatusOr<bool>(int node, int user)> try_pair) const {
    bool gained = true;
    for (int round = 0; gained && round < kMostRounds; ++round) {
      gained = false;
      for (int node : movable_) {
        for (const Edge& edge : edges_[node]) {
          if (!edge.is_user || graph.num_choices(edge.other) <= 1) continue;
          ISOMER_ASSIGN_OR_RETURN(const bool improved, try_pair(node, edge.other));
          gained |= improved;
        }
      }
    }
    return absl::OkStatus();
  }

  // Sets the pair of choices with the shortest step, uncommitted. False: the current one.
  absl::StatusOr<bool> SetBestPair(int node, int user, TaskGraph* graph) const {
    std::optional<Pair> best;
    Picoseconds least = graph->makespan();
    for (const Pair& pair : BestPairs(*graph, node, user)) {
      ISOMER_RETURN_IF_ERROR(SetPair(node, user, pair, graph));
      if (graph->makespan() >= least) continue;
      least = graph->makespan();
      best = pair;
    }
    graph->Rollback();
    if (!best.has_value()) return false;
    ISOMER_RETURN_IF_ERROR(SetPair(node, user, *best, graph));
    return true;
  }

 private:
  struct Edge {
    int other;
    const CostTable* us;  // rows: choices of the producer
    bool is_user;         // the other call uses this one's result
    float Us(int own, int at) const { return is_user ? us->at(own, at) : us->at(at, own); }
  };
  struct Pair {
    float us;
    int choice, of_user;
  };

  // Per choice: time given the current choices of all neighbours except `without`. Neighbours'
  // choices outside the tables cost nothing.
  std::vector<float> UsBesideNeighbours(const TaskGraph& graph, int node, int without) const {
    std::vector<float> us = own_us_[node];
    for (const Edge& edge : edges_[node]) {
      const int at = graph.choice(edge.other);
      if (edge.other == without || at >= (edge.is_user ? edge.us->cols : edge.us->rows)) continue;
      for (size_t k = 0; k < us.size(); ++k) us[k] += edge.Us(static_cast<int>(k), at);
    }
    return us;
  }

  // The first few pairs by the tables in which both choices change; neighbours often want equal
  // choices.
  std::vector<Pair> BestPairs(const TaskGraph& graph, int node, int user) const {
    const std::vector<float> us = UsBesideNeighbours(graph, node, user);
    const std::vector<float> user_us = UsBesideNeighbours(graph, user, node);
    std::vector<Pair> pairs;
    pairs.reserve(us.size() * user_us.size());
    for (int k = 0; k < static_cast<int>(us.size()); ++k) {
      if (k == graph.choice(node)) continue;
      for (int j = 0; j < static_cast<int>(user_us.size()); ++j) {
        if (j == graph.choice(user)) continue;
        Pair pair{us[k] + user_us[j], k, j};
        for (const Edge& edge : edges_[node]) {
          if (edge.other == user && edge.is_user) pair.us += edge.Us(k, j);
        }
        pairs.push_back(pair);
      }
    }
    const size_t most = std::min(kPairs, pairs.size());
    std::partial_sort(
        pairs.begin(), pairs.begin() + most, pairs.end(), [](const Pair& a, const Pair& b) {
          return std::tie(a.us, a.choice, a.of_user) < std::tie(b.us, b.choice, b.of_user);
        });
    pairs.resize(most);
    std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
      return std::tie(a.choice, a.of_user) < std::tie(b.choice, b.of_user);
    });
    return pairs;
  }

  static absl::Status SetPair(int node, int user, const Pair& pair, TaskGraph* graph) {
    if (pair.choice != graph->choice(node)) {
      ISOMER_RETURN_IF_ERROR(graph->SetChoice(node, pair.choice));
    }
    if (pair.of_user == graph->choice(user)) return absl::OkStatus();
    return graph->SetChoice(user, pair.of_user);
  }

  // The `rank`-th choice by the tables, given the neighbours' current choices.
  int OfRank(const TaskGraph& graph, int node, int rank) const {
    const std::vector<float> us = UsBesideNeighbours(graph, node, /*without=*/-1);
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

absl::StatusOr<ProposeChange> GuidedProposer(const TaskGraph& graph,
                                             const Restrictions* restrictions, CostTables* tables) {
  auto guide = std::make_shared<Guide>();
  ISOMER_RETURN_IF_ERROR(guide->Create(graph, restrictions, tables));
  return ProposeChange(
      [guide](std::mt19937_64* random, TaskGraph* to) { return guide->Propose(random, to); });
}

absl::StatusOr<WalkedModel> WithBetterPairs(const Model& model, MappedModel mapped,
                                            const Restrictions* restrictions,
                                            const Deadline& deadline, CostTables* tables,
                                            MoveMemo* moves) {
  const auto graph_of = [&](TaskGraph::Lists lists) {
    return TaskGraph::Create(model, mapped, tables, restrictions, lists,
                             TaskGraph::Order::kInterleaved, moves);
  };
  ISOMER_ASSIGN_OR_RETURN(const auto graph, graph_of(TaskGraph::Lists::kChoices));
  Guide guide;
  ISOMER_RETURN_IF_ERROR(guide.Create(*graph, restrictions, tables));
  Picoseconds least = graph->makespan();
  const auto try_pair = [&](int node, int user) -> absl::StatusOr<bool> {
    if (deadline.Reached().has_value()) return false;
    ISOMER_ASSIGN_OR_RETURN(const bool shorter, guide.SetBestPair(node, user, graph.get()));
    if (!shorter) return false;
    MappedModel before = std::exchange(mapped, graph->Mapped());
    ISOMER_ASSIGN_OR_RETURN(const auto reordered, graph_of(TaskGraph::Lists::kFixed));
    if (reordered->makespan() < least) {
      least = reordered->makespan();
      graph->Commit();
      return true;
    }
    mapped = std::move(before);
    graph->Rollback();
    return false;
  };
  ISOMER_RETURN_IF_ERROR(guide.ForPairs(*graph, try_pair));
  return WalkedModel{std::move(mapped), least};
}

}  // namespace isomer
