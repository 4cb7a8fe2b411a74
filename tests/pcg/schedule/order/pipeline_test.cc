#include "pcg/schedule/order/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "tests/pcg/schedule/layers.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {
namespace {

using testing::HasSubstr;

constexpr PipelineOrder k1F1B = PipelineOrder::kOneForwardOneBackward;

std::string TextOf(const std::vector<PipelineSlot>& slots) {
  return absl::StrJoin(slots, " ", [](std::string* out, const PipelineSlot& slot) {
    absl::StrAppend(out, slot.phase == Phase::kForward ? "F" : "B", slot.moment);
  });
}

// The slots that a device's calls are in, as its program has them.
std::string SlotsOfDevice(const Schedule& schedule, int32_t device) {
  std::vector<PipelineSlot> slots;
  for (int32_t t : schedule.programs[device]) {
    const Task& task = schedule.tasks[t];
    if (task.kind != TaskKind::kCompute && task.kind != TaskKind::kComputeGradient) continue;
    const PipelineSlot slot{task.phase, task.moment};
    if (slots.empty() || slots.back() != slot) slots.push_back(slot);
  }
  return TextOf(slots);
}

TEST(PipelineOrder, AsInTheFigureOfMegatron) {
  EXPECT_EQ(TextOf(SlotsOfStage(k1F1B, 0, {3, 4})), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(TextOf(SlotsOfStage(k1F1B, 1, {3, 4})), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(TextOf(SlotsOfStage(k1F1B, 2, {3, 4})), "F0 B0 F1 B1 F2 B2 F3 B3");
  EXPECT_EQ(TextOf(SlotsOfStage(k1F1B, 0, {4, 2})), "F0 F1 B0 B1") << "fewer than stages";
  EXPECT_EQ(TextOf(SlotsOfStage(PipelineOrder::kAllForwardFirst, 0, {2, 3})), "F0 F1 F2 B0 B1 B2");
}

TEST(InterleavedOrder, AsInTheFigureOfMegatron) {
  std::string text;
  for (const PipelineSlot& slot : SlotsOfStage(k1F1B, 3, {4, 8, 2})) {
    absl::StrAppend(&text, slot.phase == Phase::kForward ? "F" : "B", slot.moment,
                    slot.chunk == 0 ? " " : "' ");
  }
  EXPECT_EQ(text,
            "F0 F1 F2 F3 F0' B0' F1' B1' F2' B2' F3' B3' F4 B0 F5 B1 F6 B2 F7 B3 "
            "F4' B4' F5' B5' F6' B6' F7' B7' B4 B5 B6 B7 ");
}

// When all slots are done if a forward takes 1 and a backward 2; -1 if they wait in a circle.
int64_t MakespanOf(const PipelineShape& shape) {
  const auto stages = static_cast<int32_t>(shape.num_stages);
  const auto chunks = static_cast<int32_t>(shape.num_chunks);
  std::map<std::tuple<Phase, int32_t, int32_t>, int64_t> end;  // phase, level, micro-batch
  std::vector<std::vector<PipelineSlot>> slots;
  for (int32_t s = 0; s < stages; ++s) {
    slots.push_back(SlotsOfStage(k1F1B, s, shape));
  }
  std::vector<size_t> next(stages, 0);
  std::vector<int64_t> free(stages, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int32_t s = 0; s < stages; ++s) {
      for (; next[s] < slots[s].size(); ++next[s], moved = true) {
        const PipelineSlot& slot = slots[s][next[s]];
        const int32_t level = slot.chunk * stages + s, last = stages * chunks - 1;
        std::tuple<Phase, int32_t, int32_t> need(slot.phase, level, slot.moment);
        if (slot.phase == Phase::kForward) {
          std::get<1>(need) = level - 1;
        } else if (level == last) {
          std::get<0>(need) = Phase::kForward;
        } else {
          std::get<1>(need) = level + 1;
        }
        int64_t start = free[s];
        if (slot.phase == Phase::kBackward || level > 0) {
          const auto found = end.find(need);
          if (found == end.end()) break;
          start = std::max(start, found->second);
        }
        free[s] = start + (slot.phase == Phase::kForward ? 1 : 2);
        end[{slot.phase, level, slot.moment}] = free[s];
      }
    }
  }
  for (int32_t s = 0; s < stages; ++s) {
    if (next[s] < slots[s].size()) return -1;
  }
  return *std::max_element(free.begin(), free.end());
}

// How many slots of each stage are under way at a time, at most.
int64_t InFlight(const std::vector<PipelineSlot>& slots) {
  int64_t now = 0, most = 0;
  for (const PipelineSlot& slot : slots) {
    most = std::max(most, now += slot.phase == Phase::kForward ? 1 : -1);
  }
  EXPECT_EQ(now, 0);
  return most;
}

TEST(InterleavedOrder, RoundsOfAnyNumberOfMicroBatches) {
  std::string text;
  for (const PipelineSlot& slot : SlotsOfStage(k1F1B, 1, {2, 5, 2})) {
    absl::StrAppend(&text, slot.phase == Phase::kForward ? "F" : "B", slot.moment,
                    slot.chunk == 0 ? " " : "' ");
  }
  EXPECT_EQ(text, "F0 F1 F2 F0' B0' F1' B1' F2' B2' F3 B0 F4 B1 F3' B2 F4' B3' B4' B3 B4 ");
  EXPECT_EQ((PipelineShape{4, 8, 2}).LargestRound(), 4);
  EXPECT_EQ((PipelineShape{4, 7, 2}).LargestRound(), 7);
  EXPECT_EQ((PipelineShape{4, 11, 2}).LargestRound(), 6);
  EXPECT_EQ((PipelineShape{4, 99, 2}).LargestRound(), 5);
  EXPECT_EQ((PipelineShape{4, 3, 2}).LargestRound(), 3) << "fewer than stages";
}

// Whatever the number of micro-batches: v max(n, S) + min(n, S) - 1 of 3 each, of which v n are
// work; (S - 1) / (v n + S - 1) is idle, but of fewer than stages. Every slot is there once.
TEST(InterleavedOrder, IdleShareIsTheLeastForAnyNumberOfMicroBatches) {
  for (int32_t stages : {2, 3, 4, 5, 8}) {
    for (int32_t chunks : {1, 2, 3, 4, 6}) {
      for (int32_t moments = 1; moments <= 5 * stages + 1; ++moments) {
        const PipelineShape shape{stages, moments, chunks};
        SCOPED_TRACE(absl::StrCat(stages, " stages, ", chunks, " chunks, ", moments));
        const int64_t whole = chunks * std::max(moments, stages) + std::min(moments, stages) - 1;
        ASSERT_EQ(MakespanOf(shape), 3 * whole);
        EXPECT_NEAR(shape.IdleShare(), 1 - static_cast<double>(chunks * moments) / whole, 1e-12);
        for (int32_t stage = 0; stage < stages; ++stage) {
          const std::vector<PipelineSlot> slots = SlotsOfStage(k1F1B, stage, shape);
          std::set<std::tuple<Phase, int32_t, int32_t>> distinct;
          for (const PipelineSlot& slot : slots) {
            distinct.emplace(slot.phase, slot.moment, slot.chunk);
          }
          EXPECT_EQ(distinct.size(), static_cast<size_t>(2 * moments * chunks));
          EXPECT_EQ(slots.size(), distinct.size());
          EXPECT_EQ(shape.MostInFlight(stage), InFlight(slots));
        }
      }
    }
  }
}

// Several steps without a flush are one pipeline; no round is of two of them.
TEST(InterleavedOrder, RoundsAreOfOneStep) {
  for (int32_t stages : {2, 3, 4}) {
    for (int32_t moments = 2 * stages; moments <= 4 * stages; ++moments) {
      const PipelineShape shape{stages, moments, 2, 3};
      ASSERT_EQ(MakespanOf(shape), 3 * (2 * 3 * moments + stages - 1)) << stages << " " << moments;
    }
  }
}

// A few micro-batches that stand for more work on as many at a time as all would.
TEST(InterleavedOrder, FewerStandForAll) {
  for (int32_t stages : {2, 3, 4, 6, 8}) {
    for (int32_t chunks : {2, 3, 5}) {
      for (int32_t moments = 8 * stages; moments <= 10 * stages; ++moments) {
        const PipelineShape all{stages, moments, chunks};
        for (int32_t few = 4; few <= 4 * stages; ++few) {
          PipelineShape some{stages, few, chunks};
          some.largest_round = all.LargestRound();
          const int64_t makespan = MakespanOf(some);
          ASSERT_GT(makespan, 0) << stages << " " << chunks << " " << moments << " " << few;
          if (few < 2 * stages || few % stages != 0) continue;
          EXPECT_EQ(makespan, 3 * (chunks * few + stages - 1));
          EXPECT_EQ(some.MostInFlight(0), std::min<int64_t>(all.MostInFlight(0), few * chunks));
        }
      }
    }
  }
}

TEST(InterleavedSchedule, DevicesTakeTheirChunksInTurn) {
  for (int64_t data : {1, 2}) {
    for (bool shortcut : {false, true}) {
      const StagedMlp pipeline{.layers = 12,
                               .stages = 3,
                               .data = data,
                               .micro_batches = 6,
                               .shortcut = shortcut,
                               .chunks = 2};
      SCOPED_TRACE(pipeline.Name());
      const PipelineGraphs graphs = MakePipeline(pipeline);
      for (const bool less_memory : {false, true}) {
        const Schedule schedule = LoweredPipeline(
            pipeline, graphs.mapped, k1F1B,
            less_memory ? ComputedNodes(graphs.mapped.graph) : std::vector<NodeId>(),
            {.method = less_memory ? UpdateMethod::kShardedWeights : UpdateMethod::kAllReduce});
        const PipelineStages stages = StagesOf(schedule);
        ASSERT_EQ(stages.num_chunks, 2);
        EXPECT_EQ(stages.num_stages, 3);
        EXPECT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus());
        for (int32_t d = 0; d < pipeline.devices(); ++d) {
          EXPECT_EQ(SlotsOfDevice(schedule, d),
                    TextOf(SlotsOfStage(k1F1B, d / static_cast<int32_t>(data), {3, 6, 2})));
        }
      }
    }
  }
}

TEST(InterleavedSchedule, TakesAnyNumberOfMicroBatches) {
  for (int64_t stages : {2, 3, 4}) {
    for (int64_t chunks : {2, 3}) {
      for (int64_t moments = 2; moments <= 2 * stages + 1; ++moments) {
        const StagedMlp pipeline{.layers = stages * chunks,
                                 .stages = stages,
                                 .micro_batches = moments,
                                 .batch = 2 * moments,
                                 .chunks = chunks};
        SCOPED_TRACE(pipeline.Name());
        const PipelineGraphs graphs = MakePipeline(pipeline);
        const Schedule schedule = LoweredPipeline(pipeline, graphs.mapped);
        const PipelineStages found = StagesOf(schedule);
        ASSERT_EQ(found.num_chunks, chunks);
        EXPECT_EQ(found.num_stages, stages);
        EXPECT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus());
        for (int32_t d = 0; d < pipeline.devices(); ++d) {
          EXPECT_EQ(SlotsOfDevice(schedule, d),
                    TextOf(SlotsOfStage(k1F1B, d, {stages, moments, chunks})));
        }
      }
    }
  }
}

