#include "rules/calls/bindings_at_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace isomer {
namespace {

using testing::ElementsAre;

// The inputs that are known, as text: "f32[4,3] f32[4,5]".
std::vector<std::string> InputsAt(const Rule& rule, int subject, const std::string& call,
                                  PartSizes parts) {
  std::vector<std::string> found;
  ForEachBindingAt(rule, subject, *ParseCall(call), Binding(), parts,
                   [&](const Binding& binding, const std::vector<bool>& known) {
                     found.emplace_back();
                     for (size_t x = 0; x < known.size(); ++x) {
                       if (!found.back().empty()) found.back() += ' ';
                       found.back() += known[x] ? binding.inputs[x].ToString() : "?";
                     }
                   });
  return found;
}

Rule RuleOf(int num_inputs, std::vector<PatternNode> nodes) {
  Rule rule;
  rule.num_inputs = num_inputs;
  rule.source.nodes = std::move(nodes);
  return rule;
}

TEST(BindingsAtCall, OperandsThatAreConcatsAreTakenApart) {
  const Rule rule = RuleOf(3, {{OpKind::kConcat,
                                {{"axis", IntExpr::Constant(-1)}},
                                {PatternRef::Input(0), PatternRef::Input(1), PatternRef::Input(2)}},
                               {OpKind::kRelu, {}, {PatternRef::Node(0)}}});
  EXPECT_THAT(InputsAt(rule, 1, "relu f32[4,6]", PartSizes::kEqual),
              ElementsAre("f32[4,2] f32[4,2] f32[4,2]"));
  EXPECT_THAT(InputsAt(rule, 1, "relu f32[4,6]", PartSizes::kUnlike),
              ElementsAre("f32[4,3] f32[4,2] f32[4,1]"));
  EXPECT_THAT(InputsAt(rule, 1, "relu f32[4,2]", PartSizes::kEqual), ElementsAre());
}

TEST(BindingsAtCall, WhatASplitTakesApartIsPutTogether) {
  const std::vector<IntExpr> sizes = {IntExpr::Variable("s"), IntExpr::Variable("t")};
  const Rule rule = RuleOf(1, {{OpKind::kSplit,
                                {{"axis", IntExpr::Constant(-2)}, {"sizes", sizes}},
                                {PatternRef::Input(0)}},
                               {OpKind::kRelu, {}, {PatternRef::Node(0, 1)}}});
  EXPECT_THAT(InputsAt(rule, 1, "relu f32[4,6]", PartSizes::kEqual), ElementsAre("f32[8,6]"));
  EXPECT_THAT(InputsAt(rule, 1, "relu f32[4,6]", PartSizes::kUnlike), ElementsAre("f32[6,6]"));
}

TEST(BindingsAtCall, WhatIsTransposedIsTurnedBack) {
  const Rule rule =
      RuleOf(2, {{OpKind::kTranspose, {{"perm", SwapAxes{-2, -1}}}, {PatternRef::Input(0)}},
                 {OpKind::kMatMul, {}, {PatternRef::Node(0), PatternRef::Input(1)}}});
  EXPECT_THAT(InputsAt(rule, 1, "matmul f32[2,4,6] f32[6,8]", PartSizes::kEqual),
              ElementsAre("f32[2,6,4] f32[6,8]"));
}

TEST(BindingsAtCall, AxesTakeEveryValueAndWhatStandsApartIsUnknown) {
  Rule rule = RuleOf(2, {{OpKind::kRelu, {}, {PatternRef::Input(0)}},
                         {OpKind::kConcat,
                          {{"axis", IntExpr::Variable("i")}},
                          {PatternRef::Node(0), PatternRef::Input(1)}}});
  rule.variables = {{"i", VariableKind::kAxis}};
  EXPECT_THAT(InputsAt(rule, 0, "relu f32[2,4,6]", PartSizes::kEqual),
              ElementsAre("f32[2,4,6] ?", "f32[2,4,6] ?", "f32[2,4,6] ?"));
}

}  // namespace
}  // namespace isomer
