// Rules that no lemma speaks of, proved from the definitions of their operators, and rules like
// them that are false.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/verifier/rule_from_text.h"
#include "verifier/proving/prover.h"

namespace isomer {
namespace {

using Ranks = std::vector<std::vector<int>>;

const Ranks kOne = {{2}, {3}}, kTwo = {{2, 2}, {2, 1}}, kThree = {{2, 2, 2}};

void ExpectProved(const std::vector<Rule>& rules) {
  Prover prover;
  for (const Rule& rule : rules) {
    const ProofRecord record = prover.Prove(rule);
    EXPECT_EQ(record.verdict, ProofRecord::Verdict::kProved) << rule.ToString() << "\n"
                                                             << record.note;
  }
}

void ExpectRefuted(const std::vector<Rule>& rules) {
  Prover prover;
  for (const Rule& rule : rules) {
    EXPECT_EQ(prover.Prove(rule).verdict, ProofRecord::Verdict::kRefuted) << rule.ToString();
  }
}

void ExpectNotProved(const std::vector<Rule>& rules) {
  Prover prover;
  for (const Rule& rule : rules) {
    EXPECT_NE(prover.Prove(rule).verdict, ProofRecord::Verdict::kProved) << rule.ToString();
  }
}

TEST(ByDefinition, MaximaAndMinimaAreALattice) {
  const std::vector<Condition> same = {SameType(0, 1)};
  ExpectProved({
      RuleFromText("maximum(x0, minimum(x0, x1)) -> x0", {{2, 2}}, same),
      RuleFromText("minimum(maximum(x0, x1), maximum(x0, x2)) -> maximum(x0, minimum(x1, x2))",
                   kThree),
      RuleFromText("maximum(maximum(x0, x1), x2) -> maximum(x1, maximum(x0, x2))", kThree),
      RuleFromText("scale(minimum(x0, x1); factor=-1.0) -> "
                   "maximum(scale(x0; factor=-1.0), scale(x1; factor=-1.0))",
                   kTwo),
      RuleFromText("relu(minimum(x0, x1)) -> minimum(relu(x0), relu(x1))", kTwo),
  });
  ExpectNotProved({
      RuleFromText("maximum(x0, minimum(x0, x1)) -> x1", {{2, 2}}, same),
      RuleFromText("maximum(x0, minimum(x1, x2)) -> minimum(maximum(x0, x1), x2)", kThree),
      RuleFromText("relu(minimum(x0, x1)) -> minimum(relu(x0), x1)", kTwo),
      RuleFromText("scale(minimum(x0, x1); factor=-1.0) -> "
                   "minimum(scale(x0; factor=-1.0), scale(x1; factor=-1.0))",
                   kTwo),
      RuleFromText("scale(minimum(x0, x1); factor=f) -> "
                   "minimum(scale(x0; factor=f), scale(x1; factor=f))",
                   kTwo),
  });
}

// Conditions are booleans: a rule must be tried with those to be seen to type-check at all.
TEST(ByDefinition, ChoicesAreDecidedInEveryCase) {
  const std::vector<Condition> same = {SameType(1, 2), SameType(3, 4)};
  const Ranks broadcast = {{1, 2, 2}, {2, 1, 2}};
  ExpectProved({
      RuleFromText("sin(where(x0, x1, x2)) -> where(x0, sin(x1), sin(x2))", broadcast),
      RuleFromText("where(x0, mul(x1, x2), mul(x3, x4)) -> "
                   "mul(where(x0, x1, x3), where(x0, x2, x4))",
                   {{2, 2, 2, 2, 2}}, same),
      RuleFromText("where(x0, where(x1, x2, x3), x3) -> where(x0, where(x1, x2, x3), "
                   "where(x0, x2, x3))",
                   {{2, 2, 2, 2}}, {SameType(0, 1), SameType(2, 3)}),
      RuleFromText("where(split(x0; axis=-1, sizes=[n,m]).0, x1, x2) | "
                   "where(split(x0; axis=-1, sizes=[n,m]).1, x1, x2) -> "
                   "split(where(x0, x1, x2); axis=-1, sizes=[n,m]).0 | "
                   "split(where(x0, x1, x2); axis=-1, sizes=[n,m]).1",
                   {{2, 1, 1}},
                   {EqualTo(IntExpr::SizeOf(1, -1), IntExpr::Constant(1)),
                    EqualTo(IntExpr::SizeOf(2, -1), IntExpr::Constant(1))}),
  });
  ExpectNotProved({
      RuleFromText("sin(where(x0, x1, x2)) -> where(x0, sin(x1), x2)", broadcast),
      RuleFromText("where(x0, x1, x2) -> where(x0, x2, x1)", {{2, 2, 2}}, {SameType(1, 2)}),
      RuleFromText("where(x0, where(x1, x2, x3), x3) -> where(x1, x2, x3)", {{2, 2, 2, 2}},
                   {SameType(0, 1), SameType(2, 3)}),
  });
}

// Each element of a sum has a condition of its own: none of them is that of the others.
TEST(ByDefinition, ConditionsInsideOfSumsAreNotOneCondition) {
  ExpectNotProved({
      RuleFromText("reduce_sum(where(x0, x1, x2); axes=[-1], keepdims=1) -> "
                   "where(x0, reduce_sum(x1; axes=[-1], keepdims=1), "
                   "reduce_sum(x2; axes=[-1], keepdims=1))",
                   {{2, 2, 2}}, {SameType(1, 2)}),
      RuleFromText("where(x0, matmul(x1, x3), matmul(x2, x3)) -> matmul(where(x0, x1, x2), x3)",
                   {{2, 2, 2, 2}}, {SameType(1, 2)}),
  });
}

// Each maximum is one of its arguments; which, depends on the order of these alone.
TEST(ByDefinition, SumsAndProductsOfMaximaAreDecidedInEveryOrder) {
  const std::vector<Condition> same = {SameType(0, 1)};
  ExpectProved({
      RuleFromText("sub(relu(x0), x0) -> relu(scale(x0; factor=-1.0))", kOne),
      RuleFromText("maximum(x0, sub(x1, x1)) -> relu(x0)", {{2, 2}}, same),
      RuleFromText("add(relu(x0), relu(scale(x0; factor=-1.0))) -> abs(x0)", kOne),
      RuleFromText("add(maximum(x0, x1), minimum(x0, x1)) -> add(x0, x1)", {{2, 2}}, same),
      RuleFromText("mul(relu(x0), x0) -> mul(relu(x0), relu(x0))", kOne),
      RuleFromText("mul(maximum(maximum(x0, x1), x2), minimum(x0, minimum(x1, x2))) -> "
                   "mul(minimum(minimum(x0, x1), x2), maximum(x0, maximum(x1, x2)))",
                   kThree, {SameType(0, 1), SameType(0, 2)}),
      RuleFromText("add(clip(x0; max=6.0, min=0.0), relu(x0)) -> "
                   "add(clip(relu(x0); max=6.0, min=0.0), maximum(relu(x0), x0))",
                   kOne),
      // A maximum whose argument is one.
      RuleFromText("relu(sub(relu(x0), x0)) -> relu(scale(x0; factor=-1.0))", kOne),
  });
  ExpectNotProved({
      RuleFromText("sub(x0, relu(x0)) -> relu(scale(x0; factor=-1.0))", kOne),
      RuleFromText("sub(relu(x0), x0) -> abs(x0)", kOne),
      RuleFromText("maximum(x0, add(x1, x1)) -> relu(x0)", {{2, 2}}, same),
      RuleFromText("add(maximum(x0, x1), maximum(x0, x1)) -> add(x0, x1)", {{2, 2}}, same),
      RuleFromText("mul(maximum(maximum(x0, x1), x2), minimum(x0, minimum(x1, x2))) -> "
                   "mul(maximum(x0, x1), minimum(x1, x2))",
                   kThree, {SameType(0, 1), SameType(0, 2)}),
      RuleFromText("add(clip(x0; max=6.0, min=0.0), relu(x0)) -> "
                   "add(clip(x0; max=5.0, min=0.0), relu(x0))",
                   kOne),
      RuleFromText("add(relu(x0), relu(x1)) -> relu(add(x0, x1))", {{2, 2}}, same),
      RuleFromText("scale(relu(x0); factor=f) -> sub(relu(scale(x0; factor=f)), sub(x0, x0))",
                   kOne),
  });
}

// The elements of a sum have an order each.
TEST(ByDefinition, MaximaInsideOfSumsAreNotInOneOrder) {
  ExpectNotProved({
      RuleFromText("relu(reduce_sum(x0; axes=[-1], keepdims=1)) -> "
                   "reduce_sum(relu(x0); axes=[-1], keepdims=1)",
                   {{2}}),
      RuleFromText("matmul(relu(x0), x1) -> matmul(x0, x1)", {{2, 2}}),
      RuleFromText("matmul(relu(x0), relu(x0)) -> matmul(relu(x0), x0)", {{2}}),
  });
}

TEST(ByDefinition, NegationReversesTheOrder) {
  ExpectProved({
      RuleFromText("relu(abs(x0)) -> abs(x0)", kOne),
      RuleFromText("maximum(x0, scale(x0; factor=-1.0)) -> abs(x0)", kOne),
      RuleFromText("abs(scale(x0; factor=-1.0)) -> abs(x0)", kOne),
      RuleFromText("maximum(x0, scale(relu(x0); factor=-1.0)) -> relu(x0)", {{2}}),
  });
  ExpectNotProved({
      RuleFromText("relu(x0) -> abs(x0)", kOne),
      RuleFromText("maximum(x0, scale(relu(x0); factor=-1.0)) -> x0", {{2}}),
      RuleFromText("relu(scale(x0; factor=-1.0)) -> scale(relu(x0); factor=-1.0)", kOne),
      RuleFromText("abs(scale(x0; factor=f)) -> scale(abs(x0); factor=f)", kOne),
  });
}

TEST(ByDefinition, ConstantsAreInTheirOrder) {
  ExpectProved({
      RuleFromText("clip(relu(x0); max=6.0, min=0.0) -> clip(x0; max=6.0, min=0.0)", kOne),
      RuleFromText("clip(clip(x0; max=6.0, min=0.0); max=7.0, min=-1.0) -> "
                   "clip(x0; max=6.0, min=0.0)",
                   kOne),
  });
  ExpectNotProved({
      RuleFromText("clip(relu(x0); max=6.0, min=-1.0) -> clip(x0; max=6.0, min=-1.0)", kOne),
      RuleFromText("clip(clip(x0; max=6.0, min=0.0); max=5.0, min=-1.0) -> "
                   "clip(x0; max=6.0, min=0.0)",
                   kOne),
  });
}

TEST(ByDefinition, QuotientsOfProducts) {
  ExpectProved({
      RuleFromText("div(x0, div(x1, x2)) -> mul(div(x0, x1), x2)", kThree, {NoPartials(2)}),
      RuleFromText("reciprocal(mul(x0, x1)) -> mul(reciprocal(x0), reciprocal(x1))", kTwo),
      RuleFromText("reciprocal(div(x0, x1)) -> div(x1, x0)", {{2, 2}}, {SameType(0, 1)}),
      RuleFromText("div(x0, add(x1, x1)) -> div(scale(x0; factor=0.5), x1)", kTwo),
  });
  ExpectNotProved({
      RuleFromText("div(x0, div(x1, x2)) -> div(x0, mul(x1, x2))", kThree),
      RuleFromText("reciprocal(add(x0, x1)) -> add(reciprocal(x0), reciprocal(x1))", kTwo),
      RuleFromText("div(mul(x0, x1), x0) -> scale(x1; factor=2.0)", {{2, 2}}, {SameType(0, 1)}),
      RuleFromText("reciprocal(scale(x0; factor=f)) -> scale(reciprocal(x0); factor=f)", kOne),
  });
}

// Where the source is defined, what it divides by is not zero.
TEST(ByDefinition, DivisorsCancel) {
  const Condition same = SameType(0, 1);
  ExpectProved({
      RuleFromText("div(x0, div(x0, sub(div(x1, x0), x2))) -> sub(div(x1, x0), x2)", {{2, 2, 2}},
                   {same, SameType(0, 2)}),
      RuleFromText("div(add(x0, x1), div(add(x0, x1), div(x2, add(x0, x1)))) -> "
                   "div(x2, add(x0, x1))",
                   {{2, 2, 2}}, {same, SameType(0, 2)}),
      RuleFromText("div(add(x0, x1), div(x0, div(x2, add(x0, x1)))) -> div(x2, x0)", {{2, 2, 2}},
                   {same, SameType(0, 2)}),
      RuleFromText("div(sub(x0, x1), sub(x2, add(x2, x2))) -> div(sub(x1, x0), x2)", {{2, 2, 2}},
                   {same, SameType(0, 2), NoPartials(2)}),
      RuleFromText("sub(x0, add(x0, div(x0, sub(x1, x2)))) -> div(x0, sub(x2, x1))", {{2, 2, 2}},
                   {same, SameType(0, 2), NoPartials(2)}),
  });
  ExpectNotProved({
      // The target divides by what may be zero.
      RuleFromText("div(x0, x1) -> div(mul(x0, x2), mul(x1, x2))", {{2, 2, 2}},
                   {same, SameType(0, 2), NoPartials(0), NoPartials(1), NoPartials(2)}),
      RuleFromText("div(x0, sub(x1, x2)) -> div(x0, add(x1, x2))", {{2, 2, 2}},
                   {same, SameType(0, 2), NoPartials(2)}),
      RuleFromText("div(add(x0, x1), div(add(x0, x1), x2)) -> div(x2, add(x0, x1))", {{2, 2, 2}},
                   {same, SameType(0, 2)}),
      // Nothing is divided by zero on one side alone.
      RuleFromText("div(x0, sub(x1, x1)) -> div(x2, sub(x1, x1))", {{2, 2, 2}},
                   {same, SameType(0, 2), NoPartials(1)}),
      // A branch that is not taken divides by nothing.
      RuleFromText("where(x0, div(x1, x2), x1) -> where(x0, div(x1, x2), div(mul(x1, x2), x2))",
                   {{2, 2, 2}}, {same, SameType(0, 2)}),
  });
}

// What is among the numbers that a maximum is taken over adds nothing beside it.
TEST(ByDefinition, MaximaCoverTheirParts) {
  const Condition same = SameType(0, 1);
  ExpectProved({
      RuleFromText("maximum(x0, maximum(x1, reduce_max(x0; axes=[-1], keepdims=1))) -> "
                   "maximum(x1, reduce_max(x0; axes=[-1], keepdims=1))",
                   {{2, 2}}, {same}),
      RuleFromText("minimum(minimum(x0, x1), reduce_min(reduce_min(x0; axes=[-1], keepdims=1); "
                   "axes=[-2], keepdims=1)) -> minimum(x1, reduce_min(reduce_min(x0; axes=[-1], "
                   "keepdims=1); axes=[-2], keepdims=1))",
                   {{2, 2}}, {same}),
      RuleFromText("maximum(reduce_max(x0; axes=[-1], keepdims=0), "
                   "reduce_max(maximum(x1, reduce_max(x0; axes=[-1], keepdims=0)); "
                   "axes=[-1], keepdims=0)) -> "
                   "reduce_max(maximum(x1, reduce_max(x0; axes=[-1], keepdims=0)); axes=[-1], "
                   "keepdims=0)",
                   {{2, 2}}, {same}),
  });
  ExpectNotProved({
      // The smallest is no more than these.
      RuleFromText("minimum(x0, reduce_max(x0; axes=[-1], keepdims=1)) -> "
                   "reduce_max(x0; axes=[-1], keepdims=1)",
                   kOne),
      RuleFromText("maximum(x0, maximum(x1, reduce_max(x0; axes=[-1], keepdims=1))) -> "
                   "maximum(x0, reduce_max(x0; axes=[-1], keepdims=1))",
                   {{2, 2}}, {same}),
      RuleFromText("maximum(x0, reduce_min(x0; axes=[-1], keepdims=1)) -> "
                   "reduce_min(x0; axes=[-1], keepdims=1)",
                   kOne),
      // Of another tensor, of another row.
      RuleFromText("maximum(transpose(x0; perm=[1,0]), reduce_max(x0; axes=[-1], keepdims=1)) -> "
                   "reduce_max(x0; axes=[-1], keepdims=1)",
                   {{2}}),
      RuleFromText("maximum(x0, maximum(x1, reduce_max(x1; axes=[-1], keepdims=1))) -> "
                   "reduce_max(x1; axes=[-1], keepdims=1)",
                   {{2, 2}}, {same}),
      // x0 is no part of the second alone.
      RuleFromText("reduce_min(minimum(x0, reduce_min(x1; axes=[-1], keepdims=1)); axes=[-1], "
                   "keepdims=1) -> reduce_min(minimum(x0, reduce_min(minimum(x0, x1); axes=[-2], "
                   "keepdims=1)); axes=[-1], keepdims=1)",
                   {{2, 2}}, {same}),
  });
}

// Though with a few small numbers the smallest is often among those of the other input.
TEST(ByDefinition, OneInputMayBeBelowTheOther) {
  const std::string of_rows = "reduce_min(reduce_min(",
                    of_all = "; axes=[-1], keepdims=0); axes=[-1], keepdims=0)";
  ExpectRefuted({
      RuleFromText(of_rows + "concat(x0, concat(x1, x1; axis=-2); axis=-2)" + of_all + " -> " +
                       of_rows + "x1" + of_all,
                   {{2, 2}}, {EqualTo(IntExpr::SizeOf(0, -2), IntExpr::Constant(1))}),
      RuleFromText(of_rows + "concat(concat(x0, x1; axis=-2), concat(x0, x1; axis=-2); axis=-2)" +
                       of_all + " -> " + of_rows + "x1" + of_all,
                   {{2, 2}}, {EqualTo(IntExpr::SizeOf(0, -2), IntExpr::Constant(1))}),
      RuleFromText("reduce_min(minimum(x0, reduce_min(x1; axes=[-1], keepdims=0)); axes=[-1], "
                   "keepdims=0) -> reduce_min(minimum(x0, reduce_min(minimum(x0, x1); axes=[-1], "
                   "keepdims=0)); axes=[-1], keepdims=0)",
                   {{2, 2}}, {SameType(0, 1)}),
  });
}

// A sum over integers is one; a matrix product takes none.
TEST(ByDefinition, IntegersAreTriedWithIntegerFactors) {
  ExpectRefuted({RuleFromText(
      "reduce_sum(reduce_sum(mul(x0, scale(x1; factor=f)); axes=[-2], keepdims=1); axes=[-1], "
      "keepdims=1) -> matmul(reduce_sum(transpose(x0; swap=-2:-1); axes=[-2], keepdims=1), "
      "scale(x1; factor=f))",
      {{2, 2}},
      {EqualTo(IntExpr::SizeOf(0, -2), IntExpr::SizeOf(1, -2)),
       EqualTo(IntExpr::SizeOf(1, -1), IntExpr::Constant(1)), Unpartitioned(0, -1)})});
}

// A sum of n + m times the same is n times that and m times that.
TEST(ByDefinition, SumsOfWhatDoesNotDependOnTheIndex) {
  const std::string s = "reduce_sum(x0; axes=[-1], keepdims=1)";
  ExpectProved({
      RuleFromText("reduce_sum(sub(" + s + ", concat(" + s +
                       ", x1; axis=-1)); axes=[-1], "
                       "keepdims=1) -> reduce_sum(sub(" +
                       s + ", x1); axes=[-1], keepdims=1)",
                   {{2, 2}}, {SameType(0, 1)}),
  });
  ExpectNotProved({
      RuleFromText("reduce_sum(add(" + s + ", concat(" + s +
                       ", x1; axis=-1)); axes=[-1], "
                       "keepdims=1) -> reduce_sum(add(" +
                       s + ", x1); axes=[-1], keepdims=1)",
                   {{2, 2}}, {SameType(0, 1)}),
  });
}

TEST(ByDefinition, MaximaOverADim) {
  const Condition whole = Unpartitioned(0, -1), same = SameType(0, 1);
  ExpectProved({
      RuleFromText("reduce_max(concat(x0, x1; axis=-1); axes=[-1], keepdims=0) -> "
                   "maximum(reduce_max(x0; axes=[-1], keepdims=0), "
                   "reduce_max(x1; axes=[-1], keepdims=0))",
                   {{2, 2}}),
      RuleFromText("reduce_max(maximum(x0, x1); axes=[-1], keepdims=1) -> "
                   "maximum(reduce_max(x0; axes=[-1], keepdims=1), "
                   "reduce_max(x1; axes=[-1], keepdims=1))",
                   {{2, 2}}, {same}),
      RuleFromText("reduce_max(reduce_max(x0; axes=[-1], keepdims=1); axes=[-2], keepdims=1) -> "
                   "reduce_max(reduce_max(x0; axes=[-2], keepdims=1); axes=[-1], keepdims=1)",
                   kOne, {whole}),
      RuleFromText("scale(reduce_max(scale(x0; factor=-1.0); axes=[i], keepdims=1); factor=-1.0) "
                   "-> reduce_min(x0; axes=[i], keepdims=1)",
                   kOne),
  });
  ExpectNotProved({
      RuleFromText("reduce_max(concat(x0, x1; axis=-1); axes=[-1], keepdims=0) -> "
                   "reduce_max(x0; axes=[-1], keepdims=0)",
                   {{2, 2}}),
      RuleFromText("reduce_max(minimum(x0, x1); axes=[-1], keepdims=1) -> "
                   "minimum(reduce_max(x0; axes=[-1], keepdims=1), "
                   "reduce_max(x1; axes=[-1], keepdims=1))",
                   {{2, 2}}, {same}),
      RuleFromText("reduce_max(add(x0, x1); axes=[-1], keepdims=1) -> "
                   "add(reduce_max(x0; axes=[-1], keepdims=1), "
                   "reduce_max(x1; axes=[-1], keepdims=1))",
                   {{2, 2}}, {same}),
      RuleFromText("reduce_max(x0; axes=[-1], keepdims=1) -> reduce_min(x0; axes=[-1], keepdims=1)",
                   kOne),
  });
}

TEST(ByDefinition, LookUps) {
  const Ranks table = {{2, 2}}, two = {{2, 2, 2}};
  ExpectProved({
      RuleFromText("embedding(mul(x0, x1), x2) -> mul(embedding(x0, x2), embedding(x1, x2))", two,
                   {SameType(0, 1), Unpartitioned(0, -2)}),
      RuleFromText("embedding_bag(x0, x1; mean=0) -> "
                   "reduce_sum(embedding(x0, x1); axes=[-2], keepdims=0)",
                   table),
  });
  ExpectNotProved({
      RuleFromText("embedding(mul(x0, x1), x2) -> mul(embedding(x0, x2), x1)", two,
                   {SameType(0, 1)}),
      RuleFromText("embedding(mul(x0, x1), x2) -> mul(embedding(x0, x2), embedding(x0, x2))", two,
                   {SameType(0, 1)}),
      RuleFromText("embedding_bag(mul(x0, x1), x2; mean=0) -> "
                   "mul(embedding_bag(x0, x2; mean=0), embedding_bag(x1, x2; mean=0))",
                   two, {SameType(0, 1)}),
      RuleFromText("embedding_bag(x0, x1; mean=0) -> "
                   "reduce_sum(embedding(x0, x1); axes=[-3], keepdims=0)",
                   table),
  });
}

TEST(ByDefinition, Softmax) {
  const std::string parts =
      "div(exp(sub(x0, reduce_max(x0; axes=[i], keepdims=1))), "
      "reduce_sum(exp(sub(x0, reduce_max(x0; axes=[i], keepdims=1))); axes=[i], keepdims=1))";
  ExpectProved({RuleFromText("softmax(x0; axis=i) -> " + parts, {{1}, {2}, {3}}),
                RuleFromText(parts + " -> softmax(x0; axis=i)", {{1}, {2}, {3}})});
  ExpectNotProved({
      // The maximum is of other elements.
      RuleFromText("softmax(x0; axis=-1) -> "
                   "div(exp(sub(x0, reduce_max(x0; axes=[-2], keepdims=1))), "
                   "reduce_sum(exp(sub(x0, reduce_max(x0; axes=[-1], keepdims=1))); axes=[-1], "
                   "keepdims=1))",
                   kOne),
      RuleFromText("softmax(x0; axis=-1) -> "
                   "div(exp(x0), reduce_sum(exp(x0); axes=[-2], keepdims=1))",
                   kOne),
  });
}

// Of all sizes: its number is a variable of two operators.
TEST(ByDefinition, AttentionIsItsParts) {
  const std::string attention = "attention(x0, x1, x2; causal=0, scale=f)";
  const auto parts = [](const std::string& factor, const std::string& axis) {
    return "matmul(softmax(scale(matmul(x0, transpose(x1; swap=-2:-1)); factor=" + factor +
           "); axis=" + axis + "), x2)";
  };
  const auto size = [](int input, int64_t axis) { return IntExpr::SizeOf(input, axis); };
  const std::vector<Condition> heads = {EqualTo(size(0, -3), size(1, -3))};
  std::vector<Condition> sizes = heads;
  for (const auto& [a, b, axis] :
       {std::tuple(0, 1, -4), {0, 1, -1}, {1, 2, -4}, {1, 2, -3}, {1, 2, -2}}) {
    sizes.push_back(EqualTo(size(a, axis), size(b, axis)));
  }
  const Ranks ranks = {{4, 4, 4}};
  ExpectProved({RuleFromText(attention + " -> " + parts("f", "-1"), ranks, heads),
                RuleFromText(parts("f", "-1") + " -> " + attention, ranks, sizes)});
  ExpectNotProved({
      RuleFromText(attention + " -> " + parts("f", "-1"), ranks),  // heads that share keys
      RuleFromText(attention + " -> " + parts("f*f", "-1"), ranks, heads),
      RuleFromText(attention + " -> " + parts("f", "-2"), ranks, heads),
      RuleFromText("attention(x0, x1, x2; causal=1, scale=f) -> " + parts("f", "-1"), ranks, heads),
      RuleFromText(parts("f", "-1") + " -> " + attention, ranks, heads),  // batches of one
  });
}

}  // namespace
}  // namespace isomer
