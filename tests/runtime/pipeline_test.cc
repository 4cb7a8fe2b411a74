// Pipelines on virtual devices: outputs and gradients are those of the undivided model.
#include <gtest/gtest.h>

#include "pcg/schedule/check.h"
#include "tests/pcg/schedule/pipeline_graphs.h"
#include "tests/runtime/agreement.h"

namespace isomer {
namespace {

class PipelineTest : public testing::TestWithParam<StagedMlp> {};

TEST_P(PipelineTest, StepIsThatOfTheUndividedModel) {
  const PipelineGraphs graphs = MakePipeline(GetParam());
  for (PipelineOrder order :
       {PipelineOrder::kOneForwardOneBackward, PipelineOrder::kAllForwardFirst}) {
    Schedule schedule = LoweredPipeline(GetParam(), graphs.mapped, order);
    ASSERT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus())
        << schedule.ToString(graphs.mapped.graph);
    const auto backend = MakeCpuBackend(/*reference=*/false);
    StepValues expected;
    ExpectStepAgrees(graphs.model, graphs.mapped.graph, std::move(schedule), backend.get(),
                     &expected);
  }
}

std::vector<StagedMlp> Pipelines() {
  std::vector<StagedMlp> pipelines;
  for (int64_t stages : {1, 2, 4}) {
    for (int64_t data : {1, 2}) {
      for (int64_t micro_batches : {1, 2, 3, 4, 8}) {
        const bool shortcut = (stages + data + micro_batches) % 2 == 0;
        pipelines.push_back({4, stages, data, micro_batches, shortcut});
      }
    }
  }
  return pipelines;
}

INSTANTIATE_TEST_SUITE_P(Pipelines, PipelineTest, testing::ValuesIn(Pipelines()),
                         [](const auto& info) { return info.param.Name(); });

}  // namespace
}  // namespace isomer