TEST(InterleavedSchedule, AnotherOrderOfChunksIsRefused) {
  const StagedMlp pipeline{.layers = 4, .stages = 2, .micro_batches = 4, .chunks = 2};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  Schedule schedule = LoweredPipeline(pipeline, graphs.mapped);
  ASSERT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus());
  // The first forwards of two micro-batches change places.
  std::vector<int32_t>& program = schedule.programs[0];
  const auto is_of = [&](int32_t moment) {
    return [&schedule, moment](int32_t t) {
      const Task& task = schedule.tasks[t];
      return task.kind == TaskKind::kCompute && task.moment == moment;
    };
  };
  const auto first = std::find_if(program.begin(), program.end(), is_of(0));
  const auto second = std::find_if(program.begin(), program.end(), is_of(1));
  std::iter_swap(first, second);
  EXPECT_THAT(std::string(CheckSchedule(graphs.mapped.graph, schedule).message()),
              HasSubstr("schedule: device 0, instruction"));
}

TEST(PipelineSchedule, EveryDeviceKeepsToTheSlotsOfItsStage) {
  for (int64_t data : {1, 2}) {
    const StagedMlp pipeline{.layers = 6, .stages = 3, .data = data, .micro_batches = 4};
    const PipelineGraphs graphs = MakePipeline(pipeline);
    for (PipelineOrder order : {k1F1B, PipelineOrder::kAllForwardFirst}) {
      const Schedule schedule = LoweredPipeline(pipeline, graphs.mapped, order);
      EXPECT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus());
      for (int32_t d = 0; d < pipeline.devices(); ++d) {
        EXPECT_EQ(SlotsOfDevice(schedule, d),
                  TextOf(SlotsOfStage(order, d / static_cast<int32_t>(data), {3, 4})))
            << "device " << d;
      }
    }
  }
}

