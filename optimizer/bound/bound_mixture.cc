#include "optimizer/bound/bound_mixture.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "optimizer/mapping/mapping.h"
#include "optimizer/mapping/mapping_memo.h"

namespace isomer {
namespace {

// Relative gap at which the game counts as solved.
constexpr double kCloseEnough = 1e-3;
// Rounds of the game between the current solutions.
constexpr int kGameRounds = 1500;
// Searches for greater terms of the solutions' mixture.
constexpr int kMostReplies = 20;
// Weights from which solutions and terms warm-start a branch of the space.
constexpr double kSomeShare = 0.005, kSomeWeight = 1e-4;

// Sets `play` to the normalised regrets; uniform if all are 0.
void Normalise(const std::vector<double>& regrets, std::vector<double>* play) {
  double total = 0;
  for (double r : regrets) total += r;
  for (size_t i = 0; i < regrets.size(); ++i) {
    (*play)[i] = total > 0 ? regrets[i] / total : 1.0 / static_cast<double>(regrets.size());
  }
}

// The game between terms and solutions, by regret matching, each against the other's play so far.
// Sets the strategies; returns an upper bound on the value for the terms.
double PlayGame(const std::vector<std::vector<double>>& us, std::vector<double>* weights,
                std::vector<double>* shares) {
  const size_t num_terms = us[0].size(), num_solutions = us.size();
  std::vector<double> regret(num_terms, 0), sum(num_terms, 0), mine(num_terms);
  std::vector<double> other_regret(num_solutions, 0), other_sum(num_solutions, 0);
  std::vector<double> others(num_solutions), payoff(num_terms), cost(num_solutions);
  for (int round = 0; round < kGameRounds; ++round) {
    Normalise(regret, &mine);
    Normalise(other_regret, &others);
    std::fill(payoff.begin(), payoff.end(), 0);
    double value = 0;
    for (size_t s = 0; s < num_solutions; ++s) {
      cost[s] = 0;
      for (size_t t = 0; t < num_terms; ++t) {
        cost[s] += mine[t] * us[s][t];
        payoff[t] += others[s] * us[s][t];
      }
      value += others[s] * cost[s];
    }
    // Later rounds weigh more (linear averaging).
    for (size_t t = 0; t < num_terms; ++t) {
      regret[t] = std::max(0.0, regret[t] + payoff[t] - value);
      sum[t] += round * mine[t];
    }
    for (size_t s = 0; s < num_solutions; ++s) {
      other_regret[s] = std::max(0.0, other_regret[s] + value - cost[s]);
      other_sum[s] += round * others[s];
    }
  }
  weights->resize(num_terms);
  shares->resize(num_solutions);
  Normalise(sum, weights);
  Normalise(other_sum, shares);
  double worth = 0;
  for (size_t t = 0; t < num_terms; ++t) {
    double sum_us = 0;
    for (size_t s = 0; s < num_solutions; ++s) sum_us += (*shares)[s] * us[s][t];
    worth = std::max(worth, sum_us);
  }
  return worth;
}

}  // namespace

CostTable MixedTable(const EdgeParts& us,
                     const std::array<float, RelaxedStep::kNumMoves>& weights) {
  CostTable mixed = us.there;
  for (size_t i = 0; i < mixed.us.size(); ++i) {
    float& sum = mixed.us[i];
    if (sum >= kImpossibleUs) continue;
    sum = weights[0] * sum + weights[1] * us.back.us[i] + weights[2] * us.waited_there.us[i] +
          weights[3] * us.waited_back.us[i];
  }
  return mixed;
}

BoundMixture::BoundMixture(const RelaxedStep& step, const BoundedCalls& calls, CostTables* tables)
    : step_(step), calls_(calls), tables_(*tables) {}

BoundMixture::Best BoundMixture::Find(const Allowed& allowed, const Best* start, double enough,
                                      int most_solutions, RelaxedStep::Messages messages) {
  messages_ = messages;
  Best best;
  Game game;
  game.terms = step_.QueueTerms();
  std::vector<double> weights(game.terms.size(), 1.0 / static_cast<double>(game.terms.size()));
  if (start != nullptr) {
    game.terms = start->terms;
    weights = start->weights;
    for (size_t s = 0; s < start->solutions.size(); ++s) {
      const std::vector<int>& choices = start->solutions[s];
      bool is_one = start->shares[s] > kSomeShare;
      for (size_t n = 0; n < choices.size() && is_one; ++n) is_one = allowed[n][choices[n]];
      if (is_one) AddSolution(choices, &best, &game);
    }
    weights.resize(game.terms.size(), 0);
  }
  for (int round = 0; round < most_solutions; ++round) {
    std::vector<int> choices;
    best.us = std::max(best.us, Solve(allowed, game.terms, weights, &choices));
    if (best.us >= enough) break;
    AddSolution(std::move(choices), &best, &game);
    const double worth = Play(&game, &weights, &best);
    if (worth <= best.us * (1 + kCloseEnough)) break;
  }
  best.shares.resize(best.solutions.size(), 0);
  for (size_t t = 0; t < game.terms.size() && t < weights.size(); ++t) {
    if (weights[t] < kSomeWeight) continue;
    best.terms.push_back(std::move(game.terms[t]));
    best.weights.push_back(weights[t]);
  }
  return best;
}

// Solves the game of the current solutions against all terms: the optimal mixture against some
// terms may have greater ones, which none of the solutions has alone.
double BoundMixture::Play(Game* game, std::vector<double>* weights, Best* best) const {
  double worth = 0;
  for (int reply = 0; reply < kMostReplies; ++reply) {
    worth = PlayGame(game->us, weights, &best->shares);
    const double missed = worth * (1 + kCloseEnough / 4);
    bool missing = false;
    for (RelaxedStep::Term& term : step_.GreatestTerms(best->solutions, best->shares, messages_)) {
      double mean_us = 0;
      for (size_t s = 0; s < best->solutions.size(); ++s) {
        mean_us += best->shares[s] * step_.Us(term, best->solutions[s]);
      }
      worth = std::max(worth, mean_us);
      if (mean_us > missed) missing |= AddTerm(std::move(term), *best, game);
    }
    if (!missing) break;
  }
  weights->resize(game->terms.size(), 0);
  return worth;
}

// Returns whether the term is new.
bool BoundMixture::AddTerm(RelaxedStep::Term term, const Best& best, Game* game) const {
  if (std::find(game->terms.begin(), game->terms.end(), term) != game->terms.end()) return false;
  for (size_t s = 0; s < game->us.size(); ++s) {
    game->us[s].push_back(step_.Us(term, best.solutions[s]));
  }
  game->terms.push_back(std::move(term));
  return true;
}

void BoundMixture::AddSolution(std::vector<int> choices, Best* best, Game* game) const {
  for (RelaxedStep::Term& term : step_.GreatestTerms(choices, messages_)) {
    AddTerm(std::move(term), *best, game);
  }
  std::vector<double> us;
  for (const RelaxedStep::Term& term : game->terms) us.push_back(step_.Us(term, choices));
  game->us.push_back(std::move(us));
  best->solutions.push_back(std::move(choices));
}

// The minimum of the weighted sum, with its choices.
double BoundMixture::Solve(const Allowed& allowed, const std::vector<RelaxedStep::Term>& terms,
                           const std::vector<double>& weights, std::vector<int>* choices) {
  const RelaxedStep::Mixed mixed = step_.Mix(terms, weights);
  MappingProblem problem;
  for (int n = 0; n < step_.num_calls(); ++n) {
    MappingProblem::MappingNode node;
    for (int k = 0; k < static_cast<int>(calls_.parts[n]->size()); ++k) {
      const bool is_one = allowed.empty() || allowed[n][k];
      node.us.push_back(is_one ? static_cast<float>(step_.CallUs(mixed, n, k)) : kImpossibleUs);
    }
    problem.nodes.push_back(std::move(node));
  }
  std::map<std::pair<const EdgeParts*, std::array<float, RelaxedStep::kNumMoves>>,
           std::unique_ptr<CostTable>>
      tables;
  for (size_t e = 0; e < step_.edges().size(); ++e) {
    const RelaxedStep::Edge& edge = step_.edges()[e];
    auto& table = tables[{edge.us, mixed.edges[e]}];
    if (table == nullptr) {
      table = std::make_unique<CostTable>(MixedTable(*edge.us, mixed.edges[e]));
      table->key = table->ContentKey();
    }
    problem.edges.push_back({edge.from, edge.to, table.get()});
  }
  const MappingSolution solution = SolveMapping(problem, {.memo = tables_.mapping_memo()});
  *choices = solution.Choices(0, 0);
  return (1 - solution.gap()) * solution.table().us[0];
}

}  // namespace isomer
