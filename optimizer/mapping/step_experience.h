// What came of steps that a search has taken, for the order of those that it may take next.
//
// A step that gains nothing by itself, or costs a little, may be what another one needs that gains
// (two convolutions become one and a split; then the activations behind them become one). Its
// estimate does not show that; but a model has many places that look alike, and what a step led to
// at one of them it leads to at the others. So steps are told by their kind, which is a rule and
// the calls that it matches (RuleMatch::signature):
//
//   first place     merge +0.3 us    then, among the matches near it, merge the activations -2.5 us
//   other places    merge +0.3 - 2.5 us, so that it comes before all that gains less
//
// What follows counts with what it leads to itself, so that longer ways are found out from their
// ends, as values are in learning real-time A* (Korf 1990). What undoes a step is no gain: what the
// step changed and what follows must gain together. A kind that did not is thought a little worse
// of, each time that the number of its vain steps has doubled: else a hundred places where nothing
// changes (a scale before or behind a pooling) come before the one place where a little is paid
// first.
#ifndef ISOMER_OPTIMIZER_MAPPING_STEP_EXPERIENCE_H_
#define ISOMER_OPTIMIZER_MAPPING_STEP_EXPERIENCE_H_

#include <bit>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace isomer {

class StepExperience {
 public:
  // What is searched takes so long: what is thought worse of a kind is a part of it.
  void set_scale_us(float us);

  // A number for the kind of steps with this signature.
  int KindOf(uint64_t signature);

  // What a step of the kind that changes `delta_us` by itself is worth trying for.
  float PromiseUs(int kind, float delta_us) const {
    const Kind& k = kinds_[kind];
    return delta_us + k.followed_us + static_cast<float>(std::bit_width(k.vain)) * vain_us_;
  }

  // A step of the kind changed `change_us`, and the best of the matches that are new after it
  // promises `next_us`; 0: none promises to gain.
  void Took(int kind, float change_us, float next_us);

 private:
  struct Kind {
    float followed_us = 0;  // by the last that gained, or 0
    uint32_t vain = 0;      // steps since then
  };
  float vain_us_ = 0;
  absl::flat_hash_map<uint64_t, int> by_signature_;
  std::vector<Kind> kinds_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_STEP_EXPERIENCE_H_