// Each weight is kept and updated once a device, and its gradient summed once, among devices alone.
TEST(PipelineSchedule, CopiesOfADeviceAreOneBuffer) {
  const StagedMlp pipeline{.layers = 4, .stages = 2, .data = 2, .micro_batches = 3};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const Schedule schedule = LoweredPipeline(pipeline, graphs.mapped);
  ASSERT_EQ(schedule.parameters.size(), 4u);
  for (const Schedule::HostTensor& parameter : schedule.parameters) {
    const std::vector<BufferId>& shards = schedule.shards.at(parameter.tensor);
    EXPECT_EQ(shards.size(), 6u);
    EXPECT_EQ(std::set<BufferId>(shards.begin(), shards.end()).size(), 2u);
    EXPECT_EQ(std::set<BufferId>(parameter.gradients.begin(), parameter.gradients.end()).size(),
              2u);
  }
  std::map<TaskKind, int> count;
  for (const Task& task : schedule.tasks) ++count[task.kind];
  EXPECT_EQ(count[TaskKind::kUpdate], 8) << "weights on their devices";
  EXPECT_EQ(count[TaskKind::kAllReduce], 4) << "one a weight";
  // Activations to the next stage and back, shard by shard; the loss, whose gradient is a one.
  EXPECT_EQ(count[TaskKind::kSendReceive], 2 * 6 + 1);
}

