// Calls whose image is partitioned give the outputs and all the gradients of the undivided call, on
// virtual devices, by the fast kernels and by the reference kernels.
#include <gtest/gtest.h>

#include "runtime/checking/compare.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/execution/job.h"
#include "tests/pcg/schedule/spatial_graphs.h"
#include "tests/runtime/agreement.h"

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
    StepValues expected;
    ExpectStepAgrees(model, parallel, LoweredSpatial(GetParam()), backend.get(), &expected);
  }
};

TEST_P(SpatialTest, AgreesWithTheUndividedCall) { ExpectAgrees(false); }
TEST_P(SpatialTest, ReferenceKernelsAgreeWithTheUndividedCall) { ExpectAgrees(true); }

INSTANTIATE_TEST_SUITE_P(Cases, SpatialTest, testing::ValuesIn(SpatialCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace isomer
