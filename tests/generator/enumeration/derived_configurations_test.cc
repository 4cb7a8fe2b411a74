#include "generator/enumeration/derived_configurations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "generator/assignments/attribute_domains.h"
#include "generator/assignments/trial.h"
#include "generator/enumeration/enumerator.h"
#include "generator/preconditions/prune.h"

namespace isomer {
namespace {

std::vector<std::string> TextsOverDomains(const char* call) {
  std::vector<std::string> texts;
  for (const OperatorCall& chosen : CallsOverDomains(*ParseCall(call))) {
    texts.push_back(chosen.op.ToString() + " " + chosen.operands[0].ToString());
  }
  return texts;
}

TEST(CallsOverDomains, TakeEveryAxisAndOneOtherAttributeAtATime) {
  EXPECT_EQ(TextsOverDomains("concat(axis=-1) f32[6,8] f32[6,8]"),
            (std::vector<std::string>{"concat(axis=-1) f32[4,4]", "concat(axis=-2) f32[4,4]"}));
  EXPECT_EQ(TextsOverDomains("split(axis=1,sizes=[2,4]) f32[4,6]"),
            (std::vector<std::string>{"split(axis=-1,sizes=[4,4]) f32[4,8]",
                                      "split(axis=-2,sizes=[4,4]) f32[8,4]"}));
  EXPECT_EQ(TextsOverDomains("transpose(perm=[0,2,1]) f32[2,6,8]").size(), 3u);
  EXPECT_EQ(TextsOverDomains("reduce_sum(axes=[0],keepdims=1) f32[6,8]").size(), 2u * 2);
  EXPECT_EQ(TextsOverDomains("scale(factor=0.3) f32[4,6]").size(), 1u + 5);
}

TEST(DerivedConfigurations, TakeAllOperatorsThatShareATypeTogether) {
  const std::set<OpKind> kinds = {OpKind::kMatMul, OpKind::kTanh, OpKind::kEmbedding,
                                  OpKind::kPartition};
  bool found_table = false, found_contraction = false;
  for (const Configuration& configuration : DerivedConfigurations(kinds, 3)) {
    EXPECT_EQ(configuration.max_operators, 3);
    std::set<OpKind> together;
    for (const Operator& op : configuration.operators) together.insert(op.kind());
    found_table |= configuration.inputs[0] == *ParseTensorType("f32[4,4]") && together == kinds;
    found_contraction |= std::count(configuration.inputs.begin(), configuration.inputs.end(),
                                    *ParseTensorType("f32[4:2,4]")) > 0 &&
                         std::count(configuration.inputs.begin(), configuration.inputs.end(),
                                    *ParseTensorType("f32[4,4:2]")) > 0;
  }
  EXPECT_TRUE(found_table);
  EXPECT_TRUE(found_contraction);
}

std::vector<Candidate> EnumeratedIn(const Configuration& configuration) {
  TypeOracle oracle;
  Random random(1);
  Statistics statistics;
  return Enumerate(configuration, &oracle, &random, &statistics);
}

// Both directions of an equation, at the ranks where it was found and at others that are alike.
void AddTo(RuleBook* book, const Candidate& candidate) {
  Rule rule = ConstantRule(candidate);
  rule.reversible = true;
  const std::vector<int> found = rule.ranks[0];
  if (std::count(found.begin(), found.end(), found[0]) == static_cast<int>(found.size())) {
    rule.ranks.clear();
    for (int rank = 1; rank <= 4; ++rank) rule.ranks.emplace_back(found.size(), rank);
  }
  SetId(&rule);
  book->Add(rule);
}

bool HoldsOnFreshInputs(const Candidate& candidate) {
  Binding binding;
  binding.inputs = candidate.inputs;
  Random random(2);
  const auto agree = ValuesAgree(ConstantRule(candidate), binding, &random);
  return agree.ok() && *agree;
}

// Equations of at most two operators a side that a written configuration finds, that are no chance,
// and that neither are among those of the derived ones nor follow from them.
std::vector<std::string> MissedOf(Configuration written) {
  written.max_operators = std::min(written.max_operators, 2);
  std::set<OpKind> kinds;
  for (const Operator& op : written.operators) kinds.insert(op.kind());
  std::set<std::string> texts;
  RuleBook book;
  for (const Configuration& derived : DerivedConfigurations(kinds, 2)) {
    for (const Candidate& candidate : EnumeratedIn(derived)) {
      const Rule rule = ConstantRule(candidate);
      if (texts.insert(absl::StrCat(rule.ToString(), absl::StrJoin(rule.ranks[0], ","))).second) {
        AddTo(&book, candidate);
      }
    }
  }
  std::vector<std::string> missed;
  for (const Candidate& candidate : EnumeratedIn(written)) {
    const absl::StatusOr<CandidateGraphs> graphs = GraphsOf(candidate);
    if (!graphs.ok() || FormHash(graphs->source) == FormHash(graphs->target)) continue;
    constexpr int kSteps = 2;
    if (Derivations(*graphs, kSteps).Find(book).kind == Derivations::Kind::kNone &&
        HoldsOnFreshInputs(candidate)) {
      missed.push_back(ConstantRule(candidate).ToString());
    }
  }
  return missed;
}

// Why a written configuration says more than declarations do.
const std::map<std::string, std::string> kMissing = {
    {"numbers", "other factors"},
    {"chains", "degrees that are products of others"},
    {"batches", "a third axis"},
    {"weights", "a third axis"},
    {"exchanges", "a third axis"},
    {"bags", "a third axis"},
    {"rows of indices, bags", "two tensors of indices"},
};

TEST(DerivedConfigurations, FindWhatWrittenOnesDo) {
  const std::set<OpKind> all(AllOpKinds().begin(), AllOpKinds().end());
  for (const Configuration& written : Configurations(all, 2)) {
    const std::vector<std::string> missed = MissedOf(written);
    EXPECT_EQ(!missed.empty(), kMissing.contains(written.name)) << written.name << "\n"
                                                                << absl::StrJoin(missed, "\n");
  }
}

}  // namespace
}  // namespace isomer