// The first stage as soon as its last share is there; another when it has nothing more to send.
TEST(PipelineSchedule, SynchronisesAWeightAfterItsLastMicroBatch) {
  const StagedMlp pipeline{.layers = 4, .stages = 2, .data = 2, .micro_batches = 4};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const Schedule schedule = LoweredPipeline(pipeline, graphs.mapped);
  int synchronisations = 0;
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    if (task.kind != TaskKind::kAllReduce) continue;
    ++synchronisations;
    if (task.devices[0] > 0) {
      EXPECT_TRUE(std::all_of(schedule.tasks.begin() + static_cast<ptrdiff_t>(t),
                              schedule.tasks.end(), [&](const Task& later) {
                                return later.moment == kNoMoment ||
                                       later.devices[0] != task.devices[0];
                              }));
      continue;
    }
    EXPECT_EQ(task.deps.back(), static_cast<int32_t>(t) - 1);
    const Task& last = schedule.tasks[t - 1];
    EXPECT_EQ(last.kind, TaskKind::kAccumulate);
    EXPECT_EQ(last.moment, 3);
  }
  EXPECT_EQ(synchronisations, 4);
}

// What two calls of later stages need of one is sent to a device once, though they are at different
// stages of the graph; so is a weight that lies elsewhere, for all micro-batches.
TEST(PipelineSchedule, EverythingIsReceivedOnceByADevice) {
  for (int64_t stages : {2, 4}) {
    const StagedMlp pipeline{.layers = 8, .stages = stages, .micro_batches = 4, .shortcut = true};
    PipelineGraphs graphs = MakePipeline(pipeline);
    // All weights on the first device.
    for (int id = 0; id < graphs.mapped.graph.num_nodes(); ++id) {
      const OpKind kind = graphs.mapped.graph.node(id).op.kind();
      if (kind == OpKind::kWeight || kind == OpKind::kReplicate) graphs.mapped.views[id].start = 0;
    }
    const Schedule schedule = LoweredPipeline(pipeline, graphs.mapped);
    EXPECT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus());
    std::map<std::tuple<BufferId, int32_t>, int> sent;
    for (const Task& task : schedule.tasks) {
      if (task.phase != Phase::kForward) continue;
      for (const auto& [from, to] : task.transfers) {
        const int32_t device = schedule.buffers[task.writes[to]].device;
        if (schedule.buffers[task.reads[from]].device == device) continue;
        EXPECT_EQ((++sent[{task.reads[from], device}]), 1)
            << schedule.ToString(graphs.mapped.graph);
      }
    }
    // From one stage to the next; what the first layer gives, to all others; weights.
    const size_t expected = 4 * (stages - 1) + 4 * (stages - 1) + (8 - 8 / stages);
    EXPECT_EQ(sent.size(), expected);
  }
}

