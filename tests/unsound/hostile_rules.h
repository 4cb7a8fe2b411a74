// Rules that nobody would write in good faith, drawn by seed: some are true, most are false, and
// all look as if they might be true.
#ifndef ISOMER_TESTS_UNSOUND_HOSTILE_RULES_H_
#define ISOMER_TESTS_UNSOUND_HOSTILE_RULES_H_

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "rules/language/rule.h"

namespace isomer {

struct HostileRule {
  Rule rule;
  std::string how;  // what was done to what
};

class HostileRules {
 public:
  // `rules`: those that are changed; it outlives this.
  HostileRules(const std::vector<Rule>& rules, uint64_t seed) : rules_(rules), random_(seed) {}

  // A well-formed rule: one of `rules` that is changed in one to three places
  // (verifier/mutation/pattern_changes.h); or a drawn term, and what tempting equations make of it:
  // 0 f(t), t - t, t / t, functions exchanged, calls left out, numbers multiplied in doubles.
  HostileRule Draw();

 private:
  std::optional<HostileRule> Changed();
  std::optional<HostileRule> Tempting();

  const std::vector<Rule>& rules_;
  std::mt19937_64 random_;
};

// What running both sides of a rule shows, at `assignments` assignments that the prover did not
// choose, shard by shard and with gradients, and at the edges of domains: "" if nothing. Of a rule
// that holds both ways, of both.
std::string DifferenceSeen(const Rule& rule, int assignments, uint64_t seed);

}  // namespace isomer

#endif  // ISOMER_TESTS_UNSOUND_HOSTILE_RULES_H_
