#include "runtime/profiler/profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/support/file.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/device/caches.h"
#include "runtime/profiler/profile_page.h"
#include "runtime/profiler/profile_session.h"
#include "runtime/profiler/reuse.h"
#include "tests/pcg/schedule/parallel_graphs.h"

namespace isomer {
namespace {

using testing::HasSubstr;

constexpr ProfilerOptions kQuick = {.least_rounds = 2, .most_rounds = 3};

std::string TemporaryFile(const std::string& name) {
  return absl::StrCat(testing::TempDir(), "/profiler_test_", getpid(), "_", name);
}

ProfiledKernels MlpKernels(int64_t devices) {
  const Graph graph = Parsed(kMlp);
  const auto schedule =
      LowerGraph(graph, SequentialViews(graph), {.training = true, .loss = "loss"});
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  ProfiledKernels kernels;
  AddKernelsOf(graph, *schedule, /*found=*/{}, &kernels);
  EXPECT_EQ(AddShardsOf(devices, &kernels), absl::OkStatus());
  return kernels;
}

ProfiledDevice SomeDevice() {
  return {.backend = "cpu", .processor = "a core", .libraries = "x 1", .busy_devices = 2};
}

// What of `kernels` and `tasks` the profile at `path` lacks, measured on two threads.
absl::StatusOr<Profile> Measured(const std::string& path, const ProfiledKernels& kernels,
                                 const std::vector<ProfiledTask>& tasks) {
  auto profile = OpenProfile(path, SomeDevice(), /*remeasure=*/false);
  if (!profile.ok()) return profile;
  const auto missing = FindMissing(*profile, kernels, tasks, "threads");
  if (!missing.ok()) return missing.status();
  const auto backend = MakeCpuBackend();
  const absl::Status status = RunOnThreads(2, /*pin=*/false, backend.get(), [&](const auto& rank) {
    Profile own = *profile;
    return MeasureMissing(rank, *missing, "threads", kQuick, path, &own);
  });
  if (!status.ok()) return status;
  return LoadProfile(path);
}

TEST(ProfileCalls, TellGradientsApart) {
  const ProfiledKernels kernels = MlpKernels(1);
  std::set<std::string> keys;
  for (const auto& [key, kernel] : kernels) keys.insert(key);
  // The input of the first layer needs no gradient, that of the second does.
  EXPECT_TRUE(keys.contains("matmul f32[8,4] f32[4,16]"));
  EXPECT_TRUE(keys.contains("matmul f32[8,4] f32[4,16] gradient -+"));
  EXPECT_FALSE(keys.contains("matmul f32[8,4] f32[4,16] gradient ++"));
  int both = 0;
  for (const std::string& key : keys) {
    both += key.rfind("matmul", 0) == 0 && key.find("gradient ++") != std::string::npos;
  }
  EXPECT_EQ(both, 1);
}

TEST(ProfileCalls, CutOneDimOrTwo) {
  const ProfiledKernels two = MlpKernels(2), four = MlpKernels(4);
  for (const char* key : {"matmul f32[4,4] f32[4,16]", "matmul f32[8,2] f32[2,16]",
                          "matmul f32[8,4] f32[4,8] gradient -+"}) {
    EXPECT_TRUE(two.contains(key)) << key;
  }
  EXPECT_FALSE(two.contains("matmul f32[4,4] f32[4,8]"));
  EXPECT_TRUE(four.contains("matmul f32[4,4] f32[4,8]"));
  for (const auto& [key, kernel] : two) EXPECT_TRUE(four.contains(key)) << key;
}

// Four steps of a recurrence: each reads what the one before wrote, and the same weight.
constexpr char kRecurrence[] = R"(
%0 = input "x" : f32[4,1024]
%1 = weight "w" : f32[1024,1024]
%2 = matmul(%0, %1) : f32[4,1024]
%3 = relu(%2) : f32[4,1024]
%4 = matmul(%3, %1) : f32[4,1024]
%5 = relu(%4) : f32[4,1024]
%6 = matmul(%5, %1) : f32[4,1024]
%7 = relu(%6) : f32[4,1024]
%8 = matmul(%7, %1) : f32[4,1024]
output "y" = %8
)";

TEST(ProfileCalls, WeightsThatStepsShareAreNearIfTheCacheHoldsWhatLiesBetween) {
  const Graph graph = Parsed(kRecurrence);
  ScheduleOptions options;
  options.training = false;
  const auto schedule = LowerGraph(graph, SequentialViews(graph), options);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  constexpr int64_t kActivation = 4 * 1024 * 4, kWeight = 1024 * 1024 * 4;
  const auto found_by_matmul = [&](int64_t near, int64_t last) {
    ProfiledKernels kernels;
    AddKernelsOf(graph, *schedule, FindInCaches(graph, *schedule, {near, last}), &kernels);
    for (const auto& [key, kernel] : kernels) {
      if (kernel.op.kind() == OpKind::kMatMul) return kernel.found.reads;
    }
    return std::vector<CacheLevel>();
  };
  using Levels = std::vector<CacheLevel>;
  // Between two uses of w: the product, and relu's result where another product was.
  EXPECT_EQ(found_by_matmul(2 * kActivation, kWeight),
            (Levels{CacheLevel::kNear, CacheLevel::kNear}));
  EXPECT_EQ(found_by_matmul(kActivation, kWeight), (Levels{CacheLevel::kNear, CacheLevel::kLast}));
  EXPECT_EQ(found_by_matmul(kActivation, kActivation),
            (Levels{CacheLevel::kNear, CacheLevel::kMemory}));
}

// A step follows another: what the last cache holds of all that a step touches, it holds from step
// to step, and no more.
TEST(FindInCaches, WeightsAreWhereTheStepBeforeLeftThem) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[64,128]
%1 = weight "w1" : f32[128,128]
%2 = matmul(%0, %1) : f32[64,128]
%3 = relu(%2) : f32[64,128]
%4 = weight "w2" : f32[128,128]
%5 = matmul(%3, %4) : f32[64,128]
%6 = input "target" : f32[64,128]
%7 = mse(%5, %6) : f32[]
output "loss" = %7
)");
  const auto schedule =
      LowerGraph(graph, SequentialViews(graph), {.training = true, .loss = "loss"});
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const int64_t arena = PlanMemory(*schedule).arena_bytes[0];
  ASSERT_GT(arena, 0);
  const auto of_first_product = [&](const CacheSizes& caches) {
    const std::vector<FoundByTask> found = FindInCaches(graph, *schedule, caches);
    for (size_t t = 0; t < found.size(); ++t) {
      const bool is_product = IsOfKernel(schedule->tasks[t].kind) &&
                              graph.node(schedule->tasks[t].node).op.kind() == OpKind::kMatMul;
      if (is_product) return found[t].reads[1];
    }
    return CacheLevel::kNear;
  };
  constexpr int64_t kPage = 4096;  // as exactly as memory is looked at
  const int64_t all = arena + 2 * kPage;
  EXPECT_EQ(of_first_product({all, all}), CacheLevel::kNear);
  EXPECT_EQ(of_first_product({0, all}), CacheLevel::kLast);
  EXPECT_EQ(of_first_product({-1, -1}), CacheLevel::kMemory);
  EXPECT_EQ(FoundByUpdates(*schedule, FindInCaches(graph, *schedule, {-1, all})),
            CacheLevel::kLast);
}

