// Schedules broken as programmers break them: each is refused with the device and its instruction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "pcg/schedule/check/check.h"
#include "tests/pcg/schedule/parallel_graphs.h"

namespace isomer {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

ParallelCase Case(const std::string& name) {
  for (const ParallelCase& c : ParallelCases()) {
    if (c.name == name) return c;
  }
  ADD_FAILURE() << name;
  return {};
}

// Where the synchronisations of gradients stand.
std::vector<int32_t> Synchronisations(const Schedule& schedule) {
  std::vector<int32_t> found;
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    if (task.kind == TaskKind::kAllReduce && task.reads == task.writes) {
      found.push_back(static_cast<int32_t>(t));
    }
  }
  return found;
}

std::string Verdict(const std::string& name, const std::function<void(Schedule*)>& change) {
  const ParallelCase c = Case(name);
  Schedule schedule = Lowered(c);
  EXPECT_EQ(CheckSchedule(Parsed(c.parallel), schedule), absl::OkStatus());
  change(&schedule);
  return std::string(CheckSchedule(Parsed(c.parallel), schedule).message());
}

auto RefusedFor(const std::string& why) {
  return AllOf(ContainsRegex("^schedule: device [0-9]+, instruction [0-9]+: task "),
               HasSubstr(why));
}

TEST(BrokenSchedule, CollectivesInAnotherOrderOnOneDevice) {
  EXPECT_THAT(Verdict("DataParallelMlp",
                      [](Schedule* schedule) {
                        const std::vector<int32_t> sums = Synchronisations(*schedule);
                        ASSERT_EQ(sums.size(), 2u);
                        std::vector<int32_t>& program = schedule->programs[1];
                        // The later one comes before the earlier one, on this device alone.
                        const auto first = std::find(program.begin(), program.end(), sums[0]);
                        const auto second = std::find(program.begin(), program.end(), sums[1]);
                        std::rotate(first, first + 1, second + 1);
                      }),
              RefusedFor("deadlock: device"));
}

TEST(BrokenSchedule, GroupWithAWrongMember) {
  EXPECT_THAT(Verdict("HybridMlp",
                      [](Schedule* schedule) {
                        Task& task = schedule->tasks[Synchronisations(*schedule)[0]];
                        for (int32_t device = 0; device < 4; ++device) {
                          if (std::find(task.devices.begin(), task.devices.end(), device) ==
                              task.devices.end()) {
                            task.devices.back() = device;
                            break;
                          }
                        }
                        std::sort(task.devices.begin(), task.devices.end());
                      }),
              HasSubstr("which takes no part"));
}

// The sums of two groups, with a member of each exchanged: every device still meets a sum.
TEST(BrokenSchedule, AllReduceOverTheWrongGroup) {
  EXPECT_THAT(Verdict("HybridMlp",
                      [](Schedule* schedule) {
                        const std::vector<int32_t> sums = Synchronisations(*schedule);
                        Task &a = schedule->tasks[sums[0]], &b = schedule->tasks[sums[1]];
                        ASSERT_NE(a.devices, b.devices);
                        const int32_t from_a = a.devices.back(), from_b = b.devices.back();
                        std::swap(a.devices.back(), b.devices.back());
                        std::swap(a.reads.back(), b.reads.back());
                        a.writes = a.reads, b.writes = b.reads;
                        for (int32_t& t : schedule->programs[from_a])
                          t = t == sums[0] ? sums[1] : t;
                        for (int32_t& t : schedule->programs[from_b])
                          t = t == sums[1] ? sums[0] : t;
                      }),
              ContainsRegex("^schedule: device [0-9]+, instruction [0-9]+: task "));
}

TEST(BrokenSchedule, AnyDroppedWait) {
  for (const ParallelCase& c : ParallelCases()) {
    const Graph graph = Parsed(c.parallel);
    const Schedule original = Lowered(c);
    int dropped = 0;
    for (size_t t = 0; t < original.tasks.size(); ++t) {
      for (size_t i = 0; i < original.tasks[t].deps.size(); ++i) {
        Schedule schedule = original;
        schedule.tasks[t].deps.erase(schedule.tasks[t].deps.begin() + static_cast<int64_t>(i));
        EXPECT_THAT(std::string(CheckSchedule(graph, schedule).message()),
                    RefusedFor("without waiting for task"))
            << c.name << ": task " << t;
        ++dropped;
      }
    }
    EXPECT_GT(dropped, 0) << c.name;
  }
}

