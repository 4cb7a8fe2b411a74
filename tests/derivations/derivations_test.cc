// What the search needs must be reachable with the shipped rules: each derivation of
// tests/data/derivations is found, certified as a plan's is, and computed on both ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "pcg/support/file.h"
#include "rules/language/rule.h"
#include "tests/derivations/derivation_file.h"
#include "tests/derivations/derivation_page.h"
#include "tests/derivations/derivation_search.h"
#include "tests/derivations/derivation_values.h"
#include "verifier/plans/plan_checker.h"

namespace isomer {
namespace {

std::string SourcePath(const std::string& path) {
  return absl::StrCat(ISOMER_SOURCE_DIR, "/", path);
}

// Or those of the file that ISOMER_RULES names, to try another.
const RuleSet& ShippedRules() {
  static const RuleSet& rules = *new RuleSet([] {
    const char* other = std::getenv("ISOMER_RULES");
    absl::StatusOr<RuleSet> loaded =
        LoadRules(other != nullptr ? other : SourcePath("rules/default.rules"));
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *std::move(loaded);
  }());
  return rules;
}

// The stems of the files, sorted.
std::vector<std::string> Targets() {
  std::vector<std::string> stems;
  const std::string folder = SourcePath("tests/data/derivations");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    stems.push_back(entry.path().stem());
  }
  std::sort(stems.begin(), stems.end());
  return stems;
}

Derivation ReadTarget(const std::string& stem) {
  const auto text = ReadFile(SourcePath(absl::StrCat("tests/data/derivations/", stem, ".txt")));
  absl::StatusOr<Derivation> parsed = ParseDerivation(text.value_or(""));
  EXPECT_TRUE(parsed.ok()) << stem << ": " << parsed.status();
  return *std::move(parsed);
}

// The steps of every leg, and the graph that they give, not made canonical.
struct Found {
  Chain chain;
  Graph graph;
};

absl::StatusOr<Found> FindDerivation(const Derivation& derivation) {
  Found found;
  found.graph = derivation.stages[0].graph;
  for (size_t s = 1; s < derivation.stages.size(); ++s) {
    const Stage& stage = derivation.stages[s];
    auto steps = Derive(ShippedRules(), stage.graph, SearchLimits(), &found.graph);
    if (!steps.ok()) {
      return absl::NotFoundError(
          absl::StrCat("before [", stage.title, "]: ", steps.status().message()));
    }
    found.chain.push_back(*std::move(steps));
  }
  return found;
}

bool IsSequential(const Graph& graph) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    for (const TensorType& type : graph.node(id).outputs) {
      if (type.IsParallel()) return false;
    }
  }
  return true;
}

// By the verifier's own matcher, and, where a model can start so, as a plan that could run.
void ExpectCertified(const Derivation& derivation, const Found& found) {
  Plan plan;
  plan.model.graph = derivation.stages[0].graph;
  Graph graph = plan.model.graph;
  for (const auto& leg : found.chain) {
    for (const DerivationStep& step : leg) {
      const Rule* rule = ShippedRules().Find(step.rule);
      ASSERT_NE(rule, nullptr) << step.rule;
      const absl::Status replayed = ReplayStep(*rule, step, &graph);
      ASSERT_TRUE(replayed.ok()) << rule->ToString() << ": " << replayed;
      plan.steps.push_back(step);
    }
  }
  plan.graph = graph.Canonical();
  EXPECT_TRUE(SameGraph(plan.graph, derivation.stages.back().graph));
  if (!IsSequential(plan.model.graph)) return;
  plan.mode = "inference";
  plan.rules_digest = ShippedRules().Digest();
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    const TensorType& type = plan.graph.node(id).outputs[0];
    plan.views.push_back(RowMajorView(type));
    plan.num_devices = std::max(plan.num_devices, type.NumShards());
  }
  plan.seal = SealOf(plan);
  const absl::Status checked = CheckPlan(plan, ShippedRules());
  EXPECT_TRUE(checked.ok()) << checked;
}

void ExpectNear(const std::vector<Array<double>>& a, const std::vector<Array<double>>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t o = 0; o < a.size(); ++o) {
    ASSERT_EQ(a[o].shape, b[o].shape);
    for (int64_t i = 0; i < a[o].size(); ++i) {
      ASSERT_TRUE(std::isfinite(a[o].data[i]));
      ASSERT_NEAR(a[o].data[i], b[o].data[i], 1e-9 * std::max(1.0, std::fabs(a[o].data[i])));
    }
  }
}

