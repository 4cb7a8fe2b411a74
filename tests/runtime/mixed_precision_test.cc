// Hand-written parallel graphs in bfloat16 and float16 train like the float32 model.
#include <gtest/gtest.h>

#include "pcg/precision.h"
#include "pcg/schedule/check.h"
#include "runtime/compare.h"
#include "runtime/job.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/runtime/agreement.h"

namespace isomer {
namespace {

Plan PlanOf(const ParallelCase& c, DataType precision) {
  Plan plan;
  plan.model.graph = Parsed(c.sequential);
  plan.model.loss = "loss";
  plan.graph = Parsed(c.parallel);
  plan.views = ViewsOf(plan.graph, c.strides);
  plan.num_devices = c.num_devices;
  plan.precision = precision;
  return plan;
}

// About eight units of the last place: these graphs have few layers.
double Tolerance(DataType precision) { return precision == DataType::kBFloat16 ? 3e-2 : 4e-3; }

double Loss(Job* job) {
  const absl::StatusOr<Array<double>> loss = job->Output("loss");
  EXPECT_TRUE(loss.ok()) << loss.status();
  return loss.ok() ? loss->data[0] : 0;
}

class MixedPrecisionTest : public testing::TestWithParam<ParallelCase> {
 protected:
  static void Check(DataType precision) {
    const Plan plan = PlanOf(GetParam(), precision);
    absl::StatusOr<LoweredPlan> lowered = LowerPlan(plan, /*keep_gradients=*/true);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    ASSERT_EQ(CheckSchedule(lowered->mapped.graph, lowered->schedule), absl::OkStatus());
    const auto backend = MakeCpuBackend();
    auto job = Job::Start(lowered->mapped.graph, lowered->schedule, backend.get());
    ASSERT_TRUE(job.ok()) << job.status();
    const auto weights = InitialWeights(plan.model, 3);
    ASSERT_TRUE(weights.ok());
    const HostValues inputs = RandomInputs(plan.model.graph, 5);
    ASSERT_EQ((*job)->SetParameters(*weights), absl::OkStatus());
    ASSERT_EQ((*job)->TrainStep(inputs, 0.1), absl::OkStatus());
    const double first = Loss(job->get());

    const auto expected = ReferenceStep(plan.model, *weights, inputs, true);
    const auto actual = ValuesOfStep(plan.model, job->get(), true);
    ASSERT_TRUE(expected.ok() && actual.ok());
    const Comparison comparison =
        Compare(*expected, *actual, ShareOf(*expected, Tolerance(precision)));
    EXPECT_TRUE(comparison.agrees()) << comparison.worst << " " << comparison.of_worst.error;
    EXPECT_GT(comparison.max_rel_error, 1e-6) << "it is float32";

    for (int step = 0; step < 20; ++step) {
      ASSERT_EQ((*job)->TrainStep(inputs, 0.1), absl::OkStatus());
    }
    EXPECT_LT(Loss(job->get()), first);
    CheckTrainedLoss(plan, *weights, inputs, Loss(job->get()));
  }

  // The float32 model on one device arrives at about the same loss.
  static void CheckTrainedLoss(const Plan& plan, const HostValues& weights,
                               const HostValues& inputs, double loss) {
    const auto backend = MakeCpuBackend();
    auto schedule =
        LowerGraph(plan.model.graph, SequentialViews(plan.model.graph), TrainingOptions(1));
    ASSERT_TRUE(schedule.ok());
    auto job = Job::Start(plan.model.graph, *std::move(schedule), backend.get());
    ASSERT_TRUE(job.ok());
    ASSERT_EQ((*job)->SetParameters(weights), absl::OkStatus());
    for (int step = 0; step < 21; ++step) {
      ASSERT_EQ((*job)->TrainStep(inputs, 0.1), absl::OkStatus());
    }
    EXPECT_NEAR(loss, Loss(job->get()), Tolerance(plan.precision) * std::abs(loss));
  }
};

TEST_P(MixedPrecisionTest, BFloat16TrainsLikeFloat32) { Check(DataType::kBFloat16); }
TEST_P(MixedPrecisionTest, Float16TrainsLikeFloat32) { Check(DataType::kFloat16); }

INSTANTIATE_TEST_SUITE_P(AllGraphs, MixedPrecisionTest, testing::ValuesIn(ParallelCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace isomer
