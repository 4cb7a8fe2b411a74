#include "optimizer/report/inference_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pcg/schedule/schedule.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

// A row of a table, a product and a row of a cache, which all of it is summed of.
constexpr char kDecoder[] = R"(
%0 = input "ids" : i64[1,1]
%1 = weight "table" : f32[1000,4]
%2 = embedding(%1, %0) : f32[1,1,4]
%3 = weight "w" : f32[4,4]
%4 = matmul(%2, %3) : f32[1,1,4]
%5 = input "keys" : f32[1,8,4]
%6 = input "row" : i64[1,1,4]
%7 = scatter_elements(%5, %6, %4) {axis=1} : f32[1,8,4]
%8 = reduce_sum(%7) {axes=[1], keepdims=0} : f32[1,4]
output "y" = %8
output "keys" = %7
)";

TEST(InferenceFacts, OfATableTheRowsThatAreLookedUpAreRead) {
  Plan plan;
  plan.mode = "inference";
  plan.model.graph = ParseGraph(kDecoder).value();
  plan.graph = plan.model.graph;
  plan.views = SequentialViews(plan.graph);
  plan.num_devices = 1;
  plan.predicted_step_us = 1;
  const LoweredPlan lowered = LowerPlan(plan).value();
  const Machine machine = TestMachine(1, 1);
  const auto facts = InferenceFactsOf(plan, lowered, machine);
  ASSERT_TRUE(facts.has_value());
  constexpr int64_t kRow = 16, kTable = 1000 * kRow, kProduct = 64, kKeys = 128;
  EXPECT_EQ(facts->weight_bytes, kTable + kProduct);
  EXPECT_EQ(facts->state_bytes, kKeys);
  EXPECT_DOUBLE_EQ(facts->memory_share, static_cast<double>(kRow + kProduct + kKeys) /
                                            machine.kind(0).memory_bytes_per_us);
  EXPECT_THAT(InferenceText(*facts),
              testing::HasSubstr("reading once what it needs of both takes"));
}

}  // namespace
}  // namespace isomer
