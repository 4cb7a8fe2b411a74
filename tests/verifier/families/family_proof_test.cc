// Families in all their forms, and forms that are false.
#include "verifier/families/family_proof.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_split.h"
#include "tests/verifier/rule_from_text.h"
#include "verifier/proving/prover.h"

namespace isomer {
namespace {

struct Case {
  std::string text;  // "OP" is the call's operator
  // kSplitsDim: "d: i,- > j" is d splits (i,- -> j) of the call; none if empty.
  std::string split;
  std::vector<int> no_partials = {};
};

// Of another operator.
std::vector<Case> With(const std::string& op, std::vector<Case> cases) {
  for (Case& one : cases) {
    for (size_t at; (at = one.text.find("OP(")) != one.text.npos;) one.text.replace(at, 2, op);
  }
  return cases;
}

std::vector<std::optional<IntExpr>> Axes(absl::string_view text) {
  std::vector<std::optional<IntExpr>> axes;
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    axes.push_back(name == "-" ? std::nullopt
                               : std::optional(IntExpr::Variable(std::string(name))));
  }
  return axes;
}

Condition Splits(const std::string& text, int node) {
  const std::vector<std::string> parts = absl::StrSplit(text, ' ');  // "d:", "i,-", ">", "j"
  Condition condition;
  condition.kind = Condition::Kind::kSplitsDim;
  condition.left = parts[0] == "1:" ? IntExpr::Constant(1) : IntExpr::Variable("d");
  condition.node = node;
  condition.operand_axes = Axes(parts[1]);
  condition.output_axes = Axes(parts[3]);
  return condition;
}

// The rule; `attributes` of the call are variables.
Rule RuleOf(const Case& form, const std::vector<std::vector<int>>& ranks,
            const std::vector<std::string>& attributes = {}) {
  Rule rule = RuleFromText(form.text, ranks);
  for (const std::string& name : attributes)
    rule.variables.push_back({name, VariableKind::kAttribute});
  int call = -1;
  for (Pattern* side : {&rule.target, &rule.source}) {
    for (size_t n = 0; n < side->nodes.size(); ++n) {
      if (IsParallel(side->nodes[n].kind)) continue;
      call = static_cast<int>(n);
      for (const std::string& name : attributes) {
        side->nodes[n].attributes.push_back({name, AttributeVariable{name}});
      }
    }
  }
  if (!form.split.empty()) {
    rule.conditions.push_back(Splits(form.split, call));
    // Axes that occur in the condition alone.
    for (const auto* axes : {&rule.conditions[0].operand_axes, &rule.conditions[0].output_axes}) {
      for (const std::optional<IntExpr>& axis : *axes) {
        if (axis && std::none_of(rule.variables.begin(), rule.variables.end(),
                                 [&](const RuleVariable& v) { return v.name == axis->variable; })) {
          rule.variables.push_back({axis->variable, VariableKind::kAxis});
        }
      }
    }
  }
  for (int input : form.no_partials) rule.conditions.push_back(NoPartials(input));
  SetId(&rule);
  return rule;
}

const std::vector<std::vector<int>> kMatMulRanks = {{2, 2}, {3, 2}, {3, 3}};
const std::vector<std::string> kConvAttributes = {"dilation", "groups", "padding", "stride"};

// True of MatMul and of Conv2d: i and j are rows or samples, or i and k what is summed over.
const std::vector<Case> kForms = {
    {"OP(combine(x0; axis=i, degree=d), x1) -> "
     "combine(OP(x0, replicate(x1; degree=d)); axis=j, degree=d)",
     "d: i,- > j"},
    {"combine(OP(x0, replicate(x1; degree=d)); axis=j, degree=d) -> "
     "OP(combine(x0; axis=i, degree=d), x1)",
     "1: i,- > j"},
    {"partition(OP(x0, x1); axis=j, degree=d) -> "
     "OP(partition(x0; axis=i, degree=d), replicate(x1; degree=d))",
     "d: i,- > j"},
    {"OP(partition(x0; axis=i, degree=d), replicate(x1; degree=d)) -> "
     "partition(OP(x0, x1); axis=j, degree=d)",
     "1: i,- > j"},
    {"partition(OP(combine(x0; axis=i, degree=d), x1); axis=j, degree=d) -> "
     "OP(x0, replicate(x1; degree=d))",
     "d: i,- > j"},
    {"OP(combine(x0; axis=i, degree=d), combine(x1; axis=k, degree=d)) -> "
     "reduce(OP(x0, x1); degree=d)",
     "d: i,k > -"},
    {"reduce(OP(x0, x1); degree=d) -> "
     "OP(combine(x0; axis=i, degree=d), combine(x1; axis=k, degree=d))",
     "1: i,k > -",
     {0, 1}},
    {"reduce(OP(x0, partition(x1; axis=k, degree=d)); degree=d) -> "
     "OP(combine(x0; axis=i, degree=d), x1)",
     "1: i,k > -"},
    {"OP(reduce(x0; degree=d), x1) -> reduce(OP(x0, replicate(x1; degree=d)); degree=d)", "", {1}},
    {"OP(x0, reduce(x1; degree=d)) -> reduce(OP(replicate(x0; degree=d), x1); degree=d)", "", {0}},
};

TEST(Families, EveryFormOfMatMulIsProvedFromProvedLemmas) {
  Prover prover;
  for (const Case& form : With("matmul", kForms)) {
    const Rule rule = RuleOf(form, kMatMulRanks);
    ASSERT_EQ(ValidateRule(rule), absl::OkStatus()) << rule.ToString();
    const ProofRecord record = prover.Prove(rule);
    EXPECT_EQ(record.verdict, ProofRecord::Verdict::kProved) << rule.ToString() << record.note;
  }
}

TEST(Families, EveryFormOfConv2dIsProvedForAnyAttributes) {
  Prover prover;
  for (const Case& form : With("conv2d", kForms)) {
    const Rule rule = RuleOf(form, {{4, 4}}, kConvAttributes);
    ASSERT_EQ(ValidateRule(rule), absl::OkStatus()) << rule.ToString();
    const ProofRecord record = prover.Prove(rule);
    EXPECT_EQ(record.verdict, ProofRecord::Verdict::kProved) << rule.ToString() << record.note;
    EXPECT_EQ(std::count(record.lemmas.begin(), record.lemmas.end(), "pieces_of_conv2d"), 1);
  }
}

void ExpectRefuted(const std::vector<Case>& mutants, const std::vector<std::vector<int>>& ranks,
                   const std::vector<std::string>& attributes = {}) {
  Prover prover;
  for (const Case& mutant : mutants) {
    const Rule rule = RuleOf(mutant, ranks, attributes);
    SCOPED_TRACE(rule.ToString());
    ASSERT_EQ(ValidateRule(rule), absl::OkStatus());
    const Judgement judgement = prover.Judge(rule);
    ASSERT_EQ(judgement.record.verdict, ProofRecord::Verdict::kRefuted) << judgement.record.note;
    EXPECT_EQ(Replay(rule, *judgement.counterexample), absl::OkStatus());
  }
}

// Mutants of forms of MatMul and Conv2d.
const std::vector<Case> kMutants = {
    // Replicate forgotten.
    {"OP(combine(x0; axis=i, degree=d), x1) -> combine(OP(x0, x1); axis=j, degree=d)",
     "d: i,- > j"},
    {"partition(OP(x0, x1); axis=j, degree=d) -> OP(partition(x0; axis=i, degree=d), x1)",
     "d: i,- > j"},
    // Reduce dropped, or Combine in its place.
    {"OP(combine(x0; axis=i, degree=d), combine(x1; axis=k, degree=d)) -> OP(x0, x1)",
     "d: i,k > -"},
    {"OP(combine(x0; axis=i, degree=d), combine(x1; axis=k, degree=d)) -> "
     "combine(OP(x0, x1); axis=i, degree=d)",
     "d: i,k > -"},
    // One operand too many is reduced; no condition on the other's partial sums, or on the sum's.
    {"OP(reduce(x0; degree=d), reduce(x1; degree=d)) -> reduce(OP(x0, x1); degree=d)", ""},
    {"OP(reduce(x0; degree=d), x1) -> reduce(OP(x0, replicate(x1; degree=d)); degree=d)", ""},
    {"reduce(OP(x0, replicate(x1; degree=d)); degree=d) -> OP(reduce(x0; degree=d), x1)", "", {1}},
    {"reduce(OP(x0, x1); degree=d) -> "
     "OP(combine(x0; axis=i, degree=d), combine(x1; axis=k, degree=d))",
     "1: i,k > -"},
    // The call is not split, so that nothing can be combined; copies that other dims need.
    {"OP(x0, replicate(x1; degree=d)) -> "
     "partition(OP(combine(x0; axis=i, degree=d), x1); axis=j, degree=d)",
     "1: i,- > j"},
    {"OP(replicate(x0; degree=d), replicate(x1; degree=d)) -> replicate(OP(x0, x1); degree=d)", ""},
    // The condition does not say that d divides.
    {"OP(x0, x1) -> combine(OP(partition(x0; axis=i, degree=d), replicate(x1; degree=d)); "
     "axis=j, degree=d)",
     "1: i,- > j"},
};

TEST(Families, MutantsOfMatMulAreRefuted) { ExpectRefuted(With("matmul", kMutants), kMatMulRanks); }

TEST(Families, MutantsOfConv2dAreRefuted) {
  std::vector<Case> mutants = With("conv2d", kMutants);
  // Output channels are dim 0 of the kernel and dim 1 of the output.
  mutants.push_back(
      {"conv2d(x0, combine(x1; axis=i, degree=d)) -> "
       "combine(conv2d(replicate(x0; degree=d), x1); axis=i, degree=d)",
       "d: -,i > j"});
  mutants.push_back(
      {"conv2d(x0, combine(x1; axis=i, degree=d)) -> "
       "combine(conv2d(replicate(x0; degree=d), x1); axis=j, degree=d)",
       ""});
  ExpectRefuted(mutants, {{4, 4}}, kConvAttributes);
}

TEST(Families, SumsOfOneOperandOfAnAddAreRefuted) {
  // x1 would be added once for each partial sum.
  ExpectRefuted({{"add(reduce(x0; degree=d), x1) -> reduce(add(x0, x1); degree=d)", ""},
                 {"add(reduce(x0; degree=d), x1) -> "
                  "reduce(add(x0, replicate(x1; degree=d)); degree=d)",
                  "",
                  {1}}},
                {{2, 2}, {2, 1}});
}

TEST(Families, BroadcastOperandsCountAsShared) {
  // True unless each operand is broadcast along a dim that the other has.
  ExpectRefuted({{"maximum(replicate(x0; degree=d), replicate(x1; degree=d)) -> "
                  "replicate(maximum(x0, x1); degree=d)",
                  ""}},
                {{2, 2}});
}

// What is known of calls is known of all that broadcast at the rule's ranks, whatever these are.
TEST(Families, OfHighRanksAreProvedOfEveryBroadcast) {
  const Case copies = {
      "maximum(replicate(x0; degree=d), replicate(x1; degree=d)) -> "
      "replicate(maximum(x0, x1); degree=d)",
      ""};
  Prover prover;
  // A scalar has no dim that the other operand lacks.
  const Rule of_scalars = RuleOf(copies, {{0, 1}, {0, 5}, {0, 6}});
  EXPECT_EQ(prover.Prove(of_scalars).verdict, ProofRecord::Verdict::kProved);
  for (const std::vector<int>& ranks : std::vector<std::vector<int>>{{2, 2}, {5, 5}, {2, 6}}) {
    const Rule rule = RuleOf(copies, {{0, 1}, {0, 5}, ranks});
    EXPECT_NE(prover.Prove(rule).verdict, ProofRecord::Verdict::kProved) << ranks[0];
  }
  const Case one_led = {
      "where(x0, x1, x2) -> combine(where(replicate(x0; degree=d), "
      "partition(x1; axis=i, degree=d), replicate(x2; degree=d)); "
      "axis=j, degree=d)",
      "d: -,i,- > j"};
  Case forgotten = one_led;
  forgotten.text.replace(forgotten.text.find("replicate(x2; degree=d)"), 23, "x2");
  const std::vector<std::vector<int>> ranks = {{2, 2, 2}, {0, 6, 2}, {5, 6, 4}, {6, 6, 6}};
  const ProofRecord record = prover.Prove(RuleOf(one_led, ranks));
  EXPECT_EQ(record.verdict, ProofRecord::Verdict::kProved) << record.note;
  EXPECT_EQ(std::count(record.lemmas.begin(), record.lemmas.end(), "pieces_of_where"), 1);
  EXPECT_EQ(prover.Prove(RuleOf(forgotten, ranks)).verdict, ProofRecord::Verdict::kRefuted);
}

// The degree of a dim that is repeated would be one that the operand's type does not tell.
TEST(Families, OfRepeatedDimsOfAnExpandAreRefuted) {
  ExpectRefuted(
      {{"partition(expand(x0); axis=j, degree=d) -> expand(replicate(x0; degree=d))", ""}},
      {{2}, {5}}, {"shape"});
}

TEST(Families, ConditionOfAnotherNodeIsNotTakenForTheCalls) {
  Rule rule = RuleOf(With("matmul", kForms)[0], kMatMulRanks);
  rule.conditions[0].node = 0;  // the Combine
  rule.conditions[0].operand_axes.pop_back();
  EXPECT_FALSE(TakeApart(rule).has_value());
}

}  // namespace
}  // namespace isomer
