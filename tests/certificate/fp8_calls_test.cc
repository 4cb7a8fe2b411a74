#include "verifier/certificate/fp8_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/schedule.h"
#include "tests/pcg/ir/fp8_plan.h"

namespace isomer {
namespace {

using testing::HasSubstr;

// Attacks: each product of a lowered graph loses its attribute, or gets another.
TEST(Fp8Calls, RefusesProductsThatThePlanDoesNotSay) {
  for (const std::vector<std::string>& kept :
       std::vector<std::vector<std::string>>{{}, {"a"}, {"b", "c"}}) {
    const Plan plan = PlanInFp8(kept);
    const auto lowered = LowerPlan(plan);
    ASSERT_TRUE(lowered.ok());
    const Graph& graph = lowered->mapped.graph;
    EXPECT_EQ(CheckFp8Calls(plan, graph), absl::OkStatus());
    int attacks = 0;
    for (int id = 0; id < graph.num_nodes(); ++id) {
      if (!CanBeFp8(graph.node({id}).op.kind())) continue;
      for (Fp8Scaling scaling : {Fp8Scaling::kNone, Fp8Scaling::kTensor, Fp8Scaling::kRow}) {
        if (scaling == Fp8ScalingOf(graph.node({id}).op)) continue;
        std::vector<Node> nodes;
        for (int n = 0; n < graph.num_nodes(); ++n) nodes.push_back(graph.node({n}));
        nodes[id].op = WithFp8(nodes[id].op, scaling);
        const auto forged = GraphFromParts(std::move(nodes), graph.outputs());
        ASSERT_TRUE(forged.ok()) << forged.status();
        EXPECT_THAT(std::string(CheckFp8Calls(plan, *forged).message()),
                    HasSubstr("the plan says"));
        ++attacks;
      }
    }
    EXPECT_EQ(attacks, 8);
  }
}

}  // namespace
}  // namespace isomer
