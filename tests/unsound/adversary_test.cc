// Steps of plans that an adversary wrote: calls at concrete sizes that are not equal, or that are
// not defined where what they replace is, and that something once let through; beside true ones.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "pcg/ir/operator_facts.h"
#include "tests/unsound/hostile_rules.h"
#include "tests/verifier/rule_from_text.h"
#include "verifier/certificate/equal_sides.h"

namespace isomer {
namespace {

struct Step {
  std::string rule;
  std::string types;  // of the inputs: "f32[2,3] f32[3]"
  std::vector<std::pair<std::string, int64_t>> variables = {};
};

// The calls of a side, as a step of a plan has them; an error if one of them rounds integers.
absl::StatusOr<ConcreteSide> SideOf(const Pattern& pattern, const Binding& binding) {
  const absl::StatusOr<Graph> graph = InstantiatePattern(pattern, binding);
  if (!graph.ok()) return graph.status();
  ConcreteSide side = {{}, pattern.outputs};
  for (size_t n = 0; n < pattern.nodes.size(); ++n) {
    const Node& node = graph->node(static_cast<int>(binding.inputs.size() + n));
    ConcreteCall call = {node.op, pattern.nodes[n].inputs, {}};
    for (TensorRef input : node.inputs) call.operands.push_back(graph->type(input).GlobalShape());
    if (RoundsIntegers(node.op, graph->type(node.inputs[0]).dtype, node.outputs[0].dtype)) {
      return absl::FailedPreconditionError(absl::StrCat(node.op.ToString(), " rounds"));
    }
    side.calls.push_back(std::move(call));
  }
  return side;
}

// Ok if the certificate takes the step.
absl::Status Judge(const Step& step) {
  const Rule rule = RuleFromText(step.rule, {{}});
  Binding binding;
  for (absl::string_view text : absl::StrSplit(step.types, ' ')) {
    binding.inputs.push_back(ParseTensorType(text).value());
  }
  for (const auto& [name, value] : step.variables) binding.variables[name] = value;
  const absl::StatusOr<ConcreteSide> source = SideOf(rule.source, binding);
  if (!source.ok()) return source.status();
  const absl::StatusOr<ConcreteSide> target = SideOf(rule.target, binding);
  if (!target.ok()) return target.status();
  std::set<std::string> lemmas;
  return EqualSides(*source, *target, &lemmas).status();
}

void ExpectRefused(const std::vector<Step>& steps, const std::string& why) {
  for (const Step& step : steps) {
    const absl::Status judged = Judge(step);
    EXPECT_FALSE(judged.ok()) << step.rule;
    EXPECT_NE(std::string(judged.message()).find(why), std::string::npos) << step.rule << "\n"
                                                                          << judged;
  }
}

void ExpectTaken(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    const absl::Status judged = Judge(step);
    EXPECT_TRUE(judged.ok()) << step.rule << "\n" << judged;
  }
}

// Two statements of one declaration: the second reads the first outside of its bounds.
TEST(Adversary, MarginsOfWhatAStatementDefines) {
  const std::string both = "pad(x0; padding=[1,1,1,1], mode=1, value=0.0)";
  ExpectTaken({{both + " -> pad(pad(x0; padding=[1,0,1,0], mode=1, value=0.0); "
                       "padding=[0,1,0,1], mode=1, value=0.0)",
                "f32[3,3]"}});
  ExpectRefused({{both + " -> pad(x0; padding=[1,1,1,1], mode=2, value=0.0)", "f32[3,3]"},
                 {both + " -> pad(pad(x0; padding=[1,0,1,0], mode=2, value=0.0); "
                         "padding=[0,1,0,1], mode=1, value=0.0)",
                  "f32[3,3]"}},
                "no common normal form");
}

// The root of zero is zero, and its gradient times zero is no number.
TEST(Adversary, RootsOfWhatMayBeZero) {
  const std::string sum = "add(x0, x1) -> add(add(x0, x1), ";
  ExpectRefused({{sum + "scale(sqrt(mul(relu(x0), relu(x1))); factor=0.0))", "f32[2,3] f32[2,3]"},
                 {sum + "scale(sqrt(mse(x1, x1)); factor=0.0))", "f32[2,3] f32[2,3]"}},
                "sqrt may be undefined");
  ExpectTaken({{sum + "scale(sqrt(exp(x1)); factor=0.0))", "f32[2,3] f32[2,3]"}});
}

// By its declaration a cast is the identity; what it is not, theorems on declarations do not see.
TEST(Adversary, CastsUnderTheoremsOfDeclarations) {
  ExpectRefused(
      {{"cast(relu(x0); to=4) -> relu(cast(x0; to=4))", "i64[2,3]"},
       {"cast(exp(x0); to=3) -> exp(cast(x0; to=3))", "f32[2,3]"},
       {"cast(add(x0, x1); to=0) -> add(cast(x0; to=0), cast(x1; to=0))", "i64[2,3] i64[2,3]"},
       {"cast(scale(x0; factor=0.5); to=3) -> scale(cast(x0; to=3); factor=0.5)", "f32[2,3]"},
       {"cast(reduce_sum(x0; axes=[-1], keepdims=1); to=3) -> "
        "reduce_sum(cast(x0; to=3); axes=[-1], keepdims=1)",
        "f32[2,3]"}},
      "a cast may round");
  ExpectTaken({{"cast(concat(x0, x1; axis=-1); to=3) -> "
                "concat(cast(x0; to=3), cast(x1; to=3); axis=-1)",
                "f32[2,3] f32[2,3]"},
               {"cast(transpose(x0; swap=-2:-1); to=3) -> transpose(cast(x0; to=3); swap=-2:-1)",
                "f32[2,3]"}});
}

// True and true are true: partial sums of truth values are not what their sum is.
TEST(Adversary, SumsOfTruthValues) {
  const std::string step =
      "equal(scatter_elements(reduce(x0; degree=d), x1, reduce(x2; degree=d); axis=0, "
      "reduction=R), x3) -> equal(reduce(scatter_elements(x0, replicate(x1; degree=d), x2; "
      "axis=0, reduction=R); degree=d), x3)";
  const auto reduction = [&](const std::string& r) {
    std::string text = step;
    for (size_t at; (at = text.find("=R")) != std::string::npos;) text.replace(at, 2, "=" + r);
    return text;
  };
  ExpectRefused({{reduction("1"), "bool[3]p2 i64[3] bool[3]p2 bool[3]", {{"d", 2}}}}, "rounds");
  ExpectTaken({{reduction("1"), "f32[3]p2 i64[3] f32[3]p2 f32[3]", {{"d", 2}}},
               {reduction("0"), "bool[3]p2 i64[3] bool[3]p2 bool[3]", {{"d", 2}}}});
}

// sign(log(-1)) is 0 in floating point, as 0 is neither below what is not a number nor above it;
// over the reals it is nothing, and a target may be anything there.
TEST(Adversary, WhatComparesTheUndefinedIsUndefined) {
  const Rule rule =
      RuleFromText("sign(add(exp(x0), scale(sqrt(x0); factor=0.0))) -> sign(exp(x0))", {{2}});
  EXPECT_EQ(DifferenceSeen(rule, 30, 1), "");
}

// (2 + sqrt(2)) - sqrt(2) is below 2 in floating point, and over the reals it is not.
TEST(Adversary, RoundingDoesNotDecideAComparison) {
  const Rule rule = RuleFromText(
      "where(less(sub(add(maximum(x0, x1), sqrt(x0)), sqrt(x0)), x2), scale(x2; factor=10.0), "
      "exp(x1)) -> where(less(maximum(x0, x1), x2), scale(x2; factor=10.0), exp(x1))",
      {{2, 2, 2}});
  for (uint64_t seed = 1; seed <= 40; ++seed) EXPECT_EQ(DifferenceSeen(rule, 5, seed), "") << seed;
  const Rule is_false = RuleFromText("less(add(x0, x1), x2) -> less(x0, x2)", {{2, 2, 2}});
  EXPECT_NE(DifferenceSeen(is_false, 5, 1), "");
}

// The source is finite though it applies log to what is below zero: it drops that.
TEST(Adversary, WhatTheSourceDropsItDoesNotDefine) {
  const std::string types = "bool[2,3] f32[2,3] f32[2,3]", guarded = "where(x0, log(x1), x2)";
  ExpectRefused(
      {{guarded + " -> add(" + guarded + ", scale(log(x1); factor=0.0))", types},
       {guarded + " -> add(" + guarded + ", sub(log(log(x1)), log(log(x1))))", types},
       {guarded + " -> where(x0, add(log(x1), scale(log(x2); factor=0.0)), x2)", types},
       {"relu(log(x0)) -> add(relu(log(x0)), scale(log(x0); factor=0.0))", "f32[2,3]"},
       {"embedding(log(x0), x1) -> add(embedding(log(x0), x1), "
        "scale(reduce_sum(log(x0); axes=[0], keepdims=0); factor=0.0))",
        "f32[4,3] i64[2]"},
       {"slice(log(x0); starts=[0,0], sizes=[1,3], steps=[1,1]) -> "
        "add(slice(log(x0); starts=[0,0], sizes=[1,3], steps=[1,1]), "
        "scale(reduce_sum(log(x0); axes=[0], keepdims=1); factor=0.0))",
        "f32[2,3]"},
       {"split(log(x0); axis=0, sizes=[1,1]).0 -> add(split(log(x0); axis=0, sizes=[1,1]).0, "
        "scale(split(log(x0); axis=0, sizes=[1,1]).1; factor=0.0))",
        "f32[2,3]"}},
      "log may be undefined");
  // What drops it on both sides alike, what moves all of it, and what shows all of it.
  ExpectTaken(
      {{guarded + " -> add(" + guarded + ", scale(" + guarded + "; factor=0.0))", types},
       {"where(x0, log(x1), log(x2)) -> log(where(x0, x1, x2))", types},
       {"embedding(log(x0), x1) -> log(embedding(x0, x1))", "f32[4,3] i64[2]"},
       {"split(log(x0); axis=0, sizes=[1,1]).0 | split(log(x0); axis=0, sizes=[1,1]).1 -> "
        "add(split(log(x0); axis=0, sizes=[1,1]).0, "
        "scale(slice(log(x0); starts=[1,0], sizes=[1,3], steps=[1,1]); factor=0.0)) | "
        "split(log(x0); axis=0, sizes=[1,1]).1",
        "f32[2,3]"},
       {"matmul(log(x0), x1) -> add(matmul(log(x0), x1), scale(matmul(log(x0), x1); factor=0.0))",
        "f32[2,3] f32[3,2]"},
       {"softmax(log(x0); axis=-1) -> "
        "softmax(add(log(x0), scale(log(x0); factor=0.0)); axis=-1)",
        "f32[2,3]"}});
}

}  // namespace
}  // namespace isomer
