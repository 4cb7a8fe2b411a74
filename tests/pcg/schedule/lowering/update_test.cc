// The three ways to keep copies of parameters equal, optimizers and buckets: what is lowered, and
// that the checker refuses schedules that do it wrong.
#include "pcg/schedule/lowering/update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <functional>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "pcg/ir/weight_cuts.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/lowering/weight_parts.h"
#include "pcg/schedule/memory/memory.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Every parameter is replicated on 4 devices; 12 is the largest dim that 4 divides of w1, 16 of w2;
// none is of the bias.
constexpr char kThreeWeights[] = R"(
%0 = input "x" : f32[8,12]
%1 = weight "w1" : f32[12,7]
%2 = weight "w2" : f32[7,16]
%3 = weight "b" : f32[7]
%4 = input "labels" : i64[8]
%5 = partition(%0) {axis=0, degree=4} : f32[8:4,12]
%6 = replicate(%1) {degree=4} : f32[12,7] c4
%7 = replicate(%2) {degree=4} : f32[7,16] c4
%8 = replicate(%3) {degree=4} : f32[7] c4
%9 = partition(%4) {axis=0, degree=4} : i64[8:4]
%10 = matmul(%5, %6) : f32[8:4,7]
%11 = add(%10, %8) : f32[8:4,7]
%12 = matmul(%11, %7) : f32[8:4,16]
%13 = cross_entropy(%12, %9) : f32[] p4
%14 = reduce(%13) {degree=4} : f32[]
output "loss" = %14
)";

Schedule LoweredWith(const Graph& graph, const UpdateOptions& update, int64_t devices = 4,
                     const std::map<int, std::vector<int64_t>>& strides = {}) {
  ScheduleOptions options = TrainingOptions(devices);
  options.update = update;
  auto schedule = LowerGraph(graph, ViewsOf(graph, strides), options);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *std::move(schedule) : Schedule();
}

std::map<TaskKind, int> CollectivesOf(const Schedule& schedule) {
  std::map<TaskKind, int> found;
  for (const Task& task : schedule.tasks) {
    if (IsCommunication(task.kind) && task.kind != TaskKind::kSendReceive) ++found[task.kind];
  }
  return found;
}

std::vector<const Task*> TasksOf(const Schedule& schedule, TaskKind kind) {
  std::vector<const Task*> tasks;
  for (const Task& task : schedule.tasks) {
    if (task.kind == kind) tasks.push_back(&task);
  }
  return tasks;
}

TEST(WeightParts, AreLongLinesOfOneDimWhereItDividesElseOfSeveral) {
  EXPECT_THAT(CutsOf(std::vector<int64_t>{7, 8}, 4), ElementsAre(1, 4));
  EXPECT_THAT(CutsOf(std::vector<int64_t>{8, 8}, 4), ElementsAre(4, 1));
  EXPECT_THAT(CutsOf(std::vector<int64_t>{768, 768}, 1024), ElementsAre(256, 4));
  EXPECT_THAT(CutsOf(std::vector<int64_t>{10, 9}, 4), ElementsAre());
  const Box box{{20, 3}, {10, 9}};
  std::set<std::string> slices;
  for (int64_t part = 0; part < 6; ++part) {
    const Box slice = Slice(box, part, 6);
    EXPECT_EQ(slice.Volume(), 15);
    EXPECT_TRUE(Covers(box, slice));
    EXPECT_EQ(PartOf(box, slice, 6), part);
    slices.insert(slice.ToString());
  }
  EXPECT_EQ(slices.size(), 6u);
}

TEST(Update, ShardedScattersGradientsAndGathersParameters) {
  const Graph graph = Parsed(kThreeWeights);
  const Schedule schedule =
      LoweredWith(graph, {.method = UpdateMethod::kSharded, .bucket_bytes = 0});
  using Kinds = std::map<TaskKind, int>;
  // The bias, which cannot be cut into four, is all-reduced.
  EXPECT_EQ(
      CollectivesOf(schedule),
      (Kinds{{TaskKind::kReduceScatter, 2}, {TaskKind::kAllGather, 2}, {TaskKind::kAllReduce, 1}}));
  std::map<std::string, UpdateMethod> methods;
  for (const auto& parameter : schedule.parameters) {
    methods[graph.node(parameter.leaves[0]).name] = parameter.update;
  }
  EXPECT_EQ(methods["w1"], UpdateMethod::kSharded);
  EXPECT_EQ(methods["b"], UpdateMethod::kAllReduce);
  const Buffer& part = schedule.buffers[TasksOf(schedule, TaskKind::kReduceScatter)[0]->writes[1]];
  EXPECT_EQ(part.box.ToString(), "[0:7,4:8]");  // of w2, on device 1
  EXPECT_EQ(part.role, BufferRole::kGradientShard);
}

