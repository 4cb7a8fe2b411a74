// Which conditions exclude failures.
#include "generator/assignments/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isomer {
namespace {

using ::testing::SizeIs;

// partition(x0; axis=-1, degree=d) -> partition(x0; axis=-1, degree=d)
Rule PartitionRule() {
  Rule rule;
  rule.num_inputs = 1;
  rule.ranks = {{1}};
  rule.variables = {{"d", VariableKind::kDegree}};
  rule.source.nodes = {{OpKind::kPartition,
                        {{"axis", IntExpr::Constant(-1)}, {"degree", IntExpr::Variable("d")}},
                        {PatternRef::Input(0)}}};
  rule.source.outputs = {PatternRef::Node(0)};
  rule.target = rule.source;
  return rule;
}

Binding At(int64_t size, int64_t degree, int64_t partials, int64_t d) {
  Binding binding;
  binding.inputs = {SequentialType({size})};
  binding.inputs[0].dims[0].degree = degree;
  binding.inputs[0].partials = partials;
  binding.variables["d"] = d;
  return binding;
}

// More assignments than a word has bits.
constexpr int kMany = 150;

std::vector<Binding> ManyThatHold() {
  std::vector<Binding> holding;
  for (int i = 0; i < kMany; ++i) holding.push_back(At(12, 1 + i % 2, 1, 2 + i % 2));
  return holding;
}

TEST(ExcludeFailures, OneConditionIfItIsEnough) {
  const std::vector<Binding> failing(kMany, At(5, 1, 1, 2));
  const auto conditions = ExcludeFailures(PartitionRule(), ManyThatHold(), failing);
  ASSERT_TRUE(conditions.has_value());
  ASSERT_THAT(*conditions, SizeIs(1));
  EXPECT_EQ((*conditions)[0].kind, Condition::Kind::kDivides);
}

TEST(ExcludeFailures, TheLastOfManyFailuresCounts) {
  std::vector<Binding> failing(kMany, At(5, 1, 1, 2));
  failing.push_back(At(12, 1, 2, 2));
  const auto conditions = ExcludeFailures(PartitionRule(), ManyThatHold(), failing);
  ASSERT_TRUE(conditions.has_value());
  ASSERT_THAT(*conditions, SizeIs(2));
  EXPECT_EQ((*conditions)[0].kind, Condition::Kind::kDivides);
  EXPECT_EQ((*conditions)[1].kind, Condition::Kind::kNoPartials);
}

TEST(ExcludeFailures, TheLastOfManySuccessesCounts) {
  // Either excludes the failures: unpartitioned inputs, or those whose dim `d` divides. The latter
  // admits one more.
  std::vector<Binding> holding(kMany, At(12, 1, 1, 2));
  holding.push_back(At(12, 2, 1, 2));
  const std::vector<Binding> failing(kMany, At(10, 2, 1, 2));
  const auto conditions = ExcludeFailures(PartitionRule(), holding, failing);
  ASSERT_TRUE(conditions.has_value());
  ASSERT_THAT(*conditions, SizeIs(1));
  EXPECT_EQ((*conditions)[0].kind, Condition::Kind::kDivides);
}

TEST(ExcludeFailures, NoneWhereEveryConditionHolds) {
  EXPECT_EQ(ExcludeFailures(PartitionRule(), ManyThatHold(), {At(12, 1, 1, 2)}), std::nullopt);
}

}  // namespace
}  // namespace isomer
