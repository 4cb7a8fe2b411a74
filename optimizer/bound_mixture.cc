#include "optimizer/bound_mixture.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "optimizer/mapping_memo.h"

namespace isomer {
namespace {

// The path is followed back to where these parts of its gradients are still to come.
constexpr double kTurns[] = {0.1, 0.25, 0.5, 0.75, 0.9};
constexpr int kNumTurns = 5;
constexpr int kCompute = 0, kNetwork = 1, kBehind = 2, kPath = 3, kDevice = 4, kFirstTurn = 5;
constexpr int kNumBounds = kFirstTurn + kNumTurns;
using Weights = std::array<double, kNumBounds>;

constexpr int kMostSolutions = 24;
// The value of the game is taken to be reached.
constexpr double kCloseEnough = 1e-3;
// Of the game between the solutions so far.
constexpr int kGameRounds = 4000;

class Mixture {
 public:
  Mixture(const BoundedCalls& calls, EdgeBounds* edges, CostTables* tables)
      : calls_(calls), nodes_(calls.compute->nodes), edge_bounds_(*edges), tables_(*tables) {
    FindPath();
    FindEdges();
    FindTurns();
  }

  double BestUs(double enough) {
    Weights weights;
    weights.fill(1.0 / kNumBounds);
    double best = 0;
    for (int round = 0; round < kMostSolutions; ++round) {
      best = std::max(best, Solve(weights));
      if (best >= enough) break;
      if (WeightsOfGame(&weights) <= best * (1 + kCloseEnough)) break;
    }
    return best;
  }

 private:
  struct Edge {
    int from, to;
    const CostTable *forward, *both;
    bool first;    // that moves the value
    bool on_path;  // along the heaviest path
  };

  // The path with most to compute at least.
  void FindPath() {
    std::vector<double> us(nodes_.size(), 0), own(nodes_.size(), kImpossibleUs);
    std::vector<int> from(nodes_.size(), -1);
    size_t last = 0;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      for (const ChoiceParts& p : *calls_.parts[n]) own[n] = std::min(own[n], OwnUs(p));
      for (const auto& operand : nodes_[n].operands) {
        if (operand.producer < 0 || us[operand.producer] <= us[n]) continue;
        us[n] = us[operand.producer];
        from[n] = operand.producer;
      }
      us[n] += own[n];
      if (us[n] > us[last]) last = n;
    }
    before_ = std::move(from);
    on_path_.assign(nodes_.size(), false);
    for (int v = static_cast<int>(last); v >= 0; v = before_[v]) {
      on_path_[v] = true;
      first_on_path_ = v;
    }
    least_us_ = std::move(own);
  }
  static double OwnUs(const ChoiceParts& p) { return p.forward_us + p.gradient_us; }

  void FindEdges() {
    std::set<std::pair<int, int>> moved;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      bool path_goes_on = false;
      for (size_t o = 0; o < nodes_[n].operands.size(); ++o) {
        const ComputeGraph::Operand& operand = nodes_[n].operands[o];
        if (operand.producer < 0) continue;
        const bool first = moved.insert({operand.producer, operand.output}).second;
        const bool on_path = !path_goes_on && on_path_[n] && before_[n] == operand.producer;
        if (!first && !on_path) continue;
        path_goes_on |= on_path;
        const PlacementSetId from = calls_.calls[operand.producer]->outputs[operand.output];
        const PlacementSetId to = calls_.calls[n]->operands[o];
        const bool gradient = tables_.options().training && operand.gradient;
        edges_.push_back({operand.producer, static_cast<int>(n), &edge_bounds_.Us(from, to, false),
                          &edge_bounds_.Us(from, to, gradient), first, on_path});
      }
    }
  }