TEST(FindInCaches, OfATableThatIsLookedUpRowsComeFromMemory) {
  const Graph graph = Parsed(R"(
%0 = input "words" : i64[8]
%1 = weight "table" : f32[64,16]
%2 = embedding(%1, %0) : f32[8,16]
output "y" = %2
)");
  ScheduleOptions options;
  options.training = false;
  const auto schedule = LowerGraph(graph, SequentialViews(graph), options);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const std::vector<FoundByTask> found =
      FindInCaches(graph, *schedule, {int64_t{1} << 30, int64_t{1} << 30});
  for (size_t t = 0; t < found.size(); ++t) {
    if (!IsOfKernel(schedule->tasks[t].kind)) continue;
    EXPECT_EQ(found[t].reads, (std::vector<CacheLevel>{CacheLevel::kMemory, CacheLevel::kNear}));
  }
  EXPECT_EQ(FoundByUpdates(*schedule, found), CacheLevel::kMemory);
}

// What a profile's kernels read is what it filled in, however its caches are swept.
TEST(CacheSweeper, ChangesNothing) {
  CacheSweeper sweeper({.near = 1 << 10, .last = 1 << 12});
  std::vector<char> data(10'000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i % 101);
  const std::vector<char> before = data;
  // More than a cache holds, less, and nothing; past the end of the sweeper's own bytes.
  for (const int64_t bytes : {10'000, 3'000, 0, 3'000, 3'000, 64}) {
    sweeper.Evict(data.data(), bytes);
    sweeper.SweepNear();
  }
  Touch(data.data(), 10'000, /*is_written=*/true);
  EXPECT_EQ(data, before);
}

TEST(Profiler, ResumedIsWhole) {
  const ProfiledKernels all = MlpKernels(2);
  ProfiledKernels some = all;
  while (some.size() > all.size() / 2) some.erase(some.begin());
  const std::vector<ProfiledTask> tasks = {{TaskKind::kFill}, {TaskKind::kAllReduce, 2}};
  const std::string path = TemporaryFile("resumed.profile");
  const auto first = Measured(path, some, {tasks[0]});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->kernels.size(), some.size());
  EXPECT_EQ(first->tables.size(), 1u);
  EXPECT_GT(first->task_overhead_us, 0);
  const auto whole = Measured(path, all, tasks);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->kernels.size(), all.size());
  EXPECT_EQ(whole->tables.size(), 2u);
  // What was there was not measured again.
  for (const auto& [key, time] : first->kernels) {
    EXPECT_EQ(whole->kernels.at(key).median_us, time.median_us) << key;
  }
  EXPECT_EQ(whole->task_overhead_us, first->task_overhead_us);
  const auto missing = FindMissing(*whole, all, tasks, "threads");
  EXPECT_TRUE(missing->empty());
  EXPECT_FALSE(FindMissing(*whole, all, tasks, "mpi")->empty());
}

