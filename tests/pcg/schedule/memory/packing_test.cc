// Which pieces of messages are packed.
#include "pcg/schedule/memory/packing.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "pcg/ir/box.h"
#include "pcg/schedule/schedule.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {
namespace {

constexpr int64_t kElement = 4;

// Device 0 sends `from` of an 8 x 6 matrix, device 1 receives into `to`, beside what it has itself.
struct Sending {
  Schedule schedule;

  Sending(const Box& from, const Box& to, bool has_other = false) {
    schedule.options.num_devices = 2;
    Task task{.kind = TaskKind::kSendReceive, .phase = Phase::kForward, .node = {0}};
    task.devices = {0, 1};
    task.reads.push_back(Add(0, from));
    task.writes.push_back(Add(1, to));
    task.transfers.push_back({0, 0});
    if (has_other) {
      task.reads.push_back(Add(1, to));
      task.transfers.push_back({1, 0});
    }
    schedule.tasks.push_back(std::move(task));
    schedule.programs = {{0}, {0}};
  }
  BufferId Add(int32_t device, const Box& box) {
    schedule.buffers.push_back(
        {.role = BufferRole::kActivation, .tensor = {NodeId{0}, 0}, .device = device, .box = box});
    return static_cast<BufferId>(schedule.buffers.size()) - 1;
  }
  std::pair<int64_t, int64_t> SentAndReceived() const {
    const std::vector<PackBytes> bytes = PackBytesOf(schedule, schedule.tasks[0]);
    EXPECT_EQ(bytes[0].receive, 0);
    EXPECT_EQ(bytes[1].send, 0);
    return {bytes[0].send, bytes[1].receive};
  }
};
using Bytes = std::pair<int64_t, int64_t>;

TEST(Packing, RowsOfAMatrixAreSentFromWhereTheyLie) {
  const Box all = {{0, 0}, {8, 6}}, rows = {{2, 0}, {3, 6}}, columns = {{0, 2}, {8, 3}};
  EXPECT_EQ(Sending(all, all).SentAndReceived(), Bytes(0, 0));
  EXPECT_EQ(Sending(all, rows).SentAndReceived(), Bytes(0, 0));
  EXPECT_EQ(Sending(all, columns).SentAndReceived(), Bytes(8 * 3 * kElement, 0));
}

TEST(Packing, WhatReceivesASumOrAPartIsPacked) {
  const Box all = {{0, 0}, {8, 6}}, rows = {{2, 0}, {3, 6}};
  EXPECT_EQ(Sending(rows, all).SentAndReceived(), Bytes(0, 3 * 6 * kElement));
  EXPECT_EQ(Sending(all, all, /*has_other=*/true).SentAndReceived(), Bytes(0, 8 * 6 * kElement));
}

// Channels innermost: rows of an image lie side by side, channels do not.
TEST(Packing, GoesByHowBuffersLie) {
  const Box image = {{0, 0, 0, 0}, {1, 4, 6, 5}}, channels = {{0, 1, 0, 0}, {1, 2, 6, 5}},
            lines = {{0, 0, 2, 0}, {1, 4, 3, 5}};
  for (const bool last : {false, true}) {
    for (const Box& part : {channels, lines}) {
      Sending sending(image, part);
      for (Buffer& buffer : sending.schedule.buffers) {
        buffer.layout = last ? Layout::kChannelsLast : Layout::kRowMajor;
      }
      const bool lies = last == (part == lines);
      EXPECT_EQ(sending.SentAndReceived(), Bytes(lies ? 0 : part.Volume() * kElement, 0));
    }
  }
}

TEST(Packing, StagesOfAPipelineSendFromWhereTheyLie) {
  const StagedMlp pipeline{.stages = 4};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const Schedule schedule =
      LoweredPipeline(pipeline, graphs.mapped, PipelineOrder::kOneForwardOneBackward);
  int sends = 0;
  for (const Task& task : schedule.tasks) {
    if (task.kind != TaskKind::kSendReceive) continue;
    ++sends;
    EXPECT_EQ(MostPacked(schedule, task).total(), 0);
  }
  EXPECT_GT(sends, 0);
}

// From rows of an 8 x 6 matrix to columns of it, or back: rows lie one after the other in columns,
// and columns apart in rows.
TEST(Packing, AnAllToAllPacksWhatLiesApartAlone) {
  const std::vector<Box> rows = {{{0, 0}, {4, 6}}, {{4, 0}, {4, 6}}};
  const std::vector<Box> columns = {{{0, 0}, {8, 3}}, {{0, 3}, {8, 3}}};
  const auto packed = [](const std::vector<Box>& from, const std::vector<Box>& to) {
    Schedule schedule;
    schedule.options.num_devices = 2;
    Task task{.kind = TaskKind::kAllToAll, .phase = Phase::kForward, .node = {0}};
    task.devices = {0, 1};
    for (int32_t device : {0, 1}) {
      for (const bool reads : {true, false}) {
        schedule.buffers.push_back({.role = BufferRole::kActivation,
                                    .tensor = {NodeId{0}, 0},
                                    .device = device,
                                    .box = (reads ? from : to)[device]});
        (reads ? task.reads : task.writes)
            .push_back(static_cast<BufferId>(schedule.buffers.size()) - 1);
      }
    }
    task.bytes = from[0].Volume() * kElement;
    schedule.tasks.push_back(std::move(task));
    schedule.programs = {{0}, {0}};
    const PackBytes bytes = MostPacked(schedule, schedule.tasks[0]);
    return Bytes(bytes.send, bytes.receive);
  };
  EXPECT_EQ(packed(rows, columns), Bytes(4 * 6 * kElement, 0));
  EXPECT_EQ(packed(columns, rows), Bytes(0, 8 * 3 * kElement));
}

}  // namespace
}  // namespace isomer
