// What a step of a decoder achieves: a model that leaves states (pcg/ir/states.h), such as keys and
// values, to the next step.
#ifndef ISOMER_OPTIMIZER_REPORT_INFERENCE_FACTS_H_
#define ISOMER_OPTIMIZER_REPORT_INFERENCE_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "optimizer/machine/machine.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/json.h"

namespace isomer {

struct InferenceFacts {
  int64_t samples = 1;           // that a step takes tokens of
  int64_t tokens_of_sample = 1;  // 1: it decodes; more: a prefill
  double step_us = 0;
  double tokens_per_s = 0;   // of all devices
  int64_t state_bytes = 0;   // of the device that has most
  int64_t weight_bytes = 0;  // likewise
  // Of the time in which the devices with states or weights could read once what a step needs of
  // them, over the step: what decoding one token cannot be faster than. Of tables it needs the rows
  // that it looks up.
  double memory_share = 0;
};
// Nothing: the plan is of no decoder. `lowered`: as it is simulated.
std::optional<InferenceFacts> InferenceFactsOf(const Plan& plan, const LoweredPlan& lowered,
                                               const Machine& machine);

// "Decoding: 12.3 ms a token, 651 tokens/s of 8 samples; keys and values take .."
std::string InferenceText(const InferenceFacts& facts);
Json InferenceJson(const InferenceFacts& facts);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_INFERENCE_FACTS_H_
