// What the search needs must be reachable with the shipped rules: each derivation of
// tests/data/derivations is found, certified as a plan's is, and computed on both ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "pcg/evaluator.h"
#include "pcg/number.h"
#include "pcg/support/file.h"
#include "pcg/support/hash.h"
#include "rules/rule.h"
#include "tests/derivations/derivation_file.h"
#include "tests/derivations/derivation_page.h"
#include "tests/derivations/derivation_search.h"
#include "verifier/plan_checker.h"
#include "verifier/step_replay.h"

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
  EXPECT_EQ(plan.graph.StructuralHash(), derivation.stages.back().graph.StructuralHash());
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

// Positive: some leaves are variances. Indices are those of tables of four rows and more.
template <typename T>
T Draw(const TensorType& type, uint64_t hash) {
  const double index = static_cast<double>(hash % 4);
  return Number<T>::FromDouble(IsFloat(type.dtype) ? static_cast<double>(hash % 997 + 1) : index);
}
template <>
double Draw<double>(const TensorType& type, uint64_t hash) {
  return IsFloat(type.dtype) ? static_cast<double>(hash % 997 + 1) / 997 : hash % 4;
}

template <typename T>
std::vector<Array<T>> Outputs(const Graph& graph) {
  std::map<NodeId, Value<T>> leaves;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (!IsLeaf(node.op.kind())) continue;
    Value<T>& value = leaves[NodeId{id}];
    value.type = node.outputs[0];
    for (int64_t part = 0; part < value.type.partials * value.type.micro_batches; ++part) {
      Array<T> array(value.type.Sizes());
      for (int64_t i = 0; i < array.size(); ++i) {
        array.data[i] =
            Draw<T>(value.type, HashCombine(HashBytes(node.name), part, static_cast<uint64_t>(i)));
      }
      value.parts.push_back(std::move(array));
    }
  }
  const auto values = EvaluateGraph<T>(graph, leaves);
  EXPECT_TRUE(values.ok()) << values.status();
  std::vector<Array<T>> outputs;
  if (!values.ok()) return outputs;
  for (const Graph::NamedOutput& output : graph.outputs()) {
    for (auto& meaning : Meaning((*values)[output.tensor.node.value][output.tensor.output])) {
      outputs.push_back(std::move(meaning));
    }
  }
  return outputs;
}

void ExpectEqualNumbers(const std::vector<Array<double>>& a, const std::vector<Array<double>>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t o = 0; o < a.size(); ++o) {
    ASSERT_EQ(a[o].shape, b[o].shape);
    for (int64_t i = 0; i < a[o].size(); ++i) {
      ASSERT_TRUE(std::isfinite(a[o].data[i]));
      ASSERT_NEAR(a[o].data[i], b[o].data[i], 1e-9 * std::max(1.0, std::fabs(a[o].data[i])));
    }
  }
}

void ExpectEqualInField(const std::vector<Array<PrimeField>>& a,
                        const std::vector<Array<PrimeField>>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t o = 0; o < a.size(); ++o) ASSERT_TRUE(a[o].data == b[o].data) << "output " << o;
}

class TargetDerivation : public testing::TestWithParam<std::string> {};

TEST_P(TargetDerivation, IsReachableCertifiedAndEqual) {
  const Derivation derivation = ReadTarget(GetParam());
  const Graph &start = derivation.stages.front().graph, &goal = derivation.stages.back().graph;
  ExpectEqualNumbers(Outputs<double>(start), Outputs<double>(goal));
  ExpectEqualInField(Outputs<PrimeField>(start), Outputs<PrimeField>(goal));
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

}  // namespace
}  // namespace isomer
