#include "optimizer/mapping/step_experience.h"

#include "optimizer/mapping/mapping_problem.h"

namespace isomer {
namespace {

// Smaller gains are rounding.
constexpr float kLeastGainUs = 1e-3F;
// Fraction of the searched graph's time.
constexpr float kVain = 1e-3F;

}  // namespace

void StepExperience::set_scale_us(float us) { vain_us_ = us < kImpossibleUs ? kVain * us : 0; }

int StepExperience::KindOf(uint64_t signature) {
  const auto [known, added] = by_signature_.try_emplace(signature, static_cast<int>(kinds_.size()));
  if (added) kinds_.emplace_back();
  return known->second;
}

void StepExperience::Took(int kind, float change_us, float next_us) {
  Kind& k = kinds_[kind];
  if (change_us + next_us < -kLeastGainUs) {
    k = {next_us, 0};
  } else {
    k = {0, k.vain + 1};
  }
}

}  // namespace isomer