TEST(Update, ShardedWeightsAreGatheredForEachPassAndTheirGradientsScattered) {
  const Graph graph = Parsed(kThreeWeights);
  const Schedule schedule = LoweredWith(graph, {.method = UpdateMethod::kShardedWeights});
  using Kinds = std::map<TaskKind, int>;
  // Two weights for two passes; the bias, which cannot be cut, is all-reduced.
  EXPECT_EQ(
      CollectivesOf(schedule),
      (Kinds{{TaskKind::kReduceScatter, 2}, {TaskKind::kAllGather, 4}, {TaskKind::kAllReduce, 1}}));
  int64_t volume = 0;
  for (const Buffer& buffer : schedule.buffers) {
    if (buffer.role == BufferRole::kParameter) volume += buffer.box.Volume();
  }
  EXPECT_EQ(volume, 12 * 7 + 7 * 16 + 4 * 7);
  for (const auto& parameter : schedule.parameters) {
    const bool bias = graph.node(parameter.leaves[0]).name == "b";
    EXPECT_EQ(parameter.update, bias ? UpdateMethod::kAllReduce : UpdateMethod::kShardedWeights);
  }
}

// Each micro-batch gathers and scatters for itself, and what a stage holds is a part between.
TEST(Update, ShardedWeightsOfMicroBatches) {
  const StagedMlp pipeline{
      .layers = 8, .stages = 2, .data = 2, .micro_batches = 4, .shortcut = true};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const auto lowered = [&](const UpdateOptions& update) {
    return LoweredPipeline(pipeline, graphs.mapped, PipelineOrder::kOneForwardOneBackward, {},
                           update);
  };
  const Schedule schedule = lowered({.method = UpdateMethod::kShardedWeights});
  EXPECT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus())
      << schedule.ToString(graphs.mapped.graph);
  const std::map<TaskKind, int> collectives = CollectivesOf(schedule);
  // Of 8 weights in 4 micro-batches.
  EXPECT_EQ(collectives.at(TaskKind::kAllGather), 2 * 8 * 4);
  EXPECT_EQ(collectives.at(TaskKind::kReduceScatter), 8 * 4);
  const auto weights = [](const Schedule& s) {
    return LargestPeak(s).of(MemoryCategory::kWeights);
  };
  // Four weights of a stage, by halves, and at most one of them whole.
  constexpr int64_t kWeight = 8 * 8 * 4;
  EXPECT_EQ(weights(lowered({})), 4 * kWeight);
  EXPECT_LE(weights(schedule), 2 * kWeight + kWeight);
  EXPECT_LT(LargestPeak(schedule).of(MemoryCategory::kGradients),
            LargestPeak(lowered({})).of(MemoryCategory::kGradients));
}

Schedule LoweredWith(const StagedMlp& pipeline, const PipelineGraphs& graphs,
                     const UpdateOptions& update) {
  return LoweredPipeline(pipeline, graphs.mapped, PipelineOrder::kOneForwardOneBackward, {},
                         update);
}

// Each micro-batch scatters its gradients, and parts are added up.
TEST(Update, ShardedGradientsOfMicroBatches) {
  const StagedMlp pipeline{.stages = 2, .data = 2, .micro_batches = 3, .shortcut = true};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  for (int64_t bucket_bytes : {0, 1 << 20}) {
    const Schedule schedule =
        LoweredWith(pipeline, graphs,
                    {.method = UpdateMethod::kShardedGradients, .bucket_bytes = bucket_bytes});
    EXPECT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus())
        << schedule.ToString(graphs.mapped.graph);
    const std::map<TaskKind, int> collectives = CollectivesOf(schedule);
    const int buckets = bucket_bytes == 0 ? 4 : 2;
    EXPECT_EQ(collectives.at(TaskKind::kReduceScatter), 3 * buckets);
    EXPECT_EQ(collectives.at(TaskKind::kAllGather), buckets);
  }
  const auto gradients = [&](UpdateMethod method) {
    return LargestPeak(LoweredWith(pipeline, graphs, {.method = method, .bucket_bytes = 0}))
        .of(MemoryCategory::kGradients);
  };
  EXPECT_LT(gradients(UpdateMethod::kShardedGradients), gradients(UpdateMethod::kSharded));
  // Without micro-batches there is nothing more to scatter.
  const Schedule plain =
      LoweredWith(Parsed(kThreeWeights), {.method = UpdateMethod::kShardedGradients});
  EXPECT_EQ(plain.parameters[0].update, UpdateMethod::kSharded);
}

