#include "pcg/schedule/order/zero_bubble_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/order/slot_run.h"
#include "pcg/schedule/order/weight_gradients.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {
namespace {

using testing::HasSubstr;

struct Times {
  int32_t forward, backward, weights;
};

PipelineShape SplitShape(int64_t stages, int64_t moments, int32_t in_flight,
                         Times times = {1, 1, 1}, int64_t chunks = 1) {
  return {.num_stages = stages,
          .num_moments = moments,
          .num_chunks = chunks,
          .zero_bubble = {in_flight, times.forward, times.backward, times.weights}};
}

std::string NameOf(const PipelineSlot& slot) {
  return absl::StrCat(slot.of_weights                 ? "W"
                      : slot.phase == Phase::kForward ? "F"
                                                      : "B",
                      slot.moment, slot.chunk > 0 ? "'" : "");
}

std::string NamesOf(const std::vector<PipelineSlot>& slots) {
  return absl::StrJoin(slots, " ", [](std::string* out, const PipelineSlot& slot) {
    absl::StrAppend(out, NameOf(slot));
  });
}

// In its times, or others.
SlotRun RunOf(const PipelineShape& shape, Times times, int64_t message = 0) {
  const auto slots = SlotsOfStages(PipelineOrder::kOneForwardOneBackward, shape);
  EXPECT_TRUE(slots.ok()) << slots.status();
  const auto run = RunSlots(shape, *slots, {times.forward, times.backward, times.weights, message});
  EXPECT_TRUE(run.has_value()) << "slots wait in a circle";
  return run.value_or(SlotRun());
}

// Micro-batches between their forward and their backward slot, at most.
int64_t BeforeBackward(const std::vector<PipelineSlot>& slots) {
  int64_t now = 0, most = 0;
  for (const PipelineSlot& slot : slots) {
    if (!slot.of_weights) now += slot.phase == Phase::kForward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

TEST(ZeroBubbleOrder, AsInTheFiguresOfThePaper) {
  // Qi et al., 2024, figure 3: ZB-H1 and ZB-H2 of four stages.
  const auto h1 = MakeZeroBubbleSchedule(SplitShape(4, 8, 4)).slots;
  EXPECT_THAT(NamesOf(h1[0]), testing::StartsWith("F0 F1 F2 F3 B0 W0 F4 B1 W1 F5 B2 W2 F6"));
  EXPECT_THAT(NamesOf(h1[3]), testing::StartsWith("F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2"));
  const auto h2 = MakeZeroBubbleSchedule(SplitShape(4, 8, 7)).slots;
  EXPECT_THAT(NamesOf(h2[0]), testing::StartsWith("F0 F1 F2 F3 F4 F5 F6 B0 W0 F7 B1"));
  EXPECT_THAT(NamesOf(h2[3]), testing::StartsWith("F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 W0"));
}

// (S - 1) (F + B - W) and (S - 1) (F + B - 2 W), whatever the times are for which the order is
// made, and those in which it runs.
TEST(ZeroBubbleOrder, BubblesAreThoseOfThePaper) {
  for (int64_t stages : {2, 4, 8, 16}) {
    for (int64_t moments : {3 * stages, 8 * stages}) {
      for (const Times times : {Times{1, 1, 1},
                                {18522, 18086, 9337},
                                {29718, 29444, 19927},
                                {11347, 11248, 8132},
                                {10419, 10207, 7715}}) {
        const auto [f, b, w] = times;
        SCOPED_TRACE(absl::StrCat(stages, " stages, ", moments, ", of ", f, " ", b, " ", w));
        for (bool known : {true, false}) {
          for (int32_t halves : {1, 2}) {
            const auto in_flight = static_cast<int32_t>(halves == 1 ? stages : 2 * stages - 1);
            const PipelineShape shape =
                SplitShape(stages, moments, in_flight, known ? times : Times{1, 1, 1});
            const ZeroBubbleSchedule made = MakeZeroBubbleSchedule(shape);
            const SlotRun run = RunOf(shape, times);
            EXPECT_EQ(run.longest_stage - moments * (f + b + w),
                      (stages - 1) * (f + b - halves * w));
            for (int64_t s = 0; s < stages; ++s) {
              EXPECT_LE(run.most_in_flight[s], in_flight);
              EXPECT_LE(BeforeBackward(made.slots[s]), halves * (stages - s) - (halves - 1));
            }
            if (!known) continue;
            EXPECT_EQ(run.makespan, made.makespan);
            EXPECT_EQ(run.longest_stage, made.longest_stage);
          }
        }
      }
    }
  }
}

// Tables 4 and 5 of the paper: slots as its authors measured them, with messages, and the share of
// the longest stage's time that is no work.
TEST(ZeroBubbleOrder, BubbleRatesAreThoseOfThePapersTables) {
  struct Row {
    int64_t stages, moments;
    Times times;
    int64_t message;
    double whole, h1, h2;
  };
  for (const Row& row : {Row{8, 24, {18522, 18086, 9337}, 601, 0.2431, 0.1585, 0.1083},
                         {8, 64, {18546, 18097, 9321}, 762, 0.1240, 0.0674, 0.0444},
                         {8, 32, {29802, 29428, 19530}, 577, 0.1898, 0.1045, 0.0559},
                         {16, 48, {11347, 11248, 8132}, 377, 0.2552, 0.1397, 0.0672},
                         {32, 128, {10408, 10204, 7703}, 408, 0.2168, 0.1106, 0.0490}}) {
    SCOPED_TRACE(absl::StrCat(row.stages, " stages, ", row.moments));
    const auto rate = [&](int64_t in_flight) {
      const auto [f, b, w] = row.times;
      PipelineShape shape =
          SplitShape(row.stages, row.moments, static_cast<int32_t>(in_flight), row.times);
      const SlotRun run =
          RunOf(shape, in_flight == 0 ? Times{f, b + w, 0} : row.times, row.message);
      return 1 - static_cast<double>(run.busy) / static_cast<double>(run.longest_stage);
    };
    EXPECT_NEAR(rate(0), row.whole, 5e-5);
    EXPECT_NEAR(rate(row.stages), row.h1, 5e-5);
    EXPECT_NEAR(rate(2 * row.stages - 1), row.h2, 5e-5);
  }
}

// Whatever takes long, a bubble is not larger than that of ZB-H1, nor than that of 1F1B.
TEST(ZeroBubbleOrder, BubblesAreSmallWhateverSlotsTake) {
  for (int32_t f : {300, 736, 1000}) {
    for (int32_t b : {300, 805, 1000}) {
      for (int32_t w : {100, 600, 1000}) {
        SCOPED_TRACE(absl::StrCat(f, " ", b, " ", w));
        const int64_t stages = 8, moments = 32;
        const auto made = MakeZeroBubbleSchedule(SplitShape(stages, moments, 8, {f, b, w}));
        const int64_t bubble = made.makespan - moments * (f + b + w);
        EXPECT_LE(bubble, (stages - 1) * std::max({f + b - w, f, b}));
        EXPECT_LT(bubble, (stages - 1) * (f + b + w));
      }
    }
  }
}

// Two chunks a stage in a V: as much memory as 1F1B, in which the first stage keeps S of two
// chunks, and fewer bubbles than ZB-H1, whose order does not have to know the times.
TEST(ZeroBubbleOrder, AVHasFewerBubblesInTheMemoryOf1F1B) {
  for (int64_t stages : {2, 4, 8, 16}) {
    for (int64_t moments : {3 * stages, 8 * stages, 32 * stages}) {
      for (const Times whole : {Times{200, 200, 200},
                                {18522, 18086, 9337},
                                {29718, 29444, 19927},
                                {11347, 11248, 8132},
                                {10419, 10207, 7715}}) {
        const Times times = {whole.forward / 2, whole.backward / 2, whole.weights / 2};
        const auto [f, b, w] = times;
        SCOPED_TRACE(absl::StrCat(stages, " stages, ", moments, ", of ", f, " ", b, " ", w));
        PipelineShape shape =
            SplitShape(stages, moments, static_cast<int32_t>(2 * stages), times, 2);
        shape.folds = true;
        const ZeroBubbleSchedule made = MakeZeroBubbleSchedule(shape);
        const SlotRun run = RunOf(shape, times);
        EXPECT_EQ(run.makespan, made.makespan);
        for (int64_t s = 0; s < stages; ++s) EXPECT_LE(run.most_in_flight[s], 2 * stages);
        const double bubble = static_cast<double>(run.makespan - 2 * moments * (f + b + w));
        const auto of_h1 = static_cast<double>(2 * (stages - 1) * (f + b - w));
        EXPECT_LT(bubble, (stages == 2 ? 1.01 : 0.85) * of_h1);
        if (f == w) {
          EXPECT_LE(bubble, 0.64 * of_h1);
        }
      }
    }
  }
}

// Chunks in the order of stages, with as many in flight as interleaved 1F1B has, and S - 1 more: of
// the bubble (S - 1) (F + B + W) / v less than all, and less than half.
TEST(ZeroBubbleOrder, InterleavedPipelinesHaveFewerBubblesToo) {
  for (int64_t stages : {4, 8}) {
    for (int64_t moments : {3 * stages, 8 * stages}) {
      for (const Times whole : {Times{200, 200, 200}, {18522, 18086, 9337}, {11347, 11248, 8132}}) {
        const Times times = {whole.forward / 2, whole.backward / 2, whole.weights / 2};
        const auto [f, b, w] = times;
        SCOPED_TRACE(absl::StrCat(stages, " stages, ", moments, ", of ", f, " ", b, " ", w));
        const PipelineShape of_1f1b{.num_stages = stages, .num_moments = moments, .num_chunks = 2};
        const auto in_flight = static_cast<int32_t>(of_1f1b.MostInFlight(0));
        const auto bubble = [&](int64_t more) {
          const PipelineShape shape =
              SplitShape(stages, moments, static_cast<int32_t>(in_flight + more), times, 2);
          return MakeZeroBubbleSchedule(shape).makespan - 2 * moments * (f + b + w);
        };
        EXPECT_LT(bubble(0), (stages - 1) * (f + b + w));
        EXPECT_LT(2 * bubble(stages - 1), (stages - 1) * (f + b + w));
      }
    }
  }
}

TEST(ZeroBubbleOrder, EverySlotIsThereOnceWhateverIsInFlight) {
  for (int64_t stages : {1, 2, 3, 5}) {
    for (int64_t chunks : {1, 2, 3}) {
      for (int64_t moments : {1, 2, 4, 7}) {
        for (auto in_flight = static_cast<int32_t>(chunks); in_flight <= 2 * stages * chunks;
             ++in_flight) {
          const PipelineShape shape = SplitShape(stages, moments, in_flight, {2, 3, 1}, chunks);
          SCOPED_TRACE(absl::StrCat(stages, "x", chunks, ", ", moments, " of ", in_flight));
          const auto slots = MakeZeroBubbleSchedule(shape).slots;
          ASSERT_EQ(slots.size(), static_cast<size_t>(stages));
          const SlotRun run = RunOf(shape, {2, 3, 1});
          for (int64_t s = 0; s < stages; ++s) {
            std::set<std::string> names;
            for (const PipelineSlot& slot : slots[s]) {
              names.insert(absl::StrCat(NameOf(slot), "/", slot.chunk));
            }
            EXPECT_EQ(names.size(), static_cast<size_t>(3 * moments * chunks));
            EXPECT_EQ(slots[s].size(), names.size());
            EXPECT_LE(run.most_in_flight[s], in_flight);
          }
        }
      }
    }
  }
}

// More in flight is never slower, and from 2 S - 1 on the pipeline does not wait.
TEST(ZeroBubbleOrder, BubblesShrinkWithWhatMayBeInFlight) {
  const int64_t stages = 6, moments = 24;
  double before = 1;
  for (int32_t in_flight = 1; in_flight <= 2 * stages; ++in_flight) {
    const double idle = SplitShape(stages, moments, in_flight).IdleShare();
    EXPECT_LE(idle, before + 1e-12) << in_flight;
    before = idle;
  }
  EXPECT_NEAR(before, 5.0 / (3 * 24 + 5), 1e-12) << "until the first micro-batch is at the last";
  const PipelineShape whole{.num_stages = stages, .num_moments = moments};
  EXPECT_LT(SplitShape(stages, moments, 6).IdleShare(), 0.4 * whole.IdleShare());
}

Schedule LoweredInHalves(const StagedMlp& pipeline, const MappedGraph& mapped, int32_t in_flight,
                         const UpdateOptions& update = {.bucket_bytes = 0}) {
  auto schedule = LowerGraph(mapped.graph, mapped.views,
                             {.num_devices = pipeline.devices(),
                              .loss = "loss",
                              .update = update,
                              .zero_bubble = {.most_in_flight = in_flight},
                              .keep_gradients = true});
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *std::move(schedule) : Schedule();
}

// As a device's program has them.
std::vector<PipelineSlot> SlotsInProgram(const Schedule& schedule, int32_t device) {
  const PipelineStages stages = StagesOf(schedule);
  const std::vector<bool> of_weights = WeightGradients(schedule, stages.group);
  std::vector<PipelineSlot> slots;
  for (int32_t t : schedule.programs[device]) {
    const Task& task = schedule.tasks[t];
    if (!IsOfKernel(task.kind)) continue;
    const PipelineSlot slot{task.phase, task.moment, stages.ChunkOf(t), of_weights[t]};
    if (slots.empty() || slots.back() != slot) slots.push_back(slot);
  }
  return slots;
}

TEST(ZeroBubbleSchedule, DevicesKeepToTheSlotsOfTheirStage) {
  for (int64_t data : {1, 2}) {
    for (bool shortcut : {false, true}) {
      for (UpdateMethod method :
           {UpdateMethod::kAllReduce, UpdateMethod::kSharded, UpdateMethod::kShardedGradients}) {
        const StagedMlp pipeline{
            .layers = 6, .stages = 3, .data = data, .micro_batches = 6, .shortcut = shortcut};
        SCOPED_TRACE(absl::StrCat(pipeline.Name(), " ", UpdateMethodName(method)));
        const PipelineGraphs graphs = MakePipeline(pipeline);
        for (int32_t in_flight : {2, 3, 5}) {
          const Schedule schedule = LoweredInHalves(pipeline, graphs.mapped, in_flight,
                                                    {.method = method, .bucket_bytes = 0});
          EXPECT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus());
          const auto slots = MakeZeroBubbleSchedule(SplitShape(3, 6, in_flight)).slots;
          for (int32_t d = 0; d < pipeline.devices(); ++d) {
            EXPECT_EQ(NamesOf(SlotsInProgram(schedule, d)),
                      NamesOf(slots[d / static_cast<int32_t>(data)]));
          }
        }
      }
    }
  }
}

// The way through the chunks is found, and cut where it turns.
TEST(ZeroBubbleSchedule, DevicesOfAVHaveTwoChunks) {
  for (int64_t stages : {2, 3, 4}) {
    for (int64_t data : {1, 2}) {
      const StagedMlp pipeline{.layers = 4 * stages,
                               .stages = stages,
                               .data = data,
                               .micro_batches = 2 * stages,
                               .chunks = 2,
                               .folds = true,
                               .tied = data == 2};
      SCOPED_TRACE(pipeline.Name());
      const PipelineGraphs graphs = MakePipeline(pipeline);
      const auto in_flight = static_cast<int32_t>(2 * stages);
      const Schedule schedule = LoweredInHalves(pipeline, graphs.mapped, in_flight);
      EXPECT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus());
      const PipelineStages found = StagesOf(schedule);
      EXPECT_TRUE(found.folds);
      EXPECT_EQ(found.num_stages, stages);
      EXPECT_EQ(found.num_chunks, 2);
      PipelineShape shape = SplitShape(stages, 2 * stages, in_flight, {1, 1, 1}, 2);
      shape.folds = true;
      const auto slots = MakeZeroBubbleSchedule(shape).slots;
      for (int32_t d = 0; d < pipeline.devices(); ++d) {
        EXPECT_EQ(found.stage[d], d / data);
        EXPECT_EQ(NamesOf(SlotsInProgram(schedule, d)),
                  NamesOf(slots[d / static_cast<int32_t>(data)]));
      }
    }
  }
}

// A product's second half keeps its input and the gradient of its output, and so the memory of what
// waits is counted: with more in flight a device has more.
TEST(ZeroBubbleMemory, WhatWaitsForTheSecondHalfIsKept) {
  const StagedMlp pipeline{.layers = 8, .stages = 4, .micro_batches = 16, .batch = 1024};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const std::vector<int64_t> whole = PeakBytesPerDevice(LoweredPipeline(pipeline, graphs.mapped));
  const auto peak = [&](int32_t in_flight) {
    return PeakBytesPerDevice(LoweredInHalves(pipeline, graphs.mapped, in_flight));
  };
  const std::vector<int64_t> few = peak(2), h1 = peak(4), h2 = peak(7);
  const int64_t most = *std::max_element(whole.begin(), whole.end());
  EXPECT_LT(*std::max_element(few.begin(), few.end()), most);
  for (size_t d = 0; d < h1.size(); ++d) {
    EXPECT_LT(few[d], h1[d]);
    EXPECT_LT(h1[d], h2[d]);
  }
  EXPECT_LT(h1[3], most * 3 / 2);
}

std::string VerdictInHalves(const std::function<void(Schedule*)>& change) {
  const StagedMlp pipeline{.layers = 4, .stages = 2, .micro_batches = 4};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  Schedule schedule = LoweredInHalves(pipeline, graphs.mapped, 2);
  EXPECT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus());
  change(&schedule);
  return std::string(CheckSchedule(graphs.mapped.graph, schedule).message());
}

