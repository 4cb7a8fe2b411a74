// A few steps of a small network on one device, in micro-batches, with Adam: what it comes to on
// devices of several kinds.
#ifndef ISOMER_TESTS_RUNTIME_SHORT_TRAINING_H_
#define ISOMER_TESTS_RUNTIME_SHORT_TRAINING_H_

#include <gtest/gtest.h>

#include "pcg/ir/plan.h"
#include "pcg/ir/precision.h"
#include "pcg/schedule/lowering/lower.h"
#include "runtime/checking/compare.h"
#include "runtime/execution/job.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {

struct Trained {
  HostValues parameters, gradients;
  double loss = 0;
};

inline Trained TrainedOn(Backend* backend, DataType precision, double learning_rate,
                         ExecutionKind kind = ExecutionKind::kInline) {
  Plan plan = MicroBatchPlan(
      {.layers = 2, .stages = 1, .micro_batches = 4, .batch = 8, .width = 16}, precision);
  plan.update.optimizer = OptimizerKind::kAdam;
  absl::StatusOr<LoweredPlan> lowered = LowerPlan(plan, /*keep_gradients=*/true);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  const auto job = Job::Start(lowered->mapped.graph, lowered->schedule, backend,
                              {.execution = {.kind = kind},
                               .loss_scale = precision == DataType::kFloat16 ? 1024.0 : 0,
                               .finds_loss_scale = precision == DataType::kFloat16});
  EXPECT_TRUE(job.ok()) << job.status();
  EXPECT_EQ((*job)->SetParameters(InitialWeights(plan.model, 3).value()), absl::OkStatus());
  const HostValues inputs = RandomInputs(plan.model.graph, 5);
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ((*job)->TrainStep(inputs, learning_rate), absl::OkStatus());
  }
  return {(*job)->Parameters().value(), (*job)->Gradients().value(),
          (*job)->Output("loss")->data[0]};
}

}  // namespace isomer

#endif  // ISOMER_TESTS_RUNTIME_SHORT_TRAINING_H_
