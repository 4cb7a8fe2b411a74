// Hand-written parallel graphs, each with the sequential model that it is equal to.
#ifndef ISOMER_TESTS_PCG_SCHEDULE_PARALLEL_GRAPHS_H_
#define ISOMER_TESTS_PCG_SCHEDULE_PARALLEL_GRAPHS_H_

#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "pcg/graph.h"
#include "pcg/plan.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

struct ParallelCase {
  std::string name;
  std::string sequential, parallel;  // text forms; the loss is the output "loss"
  int64_t num_devices;
  // Strides of views by node id; others put shard i on device i.
  std::map<int, std::vector<int64_t>> strides;
  // Kinds of communication that the schedule must have, with how many tasks.
  std::map<TaskKind, int> communications;
};
inline void PrintTo(const ParallelCase& c, std::ostream* out) { *out << c.name; }

inline Graph Parsed(const std::string& text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << text;
  return graph.ok() ? *std::move(graph) : Graph();
}

inline std::vector<MachineView> ViewsOf(const Graph& graph,
                                        const std::map<int, std::vector<int64_t>>& strides = {}) {
  std::vector<MachineView> views;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    views.push_back(RowMajorView(graph.node(id).outputs[0]));
    if (auto given = strides.find(id); given != strides.end()) {
      views.back().strides = given->second;
    }
  }
  return views;
}

inline ScheduleOptions TrainingOptions(int64_t num_devices) {
  ScheduleOptions options;
  options.num_devices = num_devices;
  options.loss = "loss";
  options.keep_gradients = true;
  return options;
}

inline Schedule Lowered(const ParallelCase& c) {
  const Graph graph = Parsed(c.parallel);
  absl::StatusOr<Schedule> schedule =
      LowerGraph(graph, ViewsOf(graph, c.strides), TrainingOptions(c.num_devices));
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *std::move(schedule) : Schedule();
}

inline const char kMlp[] = R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = input "labels" : i64[8]
%4 = matmul(%0, %1) : f32[8,16]
%5 = relu(%4) : f32[8,16]
%6 = matmul(%5, %2) : f32[8,4]
%7 = cross_entropy(%6, %3) : f32[]
output "y" = %6
output "loss" = %7
)";