// 1F1B: stage s of S keeps activations of at most S - s micro-batches, however many there are.
TEST(PipelineMemory, StagesKeepAsManyMicroBatchesAsStagesFollow) {
  for (int64_t stages : {2, 3, 4}) {
    const StagedMlp pipeline{.layers = 2 * stages, .stages = stages, .micro_batches = 8};
    const PipelineGraphs graphs = MakePipeline(pipeline);
    const Schedule schedule = LoweredPipeline(pipeline, graphs.mapped);
    const std::vector<LiveRange> ranges = LiveRanges(schedule);
    // What is unloaded stays to the end.
    std::set<TensorRef> unloaded;
    for (const auto& output : graphs.mapped.graph.outputs()) unloaded.insert(output.tensor);
    std::vector<size_t> most(stages, 0);
    for (size_t t = 0; t < schedule.tasks.size(); ++t) {
      std::vector<std::set<int32_t>> live(stages);
      for (size_t id = 0; id < schedule.buffers.size(); ++id) {
        const Buffer& buffer = schedule.buffers[id];
        const int32_t now = static_cast<int32_t>(t);
        if (ranges[id].first > now || ranges[id].last < now || buffer.moment == kNoMoment) continue;
        if (buffer.role == BufferRole::kInput || unloaded.contains(buffer.tensor)) continue;
        if (buffer.role == BufferRole::kGradient) continue;
        if (buffer.box.shape.empty()) continue;  // the loss
        live[buffer.device].insert(buffer.moment);
      }
      for (int64_t s = 0; s < stages; ++s) most[s] = std::max(most[s], live[s].size());
    }
    for (int64_t s = 0; s < stages; ++s) {
      EXPECT_EQ(most[s], static_cast<size_t>(stages - s)) << "stage " << s << " of " << stages;
    }
  }
}

TEST(PipelineMemory, OneForwardOneBackwardNeedsLessThanAllForwardFirst) {
  const StagedMlp pipeline{.layers = 4, .stages = 2, .micro_batches = 8, .batch = 512};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const Schedule schedule = LoweredPipeline(pipeline, graphs.mapped);
  const Schedule gpipe = LoweredPipeline(pipeline, graphs.mapped, PipelineOrder::kAllForwardFirst);
  EXPECT_LT(PeakBytesPerDevice(schedule)[0], PeakBytesPerDevice(gpipe)[0]);
  EXPECT_LT(PeakBytesPerDevice(schedule)[1], PeakBytesPerDevice(gpipe)[1]);
}

