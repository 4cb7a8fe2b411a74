#include "verifier/terms/instance_symmetry.h"

#include <gtest/gtest.h>

#include "tests/verifier/rule_from_text.h"

namespace isomer {
namespace {

size_t InstancesAt(const std::string& text, std::vector<std::vector<int>> ranks) {
  const auto instances = InstancesOf(RuleFromText(text, std::move(ranks)));
  EXPECT_TRUE(instances.ok()) << instances.status();
  return instances.ok() ? instances->size() : 0;
}

// Of two dims each is one of: equal sizes, x0 is 1, x1 is 1.
TEST(InstanceSymmetry, DimsOfElementwiseOperatorsHaveNoOrder) {
  EXPECT_EQ(InstancesAt("relu(add(x0, x1)) -> relu(add(x1, x0))", {{2, 2}}), 6);
}

TEST(InstanceSymmetry, AxesThatTheRuleNamesKeepTheirPlaces) {
  EXPECT_EQ(InstancesAt("concat(add(x0, x1), add(x0, x1); axis=-1) -> "
                        "concat(add(x1, x0), add(x1, x0); axis=-1)",
                        {{2, 2}}),
            9);
  // Both axes of the variable are one theorem; at rank 1 there is another.
  EXPECT_EQ(InstancesAt("concat(x0, x0; axis=i) -> concat(x0, x0; axis=i)", {{1}, {2}, {3}}), 3);
}

// The last two dims of a MatMul are not those before them, and may have a size in common.
TEST(InstanceSymmetry, DimsOfMatMulAreTold) {
  EXPECT_EQ(InstancesAt("matmul(relu(x0), x1) -> matmul(relu(x0), x1)", {{4, 4}}), 6);
}

TEST(InstanceSymmetry, RulesOfOtherOperatorsAreLeftAlone) {
  EXPECT_EQ(InstancesAt("softmax(add(x0, x1); axis=-1) -> softmax(add(x1, x0); axis=-1)", {{2, 2}}),
            9);
}

}  // namespace
}  // namespace isomer
