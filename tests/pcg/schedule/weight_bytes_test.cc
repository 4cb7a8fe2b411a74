// docs/memory.md against schedules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/memory/views.h"
#include "pcg/support/file.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {
namespace {

constexpr int64_t kCopies = 4, kWidth = 64;

LoweredPlan Lowered(UpdateMethod method, DataType precision) {
  const PipelineGraphs graphs = MakePipeline({.layers = 1,
                                              .stages = 1,
                                              .data = kCopies,
                                              .micro_batches = 3,
                                              .batch = 3 * kCopies,
                                              .width = kWidth});
  Plan plan;
  plan.model = graphs.model;
  plan.graph = graphs.mapped.graph;
  plan.views = graphs.mapped.views;
  plan.num_devices = kCopies;
  plan.precision = precision;
  plan.update = {.optimizer = OptimizerKind::kAdam, .method = method};
  auto lowered = LowerPlan(plan);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(CheckSchedule(lowered->mapped.graph, lowered->schedule), absl::OkStatus());
  return *std::move(lowered);
}

struct Held {
  int64_t weight = 0, gradient = 0, trained = 0;
};

// What `device` holds of weights between two micro-batches: when the last one's first call runs.
Held HeldBy(const Schedule& schedule, int32_t device) {
  size_t now = 0;
  for (size_t t = 0; t < schedule.tasks.size() && now == 0; ++t) {
    const Task& task = schedule.tasks[t];
    if (task.kind == TaskKind::kCompute && task.moment + 1 == schedule.num_moments &&
        task.devices[0] == device) {
      now = t;
    }
  }
  const std::vector<LiveRange> ranges = LiveRanges(schedule);
  const std::vector<BufferId> holders = HoldersOf(schedule);
  Held held;
  for (size_t id = 0; id < schedule.buffers.size(); ++id) {
    const Buffer& buffer = schedule.buffers[id];
    const bool lives = ranges[id].first <= static_cast<int32_t>(now) &&
                       ranges[id].last >= static_cast<int32_t>(now);
    const bool is_held = holders[id] != static_cast<BufferId>(id);
    if (!lives || is_held || buffer.device != device) continue;
    if (buffer.role == BufferRole::kParameter) held.weight += buffer.bytes();
    if (buffer.role == BufferRole::kState || buffer.role == BufferRole::kMaster) {
      held.trained += buffer.bytes();
    }
    const bool of_weight =
        buffer.tensor == schedule.parameters[0].tensor &&
        (buffer.role == BufferRole::kGradient || buffer.role == BufferRole::kGradientShard);
    if (of_weight) held.gradient += buffer.bytes();
  }
  return held;
}

// "8", "8/n", "8 (owner)".
int64_t BytesSaid(absl::string_view cell) {
  const bool part = absl::StrContains(cell, "/n");
  int64_t each = 0;
  EXPECT_TRUE(absl::SimpleAtoi(cell.substr(0, cell.find_first_of("/ ")), &each)) << cell;
  return each * kWidth * kWidth / (part ? kCopies : 1);
}

TEST(WeightBytes, AreWhatTheTableSays) {
  const auto page = ReadFile(absl::StrCat(ISOMER_SOURCE_DIR, "/docs/memory.md"));
  ASSERT_TRUE(page.ok()) << page.status();
  int rows = 0;
  for (absl::string_view line : absl::StrSplit(*page, '\n')) {
    std::vector<std::string> cells = absl::StrSplit(line, absl::ByString(" | "));
    if (cells.size() != 8) continue;
    absl::StripLeadingAsciiWhitespace(&cells[0]);
    const auto method = ParseUpdateMethod(absl::StripPrefix(cells[0], "| "));
    if (!method.ok()) continue;
    ++rows;
    cells[7] = std::string(absl::StripSuffix(cells[7], " |"));
    for (const bool low : {false, true}) {
      SCOPED_TRACE(absl::StrCat(cells[0], low ? " bfloat16" : " float32"));
      const LoweredPlan lowered = Lowered(*method, low ? DataType::kBFloat16 : DataType::kFloat32);
      const Schedule& schedule = lowered.schedule;
      ASSERT_EQ(schedule.parameters.size(), 1u);
      ASSERT_EQ(schedule.parameters[0].update, *method);
      Held most;
      for (int32_t device = 0; device < kCopies; ++device) {
        const Held held = HeldBy(schedule, device);
        if (held.trained >= most.trained) most = held;
      }
      const size_t first = low ? 5 : 2;
      EXPECT_EQ(most.weight, BytesSaid(cells[first]));
      EXPECT_EQ(most.gradient, BytesSaid(cells[first + 1]));
      EXPECT_EQ(most.trained, BytesSaid(cells[first + 2]));
      // And what searches count.
      const WeightBytes each = BytesOfWeight(low ? DataType::kBFloat16 : DataType::kFloat32,
                                             OptimizerKind::kAdam, DataType::kFloat32);
      const auto number = [](absl::string_view cell) {
        return std::string(cell.substr(0, cell.find_first_of("/ ")));
      };
      EXPECT_EQ(absl::StrCat(each.stored), number(cells[first]));
      EXPECT_EQ(absl::StrCat(each.gradient), number(cells[first + 1]));
      EXPECT_EQ(absl::StrCat(each.trained), number(cells[first + 2]));
    }
  }
  EXPECT_EQ(rows, 5);
}

}  // namespace
}  // namespace isomer
