// Memory counted by hand.
#include "pcg/schedule/memory/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/packing.h"
#include "pcg/schedule/program/program.h"
#include "tests/pcg/schedule/parallel_graphs.h"

namespace isomer {
namespace {

Schedule LoweredWith(const std::string& text, int64_t devices, const UpdateOptions& update,
                     bool training = true) {
  const Graph graph = Parsed(text);
  ScheduleOptions options;
  options.training = training;
  options.num_devices = devices;
  options.loss = "loss";
  options.update = update;
  auto schedule = LowerGraph(graph, ViewsOf(graph), options);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *std::move(schedule) : Schedule();
}

TEST(Memory, OneLayerOnOneDevice) {
  constexpr char kLayer[] = R"(
%0 = input "x" : f32[8,4]
%1 = weight "w" : f32[4,16]
%2 = input "target" : f32[8,16]
%3 = matmul(%0, %1) : f32[8,16]
%4 = mse(%3, %2) : f32[]
output "loss" = %4
)";
  // Most lives when the gradient of the product makes that of w: x, the loss, and the gradients of
  // y and w; the target and y died with the gradient of the loss, where they lived with y's.
  for (const auto& [optimizer, states] :
       {std::pair(OptimizerKind::kSgd, 0), std::pair(OptimizerKind::kAdam, 2)}) {
    const MemoryPeak peak = LargestPeak(LoweredWith(kLayer, 1, {.optimizer = optimizer}));
    EXPECT_EQ(peak.of(MemoryCategory::kWeights), 4 * 64);
    EXPECT_EQ(peak.of(MemoryCategory::kOptimizerState), states * 4 * 64);
    // At the gradient of the loss: x, target, y and the loss, of which the gradients are y's and 1.
    EXPECT_EQ(peak.of(MemoryCategory::kActivations), 4 * (32 + 128 + 128 + 1));
    EXPECT_EQ(peak.of(MemoryCategory::kActivationGradients), 4 * (128 + 1));
    EXPECT_EQ(peak.of(MemoryCategory::kGradients), 0);
    EXPECT_EQ(peak.bytes, 4 * (64 * (1 + states) + 289 + 129));
  }
}

TEST(Memory, InferenceKeepsWhatIsReadNext) {
  constexpr char kChain[] = R"(
%0 = input "x" : f32[10]
%1 = relu(%0) : f32[10]
%2 = tanh(%1) : f32[10]
%3 = exp(%2) : f32[10]
output "y" = %3
)";
  const MemoryPeak peak = LargestPeak(LoweredWith(kChain, 1, {}, /*training=*/false));
  EXPECT_EQ(peak.bytes, 4 * 20);
  EXPECT_EQ(peak.of(MemoryCategory::kActivations), 4 * 20);
}

// Two weights of 4 x 4096 numbers on four devices, far larger than everything else.
constexpr char kLargeWeights[] = R"(
%0 = input "x" : f32[4,4]
%1 = weight "w1" : f32[4,4096]
%2 = weight "w2" : f32[4096,4]
%3 = input "target" : f32[4,4]
%4 = partition(%0) {axis=0, degree=4} : f32[4:4,4]
%5 = replicate(%1) {degree=4} : f32[4,4096] c4
%6 = replicate(%2) {degree=4} : f32[4096,4] c4
%7 = partition(%3) {axis=0, degree=4} : f32[4:4,4]
%8 = matmul(%4, %5) : f32[4:4,4096]
%9 = matmul(%8, %6) : f32[4:4,4]
%10 = mse(%9, %7) : f32[] p4
%11 = reduce(%10) {degree=4} : f32[]
output "loss" = %11
)";

TEST(Memory, ThePeakIsTheMostThatIsUsedAtATime) {
  const Schedule schedule = LoweredWith(kLargeWeights, 4, {.optimizer = OptimizerKind::kAdam});
  std::vector<int64_t> most(4, 0);
  int32_t last = 0;
  ForEachMemoryUse(schedule, [&](int32_t task, int32_t device, const MemoryPeak& now) {
    EXPECT_GE(task, last);
    last = task;
    int64_t sum = 0;
    for (int64_t bytes : now.categories) sum += bytes;
    EXPECT_EQ(sum, now.bytes);
    most[device] = std::max(most[device], now.bytes);
  });
  EXPECT_EQ(most, PeakBytesPerDevice(schedule));
}

