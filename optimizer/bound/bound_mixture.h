// The best mixture of lower bounds on a step (a Lagrangian relaxation of the step).
//
// Choices shorten one term of the relaxed step (relaxed_step.h) at the expense of another: replicas
// compute less and communicate more. So the minimum of each term alone is weak. With weights that
// sum to 1, the minimum of the weighted sum is a bound too, and is that of a mapping (mapping.h).
// Weights come from the matrix game between terms and choices: each solution adds a column, its
// maximal terms and those of the current mixture of solutions add rows; the game's value gives the
// next weights, until value and bound meet (Kelley's cutting planes).
#ifndef ISOMER_OPTIMIZER_BOUND_BOUND_MIXTURE_H_
#define ISOMER_OPTIMIZER_BOUND_BOUND_MIXTURE_H_

#include <array>
#include <vector>

#include "optimizer/bound/relaxed_step.h"
#include "optimizer/mapping/cost_tables.h"

namespace isomer {

// Transfer times over an edge, forward and backward and so on, each times its weight.
CostTable MixedTable(const EdgeParts& us, const std::array<float, RelaxedStep::kNumMoves>& weights);

class BoundMixture {
 public:
  // All must outlive this.
  BoundMixture(const RelaxedStep& step, const BoundedCalls& calls, CostTables* tables);

  // [call][choice]: whether it is allowed; empty: all are.
  using Allowed = std::vector<std::vector<bool>>;

  struct Best {
    double us = 0;
    // The fractional solution: assignments and their weights.
    std::vector<std::vector<int>> solutions;
    std::vector<double> shares;
    // Terms with positive weight.
    std::vector<RelaxedStep::Term> terms;
    std::vector<double> weights;
  };
  // The greatest bound over mixtures; stops at a bound of `enough` or more, and after
  // `most_solutions` new solutions. `start`: null, or the best of a larger space, as a warm start.
  // `messages`: what is known of all plans in question.
  Best Find(const Allowed& allowed, const Best* start, double enough, int most_solutions,
            RelaxedStep::Messages messages = RelaxedStep::Messages::kAny);

 private:
  // The matrix game of one space: times of solutions by term.
  struct Game {
    std::vector<RelaxedStep::Term> terms;
    std::vector<std::vector<double>> us;  // [solution][term]
  };
  double Solve(const Allowed& allowed, const std::vector<RelaxedStep::Term>& terms,
               const std::vector<double>& weights, std::vector<int>* choices);
  double Play(Game* game, std::vector<double>* weights, Best* best) const;
  bool AddTerm(RelaxedStep::Term term, const Best& best, Game* game) const;
  void AddSolution(std::vector<int> choices, Best* best, Game* game) const;

  const RelaxedStep& step_;
  RelaxedStep::Messages messages_ = RelaxedStep::Messages::kAny;
  const BoundedCalls& calls_;
  CostTables& tables_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_BOUND_MIXTURE_H_