TEST(BrokenUpdate, PartsOfMicroBatchesThatAreNotSummedOnce) {
  const StagedMlp pipeline{.layers = 2, .stages = 1, .data = 2, .micro_batches = 3};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const Schedule original =
      LoweredWith(pipeline, graphs, {.method = UpdateMethod::kShardedGradients});
  ASSERT_EQ(CheckSchedule(graphs.mapped.graph, original), absl::OkStatus());
  const BufferId count = static_cast<BufferId>(original.buffers.size());
  int sums = 0;
  for (size_t t = 0; t < original.tasks.size(); ++t) {
    const Task& task = original.tasks[t];
    const bool adds = task.kind == TaskKind::kAccumulate &&
                      original.buffers[task.writes[0]].role == BufferRole::kGradientShard;
    if (!adds && task.kind != TaskKind::kReduceScatter) continue;
    ++sums;
    Schedule mutant = original;
    for (int32_t device : task.devices) {
      std::erase(mutant.programs[device], static_cast<int32_t>(t));
    }
    mutant.tasks[t].devices.clear();
    EXPECT_FALSE(CheckSchedule(graphs.mapped.graph, mutant).ok()) << "without task " << t;
    mutant = original;
    for (BufferId other = 0; other < count; ++other) {
      if (other == task.reads[0]) continue;
      mutant.tasks[t].reads[0] = other;
      EXPECT_FALSE(CheckSchedule(graphs.mapped.graph, mutant).ok())
          << "task " << t << " reads " << other;
    }
  }
  EXPECT_EQ(sums, 3 + 2 * 2 * 2);
}

TEST(Update, OwnersShareTheBytes) {
  const Graph graph = Parsed(kThreeWeights);
  const Schedule schedule = LoweredWith(graph, {.method = UpdateMethod::kOwner, .bucket_bytes = 0});
  std::set<int32_t> owners;
  for (const Task* task : TasksOf(schedule, TaskKind::kReduce)) {
    owners.insert(schedule.buffers[task->writes[0]].device);
  }
  EXPECT_EQ(owners.size(), 3u);
  EXPECT_EQ(TasksOf(schedule, TaskKind::kUpdate).size(), 3u);
  for (const Task* task : TasksOf(schedule, TaskKind::kBroadcast)) {
    EXPECT_EQ(task->writes.size(), 3u);
  }
}

TEST(Update, WeightsMayHaveMethodsOfTheirOwn) {
  const Graph graph = Parsed(kThreeWeights);
  const Schedule schedule = LoweredWith(
      graph, {.method = UpdateMethod::kOwner, .methods = {{"w1", UpdateMethod::kSharded}}});
  std::map<std::string, UpdateMethod> methods;
  for (const auto& parameter : schedule.parameters) {
    methods[graph.node(parameter.leaves[0]).name] = parameter.update;
  }
  EXPECT_EQ(methods["w1"], UpdateMethod::kSharded);
  EXPECT_EQ(methods["w2"], UpdateMethod::kOwner);
}

TEST(Update, StatesAreFilledOnceAndSharded) {
  const Graph graph = Parsed(kThreeWeights);
  for (OptimizerKind optimizer :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam}) {
    const Schedule schedule =
        LoweredWith(graph, {.optimizer = optimizer, .method = UpdateMethod::kSharded});
    int64_t volume = 0, filled = 0;
    for (const Buffer& buffer : schedule.buffers) {
      if (buffer.role == BufferRole::kState) volume += buffer.box.Volume();
    }
    for (const Task& task : schedule.tasks) {
      filled += task.kind == TaskKind::kFill && task.phase == Phase::kLoad;
    }
    // Each number of w1 and w2 once, the bias on all devices.
    EXPECT_EQ(volume, NumStates(optimizer) * (12 * 7 + 7 * 16 + 4 * 7));
    EXPECT_EQ(filled, NumStates(optimizer) * 3 * 4);
  }
}

