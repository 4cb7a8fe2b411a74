// Plans from somebody who knows how they are checked, drawn by seed.
#ifndef ISOMER_TESTS_UNSOUND_HOSTILE_PLANS_H_
#define ISOMER_TESTS_UNSOUND_HOSTILE_PLANS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pcg/ir/plan.h"
#include "rules/language/rule.h"

namespace isomer {

class HostilePlans {
 public:
  explicit HostilePlans(const RuleSet& rules) {
    for (const Rule& rule : rules.rules) rules_.push_back(&rule);
  }

  // Draws a model and a derivation from it, changes them in one to three places, seals what comes
  // of it, and gives it to the checker, with the model as the user has it. What is accepted is run
  // beside the model. Counts what became of the plans, and says what was found.
  void Attack(uint64_t seed, std::map<std::string, int64_t>* counts,
              std::vector<std::string>* findings);

 private:
  std::vector<const Rule*> rules_;
};

// What running both graphs on the same values shows, "" if nothing: in the prime field, where
// nothing but the operators' own equations holds (in doubles if exp is applied, of which one more
// is known), and at the edges of domains, with gradients.
std::string DifferenceSeen(const Graph& model, const Graph& plan, bool training, uint64_t seed);

}  // namespace isomer

#endif  // ISOMER_TESTS_UNSOUND_HOSTILE_PLANS_H_
