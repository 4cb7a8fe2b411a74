#include "optimizer/sharding/expansion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/ir/examples.h"
#include "pcg/support/data_path.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

const RuleIndex& ShippedRules() {
  static const RuleSet& rules = *[] {
    absl::StatusOr<RuleSet> loaded = LoadRules(DataPath("rules/default.rules"));
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return new RuleSet(loaded.ok() ? *std::move(loaded) : RuleSet());
  }();
  static const RuleIndex& index = *new RuleIndex(rules);
  return index;
}

// The iteration dims that the shipped rules split.
std::vector<int> DimsSplit(const Operator& op, const std::vector<TensorType>& operands) {
  std::vector<int> dims;
  for (const Expansion& split : FindExpansions(ShippedRules(), op, operands).splits) {
    dims.push_back(split.dim);
  }
  return dims;
}

// One line a split, without the degree that it was found with.
std::string TextOf(const Expansions& expansions) {
  std::string text;
  for (const Expansion& split : expansions.splits) {
    absl::StrAppend(&text, split.dim, " by ", split.rule->id, " call ", split.inner, " operands ",
                    absl::StrJoin(split.operand_of_input, ","), " order ",
                    absl::StrJoin(split.order, ","));
    for (const auto& [name, value] : split.step.variables) {
      if (name != split.degree) absl::StrAppend(&text, " ", name, "=", value);
    }
    text += "\n";
  }
  return text;
}

absl::StatusOr<Expansions> ByMemo(const Operator& op, const std::vector<TensorType>& operands,
                                  ExpansionMemo* memo) {
  ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(op, operands));
  return memo->Find(ShippedRules(), op, operands, sharding);
}

// Rules count axes from the end, models from either.
TEST(Expansions, AxisIsTheSameFromBothEnds) {
  const std::vector<TensorType> images = {SequentialType({4, 6, 8, 8}),
                                          SequentialType({4, 2, 8, 8})};
  for (int64_t axis : {1, -3}) {
    EXPECT_THAT(DimsSplit(Operator(OpKind::kConcat, {{"axis", axis}}), images),
                testing::ElementsAre(0, 2, 3))
        << axis;
  }
  for (int64_t axis : {1, -1}) {
    EXPECT_THAT(DimsSplit(Operator(OpKind::kSoftmax, {{"axis", axis}}), {SequentialType({4, 6})}),
                testing::ElementsAre(0))
        << axis;
  }
}

// Calls of one operator whose sizes or attributes differ may share what is known of them.
TEST(Expansions, AreThoseOfTheCallWhateverWasAskedBefore) {
  ExpansionMemo memo;
  for (const int64_t times : {1, 2, 3}) {
    for (const ExampleCall& example : Examples()) {
      std::vector<TensorType> operands = example.operands;
      // Of images and sequences the batch; operands of other ranks stay as they are.
      for (TensorType& type : operands) {
        if (type.rank() == operands[0].rank() && type.rank() > 2) type.dims[0].size *= times;
      }
      const auto found = ByMemo(example.op, operands, &memo);
      if (!found.ok()) continue;  // the weight has the rank of the image
      EXPECT_EQ(TextOf(*found), TextOf(FindExpansions(ShippedRules(), example.op, operands)))
          << example.name << " " << times;
    }
  }
}

// 17 is a prime above those that are tried.
TEST(Expansions, ADimThatNothingDividesIsNotSplit) {
  ExpansionMemo memo;
  const Operator relu(OpKind::kRelu);
  for (const int64_t rows : {16, 17, 15, 16}) {
    const auto found = ByMemo(relu, {SequentialType({rows, 4})}, &memo);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->SplitOf(0) != nullptr, rows != 17) << rows;
    EXPECT_NE(found->SplitOf(1), nullptr) << rows;
  }
}

}  // namespace
}  // namespace isomer
