// Learned values of rewrite steps, which order the steps that a search may take next.
//
// A step that gains nothing by itself, or costs a little, may enable one that gains (two
// convolutions become one and a split; then the activations after them merge). Its estimate does
// not show that, but a model has many similar places, and a step leads to the same at each of them.
// So steps are classified by kind: a rule and the calls that it matches (RuleMatch::signature):
//
//   first place     merge +0.3 us    then, among the matches near it, merge the activations -2.5 us
//   other places    merge +0.3 - 2.5 us, so that it comes before all that gains less
//
// A follow-up counts with its own follow-ups, so that longer sequences are learned from their ends,
// as values are in learning real-time A* (Korf 1990). Undoing a step is no gain: a step and its
// follow-up must gain together. A kind without gains is penalised a little more each time that the
// number of its vain steps has doubled; otherwise a hundred places where nothing changes (a scale
// before or after a pooling) would precede the one place where a small cost pays off later.
#ifndef ISOMER_OPTIMIZER_MAPPING_STEP_EXPERIENCE_H_
#define ISOMER_OPTIMIZER_MAPPING_STEP_EXPERIENCE_H_

#include <bit>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace isomer {

class StepExperience {
 public:
  // Microseconds that the searched graph takes: penalties are a fraction of it.
  void set_scale_us(float us);

  // The kind of the steps with this signature.
  int KindOf(uint64_t signature);

  // Expected change in microseconds, with follow-ups, of a step of the kind that changes `delta_us`
  // by itself.
  float PromiseUs(int kind, float delta_us) const {
    const Kind& k = kinds_[kind];
    return delta_us + k.followed_us + static_cast<float>(std::bit_width(k.vain)) * vain_us_;
  }

  // Records that a step of the kind changed `change_us`, and that the best match that is new after
  // it promises `next_us`; 0: none promises a gain.
  void Took(int kind, float change_us, float next_us);

 private:
  struct Kind {
    float followed_us = 0;  // gain of the last follow-up that gained, or 0
    uint32_t vain = 0;      // steps since then
  };
  float vain_us_ = 0;
  absl::flat_hash_map<uint64_t, int> by_signature_;
  std::vector<Kind> kinds_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_STEP_EXPERIENCE_H_
