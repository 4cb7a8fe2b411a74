#include "runtime/profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  const KernelTime* time = profile.Find(OpKind::kMatMul, operands, {});
  ASSERT_NE(time, nullptr);
  EXPECT_EQ(time->flops, 2 * 8 * 4 * 16);
  EXPECT_LE(time->lower_us, time->median_us);
  EXPECT_LE(time->median_us, time->upper_us);
  EXPECT_EQ(profile.Find(OpKind::kMatMul, {operands[1], operands[0]}, {}), nullptr);
}

}  // namespace
}  // namespace isomer
