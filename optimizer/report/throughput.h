// What a step achieves, in the figures that clusters are compared by.
#ifndef ISOMER_OPTIMIZER_REPORT_THROUGHPUT_H_
#define ISOMER_OPTIMIZER_REPORT_THROUGHPUT_H_

#include <string>

#include "optimizer/machine/machine.h"
#include "optimizer/report/explanation.h"
#include "pcg/ir/plan.h"

namespace isomer {

// All per device, of all devices of the machine that the plan is for, idle ones included.
struct Throughput {
  double samples_per_s = 0;
  double tokens_per_s = 0;  // 0: the model looks up no tokens
  // Products of the model itself, forward and in training twice as many backward, recomputation not
  // counted (Chowdhery et al., "PaLM", 2022, appendix B; attention counts in full, causal or not).
  double model_tflops = 0;
  double mfu = 0;            // of the advertised rate in the plan's precision
  double share_of_rate = 0;  // of the rate that large products reach
};
// REQUIRES: a predicted step.
Throughput ThroughputOf(const Plan& plan, const Machine& machine);

// "Each device: 180 tokens/s, 143.2 TFLOP/s of the model (45.9 % MFU)", and what the step consists
// of: computation, exposed communication by kind, waiting.
std::string ThroughputText(const Throughput& throughput, const StepShares& shares, double step_us);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_THROUGHPUT_H_
