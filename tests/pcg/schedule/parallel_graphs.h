// The example graphs of pcg/schedule, and what tests expect of them.
#ifndef ISOMER_TESTS_PCG_SCHEDULE_PARALLEL_GRAPHS_H_
#define ISOMER_TESTS_PCG_SCHEDULE_PARALLEL_GRAPHS_H_

#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/example_graphs.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

struct ParallelCase : ExampleGraph {
  // Kinds of communication that the schedule must have, with how many tasks.
  std::map<TaskKind, int> communications;
};
inline void PrintTo(const ParallelCase& c, std::ostream* out) { *out << c.name; }

inline Graph Parsed(const std::string& text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << text;
  return graph.ok() ? *std::move(graph) : Graph();
}

inline ScheduleOptions TrainingOptions(int64_t num_devices) {
  ScheduleOptions options;
  options.num_devices = num_devices;
  options.loss = "loss";
  options.keep_gradients = true;
  return options;
}

// As views by default have it, without what training keeps; checked.
inline Schedule LoweredOn(const Graph& graph, int64_t devices) {
  ScheduleOptions options;
  options.num_devices = devices;
  options.loss = "loss";
  absl::StatusOr<Schedule> schedule = LowerGraph(graph, ViewsOf(graph), options);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  if (!schedule.ok()) return {};
  EXPECT_EQ(CheckSchedule(graph, *schedule), absl::OkStatus());
  return *std::move(schedule);
}

inline Schedule Lowered(const ParallelCase& c) {
  const Graph graph = Parsed(c.parallel);
  absl::StatusOr<Schedule> schedule =
      LowerGraph(graph, ViewsOf(graph, c.strides), TrainingOptions(c.num_devices));
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *std::move(schedule) : Schedule();
}

// The example graphs with what their schedules communicate.
inline std::vector<ParallelCase> ParallelCases() {
  static const std::map<std::string, std::map<TaskKind, int>> kCommunications = {
      // The gradients of the two weights; the loss to device 0, not its gradient back.
      {"DataParallelMlp", {{TaskKind::kAllReduce, 2}, {TaskKind::kSendReceive, 1}}},
      {"ColumnRowParallelMlp", {{TaskKind::kAllReduce, 2}}},
      // The loss is all-reduced.
      {"RowParallelThenSamples",
       {{TaskKind::kReduceScatter, 1}, {TaskKind::kAllGather, 1}, {TaskKind::kAllReduce, 1}}},
      {"ColumnParallelGathered", {{TaskKind::kAllGather, 2}, {TaskKind::kReduceScatter, 2}}},
      {"SamplesToColumnsAndBack",
       {{TaskKind::kAllToAll, 4}, {TaskKind::kAllReduce, 2}, {TaskKind::kSendReceive, 1}}},
      // The logits once for the loss and once as an output, the loss; of these the first one back.
      {"ColumnsToSamplesAndGathered",
       {{TaskKind::kAllToAll, 2}, {TaskKind::kSendReceive, 2}, {TaskKind::kAllReduce, 1}}},
      // Forward: y twice, the loss twice; the gradient of y; two shards of each weight.
      {"HybridMlp", {{TaskKind::kAllReduce, 10}}},
      {"MergedMatMuls", {{TaskKind::kAllReduce, 1}, {TaskKind::kSendReceive, 1}}},
      {"EmbeddingByVocabulary",
       {{TaskKind::kReduceScatter, 1}, {TaskKind::kAllGather, 1}, {TaskKind::kSendReceive, 1}}},
      // The transposed table and its gradient, the sum of the copies' gradients, the loss.
      {"TiedEmbedding",
       {{TaskKind::kAllGather, 1},
        {TaskKind::kReduceScatter, 1},
        {TaskKind::kAllReduce, 1},
        {TaskKind::kSendReceive, 1}}},
      // The product's rows for all columns, and the gradients back; the gradient of w; the loss.
      {"WeightsAsOutputs",
       {{TaskKind::kAllGather, 1},
        {TaskKind::kReduceScatter, 1},
        {TaskKind::kAllReduce, 1},
        {TaskKind::kSendReceive, 1}}},
      {"BranchesOnTwoDevices", {}},
      {"ChannelsThenSamples", {}},
  };
  std::vector<ParallelCase> cases;
  for (const ExampleGraph& graph : ExampleGraphs()) {
    cases.push_back({graph, kCommunications.at(graph.name)});
  }
  return cases;
}

}  // namespace isomer

#endif  // ISOMER_TESTS_PCG_SCHEDULE_PARALLEL_GRAPHS_H_