inline std::vector<ParallelCase> ParallelCases() {
  std::vector<ParallelCase> cases;
  cases.push_back({"DataParallelMlp",
                   kMlp,
                   R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = input "labels" : i64[8]
%4 = partition(%0) {axis=0, degree=4} : f32[8:4,4]
%5 = replicate(%1) {degree=4} : f32[4,16] c4
%6 = replicate(%2) {degree=4} : f32[16,4] c4
%7 = partition(%3) {axis=0, degree=4} : i64[8:4]
%8 = matmul(%4, %5) : f32[8:4,16]
%9 = relu(%8) : f32[8:4,16]
%10 = matmul(%9, %6) : f32[8:4,4]
%11 = cross_entropy(%10, %7) : f32[] p4
%12 = reduce(%11) {degree=4} : f32[]
output "y" = %10
output "loss" = %12
)",
                   4,
                   {},
                   // The gradients of the two weights; the loss to device 0 and its gradient back.
                   {{TaskKind::kAllReduce, 2}, {TaskKind::kSendReceive, 2}}});
  // Columns of the first weight, rows of the second (Megatron): one all-reduce in the forward
  // pass. The input's gradient, for which there would be another, is not wanted.
  cases.push_back({"ColumnRowParallelMlp",
                   kMlp,
                   R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = input "labels" : i64[8]
%4 = replicate(%0) {degree=4} : f32[8,4] c4
%5 = partition(%1) {axis=1, degree=4} : f32[4,16:4]
%6 = partition(%2) {axis=0, degree=4} : f32[16:4,4]
%7 = replicate(%3) {degree=4} : i64[8] c4
%8 = matmul(%4, %5) : f32[8,16:4]
%9 = relu(%8) : f32[8,16:4]
%10 = matmul(%9, %6) : f32[8,4] p4
%11 = reduce(%10) {degree=4} : f32[8,4]
%12 = replicate(%11) {degree=4} : f32[8,4] c4
%13 = cross_entropy(%12, %7) : f32[] c4
output "y" = %12
output "loss" = %13
)",
                   4,
                   {},
                   {{TaskKind::kAllReduce, 2}}});
  cases.push_back(
      {"RowParallelThenSamples",
       kMlp,
       R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = input "labels" : i64[8]
%4 = replicate(%0) {degree=4} : f32[8,4] c4
%5 = partition(%1) {axis=1, degree=4} : f32[4,16:4]
%6 = partition(%2) {axis=0, degree=4} : f32[16:4,4]
%7 = partition(%3) {axis=0, degree=4} : i64[8:4]
%8 = matmul(%4, %5) : f32[8,16:4]
%9 = relu(%8) : f32[8,16:4]
%10 = matmul(%9, %6) : f32[8,4] p4
%11 = reduce(%10) {degree=4} : f32[8,4]
%12 = partition(%11) {axis=0, degree=4} : f32[8:4,4]
%13 = cross_entropy(%12, %7) : f32[] p4
%14 = reduce(%13) {degree=4} : f32[]
%15 = replicate(%14) {degree=4} : f32[] c4
output "y" = %12
output "loss" = %15
)",
       4,
       {},
       // The loss and its gradient are all-reduced.
       {{TaskKind::kReduceScatter, 1}, {TaskKind::kAllGather, 1}, {TaskKind::kAllReduce, 2}}});
  cases.push_back({"ColumnParallelGathered",
                   kMlp,
                   R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = input "labels" : i64[8]
%4 = replicate(%0) {degree=4} : f32[8,4] c4
%5 = partition(%1) {axis=1, degree=4} : f32[4,16:4]
%6 = partition(%2) {axis=1, degree=4} : f32[16,4:4]
%7 = replicate(%3) {degree=4} : i64[8] c4
%8 = matmul(%4, %5) : f32[8,16:4]
%9 = combine(%8) {axis=1, degree=4} : f32[8,16]
%10 = replicate(%9) {degree=4} : f32[8,16] c4
%11 = relu(%10) : f32[8,16] c4
%12 = matmul(%11, %6) : f32[8,4:4]
%13 = combine(%12) {axis=1, degree=4} : f32[8,4]
%14 = replicate(%13) {degree=4} : f32[8,4] c4
%15 = cross_entropy(%14, %7) : f32[] c4
output "y" = %14
output "loss" = %15
)",
                   4,
                   {},
                   {{TaskKind::kAllGather, 2}, {TaskKind::kReduceScatter, 2}}});
  cases.push_back(
      {"SamplesToColumnsAndBack",
       kMlp,
       R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = input "labels" : i64[8]
%4 = partition(%0) {axis=0, degree=4} : f32[8:4,4]
%5 = replicate(%1) {degree=4} : f32[4,16] c4
%6 = replicate(%2) {degree=4} : f32[16,4] c4
%7 = partition(%3) {axis=0, degree=4} : i64[8:4]
%8 = matmul(%4, %5) : f32[8:4,16]
%9 = combine(%8) {axis=0, degree=4} : f32[8,16]
%10 = partition(%9) {axis=1, degree=4} : f32[8,16:4]
%11 = relu(%10) : f32[8,16:4]
%12 = combine(%11) {axis=1, degree=4} : f32[8,16]
%13 = partition(%12) {axis=0, degree=4} : f32[8:4,16]
%14 = matmul(%13, %6) : f32[8:4,4]
%15 = cross_entropy(%14, %7) : f32[] p4
%16 = reduce(%15) {degree=4} : f32[]
output "y" = %14
output "loss" = %16
)",
       4,
       {},
       {{TaskKind::kAllToAll, 4}, {TaskKind::kAllReduce, 2}, {TaskKind::kSendReceive, 2}}});
  // Two replicas of two-way tensor parallelism: device = 2 * replica + shard.
  cases.push_back({"HybridMlp",
                   kMlp,
                   R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = input "labels" : i64[8]
%4 = partition(%0) {axis=0, degree=2} : f32[8:2,4]
%5 = replicate(%4) {degree=2} : f32[8:2,4] c2
%6 = partition(%1) {axis=1, degree=2} : f32[4,16:2]
%7 = replicate(%6) {degree=2} : f32[4,16:2] c2
%8 = partition(%2) {axis=0, degree=2} : f32[16:2,4]
%9 = replicate(%8) {degree=2} : f32[16:2,4] c2
%10 = partition(%3) {axis=0, degree=2} : i64[8:2]
%11 = replicate(%10) {degree=2} : i64[8:2] c2
%12 = matmul(%5, %7) : f32[8:2,16:2]
%13 = relu(%12) : f32[8:2,16:2]
%14 = matmul(%13, %9) : f32[8:2,4] p2
%15 = reduce(%14) {degree=2} : f32[8:2,4]
%16 = replicate(%15) {degree=2} : f32[8:2,4] c2
%17 = cross_entropy(%16, %11) : f32[] c2 p2
%18 = reduce(%17) {degree=2} : f32[] c2
%19 = replicate(%18) {degree=2} : f32[] c4
output "y" = %16
output "loss" = %19
)",
                   4,
                   {{5, {2, 0, 1, 0}},
                    {7, {0, 1, 2, 0}},
                    {9, {1, 0, 2, 0}},
                    {11, {2, 1, 0}},
                    {16, {2, 0, 1, 0}},
                    {17, {1, 2}}},
                   // Forward: y twice, the loss twice; their gradients; two shards of each weight.
                   {{TaskKind::kAllReduce, 12}}});
  // Weights that a derivation has rearranged run through the host; the shared input x is used
  // twice, so that its product's gradients meet.
  cases.push_back({"MergedMatMuls",
                   R"(
%0 = input "x" : f32[8,4]
%1 = weight "q" : f32[4,4]
%2 = weight "k" : f32[4,4]
%3 = input "target" : f32[8,8]
%4 = matmul(%0, %1) : f32[8,4]
%5 = matmul(%0, %2) : f32[8,4]
%6 = tanh(%4) : f32[8,4]
%7 = mul(%6, %5) : f32[8,4]
%8 = concat(%7, %6) {axis=1} : f32[8,8]
%9 = mse(%8, %3) : f32[]
output "y" = %8
output "loss" = %9
)",
                   R"(
%0 = input "x" : f32[8,4]
%1 = weight "q" : f32[4,4]
%2 = weight "k" : f32[4,4]
%3 = input "target" : f32[8,8]
%4 = concat(%1, %2) {axis=1} : f32[4,8]
%5 = replicate(%4) {degree=2} : f32[4,8] c2
%6 = partition(%0) {axis=0, degree=2} : f32[8:2,4]
%7 = partition(%3) {axis=0, degree=2} : f32[8:2,8]
%8 = matmul(%6, %5) : f32[8:2,8]
%9 = split(%8) {axis=1, sizes=[4,4]} : f32[8:2,4], f32[8:2,4]
%10 = tanh(%9.0) : f32[8:2,4]
%11 = mul(%10, %9.1) : f32[8:2,4]
%12 = concat(%11, %10) {axis=1} : f32[8:2,8]
%13 = mse(%12, %7) : f32[] p2
%14 = reduce(%13) {degree=2} : f32[]
output "y" = %12
output "loss" = %14
)",
                   2,
                   {},
                   {{TaskKind::kAllReduce, 1}, {TaskKind::kSendReceive, 2}}});
  cases.push_back(
      {"EmbeddingByVocabulary",
       R"(
%0 = weight "table" : f32[16,4]
%1 = input "ids" : i64[2,8]
%2 = input "target" : f32[2,8,4]
%3 = embedding(%0, %1) : f32[2,8,4]
%4 = mse(%3, %2) : f32[]
output "y" = %3
output "loss" = %4
)",
       R"(
%0 = weight "table" : f32[16,4]
%1 = input "ids" : i64[2,8]
%2 = input "target" : f32[2,8,4]
%3 = partition(%0) {axis=0, degree=4} : f32[16:4,4]
%4 = replicate(%1) {degree=4} : i64[2,8] c4
%5 = partition(%2) {axis=1, degree=4} : f32[2,8:4,4]
%6 = embedding(%3, %4) : f32[2,8,4] p4
%7 = reduce(%6) {degree=4} : f32[2,8,4]
%8 = partition(%7) {axis=1, degree=4} : f32[2,8:4,4]
%9 = mse(%8, %5) : f32[] p4
%10 = reduce(%9) {degree=4} : f32[]
output "y" = %8
output "loss" = %10
)",
       4,
       {},
       {{TaskKind::kReduceScatter, 1}, {TaskKind::kAllGather, 1}, {TaskKind::kSendReceive, 2}}});
  // The sum of two branches as Reduce of their concatenation along partials; w is used twice.
  cases.push_back({"BranchesOnTwoDevices",
                   R"(
%0 = input "x" : f32[4,4]
%1 = weight "w" : f32[4,4]
%2 = weight "v" : f32[4,4]
%3 = input "target" : f32[4,4]
%4 = matmul(%0, %1) : f32[4,4]
%5 = matmul(%4, %2) : f32[4,4]
%6 = sigmoid(%4) : f32[4,4]
%7 = add(%5, %6) : f32[4,4]
%8 = mse(%7, %3) : f32[]
output "y" = %7
output "loss" = %8
)",
                   R"(
%0 = input "x" : f32[4,4]
%1 = weight "w" : f32[4,4]
%2 = weight "v" : f32[4,4]
%3 = input "target" : f32[4,4]
%4 = matmul(%0, %1) : f32[4,4]
%5 = matmul(%4, %2) : f32[4,4]
%6 = sigmoid(%4) : f32[4,4]
%7 = concat_partials(%5, %6) : f32[4,4] p2
%8 = reduce(%7) {degree=2} : f32[4,4]
%9 = mse(%8, %3) : f32[]
output "y" = %8
output "loss" = %9
)",
                   2,
                   {},
                   {}});
  return cases;
}

}  // namespace isomer

#endif  // ISOMER_TESTS_PCG_SCHEDULE_PARALLEL_GRAPHS_H_