TEST(Memory, ShardedUpdatesKeepAFourthOfStates) {
  constexpr int64_t kWeight = 4 * 4 * 4096;
  const MemoryPeak everywhere = LargestPeak(
      LoweredWith(kLargeWeights, 4, {.optimizer = OptimizerKind::kAdam, .bucket_bytes = 0}));
  EXPECT_EQ(everywhere.of(MemoryCategory::kWeights), 2 * kWeight);
  EXPECT_EQ(everywhere.of(MemoryCategory::kGradients), 2 * kWeight);
  EXPECT_EQ(everywhere.of(MemoryCategory::kOptimizerState), 4 * kWeight);
  EXPECT_EQ(everywhere.of(MemoryCategory::kCommunication), 0);
  const MemoryPeak sharded = LargestPeak(LoweredWith(
      kLargeWeights, 4,
      {.optimizer = OptimizerKind::kAdam, .method = UpdateMethod::kSharded, .bucket_bytes = 0}));
  EXPECT_EQ(sharded.of(MemoryCategory::kOptimizerState), kWeight);
  // While one gradient is scattered, the other is a part, if it is there yet.
  EXPECT_LE(sharded.of(MemoryCategory::kGradients), kWeight + kWeight / 2);
  EXPECT_LT(sharded.bytes, everywhere.bytes - 2 * kWeight);
  const std::vector<MemoryPeak> owners = PeaksPerDevice(LoweredWith(
      kLargeWeights, 4,
      {.optimizer = OptimizerKind::kAdam, .method = UpdateMethod::kOwner, .bucket_bytes = 0}));
  int64_t states = 0;
  for (const MemoryPeak& peak : owners) states += peak.of(MemoryCategory::kOptimizerState);
  EXPECT_EQ(states, 4 * kWeight);
}

TEST(Memory, ShardedWeightsAreWholeOneAtATime) {
  constexpr int64_t kWeight = 4 * 4 * 4096;
  const MemoryPeak peak = LargestPeak(
      LoweredWith(kLargeWeights, 4,
                  {.optimizer = OptimizerKind::kAdam, .method = UpdateMethod::kShardedWeights}));
  EXPECT_EQ(peak.of(MemoryCategory::kWeights), kWeight / 2 + kWeight);
  EXPECT_EQ(peak.of(MemoryCategory::kOptimizerState), kWeight);
  EXPECT_LE(peak.of(MemoryCategory::kGradients), kWeight + kWeight / 2);
}

// The same of one sample on one device, whose gradients wait for nobody.
constexpr char kLargeWeightsAlone[] = R"(
%0 = input "x" : f32[1,4]
%1 = weight "w1" : f32[4,4096]
%2 = weight "w2" : f32[4096,4]
%3 = input "target" : f32[1,4]
%4 = matmul(%0, %1) : f32[1,4096]
%5 = matmul(%4, %2) : f32[1,4]
%6 = mse(%5, %3) : f32[]
output "loss" = %6
)";

TEST(Memory, ImmediateUpdatesHaveOneGradientAtATime) {
  constexpr int64_t kWeight = 4 * 4 * 4096;
  const auto gradients = [](bool immediate) {
    return LargestPeak(LoweredWith(kLargeWeightsAlone, 1, {.immediate = immediate}))
        .of(MemoryCategory::kGradients);
  };
  EXPECT_EQ(gradients(false), 2 * kWeight);
  EXPECT_EQ(gradients(true), kWeight);
}

TEST(Memory, StatesOnTheHostTakeNoneOfTheDevice) {
  constexpr int64_t kWeight = 4 * 4 * 4096;
  UpdateOptions update = {.optimizer = OptimizerKind::kAdam, .bucket_bytes = 0};
  const MemoryPlan on_devices = PlanMemory(LoweredWith(kLargeWeights, 4, update));
  EXPECT_EQ(on_devices.host_bytes, std::vector<int64_t>(4, 0));
  update.states_on_host = true;
  const Schedule schedule = LoweredWith(kLargeWeights, 4, update);
  EXPECT_EQ(LargestPeak(schedule).of(MemoryCategory::kOptimizerState), 0);
  MemoryPlan plan = PlanMemory(schedule);
  EXPECT_EQ(plan.host_bytes, std::vector<int64_t>(4, 4 * kWeight));
  EXPECT_LE(plan.arena_bytes[0], on_devices.arena_bytes[0] - 4 * kWeight);
  EXPECT_EQ(CheckMemory(schedule, plan), absl::OkStatus());
  // Two states in one place.
  BufferId first = kNoBuffer;
  for (size_t id = 0; id < schedule.buffers.size(); ++id) {
    if (schedule.buffers[id].role != BufferRole::kState || schedule.buffers[id].device != 0)
      continue;
    if (first == kNoBuffer) first = static_cast<BufferId>(id);
    plan.offsets[id] = plan.offsets[first];
  }
  EXPECT_FALSE(CheckMemory(schedule, plan).ok());
}

