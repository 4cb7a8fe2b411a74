// The best mixture of bounds from below on a step (a Lagrangian relaxation of the step).
//
// Choices make one term of the relaxed step (relaxed_step.h) short at the expense of another:
// replicas compute less and communicate more. So the least of each term alone says little. With
// weights that sum up to 1 the least of the weighted sum is a bound too, and is the least of a
// mapping (mapping.h). Weights are those of the game between terms and choices: each solution is
// one more column of a matrix game, its greatest terms are more rows, and those of the mixture of
// solutions that the game plays, until it has none that are not there; and the game's value gives
// the next weights, until value and bound meet (Kelley's cutting planes).
#ifndef ISOMER_OPTIMIZER_BOUND_BOUND_MIXTURE_H_
#define ISOMER_OPTIMIZER_BOUND_BOUND_MIXTURE_H_

#include <array>
#include <vector>

#include "optimizer/bound/relaxed_step.h"
#include "optimizer/mapping/cost_tables.h"

namespace isomer {

// What moves over an edge, there and so on, each times its weight.
CostTable MixedTable(const EdgeParts& us, const std::array<float, RelaxedStep::kNumMoves>& weights);

class BoundMixture {
 public:
  // All of these outlive this.
  BoundMixture(const RelaxedStep& step, const BoundedCalls& calls, CostTables* tables);

  // Per call and choice, whether it is one; empty: all are.
  using Allowed = std::vector<std::vector<bool>>;

  struct Best {
    double us = 0;
    // What the mixture is of: assignments, with what they weigh; together as if choices could be
    // made in part.
    std::vector<std::vector<int>> solutions;
    std::vector<double> shares;
    // Terms of some weight.
    std::vector<RelaxedStep::Term> terms;
    std::vector<double> weights;
  };
  // The greatest bound that mixtures give; ends early with one that is `enough` or more, and after
  // so many new solutions. `start`: of a larger space, to begin with; or null. `messages`: what is
  // known of all plans in question.
  Best Find(const Allowed& allowed, const Best* start, double enough, int most_solutions,
            RelaxedStep::Messages messages = RelaxedStep::Messages::kAny);

 private:
  // Of one space: what solutions take, by term.
  struct Game {
    std::vector<RelaxedStep::Term> terms;
    std::vector<std::vector<double>> us;  // per solution and term
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