TEST(Profiler, TimesHaveTheWorkThatTheyWereMeasuredFor) {
  const std::string path = TemporaryFile("work.profile");
  const auto profile = Measured(path, MlpKernels(1), {});
  ASSERT_TRUE(profile.ok()) << profile.status();
  const KernelTime& time = profile->kernels.at("matmul f32[8,4] f32[4,16]");
  EXPECT_EQ(time.flops, 2 * 8 * 4 * 16);
  EXPECT_EQ(time.family, "matmul f32");
  EXPECT_GE(time.repetitions, 2 * kQuick.least_rounds);
  EXPECT_LE(time.lower_us, time.median_us);
  EXPECT_LE(time.median_us, time.upper_us);
  EXPECT_THAT(ProfilePage(*profile), HasSubstr("matmul f32[8,4] f32[4,16] gradient -+"));
}

TEST(Profiler, RefusesToAddToTheProfileOfAnotherDevice) {
  const std::string path = TemporaryFile("other.profile");
  Profile other;
  other.device = SomeDevice();
  other.device.processor = "another core";
  ASSERT_EQ(SaveProfile(path, other), absl::OkStatus());
  const auto opened = OpenProfile(path, SomeDevice(), /*remeasure=*/false);
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("is of another core"));
  EXPECT_TRUE(OpenProfile(path, SomeDevice(), /*remeasure=*/true).ok());
  ASSERT_EQ(WriteFileAtomically(path, "garbage"), absl::OkStatus());
  EXPECT_FALSE(OpenProfile(path, SomeDevice(), /*remeasure=*/false).ok());
}

TEST(Profiler, EveryTaskKindRunsAtEverySize) {
  const auto backend = MakeCpuBackend();
  for (const ProfiledTask& task : TasksToProfile(3)) {
    const absl::Status status = RunOnThreads(3, false, backend.get(), [&](const auto& rank) {
      const auto table = MeasureTask(rank, task, {.least_rounds = 1, .most_rounds = 1});
      if (!table.ok()) return table.status();
      EXPECT_GE(table->times().size(), 8u) << task.Key("threads");
      return absl::OkStatus();
    });
    EXPECT_EQ(status, absl::OkStatus()) << task.Key("threads");
  }
}

TEST(Profiler, SettlesWhenTheMedianIsKnown) {
  EXPECT_TRUE(IsSettled(std::vector<double>(9, 3.0), 0.01));
  EXPECT_FALSE(IsSettled({1, 2, 3, 4, 5, 6, 7, 8, 9}, 0.01));
}

}  // namespace
}  // namespace isomer