TEST(Memory, BucketsLieInRowsAndLiveTogether) {
  for (UpdateMethod method : {UpdateMethod::kAllReduce, UpdateMethod::kOwner}) {
    const Schedule schedule = LoweredWith(kLargeWeights, 4, {.method = method});
    const std::vector<std::vector<BufferId>> rows = RowsOf(schedule);
    // Gradients of two weights on four devices; of an owner what it sends, the weights, too.
    ASSERT_EQ(rows.size(), method == UpdateMethod::kOwner ? 8u : 4u);
    const MemoryPlan plan = PlanMemory(schedule);
    const std::vector<LiveRange> ranges = LiveRanges(schedule);
    for (const std::vector<BufferId>& row : rows) {
      ASSERT_EQ(row.size(), 2u);
      const Buffer &first = schedule.buffers[row[0]], &second = schedule.buffers[row[1]];
      EXPECT_EQ(first.device, second.device);
      EXPECT_EQ(plan.offsets[row[1]], plan.offsets[row[0]] + Aligned(first.bytes()));
      EXPECT_EQ(BytesOfRow(schedule, row), Aligned(first.bytes()) + second.bytes());
      EXPECT_EQ(ranges[row[0]].first, ranges[row[1]].first);
      EXPECT_EQ(ranges[row[0]].last, ranges[row[1]].last);
    }
  }
  EXPECT_TRUE(RowsOf(LoweredWith(kLargeWeights, 4, {.bucket_bytes = 0})).empty());
}

TEST(Memory, ARowWithAGapIsRefused) {
  const Schedule schedule = LoweredWith(kLargeWeights, 4, {});
  MemoryPlan plan = PlanMemory(schedule);
  EXPECT_EQ(CheckMemory(schedule, plan), absl::OkStatus());
  const std::vector<BufferId> row = RowsOf(schedule)[1];
  for (int64_t& offset : plan.offsets) offset += offset > plan.offsets[row[0]] ? kAlignment : 0;
  for (auto& scratch : plan.scratch) {
    for (auto& [task, offset] : scratch) offset += kAlignment;
  }
  const std::string message(CheckMemory(schedule, plan).message());
  EXPECT_NE(message.find("is not next to buffer"), std::string::npos) << message;
}

TEST(Memory, BucketsAndSlicesOfTheFirstDimAreNotPacked) {
  const auto scratch_of = [](const UpdateOptions& update, TaskKind kind,
                             absl::string_view features = "4") {
    const std::string text = absl::StrReplaceAll(
        kLargeWeights, {{"f32[4,4]\n%1", absl::StrCat("f32[4,", features, "]\n%1")},
                        {"[4,4096]", absl::StrCat("[", features, ",4096]")},
                        {"[4:4,4]\n%5", absl::StrCat("[4:4,", features, "]\n%5")}});
    std::vector<int64_t> bytes;
    const Schedule schedule = LoweredWith(text, 4, update);
    for (const Task& task : schedule.tasks) {
      if (task.kind == kind) bytes.push_back(PackBytesOf(schedule, task)[1].total());
    }
    return bytes;
  };
  constexpr int64_t kWeight = 4 * 4 * 4096;
  EXPECT_EQ(scratch_of({}, TaskKind::kAllReduce), std::vector<int64_t>{0});
  EXPECT_EQ(scratch_of({.bucket_bytes = 0}, TaskKind::kAllReduce), (std::vector<int64_t>{0, 0}));
  // Weights are cut along their rows; w1 along its columns where four do not divide its rows.
  const UpdateOptions sharded = {.method = UpdateMethod::kSharded, .bucket_bytes = 0};
  for (TaskKind kind : {TaskKind::kReduceScatter, TaskKind::kAllGather}) {
    EXPECT_EQ(scratch_of(sharded, kind), (std::vector<int64_t>{0, 0}));
    EXPECT_EQ(scratch_of(sharded, kind, "2"), (std::vector<int64_t>{0, kWeight / 2}));
  }
}

TEST(Memory, ScratchSpaceOverBuffersIsRefused) {
  const Schedule schedule = LoweredWith(kLargeWeights, 4, {.method = UpdateMethod::kSharded});
  MemoryPlan plan = PlanMemory(schedule);
  EXPECT_EQ(CheckMemory(schedule, plan), absl::OkStatus());
  ASSERT_FALSE(plan.scratch[2].empty());
  const BufferId parameter = schedule.shards.at(schedule.parameters[0].tensor)[2];
  plan.scratch[2].begin()->second = plan.offsets[parameter];
  EXPECT_NE(CheckMemory(schedule, plan).message().find("its scratch space reuses memory"),
            absl::string_view::npos);
}