TEST(BrokenSchedule, WaitForWhatComesLater) {
  EXPECT_THAT(Verdict("DataParallelMlp",
                      [](Schedule* schedule) {
                        const int32_t last = static_cast<int32_t>(schedule->tasks.size()) - 1;
                        schedule->tasks[0].deps.push_back(last);
                      }),
              RefusedFor("which does not come before"));
}

TEST(BrokenSchedule, AnyGradientLeftOutOfASum) {
  int left_out = 0;
  for (const ParallelCase& c : ParallelCases()) {
    const Graph graph = Parsed(c.parallel);
    const Schedule original = Lowered(c);
    for (size_t t = 0; t < original.tasks.size(); ++t) {
      const Task& task = original.tasks[t];
      const bool sums = task.kind == TaskKind::kAccumulate ||
                        (task.kind == TaskKind::kAllReduce && task.reads == task.writes);
      if (!sums) continue;
      Schedule schedule = original;
      for (int32_t device : task.devices) {
        std::erase(schedule.programs[device], static_cast<int32_t>(t));
      }
      EXPECT_FALSE(CheckSchedule(graph, schedule).ok()) << c.name << ": task " << t;
      ++left_out;
    }
  }
  EXPECT_GT(left_out, 0);
}

// As if a second layer of data parallelism did not know of the first.
TEST(BrokenSchedule, GradientsSummedTwice) {
  EXPECT_THAT(Verdict("DataParallelMlp",
                      [](Schedule* schedule) {
                        const int32_t sum = Synchronisations(*schedule)[0];
                        Task again = schedule->tasks[sum];
                        again.deps = {sum};
                        const int32_t second = static_cast<int32_t>(schedule->tasks.size());
                        schedule->tasks.push_back(again);
                        for (int32_t device : again.devices) {
                          std::vector<int32_t>& program = schedule->programs[device];
                          program.insert(std::find(program.begin(), program.end(), sum) + 1,
                                         second);
                        }
                      }),
              RefusedFor("a sum of all copies already"));
}

TEST(BrokenSchedule, GradientsAveragedTwice) {
  EXPECT_THAT(Verdict("DataParallelMlp",
                      [](Schedule* schedule) {
                        for (Task& task : schedule->tasks) {
                          if (task.kind == TaskKind::kFill) task.value /= 2;
                        }
                      }),
              RefusedFor("of the gradient of the loss, 1, 0.5 is missing"));
}

TEST(BrokenSchedule, BytesAndTypesThatDoNotMatch) {
  EXPECT_THAT(Verdict("DataParallelMlp",
                      [](Schedule* schedule) {
                        schedule->tasks[Synchronisations(*schedule)[0]].bytes *= 2;
                      }),
              RefusedFor("bytes of a buffer of"));
  EXPECT_THAT(Verdict("DataParallelMlp",
                      [](Schedule* schedule) {
                        const Task& task = schedule->tasks[Synchronisations(*schedule)[0]];
                        schedule->buffers[task.reads[1]].dtype = DataType::kFloat16;
                      }),
              RefusedFor("not of one data type"));
}

// How calls are spread is inferred by the checker, so that a lie about it is no matter.
TEST(BrokenSchedule, WhatTheLoweringSaysOfCallsIsNotRead) {
  for (const ParallelCase& c : ParallelCases()) {
    EXPECT_EQ(Verdict(c.name,
                      [](Schedule* schedule) {
                        for (auto& sharding : schedule->shardings) sharding.reset();
                      }),
              "")
        << c.name;
  }
}

TEST(BrokenSchedule, BufferThatIsReusedEarly) {
  const Schedule schedule = Lowered(Case("DataParallelMlp"));
  const MemoryPlan plan = PlanMemory(schedule);
  EXPECT_EQ(CheckMemory(schedule, plan), absl::OkStatus());
  const std::vector<LiveRange> ranges = LiveRanges(schedule);
  int reused = 0;
  for (size_t a = 0; a < ranges.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      const bool meet = ranges[a].first <= ranges[b].last && ranges[b].first <= ranges[a].last;
      if (!meet || schedule.buffers[a].device != schedule.buffers[b].device) continue;
      MemoryPlan early = plan;
      early.offsets[a] = early.offsets[b];
      EXPECT_THAT(std::string(CheckMemory(schedule, early).message()),
                  AllOf(ContainsRegex("^schedule: device [0-9]+, task [0-9]+ "),
                        HasSubstr("reuses memory that is live")));
      ++reused;
    }
  }
  EXPECT_GT(reused, 0);
}

}  // namespace
}  // namespace isomer