TEST(Update, BucketsHoldGradientsInTheOrderInWhichTheyBecomeReady) {
  const Graph graph = Parsed(kThreeWeights);
  const Schedule schedule = LoweredWith(graph, {});
  const std::vector<const Task*> sums = TasksOf(schedule, TaskKind::kAllReduce);
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0]->segments, 3);
  EXPECT_EQ(sums[0]->bytes, 4 * (12 * 7 + 7 * 16 + 7));
  std::vector<int64_t> volumes;
  for (int i = 0; i < 3; ++i) {
    volumes.push_back(schedule.buffers[sums[0]->reads[i]].box.Volume());
    EXPECT_EQ(schedule.buffers[sums[0]->reads[i]].device, 0);
  }
  EXPECT_THAT(volumes, ElementsAre(7 * 16, 7, 12 * 7));  // w2, b, w1
}

TEST(Update, ABucketIsClosedWhenItIsFull) {
  const Graph graph = Parsed(kThreeWeights);
  // w2 (448 bytes) closes a bucket, the bias (28) and w1 (336) another.
  const Schedule schedule = LoweredWith(graph, {.bucket_bytes = 350});
  const std::vector<const Task*> sums = TasksOf(schedule, TaskKind::kAllReduce);
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0]->segments, 1);
  EXPECT_EQ(sums[1]->segments, 2);
}

TEST(Update, ABucketEndsWhereItIsToldToWhateverItsSize) {
  const Graph graph = Parsed(kThreeWeights);
  const Schedule schedule = LoweredWith(graph, {.bucket_bytes = 1, .bucket_ends = {"b"}});
  const std::vector<const Task*> sums = TasksOf(schedule, TaskKind::kAllReduce);
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0]->segments, 2);  // w2 and the bias
  EXPECT_EQ(sums[1]->segments, 1);
}

TEST(Update, WeightsOfABucketAreUpdatedTogether) {
  const Graph graph = Parsed(kThreeWeights);
  const Schedule schedule =
      LoweredWith(graph, {.optimizer = OptimizerKind::kMomentum, .bucket_bytes = 350});
  const std::vector<const Task*> updates = TasksOf(schedule, TaskKind::kUpdate);
  ASSERT_EQ(updates.size(), 8u);  // two buckets on four devices
  const Task& last = *updates.back();
  ASSERT_EQ(last.segments, 2);
  ASSERT_EQ(last.reads.size(), 6u);
  const int volumes[] = {7, 12 * 7};  // b, w1
  const BufferRole roles[] = {BufferRole::kParameter, BufferRole::kGradient, BufferRole::kState};
  for (size_t i = 0; i < last.reads.size(); ++i) {
    const Buffer& buffer = schedule.buffers[last.reads[i]];
    EXPECT_EQ(buffer.box.Volume(), volumes[i % 2]);
    EXPECT_EQ(buffer.role, roles[i / 2]);
    EXPECT_EQ(buffer.device, last.devices[0]);
  }
  EXPECT_EQ(last.bytes, 4 * 5 * (7 + 12 * 7));
  EXPECT_EQ(last.flops, UpdateFlops(OptimizerKind::kMomentum) * (7 + 12 * 7));
  EXPECT_EQ(TasksOf(LoweredWith(graph, {.bucket_bytes = 0}), TaskKind::kUpdate).size(), 12u);
}

TEST(Update, WhatNeedsNoSynchronisationIsUpdatedTogether) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[4,12]
%1 = weight "w1" : f32[12,7]
%2 = weight "w2" : f32[7,16]
%3 = input "labels" : i64[4]
%4 = matmul(%0, %1) : f32[4,7]
%5 = matmul(%4, %2) : f32[4,16]
%6 = cross_entropy(%5, %3) : f32[]
output "loss" = %6
)");
  const auto updates = [&](const UpdateOptions& update) {
    const Schedule schedule = LoweredWith(graph, update, 1);
    EXPECT_EQ(CheckSchedule(graph, schedule), absl::OkStatus());
    std::vector<int32_t> segments;
    for (const Task* task : TasksOf(schedule, TaskKind::kUpdate)) {
      segments.push_back(task->segments);
    }
    return segments;
  };
  EXPECT_THAT(updates({}), ElementsAre(2));
  EXPECT_THAT(updates({.bucket_bytes = 0}), ElementsAre(1, 1));
  EXPECT_THAT(updates({.immediate = true}), ElementsAre(1, 1));
  // What waits for all gradients is not immediate, whatever is said.
  EXPECT_THAT(updates({.immediate = true, .clips = true}), ElementsAre(2));
  EXPECT_THAT(updates({.optimizer = OptimizerKind::kLamb, .immediate = true}), ElementsAre(2));
}

