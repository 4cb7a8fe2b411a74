// That every term is enumerated, and once, at any number of operators: in a free algebra, where no
// two terms are equal, brute force counts them.
#include "generator/enumeration/enumerator.h"

#include <gtest/gtest.h>

#include "tests/generator/brute_force.h"

namespace isomer {
namespace {

// Terms of 1 to `max_operators` operators over one input.
int64_t TermsEnumerated(const std::vector<Operator>& operators, const char* input,
                        int max_operators) {
  const Configuration configuration{"free", {*ParseTensorType(input)}, operators, max_operators};
  TypeOracle oracle;
  Random random(1);
  Statistics statistics;
  const auto candidates = Enumerate(configuration, &oracle, &random, &statistics);
  EXPECT_EQ(candidates.size(), 0u) << ConstantRule(candidates[0]).ToString();
  return statistics.graphs_enumerated;
}

int64_t TermsByBruteForce(const std::vector<Operator>& operators, const char* input,
                          int max_operators) {
  const Subset subset{"free",
                      {std::vector<std::string>{input}, std::vector<std::string>{input}},
                      {operators, operators},
                      max_operators};
  return Terms(subset).size() - 1;
}

TEST(Enumerator, MissesNoTermOfFiveOperatorsThatShareOthers) {
  const std::vector<Operator> free = {Operator(OpKind::kPow)};
  for (int size = 1; size <= 5; ++size) {
    EXPECT_EQ(TermsEnumerated(free, "f32[2]", size), TermsByBruteForce(free, "f32[2]", size))
        << size;
  }
}

TEST(Enumerator, MissesNoTermOfThreeOperandsThatShareOthers) {
  const std::vector<Operator> free = {*ParseOperator("layer_norm(epsilon=0.5)")};
  for (int size = 1; size <= 3; ++size) {
    EXPECT_EQ(TermsEnumerated(free, "f32[3]", size), TermsByBruteForce(free, "f32[3]", size))
        << size;
  }
}

}  // namespace
}  // namespace isomer