  void FindTurns() {
    double all = 0, sum = 0;
    for (size_t n = 0; n < nodes_.size(); ++n) all += on_path_[n] ? least_us_[n] : 0;
    turns_.fill(static_cast<int>(nodes_.size()));
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (!on_path_[n]) continue;
      sum += least_us_[n];
      for (int t = 0; t < kNumTurns; ++t) {
        if (sum >= kTurns[t] * all) turns_[t] = std::min(turns_[t], static_cast<int>(n));
      }
    }
  }

  // What the choice adds to each bound.
  Weights NodeUs(size_t n, const ChoiceParts& p) const {
    const bool on_all = p.devices == calls_.devices;
    Weights us;
    us.fill(0);
    us[kCompute] = p.compute_us();
    us[kNetwork] = p.sync_us + p.halo_us;
    us[kBehind] = p.forward_us + p.sync_us + p.halo_us / 2;
    if (on_all) us[kDevice] = p.compute_us() - p.forward_us;
    if (!on_path_[n]) return us;
    us[kDevice] += p.forward_us + p.halo_us / 2;
    const bool is_first = static_cast<int>(n) == first_on_path_;
    us[kPath] = p.forward_us + p.gradient_us + p.halo_us + (is_first ? p.last_us : 0);
    for (int t = 0; t < kNumTurns; ++t) {
      us[kFirstTurn + t] = p.forward_us + p.halo_us / 2;
      if (static_cast<int>(n) >= turns_[t]) {
        us[kFirstTurn + t] += p.gradient_us + p.halo_us / 2;
      }
      if (static_cast<int>(n) <= turns_[t] && on_all) us[kFirstTurn + t] += p.sync_us;
    }
    return us;
  }

  // What the bounds take of the edge's time there, and of the time back.
  static std::pair<Weights, Weights> SharesOf(const Edge& edge,
                                              const std::array<int, kNumTurns>& turns) {
    Weights there, back;
    there.fill(0);
    back.fill(0);
    if (edge.first) there[kNetwork] = back[kNetwork] = back[kBehind] = 1;
    if (!edge.on_path) return {there, back};
    there[kPath] = back[kPath] = there[kDevice] = 1;
    for (int t = 0; t < kNumTurns; ++t) {
      there[kFirstTurn + t] = 1;
      back[kFirstTurn + t] = edge.from >= turns[t] ? 1 : 0;
    }
    return {there, back};
  }

  static double Dot(const Weights& a, const Weights& b) {
    double sum = 0;
    for (int i = 0; i < kNumBounds; ++i) sum += a[i] * b[i];
    return sum;
  }

  // The least of the weighted sum; what it is of each bound is kept.
  double Solve(const Weights& weights) {
    MappingProblem problem;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      MappingProblem::MappingNode node;
      node.shares = calls_.calls[n]->shares;
      for (const ChoiceParts& p : *calls_.parts[n]) {
        node.us.push_back(static_cast<float>(Dot(weights, NodeUs(n, p))));
      }
      problem.nodes.push_back(std::move(node));
    }
    std::map<std::tuple<const CostTable*, const CostTable*, float, float>,
             std::unique_ptr<CostTable>>
        tables;
    for (const Edge& edge : edges_) {
      const auto [there, back] = SharesOf(edge, turns_);
      const float a = static_cast<float>(Dot(weights, there));
      const float b = static_cast<float>(Dot(weights, back));
      auto& table = tables[{edge.forward, edge.both, a, b}];
      if (table == nullptr) table = Mixed(*edge.forward, *edge.both, a, b);
      problem.edges.push_back({edge.from, edge.to, table.get()});
    }
    const MappingSolution solution = SolveMapping(problem, {.memo = tables_.mapping_memo()});
    const std::vector<int> choices = solution.Choices(0, 0);
    Weights us;
    us.fill(0);
    for (size_t n = 0; n < nodes_.size(); ++n) {
      const Weights of = NodeUs(n, (*calls_.parts[n])[choices[n]]);
      for (int i = 0; i < kNumBounds; ++i) us[i] += of[i];
    }
    for (const Edge& edge : edges_) {
      const auto [there, back] = SharesOf(edge, turns_);
      const double forward_us = edge.forward->at(choices[edge.from], choices[edge.to]);
      const double back_us = edge.both->at(choices[edge.from], choices[edge.to]) - forward_us;
      for (int i = 0; i < kNumBounds; ++i) us[i] += there[i] * forward_us + back[i] * back_us;
    }
    solutions_.push_back(us);
    return (1 - solution.gap()) * solution.table().us[0];
  }

  static std::unique_ptr<CostTable> Mixed(const CostTable& forward, const CostTable& both, float a,
                                          float b) {
    auto mixed = std::make_unique<CostTable>(both);
    for (size_t i = 0; i < mixed->us.size(); ++i) {
      float& us = mixed->us[i];
      if (us < kImpossibleUs) us = a * forward.us[i] + b * (us - forward.us[i]);
    }
    mixed->key = mixed->ContentKey();
    return mixed;
  }

  // The game in which one picks a bound, the other a solution: by regret matching, each against the
  // other's play so far. Sets the first one's weights; returns what they are worth at most.
  double WeightsOfGame(Weights* weights) const {
    std::array<double, kNumBounds> regret, sum;
    regret.fill(0);
    sum.fill(0);
    std::vector<double> other_regret(solutions_.size(), 0), other_sum(solutions_.size(), 0);
    Weights mine;
    std::vector<double> others(solutions_.size());
    const auto normalise = [](const auto& regrets, auto* play) {
      double total = 0;
      for (double r : regrets) total += r;
      for (size_t i = 0; i < regrets.size(); ++i) {
        (*play)[i] = total > 0 ? regrets[i] / total : 1.0 / static_cast<double>(regrets.size());
      }
    };
    for (int round = 0; round < kGameRounds; ++round) {
      normalise(regret, &mine);
      normalise(other_regret, &others);
      Weights payoff;
      payoff.fill(0);
      std::vector<double> cost(solutions_.size());
      for (size_t s = 0; s < solutions_.size(); ++s) {
        cost[s] = Dot(mine, solutions_[s]);
        for (int i = 0; i < kNumBounds; ++i) payoff[i] += others[s] * solutions_[s][i];
      }
      const double value = Dot(mine, payoff);
      // Later rounds weigh more (linear averaging).
      for (int i = 0; i < kNumBounds; ++i) {
        regret[i] = std::max(0.0, regret[i] + payoff[i] - value);
        sum[i] += round * mine[i];
      }
      for (size_t s = 0; s < solutions_.size(); ++s) {
        other_regret[s] = std::max(0.0, other_regret[s] + value - cost[s]);
        other_sum[s] += round * others[s];
      }
    }
    normalise(sum, weights);
    normalise(other_sum, &others);
    double worth = 0;
    for (int i = 0; i < kNumBounds; ++i) {
      double us = 0;
      for (size_t s = 0; s < solutions_.size(); ++s) us += others[s] * solutions_[s][i];
      worth = std::max(worth, us);
    }
    return worth;
  }

  const BoundedCalls& calls_;
  const std::vector<ComputeGraph::ComputeNode>& nodes_;
  EdgeBounds& edge_bounds_;
  CostTables& tables_;
  std::vector<int> before_;  // per node: along the heaviest path that ends there, or -1
  std::vector<bool> on_path_;
  std::vector<double> least_us_;  // of the call itself, there and back
  int first_on_path_ = 0;
  std::array<int, kNumTurns> turns_;
  std::vector<Edge> edges_;
  std::vector<Weights> solutions_;  // per solution so far, what each bound is of it
};

}  // namespace

double BestMixtureUs(const BoundedCalls& calls, double enough, EdgeBounds* edges,
                     CostTables* tables) {
  return Mixture(calls, edges, tables).BestUs(enough);
}

}  // namespace isomer
