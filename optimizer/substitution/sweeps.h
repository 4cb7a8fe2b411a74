// Steps that a search may take next, and sweeps: steps of one kind at all places at once.
//
// A model has many similar places (the gates of an unrolled recurrent network, the branches of
// cells), and what is best at one is best at most. Step by step, a search that takes what gains
// most goes from one place to the next and is far from its start before it has looked at another
// kind of step: merging products by threes gains more at once than joining each with the one that
// it is added to, of which in the end less is left. A sweep is one candidate, so that a few
// hundred candidates compare kinds, and kinds after kinds; single steps come after.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_SWEEPS_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_SWEEPS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "rules/matching/rule_matcher.h"

namespace isomer {

// A match by its number, its estimated gain, and that with follow-ups. Numbers stay valid when a
// candidate inherits its parent's matches.
struct Step {
  float delta_us = 0, promise_us = 0;
  int kind = 0;  // StepExperience
  uint64_t tie = 0;
  int match = 0;
  friend auto operator<=>(const Step& a, const Step& b) {
    return std::tie(a.promise_us, a.tie, a.match) <=> std::tie(b.promise_us, b.tie, b.match);
  }
};

// The `most` sweeps of two places or more that these steps gain most by, best first. No two steps
// of a sweep rewrite one node. `matches`: by their numbers.
std::vector<std::vector<Step>> SweepsOf(absl::Span<const Step> steps,
                                        const std::deque<RuleMatch>& matches, size_t most);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_SWEEPS_H_
