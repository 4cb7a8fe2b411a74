#include "optimizer/simulator/block_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

namespace isomer {
namespace {

using Random = std::mt19937;

int Below(Random& random, int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

// Graphs in the manner of training steps: wide blocks on many compute queues, collectives on many
// others, and now and then a task anywhere, some of them over links.
class RandomBlocks {
 public:
  RandomBlocks(int blocks, int devices, int seed)
      : random_(seed),
        devices_(devices),
        timeline_(blocks, 3 * devices, 2 * devices),
        sizes_(blocks, 0) {}

  BlockTasks Tasks(int block) {
    BlockTasks tasks;
    const int kind = Below(random_, 10);
    const int us = 1 + Below(random_, 6);
    if (kind < 5) {  // on many devices, from somewhere on
      const int from = Below(random_, 3) == 0 ? Below(random_, devices_) : 0;
      for (int d = from; d < devices_; ++d) {
        tasks.Add(us);
        tasks.AddQueue(2 * d);
        MaybeDep(block, &tasks);
      }
    } else if (kind < 8) {  // collectives
      const int groups = std::min(devices_, 1 + Below(random_, 2));
      for (int g = 0; g < groups; ++g) {
        tasks.Add(us);
        for (int d = g; d < devices_; d += groups) tasks.AddQueue(2 * d + 1);
        for (int i = 0; i < 3; ++i) MaybeDep(block, &tasks);
      }
    } else if (kind < 9) {
      const int count = Below(random_, 4);
      for (int i = 0; i < count; ++i) {
        tasks.Add(us, Below(random_, us));
        tasks.AddQueue(Below(random_, 2 * devices_));
        if (Below(random_, 2) == 0) tasks.AddQueue(2 * devices_ + Below(random_, devices_));
        MaybeDep(block, &tasks);
      }
    }
    return tasks;
  }

  // What depends on tasks that are gone is made again, too.
  std::vector<BlockTimeline::Change> Changes(int count) {
    std::vector<BlockTimeline::Change> changes;
    std::vector<bool> remade(sizes_.size(), false);
    for (int i = 0; i < count; ++i) remade[Below(random_, static_cast<int>(sizes_.size()))] = true;
    for (int b = 0; b < static_cast<int>(sizes_.size()); ++b) {
      for (const TaskRef& dep : deps_[b]) remade[b] = remade[b] || dep.index >= sizes_[dep.block];
      if (!remade[b]) continue;
      now_.clear();
      changes.push_back({b, Tasks(b)});
      deps_[b] = now_;
      sizes_[b] = changes.back().tasks.size();
    }
    return changes;
  }

  BlockTimeline& timeline() { return timeline_; }
  // For rolling back what the test knows of the blocks.
  auto State() const { return std::make_pair(sizes_, deps_); }
  void SetState(std::pair<std::vector<int>, std::map<int, std::vector<TaskRef>>> state) {
    std::tie(sizes_, deps_) = std::move(state);
  }

 private:
  void MaybeDep(int block, BlockTasks* tasks) {
    if (block == 0 || Below(random_, 2) == 0) return;
    const int far = Below(random_, 4) == 0 ? block : std::min(block, 4);
    const int from = block - 1 - Below(random_, far);
    if (sizes_[from] == 0) return;
    now_.push_back({from, Below(random_, sizes_[from])});
    tasks->AddDep(now_.back());
  }

  Random random_;
  int devices_;
  BlockTimeline timeline_;
  std::vector<int> sizes_;
  std::map<int, std::vector<TaskRef>> deps_;
  std::vector<TaskRef> now_;
};

// Every task's end, by simulation from nothing.
void ExpectUpToDate(const BlockTimeline& timeline) {
  TaskList tasks;
  timeline.Assemble(&tasks);
  const Timeline full = RunTimeline(tasks);
  ASSERT_EQ(timeline.makespan(), full.makespan);
  int at = 0;
  for (int b = 0; b < timeline.num_blocks(); ++b) {
    for (int t = 0; t < timeline.tasks(b).size(); ++t, ++at) {
      ASSERT_EQ(timeline.End({b, t}), full.end[at]) << "task " << t << " of block " << b;
    }
  }
}

TEST(BlockTimeline, EveryUpdateEqualsSimulationFromNothing) {
  int64_t simulated = 0, all = 0;
  for (int seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    RandomBlocks blocks(20 + seed, 1 + seed % 9, seed);
    blocks.timeline().Update(blocks.Changes(1000));
    ASSERT_NO_FATAL_FAILURE(ExpectUpToDate(blocks.timeline()));
    for (int i = 0; i < 60; ++i) {
      SCOPED_TRACE(i);
      const int64_t before = blocks.timeline().simulated_tasks();
      blocks.timeline().Update(blocks.Changes(1 + i % 3));
      simulated += blocks.timeline().simulated_tasks() - before;
      all += blocks.timeline().num_tasks();
      ASSERT_NO_FATAL_FAILURE(ExpectUpToDate(blocks.timeline()));
    }
  }
  EXPECT_LT(simulated, all);
}

TEST(BlockTimeline, RollbackRestoresEveryTask) {
  for (int seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    RandomBlocks blocks(40 + seed, 4, seed);
    blocks.timeline().Update(blocks.Changes(1000));
    blocks.timeline().Commit();
    for (int i = 0; i < 40; ++i) {
      const auto state = blocks.State();
      std::vector<Picoseconds> ends;
      for (int b = 0; b < blocks.timeline().num_blocks(); ++b) {
        for (int t = 0; t < blocks.timeline().tasks(b).size(); ++t) {
          ends.push_back(blocks.timeline().End({b, t}));
        }
      }
      for (int k = 0; k < 1 + i % 3; ++k) blocks.timeline().Update(blocks.Changes(2));
      if (i % 4 == 3) {
        blocks.timeline().Commit();
        continue;
      }
      blocks.timeline().Rollback();
      blocks.SetState(state);
      ASSERT_NO_FATAL_FAILURE(ExpectUpToDate(blocks.timeline()));
      size_t at = 0;
      for (int b = 0; b < blocks.timeline().num_blocks(); ++b) {
        for (int t = 0; t < blocks.timeline().tasks(b).size(); ++t) {
          ASSERT_EQ(blocks.timeline().End({b, t}), ends[at++]);
        }
      }
    }
  }
}

// A chain of layers on all devices: a slower layer shifts all that follow.
TEST(BlockTimeline, AShiftIsNotedAndNotCarriedThrough) {
  constexpr int kLayers = 200, kDevices = 8;
  BlockTimeline timeline(kLayers, kDevices);
  auto layer = [](Picoseconds duration) {
    BlockTasks tasks;
    for (int d = 0; d < kDevices; ++d) {
      tasks.Add(duration);
      tasks.AddQueue(d);
    }
    return tasks;
  };
  std::vector<BlockTimeline::Change> all;
  for (int l = 0; l < kLayers; ++l) all.push_back({l, layer(10)});
  timeline.Update(std::move(all));
  const int64_t before = timeline.simulated_tasks();
  timeline.Update({{3, layer(7)}});
  EXPECT_EQ(timeline.makespan(), 10 * kLayers - 3);
  EXPECT_LE(timeline.simulated_tasks() - before, 2 * kDevices);
}

}  // namespace
}  // namespace isomer
