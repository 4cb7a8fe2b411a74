#include "runtime/profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pcg/support/file.h"
#include "tests/pcg/schedule/parallel_graphs.h"

namespace isomer {
namespace {

TEST(Profiler, MeasuresEveryDifferentCallOnce) {
  const Graph graph = Parsed(kMlp);
  const auto calls = CallsToProfile(graph, {2});
  ASSERT_TRUE(calls.ok()) << calls.status();
  // Two matmuls, whole and with m, n or k in two; relu by two dims; the loss by samples.
  EXPECT_EQ(calls->size(), 2u * 4 + 3 + 2);
  Profile profile;
  const auto backend = MakeCpuBackend();
  for (const ProfiledCall& call : *calls) {
    ASSERT_EQ(
        ProfileCall(call, {.degrees = {}, .warm_up = 1, .repetitions = 3}, backend.get(), &profile),
        absl::OkStatus());
  }
  EXPECT_EQ(profile.kernels.size(), 2 * calls->size());
  const std::vector<TensorType> operands = {SequentialType({8, 4}), SequentialType({4, 16})};
  const KernelTime* time = profile.Find(OpKind::kMatMul, operands, false);
  ASSERT_NE(time, nullptr);
  EXPECT_EQ(time->flops, 2 * 8 * 4 * 16);
  EXPECT_LE(time->min_us, time->median_us);
  EXPECT_LE(time->median_us, time->max_us);
  EXPECT_EQ(profile.Find(OpKind::kMatMul, {operands[1], operands[0]}, false), nullptr);
}

TEST(Profile, ShardsAreFoundByTheirLocalShapes) {
  Profile profile;
  profile.kernels["matmul f32[4,4] f32[4,16]"].median_us = 3;
  TensorType x = SequentialType({8, 4}), w = SequentialType({4, 16});
  x.dims[0].degree = 2;
  w.copies = 2;
  const KernelTime* time = profile.Find(OpKind::kMatMul, {x, w}, false);
  ASSERT_NE(time, nullptr);
  EXPECT_EQ(time->median_us, 3);
}

TEST(Profile, FilesReadBackWhatWasWritten) {
  Profile profile{.backend = "cpu", .model = "mlp", .kernels = {}};
  profile.kernels["relu f32[4]"] = {
      .median_us = 1.5, .min_us = 1, .max_us = 2, .repetitions = 7, .flops = 4, .bytes = 32};
  for (const char* name : {"/profile.bin", "/profile.txt"}) {
    const std::string path = testing::TempDir() + name;
    ASSERT_EQ(SaveProfile(path, profile), absl::OkStatus());
    const auto read = LoadProfile(path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->backend, "cpu");
    EXPECT_EQ(read->kernels.at("relu f32[4]").max_us, 2);
    EXPECT_EQ(read->kernels.at("relu f32[4]").bytes, 32);
  }
}

TEST(Profile, NegativeTimesAreRefused) {
  const std::string path = testing::TempDir() + "/bad_profile.txt";
  Profile profile;
  profile.kernels["relu f32[4]"].min_us = -1;
  ASSERT_EQ(SaveProfile(path, profile), absl::OkStatus());
  EXPECT_THAT(std::string(LoadProfile(path).status().message()),
              testing::HasSubstr("kernel 'relu f32[4]': -1 is not a time"));
}

}  // namespace
}  // namespace isomer
