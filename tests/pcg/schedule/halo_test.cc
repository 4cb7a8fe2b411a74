// Moves of halos: what is sent to whom, and how the gradient comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "tests/pcg/schedule/spatial_graphs.h"

namespace isomer {
namespace {

using testing::ElementsAre;

SpatialCase CaseNamed(const std::string& name) {
  for (const SpatialCase& c : SpatialCases()) {
    if (c.name == name) return c;
  }
  ADD_FAILURE() << name;
  return {};
}

class HaloTest : public testing::TestWithParam<SpatialCase> {};

TEST_P(HaloTest, PassesTheChecker) {
  EXPECT_EQ(CheckSchedule(SpatialGraph(GetParam(), true), LoweredSpatial(GetParam())),
            absl::OkStatus());
}

// Every task has all that its windows read, and no shard goes to a device twice.
TEST_P(HaloTest, BoxesAreCoveredOnceBySources) {
  const Schedule schedule = LoweredSpatial(GetParam());
  for (const Task& task : schedule.tasks) {
    if (task.phase != Phase::kForward || task.transfers.empty()) continue;
    std::map<int32_t, int64_t> arrived;  // by write
    std::set<std::pair<BufferId, BufferId>> seen;
    for (const auto& [from, to] : task.transfers) {
      const Buffer &source = schedule.buffers[task.reads[from]],
                   &received = schedule.buffers[task.writes[to]];
      if (received.role != BufferRole::kReceived) continue;
      arrived[to] += Intersection(source.box, received.box).Volume();
      EXPECT_TRUE(seen.insert({task.reads[from], task.writes[to]}).second);
    }
    for (const auto& [to, volume] : arrived) {
      EXPECT_EQ(volume, schedule.buffers[task.writes[to]].box.Volume());
    }
  }
}

// The backward pass moves just what the forward pass moved, the other way.
TEST_P(HaloTest, GradientsOfHalosGoBackToTheirOwners) {
  const Schedule schedule = LoweredSpatial(GetParam());
  std::multiset<std::string> forward, backward;
  for (const Task& task : schedule.tasks) {
    for (const auto& [from, to] : task.transfers) {
      const Buffer &a = schedule.buffers[task.reads[from]], &b = schedule.buffers[task.writes[to]];
      const std::string part =
          Intersection(a.box, b.box).ToString() + " " + std::to_string(a.tensor.node.value) + " ";
      auto ends = [&](int32_t x, int32_t y) {
        return part + std::to_string(x) + "-" + std::to_string(y);
      };
      if (b.role == BufferRole::kReceived && a.box != b.box)
        forward.insert(ends(a.device, b.device));
      if (a.role == BufferRole::kGradient && a.box != b.box && a.tensor == b.tensor) {
        backward.insert(ends(b.device, a.device));
      }
    }
  }
  EXPECT_EQ(forward, backward);
}

INSTANTIATE_TEST_SUITE_P(Cases, HaloTest, testing::ValuesIn(SpatialCases()),
                         [](const auto& info) { return info.param.name; });

// Rows [begin, end) that devices receive, by device.
std::map<int32_t, std::string> ReceivedRows(const Schedule& schedule) {
  std::map<int32_t, std::string> rows;
  for (const Buffer& buffer : schedule.buffers) {
    if (buffer.role != BufferRole::kReceived) continue;
    rows[buffer.device] = std::to_string(buffer.box.origin[2]) + ":" +
                          std::to_string(buffer.box.origin[2] + buffer.box.shape[2]);
  }
  return rows;
}

int64_t BytesSent(const Schedule& schedule, Phase phase) {
  int64_t bytes = 0;
  for (const Task& task : schedule.tasks) {
    if (task.phase == phase && task.kind == TaskKind::kSendReceive) bytes += task.bytes;
  }
  return bytes;
}

TEST(Halo, OneRowOfEachNeighbour) {
  SpatialCase c = CaseNamed("ConvRows");
  c.degrees = {{"y", 4}};
  const Schedule schedule = LoweredSpatial(c);
  EXPECT_THAT(ReceivedRows(schedule), ElementsAre(std::pair(0, "0:3"), std::pair(1, "1:5"),
                                                  std::pair(2, "3:7"), std::pair(3, "5:8")));
  // Six rows of [2,4,8] floats, and the loss's three partial sums.
  EXPECT_EQ(BytesSent(schedule, Phase::kForward), 4 * (6 * 64 + 3));
}

TEST(Halo, StrideTwoWantsOneSideOnly) {
  SpatialCase c = CaseNamed("ConvStrided");
  c.degrees = {{"y", 2}};
  // Device 0 has all that it reads.
  EXPECT_THAT(ReceivedRows(LoweredSpatial(c)), ElementsAre(std::pair(1, "3:8")));
}

TEST(Halo, WindowsThatStayWithinTheirPieceMoveNothing) {
  const Schedule schedule = LoweredSpatial(CaseNamed("ConvStrideWithoutHalo"));
  EXPECT_TRUE(ReceivedRows(schedule).empty());
}

TEST(Halo, KernelsWiderThanAPieceReachBeyondTheNeighbour) {
  const Schedule schedule = LoweredSpatial(CaseNamed("ConvBeyondTheNeighbour"));
  EXPECT_EQ(ReceivedRows(schedule).at(4), "1:8");
}

// Two convolutions of one kernel size read the same halo: it is sent once.
TEST(Halo, IsSharedByItsReaders) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[1,2,8,4]
%1 = weight "w" : f32[2,2,3,1]
%2 = weight "v" : f32[2,2,3,1]
%3 = partition(%0) {axis=2, degree=2} : f32[1,2,8:2,4]
%4 = replicate(%1) {degree=2} : f32[2,2,3,1] c2
%5 = replicate(%2) {degree=2} : f32[2,2,3,1] c2
%6 = conv2d(%3, %4) {dilation=[1,1], groups=1, padding=[1,0,1,0], stride=[1,1]} : f32[1,2,8:2,4]
%7 = conv2d(%3, %5) {dilation=[1,1], groups=1, padding=[1,0,1,0], stride=[1,1]} : f32[1,2,8:2,4]
output "a" = %6
output "b" = %7
)");
  ScheduleOptions options;
  options.training = false;
  options.num_devices = 2;
  const absl::StatusOr<Schedule> schedule = LowerGraph(graph, ViewsOf(graph), options);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(BytesSent(*schedule, Phase::kForward), 2 * 2 * 4 * 4);
}

}  // namespace
}  // namespace isomer
