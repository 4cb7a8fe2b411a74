#include "verifier/prover.h"

#include <gtest/gtest.h>

#include "tests/verifier/rule_from_text.h"

namespace isomer {
namespace {

struct TrueRule {
  const char* text;
  std::vector<std::vector<int>> ranks;
  std::vector<Condition> conditions;
};

const std::vector<std::vector<int>> kOne = {{1}, {2}, {3}};
const std::vector<std::vector<int>> kMatMuls = {{2, 2}, {3, 3}, {3, 2}};

std::vector<TrueRule> TrueRules() {
  return {
      {"combine(partition(x0; axis=a, degree=d); axis=a, degree=d) -> x0", kOne, {}},
      {"reduce(replicate(relu(x0); degree=d); degree=d) -> relu(x0)", {}, {}},
      {"matmul(reduce(x0; degree=d), x1) -> reduce(matmul(x0, replicate(x1; degree=d)); degree=d)",
       kMatMuls,
       {}},
      {"matmul(x0, x1) -> combine(matmul(partition(x0; axis=-2, degree=d), replicate(x1; degree=d));"
       " axis=-2, degree=d)",
       kMatMuls,
       {Divides("d", 0, -2)}},
      {"matmul(x0, x1) -> combine(matmul(replicate(x0; degree=d), partition(x1; axis=-1, degree=d));"
       " axis=-1, degree=d)",
       kMatMuls,
       {Divides("d", 1, -1)}},
      {"matmul(x0, x1) -> reduce(matmul(partition(x0; axis=-1, degree=d), "
       "partition(x1; axis=-2, degree=d)); degree=d)",
       kMatMuls,
       {Divides("d", 0, -1)}},
      {"relu(x0) -> combine(relu(partition(x0; axis=a, degree=d)); axis=a, degree=d)", kOne, {}},
      {"matmul(add(x0, x1), x2) -> add(matmul(x0, x2), matmul(x1, x2))", {{2, 2, 2}, {3, 3, 3}},
       {SameType(0, 1)}},
      {"add(matmul(x0, x2), matmul(x1, x2)) -> matmul(add(x0, x1), x2)", {{2, 2, 2}},
       {SameType(0, 1)}},
      {"matmul(matmul(x0, x1), x2) -> matmul(x0, matmul(x1, x2))", {{2, 2, 2}}, {}},
      {"add(x0, x1) -> reduce(concat_partials(x0, x1); degree=2)", {{2, 2}}, {SameType(0, 1)}},
      {"matmul(x0, x1) | matmul(x0, x2) -> split(matmul(x0, concat(x1, x2; axis=-1)); axis=-1, "
       "sizes=[size(x1,-1),size(x2,-1)]).0 | split(matmul(x0, concat(x1, x2; axis=-1)); axis=-1, "
       "sizes=[size(x1,-1),size(x2,-1)]).1",
       {{2, 2, 2}, {3, 2, 2}},
       {}},
      {"transpose(matmul(x0, x1); swap=-2:-1) -> "
       "matmul(transpose(x1; swap=-2:-1), transpose(x0; swap=-2:-1))",
       kMatMuls,
       {}},
      {"scale(matmul(x0, x1); factor=f) -> matmul(x0, scale(x1; factor=f))", kMatMuls, {}},
      {"scale(scale(x0; factor=f); factor=g) -> scale(x0; factor=f*g)", kOne, {}},
      {"add(add(x0, x1), x2) -> add(x0, add(x1, x2))", {{2, 2, 2}}, {}},
      {"concat(relu(x0), relu(x1); axis=a) -> relu(concat(x0, x1; axis=a))", {{2, 2}, {3, 3}}, {}},
  };
}

TEST(ProverTest, TrueRulesAreProved) {
  Prover prover;
  for (const TrueRule& rule : TrueRules()) {
    const Rule built = RuleFromText(rule.text, rule.ranks, rule.conditions);
    const ProofRecord record = prover.Prove(built);
    std::string lemmas;
    for (const std::string& lemma : record.lemmas) lemmas += lemma + " ";
    printf("%d %.3f %s\n   %s\n", static_cast<int>(record.verdict), record.seconds, rule.text, lemmas.c_str());
    EXPECT_EQ(record.verdict, ProofRecord::Verdict::kProved)
        << rule.text << "\n  " << record.note;
  }
}

}  // namespace
}  // namespace isomer
