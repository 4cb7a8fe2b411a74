// The gradient theorem, and gradients of which it must not hold.
#include "verifier/gradients/gradient.h"

#include <gtest/gtest.h>

#include "pcg/ir/operator_facts.h"
#include "pcg/ir/parallel_operator.h"
#include "tests/verifier/rule_from_text.h"
#include "tests/verifier/true_rules.h"
#include "verifier/gradients/gradient_duals.h"

namespace isomer {
namespace {

constexpr OpKind kWithDuals[] = {OpKind::kPartition, OpKind::kCombine, OpKind::kReplicate,
                                 OpKind::kReduce};

TEST(GradientDuals, OfEveryOperatorAreItsGradient) {
  for (OpKind kind : kWithDuals) {
    EXPECT_TRUE(ProveDualTypes(kind, DualsOf).ok()) << OpName(kind);
  }
  for (OpKind kind : AllOpKinds()) {
    if (!IsParallel(kind)) continue;
    const absl::Status status = CheckDualsAtSmallTypes(kind, DualsOf);
    EXPECT_TRUE(status.ok()) << status;
  }
}

// `of` in place of the dual of `kind`.
Duals WithWrongDual(OpKind kind, std::function<std::vector<Operator>(const Operator&)> of) {
  return [=](const Operator& op) { return op.kind() == kind ? of(op) : DualsOf(op); };
}

struct WrongDual {
  std::string name;
  OpKind kind;
  std::function<std::vector<Operator>(const Operator&)> duals;
  bool types_tell = true;  // else values do
};

class WrongGradient : public testing::TestWithParam<WrongDual> {};

TEST_P(WrongGradient, IsRefused) {
  const WrongDual& wrong = GetParam();
  const Duals duals = WithWrongDual(wrong.kind, wrong.duals);
  EXPECT_EQ(ProveDualTypes(wrong.kind, duals).ok(), !wrong.types_tell);
  EXPECT_FALSE(CheckDualsAtSmallTypes(wrong.kind, duals).ok());
  const Rule rule = RuleFromText(
      "matmul(reduce(x0; degree=d), x1) -> reduce(matmul(x0, replicate(x1; degree=d)); degree=d)",
      {{2, 2}}, {NoPartials(1)});
  GradientProver prover(duals);
  const GradientTheorem theorem = prover.Prove(rule);
  const bool concerned = wrong.kind == OpKind::kReplicate || wrong.kind == OpKind::kReduce;
  EXPECT_EQ(theorem.status.ok(), !concerned) << theorem.status;
}

Operator Scaled(double factor) { return Operator(OpKind::kScale, {{"factor", factor}}); }

INSTANTIATE_TEST_SUITE_P(
    ClassicBugs, WrongGradient,
    testing::Values(WrongDual{"ReplicateForgotten", OpKind::kReplicate,
                              [](const Operator&) { return std::vector<Operator>(); }},
                    WrongDual{"ReplicateAgain", OpKind::kReplicate,
                              [](const Operator& op) { return std::vector<Operator>{op}; }},
                    WrongDual{"AveragedTwice", OpKind::kReplicate,
                              [](const Operator& op) {
                                const double d = static_cast<double>(op.Int("degree"));
                                return std::vector<Operator>{DualOf(op), Scaled(1 / d)};
                              },
                              /*types_tell=*/false},
                    WrongDual{"ReducedByAnotherDegree", OpKind::kReplicate,
                              [](const Operator&) { return std::vector<Operator>{Reduce(1)}; }},
                    WrongDual{"ReduceForgotten", OpKind::kReduce,
                              [](const Operator&) { return std::vector<Operator>(); }},
                    WrongDual{"ReduceAddsShares", OpKind::kReduce,
                              [](const Operator& op) { return std::vector<Operator>{op}; }},
                    WrongDual{"PartitionForgotten", OpKind::kPartition,
                              [](const Operator&) { return std::vector<Operator>(); }},
                    WrongDual{"CombineAlongAnotherAxis", OpKind::kPartition,
                              [](const Operator& op) {
                                return std::vector<Operator>{
                                    Combine(op.Int("axis") == -1 ? -2 : -1, op.Int("degree"))};
                              }},
                    WrongDual{"CombineAgain", OpKind::kCombine,
                              [](const Operator& op) { return std::vector<Operator>{op}; }}),
    [](const auto& info) { return info.param.name; });

TEST(GradientTheorem, HoldsOfTrueRules) {
  GradientProver prover;
  for (const Rule& rule : TrueRules()) {
    const GradientTheorem theorem = prover.Prove(rule);
    EXPECT_TRUE(theorem.status.ok()) << rule.ToString() << ": " << theorem.status;
    EXPECT_NE(theorem.reach, GradientReach::kNone) << rule.ToString();
  }
}

TEST(GradientTheorem, NamesTheDualsItRestsOn) {
  GradientProver prover;
  const GradientTheorem theorem = prover.Prove(
      RuleFromText("matmul(x0, x1) -> combine(matmul(partition(x0; axis=-2, degree=d), "
                   "replicate(x1; degree=d)); axis=-2, degree=d)",
                   {{2, 2}}, {Divides("d", 0, -2)}));
  EXPECT_EQ(theorem.reach, GradientReach::kEverywhere);
  EXPECT_EQ(theorem.lemmas, (std::set<std::string>{
                                "combine_gradient_is_partition", "gradient:by_duality",
                                "partition_gradient_is_combine", "replicate_gradient_is_reduce"}));
}

TEST(GradientTheorem, ReachesAlmostEverywhereWhereThereAreKinks) {
  GradientProver prover;
  for (const char* text : {"relu(relu(x0)) -> relu(x0)", "abs(abs(x0)) -> abs(x0)",
                           "maximum(x0, x0) -> x0", "floor(floor(x0)) -> floor(x0)"}) {
    EXPECT_EQ(prover.Prove(RuleFromText(text, {{2}})).reach, GradientReach::kAlmostEverywhere)
        << text;
  }
  for (const char* text : {"exp(x0) -> exp(x0)", "scale(x0; factor=1.0) -> x0"}) {
    EXPECT_EQ(prover.Prove(RuleFromText(text, {{2}})).reach, GradientReach::kEverywhere) << text;
  }
}

TEST(GradientTheorem, SaysNothingWhereThereIsNothingToDifferentiate) {
  GradientProver prover;
  EXPECT_EQ(prover.Prove(RuleFromText("not(not(x0)) -> x0", {{1}})).reach, GradientReach::kNone);
  EXPECT_EQ(prover.Prove(RuleFromText("less(x0, x1) -> less(x0, x1)", {{1, 1}})).reach,
            GradientReach::kNone);
}

TEST(GradientTheorem, EveryOperatorHasAGradientAlmostEverywhere) {
  int smooth = 0;
  for (OpKind kind : AllOpKinds()) {
    if (IsLeaf(kind) || IsParallel(kind)) continue;
    const absl::StatusOr<GradientReach> reach = ReachOfKind(kind);
    EXPECT_TRUE(reach.ok()) << reach.status();
    smooth += reach.ok() && *reach == GradientReach::kEverywhere;
  }
  EXPECT_EQ(*ReachOfKind(OpKind::kMatMul), GradientReach::kEverywhere);
  EXPECT_EQ(*ReachOfKind(OpKind::kMaxPool), GradientReach::kAlmostEverywhere);
  EXPECT_EQ(*ReachOfKind(OpKind::kDropout), GradientReach::kEverywhere);
  EXPECT_GE(smooth, 30);
}

}  // namespace
}  // namespace isomer