// However weights are updated, searches count the bytes and the memory that updates have.
TEST(Update, TakesTheBytesThatSearchesCount) {
  const Graph graph = Parsed(kThreeWeights);
  constexpr int64_t kNumbers = 4 * (12 * 7 + 7 * 16 + 7);  // on four devices
  for (const OptimizerTraits& traits : AllOptimizers()) {
    for (const auto& [clips, averages, sums] : {std::tuple(false, false, DataType::kFloat32),
                                                std::tuple(true, false, DataType::kBFloat16),
                                                std::tuple(true, true, DataType::kFloat32)}) {
      const Schedule schedule = LoweredWith(
          graph,
          {.optimizer = traits.kind, .gradient_sums = sums, .clips = clips, .averages = averages});
      EXPECT_EQ(CheckSchedule(graph, schedule), absl::OkStatus());
      const WeightBytes each =
          BytesOfWeight(DataType::kFloat32, traits.kind, sums, averages, clips);
      int64_t bytes = 0, states = 0;
      for (const Task* task : TasksOf(schedule, TaskKind::kUpdate)) bytes += task->bytes;
      for (const Buffer& buffer : schedule.buffers) {
        if (buffer.role == BufferRole::kState) states += buffer.bytes();
      }
      EXPECT_EQ(bytes, kNumbers * each.update) << traits.name;
      EXPECT_EQ(states, kNumbers * each.trained) << traits.name;
    }
  }
}

TEST(Update, VersionsOfWeightsDoNotWaitForGradients) {
  for (const UpdateOptions& update :
       {UpdateOptions{.optimizer = OptimizerKind::kMuon}, UpdateOptions{.clips = true},
        UpdateOptions{.averages = true}}) {
    EXPECT_EQ(CheckGoTogether(update), absl::OkStatus());
    UpdateOptions versions = update;
    versions.steps_between_flushes = 2;
    EXPECT_THAT(CheckGoTogether(versions).message(), testing::HasSubstr("do not go with"));
  }
}

TEST(Update, PlansKeepTheirOptions) {
  Plan plan;
  plan.graph = Parsed(kThreeWeights);
  plan.model.graph = plan.graph;
  plan.model.loss = "loss";
  plan.views = ViewsOf(plan.graph);
  plan.num_devices = 4;
  plan.spread_branches = true;
  const uint64_t seal = SealOf(plan);
  plan.update = {.optimizer = OptimizerKind::kAdam,
                 .method = UpdateMethod::kOwner,
                 .methods = {{"w1", UpdateMethod::kSharded}},
                 .bucket_bytes = 0,
                 .bucket_ends = {"w2", "b"},
                 .eager_sums = true,
                 .gradient_sums = DataType::kBFloat16,
                 .clips = true,
                 .averages = true};
  EXPECT_NE(SealOf(plan), seal);
  const std::string path = absl::StrCat(testing::TempDir(), "/update_", getpid(), ".plan");
  ASSERT_EQ(SavePlan(path, plan), absl::OkStatus());
  const auto loaded = LoadPlan(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->update, plan.update);
  const auto lowered = LowerPlan(*loaded);
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(lowered->schedule.options.update, plan.update);
  EXPECT_TRUE(lowered->schedule.options.spread_branches);
}

struct Variant {
  const char* name;
  UpdateOptions update;
  const char* type = "f32";
};
std::string InType(absl::string_view graph, absl::string_view type) {
  return absl::StrReplaceAll(graph, {{"f32", type}});
}
std::vector<Variant> Variants() {
  return {
      {"sharded", {.method = UpdateMethod::kSharded, .bucket_bytes = 0}},
      {"owner", {.method = UpdateMethod::kOwner, .bucket_bytes = 0}},
      {"buckets", {.optimizer = OptimizerKind::kMomentum}},
      {"sharded buckets, adam",
       {.optimizer = OptimizerKind::kAdam, .method = UpdateMethod::kSharded}},
      {"sharded weights, adam",
       {.optimizer = OptimizerKind::kAdam, .method = UpdateMethod::kShardedWeights}},
      {"owner buckets, momentum",
       {.optimizer = OptimizerKind::kMomentum, .method = UpdateMethod::kOwner}},
      {"summed in bfloat16, adam",
       {.optimizer = OptimizerKind::kAdam, .gradient_sums = DataType::kBFloat16}},
      {"sharded weights, summed in bfloat16",
       {.method = UpdateMethod::kShardedWeights, .gradient_sums = DataType::kBFloat16}},
      {"masters", {.bucket_bytes = 0}, "bf16"},
      {"sharded masters, low sums",
       {.optimizer = OptimizerKind::kMomentum,
        .method = UpdateMethod::kSharded,
        .gradient_sums = DataType::kBFloat16},
       "bf16"},
      {"masters of sharded weights, adam",
       {.optimizer = OptimizerKind::kAdam, .method = UpdateMethod::kShardedWeights},
       "f16"},
      {"masters of owners", {.method = UpdateMethod::kOwner}, "bf16"},
  };
}

