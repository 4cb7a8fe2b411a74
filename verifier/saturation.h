// Finds instances of lemmas that may prove an equation.
//
// Equality saturation over an e-graph (Willsey et al., "egg", POPL'21, in little): the terms of
// both sides are its first nodes; each round matches every lemma in both directions on classes of
// equal terms, adds the other sides, and merges; congruent nodes are merged between rounds. It
// stops when the two sides are in one class, or at a bound on rounds and nodes. Its answer is a
// list of equations; that they imply the goal is for Z3 to say (smt.h).
#ifndef ISOMER_VERIFIER_SATURATION_H_
#define ISOMER_VERIFIER_SATURATION_H_

#include <string>
#include <vector>

#include "verifier/elements/term.h"
#include "verifier/lemma.h"

namespace isomer {

// left == right, by an instance of a lemma.
struct LemmaInstance {
  const Lemma* lemma;
  TermId left, right;
};

struct Saturation {
  bool reached = false;  // every goal's sides are in one class
  std::vector<LemmaInstance> instances;
  int rounds = 0;
};

struct Goal {
  TermId left, right;
};

// Terms are added to `pool`. `bound_nodes` is a bound on its size.
Saturation Saturate(const std::vector<Goal>& goals, TermPool* pool, LemmaBook* book,
                    int bound_rounds = 5, int bound_nodes = 1500);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_SATURATION_H_