// The tasks of another order, under the name of this.
void PutInOrderOf(ZeroBubble other, Schedule* schedule) {
  Schedule changed = *schedule;
  changed.options.zero_bubble = other;
  EXPECT_EQ(OrderMicroBatches(&changed), absl::OkStatus());
  schedule->tasks = changed.tasks;
  schedule->programs.assign(schedule->options.num_devices, {});
  for (size_t t = 0; t < schedule->tasks.size(); ++t) {
    for (int32_t device : schedule->tasks[t].devices) {
      schedule->programs[device].push_back(static_cast<int32_t>(t));
    }
  }
}

TEST(BrokenZeroBubble, SecondHalvesThatComeBeforeTheirTurn) {
  EXPECT_THAT(VerdictInHalves([](Schedule* s) { PutInOrderOf({}, s); }),
              HasSubstr("is not next in pipeline order"));
}

TEST(BrokenZeroBubble, MoreInFlightThanThePlanSays) {
  EXPECT_THAT(VerdictInHalves([](Schedule* s) { PutInOrderOf({.most_in_flight = 3}, s); }),
              HasSubstr("is not next in pipeline order"));
}

TEST(BrokenZeroBubble, ASecondHalfThatIsLeftOut) {
  for (size_t of = 0; of < 4; ++of) {
    EXPECT_THAT(VerdictInHalves([&](Schedule* s) {
                  const PipelineStages stages = StagesOf(*s);
                  const std::vector<bool> of_weights = WeightGradients(*s, stages.group);
                  size_t seen = 0;
                  for (size_t t = 0; t < s->tasks.size(); ++t) {
                    if (!of_weights[t] || s->tasks[t].kind != TaskKind::kComputeGradient) continue;
                    if (seen++ != of) continue;
                    std::erase(s->programs[s->tasks[t].devices[0]], static_cast<int32_t>(t));
                    return;
                  }
                }),
                HasSubstr("schedule: "))
        << of;
  }
}

TEST(BrokenZeroBubble, FewerInFlightThanAStageHasChunks) {
  const StagedMlp pipeline{.layers = 8, .stages = 2, .micro_batches = 4, .chunks = 2};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const auto lowered = [&](ZeroBubble zero_bubble, UpdateOptions update) {
    return std::string(LowerGraph(graphs.mapped.graph, graphs.mapped.views,
                                  {.num_devices = pipeline.devices(),
                                   .loss = "loss",
                                   .update = std::move(update),
                                   .zero_bubble = zero_bubble})
                           .status()
                           .message());
  };
  EXPECT_THAT(lowered({.most_in_flight = 1}, {}),
              HasSubstr("1 micro-batches in flight, and a stage has 2 chunks"));
  EXPECT_THAT(lowered({.most_in_flight = -1}, {}), HasSubstr("-1 micro-batches in flight"));
  EXPECT_THAT(lowered({.most_in_flight = 2, .weights = 0}, {}), HasSubstr("a time of 0"));
  EXPECT_THAT(lowered({.most_in_flight = 2}, {.steps_between_flushes = 2}),
              HasSubstr("do not go with 2 steps between flushes"));
}

}  // namespace
}  // namespace isomer