// Every example with every variant; `check` gets the graph and its schedule.
void ForEachVariant(const std::function<void(const Graph&, const Schedule&)>& check) {
  std::vector<ParallelCase> cases = ParallelCases();
  cases.push_back({{"ThreeWeights", "", kThreeWeights, 4, {}}, {}});
  for (const ParallelCase& c : cases) {
    for (const Variant& variant : Variants()) {
      const Graph graph = Parsed(InType(c.parallel, variant.type));
      SCOPED_TRACE(absl::StrCat(c.name, ", ", variant.name));
      check(graph, LoweredWith(graph, variant.update, c.num_devices, c.strides));
    }
  }
}

TEST(UpdateVariants, PassTheChecker) {
  ForEachVariant([](const Graph& graph, const Schedule& schedule) {
    EXPECT_EQ(CheckSchedule(graph, schedule), absl::OkStatus()) << schedule.ToString(graph);
  });
}

TEST(UpdateVariants, CheckerRefusesAnyMissingTask) {
  ForEachVariant([](const Graph& graph, const Schedule& original) {
    for (size_t t = 0; t < original.tasks.size(); ++t) {
      if (original.tasks[t].kind == TaskKind::kUnload) continue;
      Schedule mutant = original;
      for (int32_t device : original.tasks[t].devices) {
        std::erase(mutant.programs[device], static_cast<int32_t>(t));
      }
      EXPECT_FALSE(CheckSchedule(graph, mutant).ok())
          << "task " << t << " " << TaskKindName(original.tasks[t].kind);
    }
  });
}

TEST(UpdateVariants, CheckerRefusesAnyDroppedWait) {
  ForEachVariant([](const Graph& graph, const Schedule& original) {
    Schedule mutant = original;
    for (size_t t = 0; t < original.tasks.size(); ++t) {
      for (size_t i = 0; i < original.tasks[t].deps.size(); ++i) {
        mutant.tasks[t].deps.erase(mutant.tasks[t].deps.begin() + static_cast<int64_t>(i));
        EXPECT_FALSE(CheckSchedule(graph, mutant).ok()) << "task " << t;
        mutant.tasks[t].deps = original.tasks[t].deps;
      }
    }
  });
}

// Each operand and result of each task of an update replaced by any other buffer.
TEST(UpdateVariants, CheckerRefusesAnyOtherBuffer) {
  for (const Variant& variant : Variants()) {
    const Graph graph = Parsed(InType(kThreeWeights, variant.type));
    const Schedule original = LoweredWith(graph, variant.update);
    Schedule mutant = original;
    const BufferId count = static_cast<BufferId>(original.buffers.size());
    for (size_t t = 0; t < original.tasks.size(); ++t) {
      const Task& task = original.tasks[t];
      const bool collective = IsCommunication(task.kind) && task.kind != TaskKind::kSendReceive;
      const bool master = task.kind == TaskKind::kLoad &&
                          original.buffers[task.writes[0]].role == BufferRole::kMaster;
      if (task.kind != TaskKind::kUpdate && task.kind != TaskKind::kConvert && !collective &&
          !master) {
        continue;
      }
      for (bool reads : {true, false}) {
        const std::vector<BufferId>& list = reads ? task.reads : task.writes;
        for (size_t i = 0; i < list.size(); ++i) {
          for (BufferId other = 0; other < count; ++other) {
            if (other == list[i]) continue;
            (reads ? mutant.tasks[t].reads : mutant.tasks[t].writes)[i] = other;
            EXPECT_FALSE(CheckSchedule(graph, mutant).ok())
                << variant.name << ": task " << t << " " << TaskKindName(task.kind) << " "
                << (reads ? "reads " : "writes ") << other << " for " << list[i];
            mutant.tasks[t] = task;
          }
        }
      }
    }
  }
}

std::string Verdict(const UpdateOptions& update, const std::function<void(Schedule*)>& change,
                    absl::string_view type = "f32") {
  const Graph graph = Parsed(InType(kThreeWeights, type));
  Schedule schedule = LoweredWith(graph, update);
  change(&schedule);
  return std::string(CheckSchedule(graph, schedule).message());
}

Task* First(Schedule* schedule, TaskKind kind) {
  for (Task& task : schedule->tasks) {
    if (task.kind == kind) return &task;
  }
  return nullptr;
}

