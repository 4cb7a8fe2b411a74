// A step on virtual devices against the reference evaluator on the undivided model.
#ifndef ISOMER_TESTS_RUNTIME_AGREEMENT_H_
#define ISOMER_TESTS_RUNTIME_AGREEMENT_H_

#include <gtest/gtest.h>

#include <utility>

#include "runtime/compare.h"

namespace isomer {

// Trains `parallel`, lowered to `schedule`, for a step; its outputs and gradients, one of every
// weight, are those of `model`. `expected` receives the latter.
inline void ExpectStepAgrees(const Model& model, const Graph& parallel, Schedule schedule,
                             Backend* backend, StepValues* expected) {
  auto job = Job::Start(parallel, std::move(schedule), backend);
  ASSERT_TRUE(job.ok()) << job.status();
  const auto weights = InitialWeights(model, 3);
  ASSERT_TRUE(weights.ok());
  const HostValues inputs = RandomInputs(model.graph, 5);
  ASSERT_EQ((*job)->SetParameters(*weights), absl::OkStatus());
  ASSERT_EQ((*job)->TrainStep(inputs, 0.1), absl::OkStatus());
  auto reference = ReferenceStep(model, *weights, inputs, true);
  ASSERT_TRUE(reference.ok()) << reference.status();
  *expected = *std::move(reference);
  const auto actual = ValuesOfStep(model, job->get(), true);
  ASSERT_TRUE(actual.ok()) << actual.status();
  const Comparison comparison = Compare(*expected, *actual);
  EXPECT_LT(comparison.max_rel_error, 1e-5) << comparison.worst;
  EXPECT_EQ(comparison.gradients.size(), weights->size());
}

}  // namespace isomer

#endif  // ISOMER_TESTS_RUNTIME_AGREEMENT_H_