// The mean over the batch needs all micro-batches, and all need it: there is no order of them.
TEST(PipelineSchedule, MicroBatchesThatMixAreDoneOperatorByOperator) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[8,4]
%1 = weight "w" : f32[4,4]
%2 = partition(%0) {axis=0, degree=4} : f32[8:4,4]
%3 = replicate(%1) {degree=4} : f32[4,4] c4
%4 = matmul(%2, %3) : f32[8:4,4]
%5 = reduce_sum(%4) {axes=[0], keepdims=1} : f32[1,4] p4
%6 = reduce(%5) {degree=4} : f32[1,4]
%7 = replicate(%6) {degree=4} : f32[1,4] c4
%8 = sub(%4, %7) : f32[8:4,4]
%9 = mse(%8, %2) : f32[] p4
%10 = reduce(%9) {degree=4} : f32[]
output "loss" = %10
)");
  std::vector<MachineView> views = ViewsOf(graph);
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (graph.node(id).outputs[0].NumShards() == 1) continue;
    views[id].moments.assign(views[id].strides.size(), 1);
    for (size_t axis = 0; axis < views[id].strides.size(); ++axis) {
      if (views[id].strides[axis] > 0) views[id].moments[axis] = 2;
    }
  }
  const auto schedule = LowerGraph(graph, views, TrainingOptions(2));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_TRUE(MixesMicroBatches(*schedule));
  EXPECT_EQ(CheckSchedule(graph, *schedule), absl::OkStatus());
  EXPECT_EQ(SlotsOfDevice(*schedule, 0).substr(0, 12), "F0 F1 F0 F1 ");
}

TEST(PipelineSchedule, WeightsAreConvertedToLowPrecisionByTheHost) {
  const StagedMlp pipeline{.layers = 4, .stages = 2, .data = 2, .micro_batches = 3};
  PipelineGraphs graphs = MakePipeline(pipeline);
  Plan plan;
  plan.model = graphs.model;
  plan.graph = graphs.mapped.graph;
  plan.views = graphs.mapped.views;
  plan.num_devices = pipeline.devices();
  plan.precision = DataType::kBFloat16;
  const auto lowered = LowerPlan(plan);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(CheckSchedule(lowered->mapped.graph, lowered->schedule), absl::OkStatus());
  for (const Task& task : lowered->schedule.tasks) {
    EXPECT_TRUE(task.kind != TaskKind::kCompute || task.moment != kNoMoment);
  }
}

// Two devices have a half each of a weight that both need whole for each of two micro-batches. What
// is computed of it is computed once, and its gradient is a sum in float32 until then.
class SameForEachMicroBatch : public testing::TestWithParam<DataType> {};