// Outputs and gradients in double, outputs exactly in the field.
void ExpectEqualValues(const Graph& a, const Graph& b) {
  const auto numbers = ComputeInDouble(a), others = ComputeInDouble(b);
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  ASSERT_TRUE(others.ok()) << others.status();
  ExpectNear(numbers->outputs, others->outputs);
  ExpectNear(numbers->gradients, others->gradients);
  const auto elements = OutputsInField(a), other_elements = OutputsInField(b);
  ASSERT_TRUE(elements.ok()) << elements.status();
  ASSERT_TRUE(other_elements.ok()) << other_elements.status();
  ASSERT_EQ(elements->size(), other_elements->size());
  for (size_t o = 0; o < elements->size(); ++o) {
    ASSERT_TRUE((*elements)[o].data == (*other_elements)[o].data) << "output " << o;
  }
}

class TargetDerivation : public testing::TestWithParam<std::string> {};

TEST_P(TargetDerivation, IsReachableCertifiedAndEqual) {
  const Derivation derivation = ReadTarget(GetParam());
  // Of what is not reachable yet, too: what it needs is true.
  ExpectEqualValues(derivation.stages.front().graph, derivation.stages.back().graph);
  const absl::StatusOr<Found> found = FindDerivation(derivation);
  if (!found.ok() && !derivation.needs.empty()) {
    GTEST_SKIP() << "the shipped rules lack " << derivation.needs << "\n" << found.status();
  }
  ASSERT_TRUE(found.ok()) << found.status();
  ExpectCertified(derivation, *found);
}

INSTANTIATE_TEST_SUITE_P(All, TargetDerivation, testing::ValuesIn(Targets()),
                         [](const auto& info) { return info.param; });

// docs/derivations.md is what the shipped rules give; ISOMER_WRITE_DERIVATIONS=1 makes it again.
TEST(DerivationsPage, IsThatOfTheShippedRules) {
  const std::string path = SourcePath("docs/derivations.md");
  std::string page = ReadFile(SourcePath("tests/derivations/page_head.md")).value_or("");
  std::string sections;
  for (const std::string& stem : Targets()) {
    const Derivation derivation = ReadTarget(stem);
    const absl::StatusOr<Found> found = FindDerivation(derivation);
    const Chain chain = found.ok() ? found->chain : Chain();
    const absl::StatusOr<std::string> section = SectionText(ShippedRules(), derivation, chain);
    ASSERT_TRUE(section.ok()) << stem << ": " << section.status();
    if (found.ok()) page += RowText(derivation, chain);
    absl::StrAppend(&sections, "\n", *section);
    if (!found.ok()) absl::StrAppend(&sections, "Out of reach: needs `", derivation.needs, "`.\n");
  }
  page += sections;
  if (std::getenv("ISOMER_WRITE_DERIVATIONS") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(path, page).ok());
  }
  EXPECT_TRUE(ReadFile(path).value_or("") == page)
      << "make it again: ISOMER_WRITE_DERIVATIONS=1 isomer_derivations_test "
         "--gtest_filter=DerivationsPage.*";
}

TEST(DerivationFile, ErrorsNameTheLine) {
  const struct {
    const char *text, *error;
  } cases[] = {
      {"x = input f32[4]\n[start]\noutput y = relu(z)\n", "line 3: 'z' has no definition"},
      {"x = input f32[4]\n[start]\noutput y = relu(x\n", "line 3: ')' after relu"},
      {"x = input f32[4]\n[start]\noutput y = rely(x)\n", "line 3: "},
      {"x = input f32[4\n", "line 1: "},
      {"x = input f32[4]\n[start]\nh = relu(x)\n[goal]\noutput y = x\n",
       "line 4: the stage has no output"},
      {"x = input f32[4]\n[start]\noutput y = x\n", "no start and goal"},
  };
  for (const auto& c : cases) {
    const auto parsed = ParseDerivation(c.text);
    ASSERT_FALSE(parsed.ok()) << c.text;
    EXPECT_THAT(std::string(parsed.status().message()), testing::StartsWith(c.error)) << c.text;
  }
}

TEST(DerivationSearch, WhatIsFalseIsNotReached) {
  const auto parsed = ParseDerivation(
      "x = input f32[4,4]\nw = weight f32[4,4]\n"
      "[start]\noutput y = matmul(x, w)\n[goal]\noutput y = matmul(w, x)\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const auto found = FindDerivation(*parsed);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(std::string(found.status().message()), testing::StartsWith("before [goal]: "));
}

TEST(DerivationSearch, OperandsOfAddHaveNoOrder) {
  const auto parsed = ParseDerivation(
      "x = input f32[4]\ny = input f32[4]\n[start]\noutput z = add(x, y)\n"
      "[goal]\noutput z = add(y, x)\n[other]\noutput z = sub(x, y)\n"
      "[again]\noutput z = sub(y, x)\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(SameGraph(parsed->stages[0].graph, parsed->stages[1].graph));
  EXPECT_FALSE(SameGraph(parsed->stages[2].graph, parsed->stages[3].graph));
}

}  // namespace
}  // namespace isomer
