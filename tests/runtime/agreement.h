// A step on virtual devices against the reference evaluator on the undivided model.
#ifndef ISOMER_TESTS_RUNTIME_AGREEMENT_H_
#define ISOMER_TESTS_RUNTIME_AGREEMENT_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "runtime/checking/compare.h"

namespace isomer {

// Bounds of that share of each tensor, or, where it is zero in theory, of the largest of its kind.
inline StepBounds ShareOf(const StepValues& expected, double share) {
  StepBounds bounds;
  const auto set = [&](const HostValues& values, std::map<std::string, double>* of) {
    double largest = 0;
    for (const auto& [name, array] : values) {
      largest = std::max(largest, Distance(array, Array<double>(array.shape, 0.0)));
    }
    for (const auto& [name, array] : values) {
      const double norm = Distance(array, Array<double>(array.shape, 0.0));
      (*of)[name] = share * (norm > 1e-9 * largest ? norm : largest);
    }
  };
  set(expected.outputs, &bounds.outputs);
  set(expected.gradients, &bounds.gradients);
  return bounds;
}

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
  const Comparison comparison = Compare(*expected, *actual, ShareOf(*expected, 1e-5));
  EXPECT_TRUE(comparison.agrees()) << comparison.worst << " " << comparison.of_worst.error;
  EXPECT_EQ(comparison.gradients.size(), weights->size());
}

}  // namespace isomer

#endif  // ISOMER_TESTS_RUNTIME_AGREEMENT_H_
