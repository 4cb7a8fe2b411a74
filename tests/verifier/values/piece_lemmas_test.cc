// The lemmas on pieces and linearity have two proofs that owe nothing to each other: from the
// structure of declarations, which the prover uses, and by normal forms.
#include "verifier/values/piece_lemmas.h"

#include <gtest/gtest.h>

#include "tests/verifier/rule_from_text.h"

namespace isomer {
namespace {

struct Operators {
  const char* text;
  std::vector<std::vector<int>> ranks;
  std::set<std::string> some;  // of the lemmas that a call rests on
};

TEST(PieceLemmas, BothProofsAgree) {
  const std::vector<Operators> all = {
      {"matmul(x0, x1) -> matmul(x0, x1)",
       {{2, 2}, {3, 2}, {3, 3}},
       {"pieces_of_matmul_m", "pieces_of_matmul_n", "sum_of_pieces_of_matmul_k",
        "matmul_is_linear_in_0", "matmul_is_linear_in_1"}},
      {"add(x0, x1) -> add(x0, x1)", {{1, 1}, {2, 2}, {2, 1}}, {"add_is_linear_in_0_1"}},
      {"mul(x0, x1) -> mul(x0, x1)", {{1, 1}, {2, 2}}, {"mul_is_linear_in_0"}},
      {"where(x0, x1, x2) -> where(x0, x1, x2)", {{2, 2, 2}}, {"where_is_linear_in_1_2"}},
      {"relu(x0) -> relu(x0)", {{1}, {3}}, {}},
      {"scale(x0; factor=f) -> scale(x0; factor=f)", {{2}}, {"scale_is_linear_in_0"}},
      {"transpose(x0; swap=-2:-1) -> transpose(x0; swap=-2:-1)",
       {{2}, {3}},
       {"transpose_is_linear_in_0"}},
      {"softmax(x0; axis=a) -> softmax(x0; axis=a)", {{2}, {3}}, {}},
      {"concat(x0, x1; axis=a) -> concat(x0, x1; axis=a)", {{2, 2}}, {"concat_is_linear_in_0_1"}},
  };
  PieceLemmas lemmas;
  for (const Operators& operators : all) {
    const Rule rule = RuleFromText(operators.text, operators.ranks);
    const absl::StatusOr<std::vector<RuleInstance>> instances = InstancesOf(rule);
    ASSERT_TRUE(instances.ok()) << instances.status();
    std::set<std::string> ids;
    for (const RuleInstance& instance : *instances) {
      lemmas.Add(instance.source[0], &ids);
      const absl::Status proved = ProveByNormalForms(instance.source[0]);
      EXPECT_TRUE(proved.ok()) << instance.ToString() << ": " << proved;
    }
    for (const std::string& id : operators.some) EXPECT_EQ(ids.count(id), 1u) << id;
  }
}

TEST(PieceLemmas, WhatIsNeededAsAWholeHasNone) {
  PieceLemmas lemmas;
  std::set<std::string> ids;
  const Rule rule = RuleFromText("softmax(x0; axis=-1) -> softmax(x0; axis=-1)", {{1}});
  const auto instances = InstancesOf(rule);
  ASSERT_TRUE(instances.ok());
  for (const RuleInstance& instance : *instances) lemmas.Add(instance.source[0], &ids);
  EXPECT_TRUE(ids.empty()) << *ids.begin();
}

}  // namespace
}  // namespace isomer
