#include "generator/schemas/algebra_families.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "generator/assignments/trial.h"
#include "generator/preconditions/settle.h"
#include "generator/schemas/algebra_search.h"

namespace isomer {
namespace {

std::vector<GeneralRule> RulesOf(OpKind kind) {
  TypeOracle oracle;
  Random random(1);
  Statistics statistics;
  return FindAlgebraFamilies(kind, &oracle, &random, &statistics);
}

int Count(const std::vector<GeneralRule>& rules, const std::string& form) {
  return static_cast<int>(std::count_if(rules.begin(), rules.end(), [&](const GeneralRule& rule) {
    return rule.rule.origin == "algebra, family: " + form;
  }));
}

bool Has(const std::vector<GeneralRule>& rules, const std::string& text) {
  return std::any_of(rules.begin(), rules.end(), [&](const GeneralRule& rule) {
    return rule.rule.ToString().find(text) != std::string::npos;
  });
}

TEST(AlgebraFamilies, AreWellFormedAndHoldWhereTheyWereFound) {
  TypeOracle oracle;
  Random random(2);
  for (OpKind kind : {OpKind::kEmbedding, OpKind::kRmsNorm, OpKind::kLstmCell, OpKind::kConv1d}) {
    const std::vector<GeneralRule> rules = RulesOf(kind);
    EXPECT_FALSE(rules.empty()) << OpName(kind);
    std::set<std::string> ids;
    for (const GeneralRule& general : rules) {
      SCOPED_TRACE(general.rule.ToString());
      EXPECT_TRUE(ids.insert(general.rule.id).second);
      EXPECT_TRUE(ValidateRule(general.rule).ok()) << ValidateRule(general.rule);
      EXPECT_TRUE(Admits(general.rule, general.found));
      EXPECT_TRUE(TypesAgree(general.rule, general.found, &oracle));
      const auto agree = ValuesAgree(general.rule, general.found, &random);
      EXPECT_TRUE(agree.ok() && *agree);
    }
  }
}

// One operand in parts is enough: the other is taken apart.
TEST(AlgebraFamilies, SumsOfPiecesSplitTheOtherOperand) {
  const std::vector<GeneralRule> conv = RulesOf(OpKind::kConv1d);
  EXPECT_TRUE(Has(conv, "split(x2; axis=i, sizes=[size(x0,i),size(x1,i)])#0"));
  EXPECT_EQ(Count(conv, "sum of pieces, rest split"), 1);
  EXPECT_EQ(Count(conv, "sum of pieces, first split"), 1);
  // A bias would be added twice.
  for (const GeneralRule& general : RulesOf(OpKind::kLinear)) {
    EXPECT_EQ(general.rule.origin.find("sum of pieces"), std::string::npos)
        << general.rule.ToString();
  }
}

// Concat, Split and their inverses along every dim that the declaration lets be partitioned, and
// that no window moves over.
TEST(AlgebraFamilies, CoverEveryPartitionableDim) {
  for (OpKind kind : {OpKind::kEmbedding, OpKind::kLinear, OpKind::kGruCell, OpKind::kRotary}) {
    const std::vector<GeneralRule> rules = RulesOf(kind);
    for (const OperatorCall& call : SampleCalls(kind)) {
      for (const SplittableDim& dim : SplittableDims(call.op, call.operands)) {
        const bool sums = std::none_of(dim.output_axes.begin(), dim.output_axes.end(),
                                       [](const auto& axis) { return axis.has_value(); });
        if (sums || dim.size < 2) continue;
        const bool found = std::any_of(rules.begin(), rules.end(), [&](const GeneralRule& general) {
          if (general.rule.origin != "algebra, family: concat") return false;
          const Condition& c = general.rule.conditions[0];
          return c.kind == Condition::Kind::kSplitsDim &&
                 std::equal(
                     c.operand_axes.begin(), c.operand_axes.end(), dim.operand_axes.begin(),
                     [](const auto& e, const auto& a) { return e.has_value() == a.has_value(); });
        });
        EXPECT_TRUE(found) << call.op.ToString() << " dim " << dim.dim;
      }
    }
  }
}

TEST(AlgebraFamilies, ConvolutionsMergeByOutputChannelsAndBatches) {
  const std::vector<GeneralRule> rules = RulesOf(OpKind::kConv1d);
  EXPECT_GE(Count(rules, "merge"), 2);
  EXPECT_GE(Count(rules, "sum of pieces"), 1);
  EXPECT_FALSE(Has(rules, "axis=-1"));  // along which the window moves
}

TEST(AlgebraFamilies, MeanSoftmaxAndScanHaveNoneAlongTheirDim) {
  EXPECT_EQ(Count(RulesOf(OpKind::kReduceMean), "sum of pieces"), 0);
  for (OpKind kind : {OpKind::kSoftmax, OpKind::kCumSum}) {
    TypeOracle oracle;
    Random random(3);
    for (const GeneralRule& general : RulesOf(kind)) {
      if (Count({general}, "concat") == 0) continue;
      for (const Binding& binding :
           DrawAdmitted(general.rule, general.found, 20, {}, &oracle, &random)) {
        EXPECT_NE(binding.variables.at("a"), binding.variables.at("i")) << general.rule.ToString();
      }
    }
  }
}

TEST(AlgebraFamilies, LinearityIsOfTheOperandsThatAreLinear) {
  const std::vector<GeneralRule> norm = RulesOf(OpKind::kRmsNorm);
  EXPECT_TRUE(Has(norm, "rms_norm(x0, add(x1, x2)"));
  EXPECT_FALSE(Has(norm, "rms_norm(add("));
  EXPECT_EQ(Count(RulesOf(OpKind::kCast), "add"), 0);  // It rounds.
}

TEST(AlgebraFamilies, TriangleNeedsAFunctionThatKeepsZero) {
  const std::vector<GeneralRule> rules = RulesOf(OpKind::kTrilu);
  EXPECT_TRUE(Has(rules, "relu(trilu("));
  EXPECT_FALSE(Has(rules, "exp(trilu("));
}

TEST(Elementwise, IsReadOffTheDeclaration) {
  std::set<std::string> names;
  for (const OperatorCall& call : ElementwiseCalls(1)) names.insert(std::string(call.op.name()));
  for (const char* name : {"relu", "exp", "clip", "cast", "not"}) EXPECT_TRUE(names.count(name));
  for (const char* name : {"softmax", "dropout", "reshape", "cumsum"}) {
    EXPECT_FALSE(names.count(name)) << name;
  }
}

}  // namespace
}  // namespace isomer
