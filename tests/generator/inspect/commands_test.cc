// What isomer-generate says of rules: drawings, examples, prefixes of ids; and that the page of the
// shipped rules is that of the shipped rules.
#include "generator/inspect/commands.h"

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "generator/inspect/counts.h"
#include "generator/inspect/drawing.h"
#include "generator/inspect/example.h"
#include "pcg/support/file.h"
#include "pcg/support/program.h"
#include "rules/language/find_rule.h"
#include "tests/generator/inspect/small_rules.h"
#include "tests/generator/shipped_rules.h"

namespace isomer {
namespace {

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Drawing, TreeReadsFromTheOutputDown) {
  EXPECT_EQ(TreeText(RowsRule().target), R"(y0
`- combine(axis=-2, degree=d)
   `- matmul
      |- partition(axis=-2, degree=d)
      |  `- x0
      `- replicate(degree=d)
         `- x1
)");
}

TEST(Drawing, TreeDrawsASharedNodeOnce) {
  Pattern pattern;
  pattern.nodes = {UnaryNode(OpKind::kRelu, PatternRef::Input(0)),
                   {OpKind::kAdd, {}, {PatternRef::Node(0), PatternRef::Node(0)}}};
  pattern.outputs = {PatternRef::Node(1)};
  EXPECT_EQ(TreeText(pattern), R"(y0
`- add
   |- relu  (node 0)
   |  `- x0
   `- relu  (node 0, above)
)");
}

TEST(Drawing, LinesAreOnePerNode) {
  EXPECT_EQ(NodeLines(RowsRule().target), R"(0 = partition(x0; axis=-2, degree=d)
1 = replicate(x1; degree=d)
2 = matmul(0, 1)
3 = combine(2; axis=-2, degree=d)
y0 = 3
)");
}

TEST(Drawing, DotAndSvgHaveEveryNode) {
  const Rule rule = RowsRule();
  for (const std::string& picture : {RuleToDot(rule), RuleToSvg(rule)}) {
    for (const char* part : {"matmul", "partition(axis=-2, degree=d)", "replicate(degree=d)",
                             "combine(axis=-2, degree=d)", "x0", "x1", "y0"}) {
      EXPECT_TRUE(Contains(picture, part)) << part << " in " << picture;
    }
  }
  EXPECT_TRUE(Contains(RuleToSvg(rule), "-&gt;")) << "the title is escaped";
}

TEST(Example, RunsBothSides) {
  const auto text = ExampleText(RowsRule());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_TRUE(Contains(*text, "d = 2"));
  EXPECT_TRUE(Contains(*text, "f32[2:2,2]")) << *text;
  EXPECT_TRUE(Contains(*text, "largest difference of the values: 0\n")) << *text;
}

TEST(Example, ShowsPiecesOfParallelOutputs) {
  const auto text = ExampleText(ReluRule());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_TRUE(Contains(*text, "[0:1]") && Contains(*text, "[1:2]")) << *text;
}

// Every tenth, so that the test stays short.
TEST(Example, ShippedRulesHaveOneThatAgrees) {
  const std::vector<Rule>& rules = ShippedRules().rules;
  size_t tried = 0, without = 0;
  for (size_t r = 0; r < rules.size(); r += 10) {
    const auto text = ExampleText(rules[r]);
    ++tried;
    if (!text.ok()) {
      ++without;
      continue;
    }
    const std::string label = "largest difference of the values: ";
    const size_t at = text->find(label);
    ASSERT_NE(at, std::string::npos);
    double difference = 1;
    ASSERT_TRUE(absl::SimpleAtod(
        text->substr(at + label.size(), text->size() - at - label.size() - 1), &difference));
    EXPECT_LT(difference, 1e-9) << rules[r].ToString();
  }
  EXPECT_LE(20 * without, tried) << "they are looked for by chance, but nearly all are found";
}

TEST(Show, IdsMayBeShortened) {
  RuleSet rules;
  rules.rules = {RowsRule(), ReluRule(), AddRule(false)};
  rules.rules[0].id = "r12a";
  rules.rules[1].id = "r12ab";
  rules.rules[2].id = "r3";
  EXPECT_EQ(*FindByPrefix(rules, "r3"), &rules.rules[2]);
  EXPECT_EQ(*FindByPrefix(rules, "r12ab"), &rules.rules[1]);
  EXPECT_EQ(*FindByPrefix(rules, "r12ab^-1"), &rules.rules[1]);
  EXPECT_EQ(*FindByPrefix(rules, "r12a"), &rules.rules[0]) << "a whole id is not ambiguous";
  EXPECT_TRUE(Contains(FindByPrefix(rules, "r1").status().ToString(), "r12a, r12ab"));
  EXPECT_TRUE(Contains(FindByPrefix(rules, "q").status().ToString(), "there is no rule 'q'"));
  EXPECT_FALSE(FindByPrefix(rules, "").ok());
}

TEST(Show, SaysAllThatIsKnown) {
  const std::string text = DescribeRule(
      RowsRule(), [](const std::string& id) { return absl::StrCat("the lemma ", id); });
  for (const char* part :
       {"d (degrees above 0)", "(2,2) (3,2)", "from source to target", "test: by hand",
        "d times the degree of x0 at axis -2 divides the size of x0 there", "proved, z3, 0.50 s",
        "pieces_of_matmul_m: the lemma pieces_of_matmul_m", " | target\n"}) {
    EXPECT_TRUE(Contains(text, part)) << part << " in\n" << text;
  }
}

// Ids change with what they are digests of.
TEST(Show, RulesThatDocumentsNameAreThere) {
  const std::string root = ISOMER_SOURCE_DIR;
  std::vector<std::string> pages = {root + "/README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(root + "/docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  const std::regex id(R"(\br[0-9a-f]{6,12}\b)");
  int named = 0;
  for (const std::string& page : pages) {
    const std::string text = ReadFile(page).value();
    for (std::sregex_iterator it(text.begin(), text.end(), id), end; it != end; ++it, ++named) {
      EXPECT_TRUE(FindByPrefix(ShippedRules(), it->str()).ok()) << page << " names " << it->str();
    }
  }
  EXPECT_GT(named, 10);
}

TEST(Diff, ExitCodeSaysWhetherTheyDiffer) {
  RuleSet a, b;
  a.rules = {RowsRule()};
  b.rules = {RowsRule(), ReluRule()};
  const std::string folder = ::testing::TempDir();
  ASSERT_TRUE(SaveRules(folder + "/a.rules", a).ok());
  ASSERT_TRUE(SaveRules(folder + "/b.rules", b).ok());
  EXPECT_EQ(*DiffCommand({folder + "/a.rules", folder + "/a.rules"}), kExitDone);
  EXPECT_EQ(*DiffCommand({folder + "/a.rules", folder + "/b.rules"}), kExitNo);
  EXPECT_FALSE(DiffCommand({folder + "/a.rules"}).ok());
  EXPECT_FALSE(DiffCommand({folder + "/a.rules", folder + "/absent.rules"}).ok());
}

TEST(Stats, CountsAddUp) {
  RuleSet rules;
  rules.rules = {RowsRule(), ReluRule(), AddRule(false)};
  rules.rules[0].proof.verdict = ProofRecord::Verdict::kChecked;
  const RuleCounts counts = CountRules(rules);
  EXPECT_EQ(counts.all.rules, 3);
  EXPECT_EQ(counts.all.instances, 2 + 6 + 1);
  EXPECT_EQ(counts.algebra.rules, 1);
  EXPECT_EQ(counts.mixing.rules, 2);
  EXPECT_EQ(counts.checked.rules, 1);
  EXPECT_EQ(counts.unproved.rules, 2);
  EXPECT_EQ(counts.conditions.at("divides"), 1);
  EXPECT_EQ(counts.conditions.at("none"), 2);
  EXPECT_EQ(counts.sizes.at(4).rules, 1);
  EXPECT_EQ(counts.origins.at("test").rules, 1);
}

// The page without the last column of its tables of three: counting instances takes seconds.
std::string WithoutInstances(const std::string& page) {
  std::string result;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    const std::vector<absl::string_view> cells = absl::StrSplit(line, '|');
    if (cells.size() == 5) line = line.substr(0, line.size() - cells[3].size() - 1);
    absl::StrAppend(&result, line, "\n");
  }
  return result;
}

TEST(Stats, ReadmeOfTheShippedRulesIsUpToDate) {
  const auto page = ReadFile(std::string(ISOMER_SOURCE_DIR) + "/rules/README.md");
  ASSERT_TRUE(page.ok()) << page.status();
  const std::string now = CountsPage(CountRules(ShippedRules(), /*instances=*/false));
  EXPECT_TRUE(WithoutInstances(*page) == WithoutInstances(now))
      << "rules/README.md is not that of rules/default.rules; run: "
         "isomer-generate stats rules/default.rules --markdown=rules/README.md";
}

// "3,525"
std::string WithCommas(int number) {
  std::string text = absl::StrCat(number);
  for (int i = static_cast<int>(text.size()) - 3; i > 0; i -= 3) text.insert(i, ",");
  return text;
}

// The numbers of a page's row "| all | 1 | 2 |"; those that have something behind them count, too.
std::vector<std::string> AllOf(const std::string& path) {
  const auto page = ReadFile(absl::StrCat(ISOMER_SOURCE_DIR, "/", path));
  EXPECT_TRUE(page.ok()) << page.status();
  std::vector<std::string> numbers;
  const std::string row = "\n| all | ";
  const size_t at = page->find(row);
  EXPECT_NE(at, std::string::npos) << path;
  const std::string rest = page->substr(at + row.size());
  for (absl::string_view cell : absl::StrSplit(rest.substr(0, rest.find('\n')), '|')) {
    numbers.push_back(WithCommas(std::atoi(std::string(cell).c_str())));
  }
  return numbers;
}

TEST(Stats, TheFirstPageSaysWhatOtherPagesCount) {
  const auto page = ReadFile(std::string(ISOMER_SOURCE_DIR) + "/README.md");
  ASSERT_TRUE(page.ok()) << page.status();
  const RuleCounts counts = CountRules(ShippedRules(), /*instances=*/false);
  const std::vector<std::string> rules = AllOf("rules/README.md"), lemmas = AllOf("docs/lemmas.md"),
                                 mutants = AllOf("docs/mutation.md");
  for (const std::string& said :
       {absl::StrCat("[", rules[0], " proved rules](rules/README.md)"),
        absl::StrCat(WithCommas(counts.parallel.rules),
                     " with parallel operators; at degree 2 and fixed axes they are ", rules[1],
                     ";"),
        absl::StrCat("[", lemmas[0], " premises](docs/lemmas.md)"),
        absl::StrCat("second opinion on ", lemmas[3], " small instances"),
        absl::StrCat("of ", mutants[0], " mutants of declarations"),
        absl::StrCat("all ", mutants[1], " that change a meaning")}) {
    EXPECT_NE(page->find(said), std::string::npos) << "README.md does not say: " << said;
  }
}

}  // namespace
}  // namespace isomer