TEST(BrokenUpdate, SegmentsThatDoNotFit) {
  EXPECT_THAT(Verdict({}, [](Schedule* s) { First(s, TaskKind::kAllReduce)->segments = 2; }),
              HasSubstr("operands and"));
  EXPECT_THAT(Verdict({}, [](Schedule* s) { First(s, TaskKind::kCompute)->segments = 2; }),
              HasSubstr("has segments"));
}

TEST(BrokenUpdate, WeightsThatAreNotAsManyAsGradients) {
  EXPECT_THAT(Verdict({}, [](Schedule* s) { First(s, TaskKind::kUpdate)->segments = 2; }),
              HasSubstr("boxes"));
  EXPECT_THAT(Verdict({}, [](Schedule* s) { First(s, TaskKind::kUpdate)->segments = 0; }),
              HasSubstr("boxes"));
}

TEST(BrokenUpdate, GradientsOfTwoWeightsOfABucketExchanged) {
  EXPECT_THAT(Verdict({},
                      [](Schedule* s) {
                        Task* update = First(s, TaskKind::kUpdate);
                        ASSERT_EQ(update->segments, 3);
                        std::swap(update->reads[3], update->reads[4]);
                      }),
              HasSubstr("boxes"));
}

TEST(BrokenUpdate, StateThatTwoUpdatesShare) {
  EXPECT_THAT(Verdict({.optimizer = OptimizerKind::kMomentum, .bucket_bytes = 0},
                      [](Schedule* s) {
                        // Those of w2 on device 0 and 1 have the same box.
                        Task* first = First(s, TaskKind::kUpdate);
                        for (Task& task : s->tasks) {
                          if (&task == first || task.kind != TaskKind::kUpdate ||
                              task.node != first->node) {
                            continue;
                          }
                          s->buffers[first->reads[2]].device = task.devices[0];
                          task.reads[2] = task.writes[1] = first->reads[2];
                          return;
                        }
                      }),
              HasSubstr("buffer"));
}

// Low precision: what is trained is the master, and sums are in float32.
TEST(BrokenUpdate, OfAMaster) {
  const UpdateOptions update = {.optimizer = OptimizerKind::kMomentum, .bucket_bytes = 0};
  const auto verdict = [&](const std::function<void(Schedule*)>& change) {
    return Verdict(update, change, "bf16");
  };
  EXPECT_THAT(verdict([](Schedule*) {}), "");
  // The weight itself is trained, rounded in every step.
  EXPECT_THAT(verdict([](Schedule* s) {
                Task* task = First(s, TaskKind::kUpdate);
                task->reads[0] = task->writes[0];
              }),
              HasSubstr("does not update"));
  EXPECT_THAT(verdict([](Schedule* s) {
                Task* task = First(s, TaskKind::kUpdate);
                s->parameters[0].trained = s->parameters[0].stored;
                task->reads[0] = task->writes[0];
              }),
              HasSubstr("trained"));
  // Its master is not written, or is in its own precision.
  EXPECT_THAT(verdict([](Schedule* s) {
                Task* task = First(s, TaskKind::kUpdate);
                task->writes = {task->writes[0], task->writes[1]};
              }),
              HasSubstr("boxes"));
  EXPECT_THAT(verdict([](Schedule* s) {
                Task* task = First(s, TaskKind::kUpdate);
                s->buffers[task->reads[0]].dtype = DataType::kBFloat16;
              }),
              HasSubstr("no master of its own"));
  EXPECT_THAT(verdict([](Schedule* s) {
                std::swap(First(s, TaskKind::kUpdate)->writes[1],
                          First(s, TaskKind::kUpdate)->writes[2]);
              }),
              HasSubstr("does not change what is trained"));
  // Rounded weights are what is saved.
  EXPECT_THAT(verdict([](Schedule* s) {
                for (Task& task : s->tasks) {
                  if (task.kind != TaskKind::kUnload) continue;
                  for (const auto& parameter : s->parameters) {
                    for (size_t i = 0; i < parameter.trained.size(); ++i) {
                      if (task.reads[0] == parameter.trained[i]) {
                        task.reads[0] = parameter.stored[i];
                      }
                    }
                  }
                }
              }),
              HasSubstr("unloaded"));
}