TEST_P(SameForEachMicroBatch, IsGatheredAtOnceAndItsGradientScattered) {
  const DataType dtype = GetParam();
  MappedGraph mapped;
  Graph& graph = mapped.graph;
  const auto at = [&](TensorRef tensor, std::vector<int64_t> strides,
                      std::vector<int64_t> moments = {}) {
    mapped.views.resize(tensor.node.value + 1);
    mapped.views[tensor.node.value].strides = std::move(strides);
    mapped.views[tensor.node.value].moments = std::move(moments);
    return tensor;
  };
  const auto split = [&](TensorRef tensor) {
    return at(*graph.AddOp(Partition(0, 4), {tensor}), {1, 0, 0, 0}, {2, 1, 1, 1});
  };
  const TensorRef x = split(at(graph.AddInput("x", SequentialType({8, 4}, dtype)), {0, 0, 0, 0}));
  const TensorRef target =
      split(at(graph.AddInput("t", SequentialType({8, 4}, dtype)), {0, 0, 0, 0}));
  TensorRef w = at(graph.AddWeight("w", SequentialType({4, 4}, dtype)), {0, 0, 0, 0});
  w = at(*graph.AddOp(Partition(0, 2), {w}), {1, 0, 0, 0});
  w = at(*graph.AddOp(OpKind::kTanh, {w}), {1, 0, 0, 0});
  w = at(*graph.AddOp(Combine(0, 2), {w}), {0, 0, 0, 0});
  w = at(*graph.AddOp(Replicate(4), {w}), {0, 0, 1, 0}, {1, 1, 2, 1});
  const TensorRef y = at(*graph.AddOp(OpKind::kMatMul, {x, w}), {1, 0, 0, 0}, {2, 1, 1, 1});
  TensorRef loss = at(*graph.AddOp(OpKind::kMeanSquaredError, {y, target}), {0, 1}, {1, 2});
  loss = at(*graph.AddOp(Reduce(4), {loss}), {0, 0});
  graph.AddOutput("loss", loss);
  ASSERT_EQ(graph.Validate(), absl::OkStatus());
  const auto schedule = LowerGraph(graph, mapped.views, {.num_devices = 2, .loss = "loss"});
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(CheckSchedule(graph, *schedule), absl::OkStatus());
  std::map<TaskKind, int> kinds;
  for (const Task& task : schedule->tasks) {
    if (task.node != loss.node && IsCommunication(task.kind)) ++kinds[task.kind];
  }
  EXPECT_THAT(kinds, testing::UnorderedElementsAre(testing::Pair(TaskKind::kAllGather, 1),
                                                   testing::Pair(TaskKind::kReduceScatter, 1)))
      << schedule->ToString(graph);
  int computed = 0, sums = 0;
  for (const Task& task : schedule->tasks) {
    computed += task.kind == TaskKind::kCompute && task.moment == kNoMoment;
    if (task.kind != TaskKind::kAccumulate) continue;
    EXPECT_EQ(schedule->buffers[task.writes[0]].dtype, DataType::kFloat32);
    ++sums;
  }
  EXPECT_EQ(computed, 2);
  EXPECT_EQ(sums, 2);
}

INSTANTIATE_TEST_SUITE_P(Types, SameForEachMicroBatch,
                         testing::Values(DataType::kFloat32, DataType::kBFloat16),
                         [](const auto& info) { return std::string(DataTypeName(info.param)); });

TEST(PipelineStages, ViewsThatComeBackAreOneStage) {
  const StagedMlp pipeline{.layers = 3, .stages = 3, .micro_batches = 4};
  PipelineGraphs graphs = MakePipeline(pipeline);
  // The last layer on the devices of the first.
  for (MachineView& view : graphs.mapped.views) view.start %= 2;
  const Schedule schedule = LoweredPipeline(pipeline, graphs.mapped);
  EXPECT_EQ(StagesOf(schedule).num_stages, 1);
  EXPECT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus());
  EXPECT_EQ(SlotsOfDevice(schedule, 0), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(PipelineStages, ViewsOfDifferentNumbersOfMicroBatchesAreRefused) {
  const StagedMlp pipeline{.layers = 2, .stages = 2, .micro_batches = 4};
  PipelineGraphs graphs = MakePipeline(pipeline);
  for (int id = 0; id < graphs.mapped.graph.num_nodes(); ++id) {
    if (graphs.mapped.graph.node(id).op.kind() != OpKind::kTanh) continue;
    graphs.mapped.views[id] = {.start = 0, .strides = {1, 0, 0, 0}, .moments = {2, 1, 1, 1}};
  }
  const auto schedule =
      LowerGraph(graphs.mapped.graph, graphs.mapped.views, TrainingOptions(pipeline.devices()));
  EXPECT_THAT(std::string(schedule.status().message()), HasSubstr("micro-batches, and others"));
}

std::string Verdict(const std::function<void(const Schedule&, Schedule*)>& change) {
  const StagedMlp pipeline{.layers = 4, .stages = 2, .data = 2, .micro_batches = 4};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  Schedule schedule = LoweredPipeline(pipeline, graphs.mapped);
  EXPECT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus());
  const Schedule original = schedule;
  change(original, &schedule);
  return std::string(CheckSchedule(graphs.mapped.graph, schedule).message());
}

