// Equations that hold where they were found and nowhere else.
#include "generator/enumeration/chance.h"

#include <gtest/gtest.h>

#include "tests/verifier/rule_from_text.h"

namespace isomer {
namespace {

std::string WhyNot(const char* equation, const std::vector<const char*>& inputs) {
  Candidate candidate;
  std::vector<int> ranks;
  for (const char* type : inputs) {
    candidate.inputs.push_back(*ParseTensorType(type));
    ranks.push_back(candidate.inputs.back().rank());
  }
  const Rule rule = RuleFromText(equation, {ranks});
  candidate.source = rule.source;
  candidate.target = rule.target;
  TypeOracle oracle;
  Random random(1);
  return FailsElsewhere(candidate, &oracle, &random).value_or("");
}

TEST(FailsElsewhere, OfOneElement) {
  const char* const kOne = "holds of one element alone";
  EXPECT_EQ(WhyNot("softmax(relu(x0); axis=-1) -> softmax(x0; axis=-1)", {"f32[4,1]"}), kOne);
  EXPECT_EQ(WhyNot("reduce_sum(x0; axes=[-1], keepdims=1) -> "
                   "reduce_max(x0; axes=[-1], keepdims=1)",
                   {"f32[4,1]"}),
            kOne);
  // A law of what is broadcast.
  EXPECT_EQ(WhyNot("mul(x0, reduce_sum(x1; axes=[-1], keepdims=1)) -> "
                   "reduce_sum(mul(x1, x0); axes=[-1], keepdims=1)",
                   {"f32[4,1]", "f32[4,4]"}),
            "");
  // Broadcast, but true of any size.
  EXPECT_EQ(WhyNot("add(x0, x1) -> add(x1, x0)", {"f32[4,4]", "f32[4,1]"}), "");
  EXPECT_EQ(WhyNot("relu(relu(x0)) -> relu(x0)", {"f32[4,1]"}), "");
}

TEST(FailsElsewhere, OverNumbers) {
  // Nearly all elements of the field are larger than 2.
  EXPECT_EQ(
      WhyNot("clip(relu(x0); max=2.0, min=1.0) -> clip(relu(relu(relu(x0))); max=2.0, min=1.0)",
             {"f32[4,4]"}),
      "");
  EXPECT_EQ(WhyNot("minimum(relu(x0), relu(relu(x0))) -> relu(x0)", {"f32[4,4]"}), "");
  EXPECT_NE(WhyNot("clip(hard_swish(x0); max=1.25, min=-0.5) -> clip(x0; max=1.25, min=-0.5)",
                   {"f32[4,4]"}),
            "");
  EXPECT_NE(WhyNot("relu(x0) -> x0", {"f32[4,4]"}), "");
}

// What cannot be tried with larger sizes is left to those who generalise.
TEST(FailsElsewhere, NotWhereSizesFitNoMore) {
  EXPECT_EQ(WhyNot("matmul(x0, x1) -> matmul(x0, relu(relu(x1)))", {"f32[4,1]", "f32[1,4]"}),
            "differs on fresh inputs");
  EXPECT_EQ(WhyNot("transpose(transpose(x0; perm=[1,0]); perm=[1,0]) -> x0", {"f32[1,4]"}), "");
}

}  // namespace
}  // namespace isomer