// A weight that three calls of one step read.
TEST(Update, SharesOfSeveralCallsAreSummedInFloat32) {
  const Graph graph = Parsed(R"(
%0 = input "x" : bf16[4,4]
%1 = weight "w" : bf16[4,4]
%2 = input "labels" : i64[4]
%3 = matmul(%0, %1) : bf16[4,4]
%4 = matmul(%3, %1) : bf16[4,4]
%5 = matmul(%4, %1) : bf16[4,4]
%6 = cross_entropy(%5, %2) : bf16[]
output "loss" = %6
)");
  const Schedule original = LoweredWith(graph, {}, 1);
  EXPECT_EQ(CheckSchedule(graph, original), absl::OkStatus());
  EXPECT_EQ(TasksOf(original, TaskKind::kConvert).size(), 1u);
  const std::vector<const Task*> sums = TasksOf(original, TaskKind::kAccumulate);
  ASSERT_EQ(sums.size(), 2u);
  for (const Task* task : sums) {
    // What its call adds to the sum is in the type of that.
    EXPECT_EQ(original.buffers[task->reads[0]].dtype,
              task->is_view ? DataType::kFloat32 : DataType::kBFloat16);
    EXPECT_EQ(original.buffers[task->writes[0]].dtype, DataType::kFloat32);
  }
  // In bfloat16 they are refused, with or without the conversion.
  Schedule low = original;
  low.buffers[sums[0]->writes[0]].dtype = DataType::kBFloat16;
  EXPECT_THAT(CheckSchedule(graph, low).message(), HasSubstr("not in float32"));
}

// So they are of what is made of a weight and a constant.
TEST(Update, SharesOfWhatIsMadeOfWeightsAreSummedInFloat32) {
  const Graph graph = Parsed(R"(
%0 = input "x" : bf16[4,4]
%1 = weight "w" : bf16[4,4]
%2 = constant "mask" : bf16[4,4]
%3 = input "labels" : i64[4]
%4 = mul(%1, %2) : bf16[4,4]
%5 = matmul(%0, %4) : bf16[4,4]
%6 = matmul(%5, %4) : bf16[4,4]
%7 = cross_entropy(%6, %3) : bf16[]
output "loss" = %7
)");
  const Schedule original = LoweredWith(graph, {}, 1);
  EXPECT_EQ(CheckSchedule(graph, original), absl::OkStatus());
  const std::vector<const Task*> sums = TasksOf(original, TaskKind::kAccumulate);
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(original.buffers[sums[0]->writes[0]].dtype, DataType::kFloat32);
  Schedule low = original;
  low.buffers[sums[0]->writes[0]].dtype = DataType::kBFloat16;
  EXPECT_THAT(CheckSchedule(graph, low).message(), HasSubstr("not in float32"));
}

// One call's share is summed over devices in float32, or as it is.
TEST(Update, OneShareIsConvertedForItsSumAlone) {
  const Graph graph = Parsed(InType(kThreeWeights, "bf16"));
  const auto conversions = [&](const UpdateOptions& update, int64_t devices) {
    return TasksOf(LoweredWith(graph, update, devices), TaskKind::kConvert).size();
  };
  EXPECT_EQ(conversions({}, 4), 3u * 4);
  EXPECT_EQ(conversions({.method = UpdateMethod::kShardedWeights}, 4), 3u * 4);
  EXPECT_EQ(conversions({.gradient_sums = DataType::kBFloat16}, 4), 0u);
  const Schedule schedule = LoweredWith(graph, {.method = UpdateMethod::kSharded});
  const auto dtype_of = [&](TaskKind kind) {
    return schedule.buffers[TasksOf(schedule, kind)[0]->reads[0]].dtype;
  };
  EXPECT_EQ(dtype_of(TaskKind::kReduceScatter), DataType::kFloat32);
  EXPECT_EQ(dtype_of(TaskKind::kAllGather), DataType::kBFloat16);
}

TEST(BrokenUpdate, StateThatIsNotZeroAtFirst) {
  EXPECT_THAT(Verdict({.optimizer = OptimizerKind::kMomentum},
                      [](Schedule* s) {
                        for (Task& task : s->tasks) {
                          if (task.kind == TaskKind::kFill && task.phase == Phase::kLoad) {
                            task.value = 1;
                          }
                        }
                      }),
              HasSubstr("a state of the optimizer"));
}

TEST(BrokenUpdate, ParameterSharedByAnotherMethod) {
  EXPECT_THAT(Verdict({.method = UpdateMethod::kSharded},
                      [](Schedule* s) {
                        for (auto& parameter : s->parameters) {
                          parameter.update = UpdateMethod::kAllReduce;
                        }
                      }),
              HasSubstr("in another way than its method says"));
}

}  // namespace
}  // namespace isomer
