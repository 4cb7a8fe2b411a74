// isomer-optimize --objective=throughput: the batch with which a decoder, or any model for
// inference, gives most.
#ifndef ISOMER_OPTIMIZER_OBJECTIVE_MAIN_H_
#define ISOMER_OPTIMIZER_OBJECTIVE_MAIN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/search/optimizer.h"
#include "pcg/ir/plan.h"
#include "pcg/support/json.h"

namespace isomer {

// Ok if the flags of this file go together, and with `training`.
absl::Status CheckObjective(bool training);
// Whether the batch is to be chosen.
bool SeeksThroughput();

// A batch that was planned for.
struct BatchTrial {
  int64_t batch = 0;
  double step_us = 0, per_s = 0;  // samples of all devices
  int64_t peak_bytes = 0;
  bool fits = false, in_time = false;
};

// Each about twice the one before, and from the odd part of the number of devices on multiples of
// it, as no other batch can be shared out by all: of 6 devices 1, 2, 3, 6, 12 and so on.
// REQUIRES: devices >= 1.
std::vector<int64_t> BatchesToTry(int64_t devices);

// The plan of most samples/s whose step takes no longer than --most_step_ms, of BatchesToTry until
// a step does not fit, or is too long. If none is in time, the first. `plan`: for that batch; the
// first are passed over if they are invalid arguments, which is the error if all are.
absl::StatusOr<OptimizeResult> PlanForThroughput(
    int64_t devices, const std::function<absl::StatusOr<OptimizeResult>(int64_t batch)>& plan,
    std::vector<BatchTrial>* trials);

std::string TrialsText(const std::vector<BatchTrial>& trials);
Json TrialsJson(const std::vector<BatchTrial>& trials);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_OBJECTIVE_MAIN_H_
