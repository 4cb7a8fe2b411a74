// Schedules with values in the host's memory compute what those without do, in the prime field; and
// their programs read what was written for them, in whatever order queues run.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/program/program.h"
#include "tests/pcg/schedule/layers.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"
#include "verifier/mutation/program_run.h"
#include "verifier/mutation/schedule_run.h"

namespace isomer {
namespace {

// The number of copies to the host.
int64_t ExpectSameResults(const StagedMlp& pipeline, int32_t in_flight, bool recomputes) {
  SCOPED_TRACE(absl::StrCat(pipeline.Name(), " ", in_flight, recomputes ? " recomputed" : ""));
  const MappedGraph mapped = MakePipeline(pipeline).mapped;
  ScheduleOptions options = TrainingOptions(pipeline.devices());
  options.zero_bubble.most_in_flight = in_flight;
  const auto kept = LowerGraph(mapped.graph, mapped.views, options);
  EXPECT_TRUE(kept.ok()) << kept.status();
  for (NodeId id : ComputedNodes(mapped.graph)) {
    const bool again = recomputes && mapped.graph.node(id).op.kind() == OpKind::kMatMul;
    (again ? options.recomputed : options.offloaded).push_back(id);
  }
  const auto schedule = LowerGraph(mapped.graph, mapped.views, options);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(CheckSchedule(mapped.graph, *schedule), absl::OkStatus());
  int64_t copies = 0;
  for (const Task& task : schedule->tasks) copies += task.kind == TaskKind::kOffload;
  for (uint64_t seed : {1, 2}) {
    const auto expected = RunSchedule(mapped.graph, *kept, seed);
    const auto found = RunSchedule(mapped.graph, *schedule, seed);
    EXPECT_TRUE(expected.ok()) << expected.status();
    EXPECT_TRUE(found.ok()) << found.status();
    if (!recomputes) {
      EXPECT_EQ(*found, *expected);
    }
    EXPECT_EQ(found->size(), expected->size());
    // Buffers that recomputation adds have numbers of their own; what is unloaded comes in order.
    auto other = expected->begin();
    for (const auto& [id, values] : *found) EXPECT_EQ(values, (other++)->second) << id;
  }
  const MemoryPlan memory = PlanMemory(*schedule, kMostQueues);
  const Program program = CompileProgram(*schedule, memory, kMostQueues);
  const auto in_order = RunProgramOnNames(*schedule, memory, program, 0);
  EXPECT_TRUE(in_order.ok()) << in_order.status();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto found = RunProgramOnNames(*schedule, memory, program, seed);
    EXPECT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, *in_order) << seed;
  }
  return copies;
}

TEST(OffloadRun, ComputesWhatIsComputedWithoutInAnyOrder) {
  int64_t copies = 0;
  for (int64_t stages : {1, 2}) {
    for (int64_t data : {1, 2}) {
      for (const bool recomputes : {false, true}) {
        for (int32_t in_flight : {0, 4}) {
          if (in_flight > 0 && (stages == 1 || recomputes)) continue;
          const StagedMlp pipeline{.layers = 14 * stages,
                                   .stages = stages,
                                   .data = data,
                                   .micro_batches = stages == 1 ? 1 : 4,
                                   .shortcut = data == 2,
                                   .batch = 8,
                                   .width = 3};
          copies += ExpectSameResults(pipeline, in_flight, recomputes);
        }
      }
    }
  }
  EXPECT_GT(copies, 200);
}

}  // namespace
}  // namespace isomer
