// Gradients of weights that are computed while those of data are on their way, and that the checker
// refuses schedules that do it wrong.
#include "pcg/schedule/lowering/split_gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pcg/schedule/check/check.h"
#include "pcg/schedule/check/check_calls.h"
#include "pcg/schedule/lowering/lower.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Schedule LoweredExample(const std::string& name) {
  for (const ParallelCase& c : ParallelCases()) {
    if (c.name == name) return Lowered(c);
  }
  ADD_FAILURE() << "no example " << name;
  return {};
}
Graph GraphOfExample(const std::string& name) {
  for (const ParallelCase& c : ParallelCases()) {
    if (c.name == name) return Parsed(c.parallel);
  }
  return {};
}

// Of the products' backward pass: "data", "weight" or "both", and what is sent between.
std::vector<std::string> WayBack(const Graph& graph, const Schedule& schedule, int device = 0) {
  std::vector<std::string> way;
  for (int32_t t : schedule.programs[device]) {
    const Task& task = schedule.tasks[t];
    if (task.phase != Phase::kBackward) continue;
    if (IsCommunication(task.kind)) way.push_back(TaskKindName(task.kind));
    if (task.kind != TaskKind::kComputeGradient) continue;
    if (graph.node(task.node).op.kind() != OpKind::kMatMul) continue;
    const bool data = task.writes[0] != kNoBuffer, weight = task.writes[1] != kNoBuffer;
    way.push_back(data && weight ? "both" : data ? "data" : "weight");
  }
  return way;
}

// The tasks of gradients that are one of two.
std::vector<int32_t> SecondParts(const Schedule& schedule) {
  std::vector<int32_t> parts;
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    for (size_t u = 0; u < t && task.kind == TaskKind::kComputeGradient; ++u) {
      const Task& other = schedule.tasks[u];
      if (other.kind == task.kind && other.node == task.node && other.shard == task.shard) {
        parts.push_back(static_cast<int32_t>(t));
      }
    }
  }
  return parts;
}

TEST(SplitGradients, OfWeightsAreComputedWhileThoseOfDataAreSent) {
  const std::string name = "SamplesToColumnsAndBack";
  const Schedule schedule = LoweredExample(name);
  // The first product's data are the input, which has no gradient.
  EXPECT_THAT(WayBack(GraphOfExample(name), schedule),
              ElementsAre("data", "all_to_all", "weight", "all_reduce", "all_to_all", "weight",
                          "all_reduce"))
      << schedule.ToString(GraphOfExample(name));
}

// The second weight's gradient waits for the second exchange.
TEST(SplitGradients, ABucketIsSynchronisedBehindWhatCallsWaitFor) {
  const Graph graph = GraphOfExample("SamplesToColumnsAndBack");
  ScheduleOptions options = TrainingOptions(4);
  options.update.bucket_bytes = 1;
  const auto schedule = LowerGraph(graph, ViewsOf(graph, {}), options);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_THAT(WayBack(graph, *schedule), ElementsAre("data", "all_to_all", "weight", "all_to_all",
                                                     "all_reduce", "weight", "all_reduce"));
  options.update.eager_sums = true;
  const auto eager = LowerGraph(graph, ViewsOf(graph, {}), options);
  ASSERT_TRUE(eager.ok()) << eager.status();
  EXPECT_THAT(WayBack(graph, *eager), ElementsAre("data", "all_to_all", "weight", "all_reduce",
                                                  "all_to_all", "weight", "all_reduce"));
}

// The second layer of a stage has no exchange behind it: its weight waits for that of the first.
// (Communication has a queue of its own, whatever its place in the program.)
TEST(SplitGradients, OfSeveralWeightsOfAMicroBatchWaitForAnExchange) {
  const StagedMlp pipeline{.layers = 4, .stages = 2, .micro_batches = 2};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const Schedule schedule = LoweredPipeline(pipeline, graphs.mapped);
  EXPECT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus());
  EXPECT_THAT(WayBack(graphs.mapped.graph, schedule, /*device=*/1),
              ElementsAre("data", "data", "weight", "weight", "send_receive", "data", "data",
                          "weight", "weight", "send_receive"));
}

TEST(SplitGradients, WithoutExchangesAreOneTask) {
  EXPECT_THAT(SecondParts(LoweredExample("DataParallelMlp")), IsEmpty());
}

TEST(SplitGradients, OfAWeightThatALookUpReadsAreOneTask) {
  EXPECT_THAT(SecondParts(LoweredExample("TiedEmbedding")), IsEmpty());
}

class WrongSplit : public testing::Test {
 protected:
  // The first task that computes gradients of weights alone, behind those of data.
  Task& Part() { return schedule_.tasks[SecondParts(schedule_).front()]; }
  std::string Error() const { return std::string(CheckCalls(graph_, schedule_).message()); }

  const std::string name_ = "SamplesToColumnsAndBack";
  const Graph graph_ = GraphOfExample(name_);
  Schedule schedule_ = LoweredExample(name_);
};

TEST_F(WrongSplit, IsRightAsItIs) { EXPECT_EQ(Error(), ""); }

TEST_F(WrongSplit, WeightsWithoutTheirGradient) {
  Part().writes[1] = kNoBuffer;
  EXPECT_THAT(Error(), HasSubstr("lacks its share"));
}

TEST_F(WrongSplit, TheSameGradientTwice) {
  const Task& part = Part();
  for (Task& task : schedule_.tasks) {
    if (task.kind != TaskKind::kComputeGradient || task.node != part.node || &task == &part) {
      continue;
    }
    if (task.shard == part.shard) task.writes = part.writes;
  }
  EXPECT_THAT(Error(), HasSubstr("is a gradient that is there already"));
}

TEST_F(WrongSplit, AnotherGradientOfTheOutput) {
  Task& part = Part();
  schedule_.buffers.push_back(Buffer(schedule_.buffers[part.reads.back()]));
  part.reads[part.reads.size() - 1] = static_cast<BufferId>(schedule_.buffers.size() - 1);
  EXPECT_THAT(Error(), HasSubstr("reads another gradient of output 0"));
}

TEST_F(WrongSplit, AnotherCallsGradientOfTheOutput) {
  Task& part = Part();
  for (const Task& task : schedule_.tasks) {
    if (task.kind == TaskKind::kComputeGradient && task.node != part.node &&
        task.devices == part.devices) {
      part.reads[part.reads.size() - 1] = task.reads.back();
    }
  }
  EXPECT_THAT(Error(), HasSubstr("gradient of output 0"));
}

}  // namespace
}  // namespace isomer