// A device's program with all forward tasks of a micro-batch put behind its others.
TEST(BrokenPipeline, ForwardOfAMicroBatchAheadOfItsTurn) {
  const std::string why = Verdict([](const Schedule&, Schedule* schedule) {
    // GPipe's order of the same tasks, under the name of 1F1B.
    Schedule gpipe = *schedule;
    gpipe.options.order = PipelineOrder::kAllForwardFirst;
    EXPECT_EQ(OrderMicroBatches(&gpipe), absl::OkStatus());
    schedule->tasks = gpipe.tasks;
    schedule->programs.assign(4, {});
    for (size_t t = 0; t < schedule->tasks.size(); ++t) {
      for (int32_t device : schedule->tasks[t].devices) {
        schedule->programs[device].push_back(static_cast<int32_t>(t));
      }
    }
  });
  EXPECT_THAT(why, HasSubstr("is not next in pipeline order"));
}

TEST(BrokenPipeline, MicroBatchesThatChangePlacesOnAStage) {
  // Everything of micro-batches 2 and 3 says that it is of the other.
  EXPECT_THAT(Verdict([](const Schedule&, Schedule* schedule) {
                for (Task& task : schedule->tasks) {
                  if (task.moment >= 2) task.moment = 5 - task.moment;
                }
              }),
              HasSubstr("is not next in pipeline order"));
}

TEST(BrokenPipeline, MicroBatchThatThereIsNot) {
  EXPECT_THAT(Verdict([](const Schedule&, Schedule* schedule) {
                for (Task& task : schedule->tasks) {
                  if (task.moment == 3) task.moment = 4;
                }
              }),
              HasSubstr("is of micro-batch 4 of 4"));
}

TEST(BrokenPipeline, TwoTasksOfAnOperatorAtOneMoment) {
  EXPECT_THAT(Verdict([](const Schedule&, Schedule* schedule) {
                for (Task& task : schedule->tasks) {
                  if (task.moment == 3) task.moment = 2;
                }
              }),
              HasSubstr("is the second of micro-batch 2"));
}

TEST(BrokenPipeline, TasksThatDoNotSayTheirMicroBatch) {
  EXPECT_THAT(Verdict([](const Schedule&, Schedule* schedule) {
                for (Task& task : schedule->tasks) task.moment = kNoMoment;
              }),
              HasSubstr("is the second of micro-batch -1"));
}

TEST(BrokenPipeline, BufferSharedByShardsThatAreNoCopies) {
  EXPECT_THAT(Verdict([](const Schedule&, Schedule* schedule) {
                // Two pieces of one size of the scalar loss's partials.
                for (auto& [tensor, shards] : schedule->shards) {
                  if (schedule->buffers[shards[0]].box.shape.empty() && shards.size() > 1) {
                    shards[1] = shards[0];
                  }
                }
              }),
              HasSubstr("two shards that are no copies"));
}

// A gradient's share of one micro-batch left out, at any place.
TEST(BrokenPipeline, AnyShareOfAMicroBatchLeftOut) {
  const StagedMlp pipeline{.layers = 2, .stages = 2, .data = 2, .micro_batches = 3};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const Schedule original = LoweredPipeline(pipeline, graphs.mapped);
  int left_out = 0;
  for (size_t t = 0; t < original.tasks.size(); ++t) {
    if (original.tasks[t].kind != TaskKind::kAccumulate) continue;
    Schedule schedule = original;
    std::erase(schedule.programs[original.tasks[t].devices[0]], static_cast<int32_t>(t));
    EXPECT_FALSE(CheckSchedule(graphs.mapped.graph, schedule).ok()) << "task " << t;
    ++left_out;
  }
  EXPECT_EQ(left_out, 2 * 2 * 2) << "weights, devices, micro-batches but the first";
}

}  // namespace
}  // namespace isomer
