#include <gtest/gtest.h>

#include "pcg/support/file.h"
#include "tests/verifier/rule_from_text.h"
#include "verifier/families/lemma_text.h"
#include "verifier/lemmas/lemma_list.h"
#include "verifier/lemmas/lemmas_command.h"
#include "verifier/lemmas/lemmas_page.h"
#include "verifier/lemmas/prove_lemmas.h"
#include "verifier/lemmas/second_opinion.h"
#include "verifier/lemmas/small_assignments.h"

namespace isomer {
namespace {

RuleSet ShippedRules() {
  absl::StatusOr<RuleSet> rules =
      LoadRules(std::string(ISOMER_SOURCE_DIR) + "/rules/default.rules");
  EXPECT_TRUE(rules.ok()) << rules.status();
  return *std::move(rules);
}

TEST(LemmaList, KindsAreReadOffIds) {
  for (const auto& [id, kind] :
       std::map<std::string, LemmaKind>{{"partition_is_identity", LemmaKind::kDefinition},
                                        {"partials_mean_their_sum", LemmaKind::kDefinition},
                                        {"add_commutes", LemmaKind::kUnknown},
                                        {"pieces_of_reduce_sum_i0", LemmaKind::kPieces},
                                        {"pieces_of_conv2d", LemmaKind::kPieces},
                                        {"sum_of_pieces_of_matmul_k", LemmaKind::kPieces},
                                        {"linear_is_linear_in_0_2", LemmaKind::kLinear},
                                        {"gather_elements_moves_elements", LemmaKind::kStructure},
                                        {"conv_transpose_skips_zeros", LemmaKind::kStructure},
                                        {"attention_takes_factor_of_1", LemmaKind::kStructure},
                                        {"elements_of_add_reduce_sum", LemmaKind::kElements},
                                        {"checked:pieces_of_conv2d", LemmaKind::kUnknown},
                                        {"add_is_identity", LemmaKind::kUnknown},
                                        {"", LemmaKind::kUnknown}}) {
    EXPECT_EQ(LemmaKindName(KindOfLemma(id)), LemmaKindName(kind)) << id;
  }
  EXPECT_EQ(OperatorOfLemma("pieces_of_gather_elements_i0"), OpKind::kGatherElements);
  EXPECT_EQ(OperatorOfLemma("pieces_of_gather_i0"), OpKind::kGather);
}

TEST(LemmaList, EveryLemmaOfTheShippedRulesIsKnown) {
  const RuleSet rules = ShippedRules();
  const std::vector<LemmaEntry> lemmas = LemmasOf(rules);
  EXPECT_GT(lemmas.size(), 100u);
  for (const LemmaEntry& lemma : lemmas) {
    EXPECT_NE(lemma.kind, LemmaKind::kUnknown) << lemma.id;
    EXPECT_NE(LemmaStatement(lemma.id), "") << lemma.id;
  }
}

TEST(Premises, AreDecidedAtCalls) {
  EXPECT_GT(DecidePremise("pieces_of_matmul_m", OpKind::kMatMul).holds, 10);
  EXPECT_GT(DecidePremise("sum_of_pieces_of_matmul_k", OpKind::kMatMul).holds, 10);
  EXPECT_EQ(DecidePremise("pieces_of_matmul_k", OpKind::kMatMul).holds, 0);
  EXPECT_EQ(DecidePremise("pieces_of_softmax_j", OpKind::kSoftmax).holds, 0);
  EXPECT_EQ(DecidePremise("relu_is_linear_in_0", OpKind::kRelu).holds, 0);
  EXPECT_EQ(DecidePremise("matmul_is_linear_in_0_1", OpKind::kMatMul).holds, 0);
}

RuleSet WithLemmas(const std::string& rule, std::vector<std::string> lemmas) {
  RuleSet rules;
  rules.rules.push_back(RuleFromText(rule, {{2, 2}}, {SameType(0, 1)}));
  rules.rules[0].proof.verdict = ProofRecord::Verdict::kProved;
  rules.rules[0].proof.lemmas = std::move(lemmas);
  return rules;
}

TEST(SecondOpinion, DisagreesWithFalseRules) {
  const RuleSet wrong = WithLemmas("relu(add(x0, x1)) -> add(relu(x0), relu(x1))", {});
  EXPECT_FALSE(CompareRule(wrong.rules[0], 6).disagreements.empty());
  const RuleSet right = WithLemmas("maximum(x0, minimum(x0, x1)) -> x0", {});
  const Tally tally = CompareRule(right.rules[0], 6);
  EXPECT_GT(tally.instances, 0);
  EXPECT_TRUE(tally.disagreements.empty()) << tally.disagreements[0];
}

TEST(Lemmas, ThatAreNotProvedFailTheRun) {
  const std::string rule = "relu(add(x0, x1)) -> add(relu(x0), relu(x1))";
  for (const std::string id : {"elements_of_add_relu", "relu_moves_elements", "relu_is_linear_in_0",
                               "pieces_of_softmax_j", "nonsense"}) {
    const RuleSet rules = WithLemmas(rule, {id});
    std::vector<LemmaEntry> lemmas = LemmasOf(rules);
    ASSERT_TRUE(ProveLemmas(1, &lemmas).ok());
    EXPECT_FALSE(AllHold(lemmas)) << id;
  }
}

TEST(Lemmas, ThatAreProvedAndSeenToHoldPassIt) {
  const RuleSet rules = WithLemmas("sub(x0, x1) -> add(x0, scale(x1; factor=-1.0))",
                                   {"elements_of_add_scale_sub", "pieces_of_add_i0"});
  std::vector<LemmaEntry> lemmas = LemmasOf(rules);
  ASSERT_TRUE(ProveLemmas(1, &lemmas).ok());
  OpinionOptions options;
  options.points = 8000;
  options.rule_instances = 50;
  ASSERT_TRUE(AskSecondOpinion(options, &lemmas).ok());
  EXPECT_TRUE(AllHold(lemmas)) << LemmasText(lemmas);
  for (const LemmaEntry& lemma : lemmas) EXPECT_GE(lemma.opinion->instances, 5) << lemma.id;
}

TEST(Lemmas, OfWhichTheSecondOpinionSawNothingFailIt) {
  LemmaEntry lemma{"elements_of_add", LemmaKind::kElements, {}, {true, "normal forms", 1}, {}};
  EXPECT_TRUE(AllHold({lemma}));
  lemma.opinion = Tally();
  EXPECT_FALSE(AllHold({lemma}));
  lemma.opinion->Add({Agreement::kNumeric, ""}, "x[2]");
  EXPECT_TRUE(AllHold({lemma}));
  lemma.opinion->Add({Agreement::kNone, "element 0 differs"}, "x[3]");
  EXPECT_FALSE(AllHold({lemma}));
  EXPECT_NE(LemmasText({lemma}).find("disagrees: elements_of_add: x[3]"), std::string::npos);
}

// A sample of what `isomer-verify lemmas --exhaustive` looks at.
TEST(SecondOpinion, AgreesWithASampleOfTheShippedLemmas) {
  const RuleSet rules = ShippedRules();
  constexpr size_t kStep = 23;
  std::vector<const Rule*> sample;
  for (const LemmaEntry& lemma : LemmasOf(rules)) {
    if (lemma.kind == LemmaKind::kElements || lemma.kind == LemmaKind::kStructure) {
      sample.insert(sample.end(), lemma.rules.begin(), lemma.rules.end());
    }
  }
  int64_t instances = 0;
  for (size_t i = 0; i < sample.size(); i += kStep) {
    const Tally tally = CompareRule(*sample[i], 2);
    instances += tally.instances;
    for (const std::string& line : tally.disagreements) ADD_FAILURE() << line;
  }
  EXPECT_GT(instances, 10);
}

TEST(LemmasPage, OfTheShippedRulesIsUpToDate) {
  const auto page = ReadFile(std::string(ISOMER_SOURCE_DIR) + "/docs/lemmas.md");
  ASSERT_TRUE(page.ok()) << page.status();
  const RuleSet rules = ShippedRules();
  const std::string now = LemmasPage(LemmasOf(rules), rules.Digest());
  EXPECT_TRUE(WithoutFindings(*page) == WithoutFindings(now))
      << "docs/lemmas.md is not that of rules/default.rules; run: isomer-verify lemmas "
         "rules/default.rules --exhaustive --markdown=docs/lemmas.md";
  EXPECT_EQ(page->find("not proved**"), page->npos);
  EXPECT_EQ(page->find("**disagrees"), page->npos);
  EXPECT_EQ(page->find("**none seen"), page->npos);
}

}  // namespace
}  // namespace isomer
