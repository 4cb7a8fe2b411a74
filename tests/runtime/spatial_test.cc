// Calls whose image is partitioned give the outputs and all the gradients of the undivided call, on
// virtual devices, by the fast kernels and by the reference kernels.
#include <gtest/gtest.h>

#include "runtime/compare.h"
#include "runtime/job.h"
#include "tests/pcg/schedule/spatial_graphs.h"

namespace isomer {
namespace {

class SpatialTest : public testing::TestWithParam<SpatialCase> {
 protected:
  void ExpectAgrees(bool reference_kernels) {
    Model model;
    model.graph = SpatialGraph(GetParam(), false);
    model.loss = "loss";
    const Graph parallel = SpatialGraph(GetParam(), true);
    const auto backend = MakeCpuBackend(reference_kernels);
    auto job = Job::Start(parallel, LoweredSpatial(GetParam()), backend.get());
    ASSERT_TRUE(job.ok()) << job.status();
    const auto weights = InitialWeights(model, 3);
    ASSERT_TRUE(weights.ok());
    const HostValues inputs = RandomInputs(model.graph, 5);
    ASSERT_EQ((*job)->SetParameters(*weights), absl::OkStatus());
    ASSERT_EQ((*job)->TrainStep(inputs, 0.1), absl::OkStatus());
    const auto expected = ReferenceStep(model, *weights, inputs, true);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto actual = ValuesOfLastStep(model, job->get(), true);
    ASSERT_TRUE(actual.ok()) << actual.status();
    const Comparison comparison = Compare(*expected, *actual);
    EXPECT_LT(comparison.max_rel_error, 1e-5) << comparison.worst;
    EXPECT_EQ(comparison.gradients.size(), weights->size());
  }
};

TEST_P(SpatialTest, AgreesWithTheUndividedCall) { ExpectAgrees(false); }
TEST_P(SpatialTest, ReferenceKernelsAgreeWithTheUndividedCall) { ExpectAgrees(true); }

INSTANTIATE_TEST_SUITE_P(Cases, SpatialTest, testing::ValuesIn(SpatialCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace isomer