// Sizes of the workspaces of kernels, by their place among these.
void SetWorkspaces(const std::vector<int64_t>& bytes, Schedule* schedule) {
  size_t kernel = 0;
  for (Task& task : schedule->tasks) {
    if (RunsKernel(task) && kernel < bytes.size()) {
      task.workspace_bytes = bytes[kernel++];
    }
  }
  ASSERT_EQ(kernel, bytes.size());
}

// %1 and the input are dead when the last kernel runs, whose workspace takes their place.
constexpr char kChain[] =
    "%0 = input \"x\" : f32[1024]\n"
    "%1 = relu(%0) : f32[1024]\n"
    "%2 = tanh(%1) : f32[1024]\n"
    "%3 = exp(%2) : f32[1024]\n"
    "output \"y\" = %3\n";

Schedule LoweredChain() {
  const Graph graph = Parsed(kChain);
  return LowerGraph(graph, SequentialViews(graph), {.training = false, .loss = ""}).value();
}

TEST(Memory, WorkspacesLieWhereNothingLives) {
  constexpr int64_t kTensor = 4096;
  Schedule schedule = LoweredChain();
  ASSERT_EQ(PeakBytes(schedule), 2 * kTensor);
  EXPECT_EQ(PlanMemory(schedule).arena_bytes[0], 2 * kTensor);
  SetWorkspaces({0, 0, kTensor}, &schedule);
  const MemoryPeak peak = LargestPeak(schedule);
  EXPECT_EQ(peak.bytes, 3 * kTensor);
  EXPECT_EQ(peak.of(MemoryCategory::kWorkspace), kTensor);
  EXPECT_EQ(peak.of(MemoryCategory::kCommunication), 0);
  for (const int32_t queues : {1, kMostQueues}) {
    const MemoryPlan plan = PlanMemory(schedule, queues);
    EXPECT_EQ(plan.arena_bytes[0], 3 * kTensor);
    EXPECT_EQ(CheckMemory(schedule, plan), absl::OkStatus());
  }
  // A little of each does not add up.
  SetWorkspaces({64, 64, 64}, &schedule);
  EXPECT_EQ(PlanMemory(schedule).arena_bytes[0], 2 * kTensor + 64);
}

TEST(Memory, AWorkspaceOverWhatItsKernelReadsOrWritesIsRefused) {
  Schedule schedule = LoweredChain();
  SetWorkspaces({0, 64, 0}, &schedule);
  MemoryPlan plan = PlanMemory(schedule);
  ASSERT_EQ(plan.scratch[0].size(), 1u);
  auto& [t, offset] = *plan.scratch[0].begin();
  const int64_t right = offset;
  for (const BufferList* list : {&schedule.tasks[t].reads, &schedule.tasks[t].writes}) {
    offset = plan.offsets[(*list)[0]];
    EXPECT_NE(CheckMemory(schedule, plan).message().find("its scratch space reuses memory"),
              absl::string_view::npos);
  }
  offset = right;
  EXPECT_EQ(CheckMemory(schedule, plan), absl::OkStatus());
  // The program has it among the bytes that the kernel writes.
  const Accesses bytes = AccessesOf(schedule, plan, t)[0];
  ASSERT_EQ(bytes.writes.size(), 2u);
  EXPECT_EQ(bytes.writes[1], (ByteRange{right, right + 64}));
}

// Whatever the sizes, an arena is never larger than one with the largest workspace behind all else.
TEST(Memory, WorkspacesNeverTakeMoreThanBehindAllElse) {
  std::mt19937 random(3);
  for (const ParallelCase& c : ParallelCases()) {
    Schedule schedule = Lowered(c);
    for (const int32_t queues : {1, kMostQueues}) {
      for (Task& task : schedule.tasks) task.workspace_bytes = 0;
      const std::vector<int64_t> without = PlanMemory(schedule, queues).arena_bytes;
      std::vector<int64_t> largest(without.size(), 0);
      for (Task& task : schedule.tasks) {
        if (!RunsKernel(task)) continue;
        task.workspace_bytes = static_cast<int64_t>(random() % 5000);
        int64_t& most = largest[task.devices[0]];
        most = std::max(most, Aligned(task.workspace_bytes));
      }
      const MemoryPlan plan = PlanMemory(schedule, queues);
      EXPECT_EQ(CheckMemory(schedule, plan), absl::OkStatus()) << c.name;
      EXPECT_EQ(CheckProgram(schedule, plan, CompileProgram(schedule, plan, queues)),
                absl::OkStatus())
          << c.name;
      for (size_t d = 0; d < without.size(); ++d) {
        EXPECT_LE(plan.arena_bytes[d], without[d] + largest[d]) << c.name << " device " << d;
      }
    }
  }
}

}  // namespace
}  // namespace isomer
