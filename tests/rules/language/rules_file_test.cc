// Rules files: what is written is read; what is damaged is refused in one line.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "pcg/support/file.h"
#include "pcg/support/proto_io.h"
#include "rules/language/rule.h"
#include "rules/language/rules.pb.h"

namespace isomer {
namespace {

Rule RowsRule() {
  Rule rule;
  rule.num_inputs = 2;
  rule.variables = {{"d", VariableKind::kDegree}};
  rule.ranks = {{2, 2}, {3, 2}};
  rule.conditions = {{.kind = Condition::Kind::kDivides,
                      .left = IntExpr::Variable("d"),
                      .right = IntExpr::Constant(-2),
                      .input = 0}};
  rule.source.nodes = {{OpKind::kMatMul, {}, {PatternRef::Input(0), PatternRef::Input(1)}}};
  rule.source.outputs = {PatternRef::Node(0)};
  const AttributePattern axis{"axis", IntExpr::Constant(-2)},
      degree{"degree", IntExpr::Variable("d")};
  rule.target.nodes = {{OpKind::kPartition, {axis, degree}, {PatternRef::Input(0)}},
                       {OpKind::kReplicate, {degree}, {PatternRef::Input(1)}},
                       {OpKind::kMatMul, {}, {PatternRef::Node(0), PatternRef::Node(1)}},
                       {OpKind::kCombine, {axis, degree}, {PatternRef::Node(2)}}};
  rule.target.outputs = {PatternRef::Node(3)};
  rule.origin = "test";
  rule.proof = {.verdict = ProofRecord::Verdict::kProved,
                .lemmas = {"a", "b"},
                .solver = "z3",
                .seconds = 0.5,
                .note = "n"};
  SetId(&rule);
  return rule;
}

// Every kind of attribute, expression and condition that a rule may have.
Rule RuleWithEverything() {
  Rule rule;
  rule.num_inputs = 2;
  rule.variables = {{"i", VariableKind::kAxis},   {"d", VariableKind::kDegree},
                    {"e", VariableKind::kDegree}, {"s", VariableKind::kSize},
                    {"f", VariableKind::kNumber}, {"shape", VariableKind::kAttribute}};
  rule.ranks = {{2, 2}};
  using Kind = Condition::Kind;
  rule.conditions = {
      {.kind = Kind::kEqual, .left = IntExpr::SizeOf(0, "i"), .right = IntExpr::SizeOf(1, -1)},
      {.kind = Kind::kNotEqual, .left = IntExpr::Variable("i"), .right = IntExpr::Constant(-1)},
      {.kind = Kind::kAtMost, .left = IntExpr::Variable("i"), .right = IntExpr::Constant(-2)},
      {.kind = Kind::kSameType, .input = 0, .input_b = 1},
      {.kind = Kind::kSplitsDim,
       .left = IntExpr::Variable("d"),
       .node = 0,
       .operand_axes = {IntExpr::Variable("i")},
       .output_axes = {std::nullopt}}};
  const PatternRef x0 = PatternRef::Input(0), x1 = PatternRef::Input(1);
  rule.source.nodes = {
      {OpKind::kReshape, {{"shape", AttributeVariable{"shape"}}}, {x0}},
      {OpKind::kScale, {{"factor", NumberExpr{2, {"f"}}}}, {PatternRef::Node(0)}},
      {OpKind::kPartition,
       {{"axis", IntExpr::Variable("i")}, {"degree", IntExpr::Product("d", "e")}},
       {PatternRef::Node(1)}},
      {OpKind::kSplit,
       {{"axis", IntExpr::Constant(-1)},
        {"sizes", std::vector<IntExpr>{IntExpr::Variable("s"), IntExpr::SizeOf(1, -1)}}},
       {x1}},
      {OpKind::kTranspose, {{"perm", SwapAxes{-2, -1}}}, {PatternRef::Node(3, 1)}}};
  rule.source.outputs = {PatternRef::Node(2), PatternRef::Node(4)};
  rule.target = rule.source;
  SetId(&rule);
  return rule;
}

std::string TempPath(const std::string& name) { return ::testing::TempDir() + "/" + name; }

void Write(const std::string& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary) << contents;
}

void ExpectOneLine(const absl::Status& status, const std::string& path) {
  ASSERT_FALSE(status.ok());
  const std::string message(status.message());
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_EQ(message.rfind(path, 0), 0u) << message;
}

TEST(RulesFile, BinaryAndTextReadBackWhatWasWritten) {
  for (const char* name : {"both.rules", "both.txt"}) {
    RuleSet rules;
    rules.generator = "by hand";
    rules.rules = {RowsRule(), RuleWithEverything()};
    ASSERT_TRUE(ValidateRule(rules.rules[1]).ok()) << ValidateRule(rules.rules[1]);
    const std::string path = TempPath(name);
    ASSERT_TRUE(SaveRules(path, rules).ok());
    const auto read = LoadRules(path);
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(read->rules.size(), 2u);
    EXPECT_EQ(read->generator, "by hand");
    EXPECT_EQ(read->Digest(), rules.Digest());
    for (size_t i = 0; i < 2; ++i) {
      const Rule &a = rules.rules[i], &b = read->rules[i];
      EXPECT_EQ(a.id, b.id);
      EXPECT_EQ(a.ToString(), b.ToString());
      EXPECT_EQ(a.source, b.source);
      EXPECT_EQ(a.target, b.target);
      EXPECT_EQ(a.conditions, b.conditions);
      EXPECT_EQ(a.variables, b.variables);
      EXPECT_EQ(a.ranks, b.ranks);
      EXPECT_EQ(a.origin, b.origin);
      EXPECT_EQ(a.proof.verdict, b.proof.verdict);
      EXPECT_EQ(a.proof.lemmas, b.proof.lemmas);
    }
  }
}

// A rule that leaves out an attribute would be proved with its default and used with any value:
// linear(x0, x1, x2) -> add(matmul(x0, x1), x2) is true of activation=0 alone.
TEST(RulesFile, EveryAttributeIsNamed) {
  Rule rule;
  rule.num_inputs = 3;
  rule.ranks = {{2, 2, 1}};
  const auto in = [](int i) { return PatternRef::Input(i); };
  rule.source = {{{OpKind::kLinear, {}, {in(0), in(1), in(2)}}}, {PatternRef::Node(0)}};
  rule.target = {
      {{OpKind::kMatMul, {}, {in(0), in(1)}}, {OpKind::kAdd, {}, {PatternRef::Node(0), in(2)}}},
      {PatternRef::Node(1)}};
  EXPECT_NE(std::string(ValidateRule(rule).message()).find("does not name its attribute"),
            std::string::npos)
      << ValidateRule(rule);
  rule.source.nodes[0].attributes = {{"activation", IntExpr::Constant(0)}};
  EXPECT_TRUE(ValidateRule(rule).ok()) << ValidateRule(rule);
}

TEST(RulesFile, NumbersAreFinite) {
  Rule rule = RowsRule();
  rule.variables.push_back({"f", VariableKind::kNumber});
  rule.source.nodes.push_back(
      {OpKind::kScale, {{"factor", NumberExpr{std::nan(""), {"f"}}}}, {PatternRef::Input(0)}});
  EXPECT_NE(std::string(ValidateRule(rule).message()).find("attribute 'factor' is nan"),
            std::string::npos)
      << ValidateRule(rule);
}

TEST(RulesFile, FindsRulesAndInverses) {
  RuleSet rules;
  rules.rules = {RowsRule(), RowsRule()};
  rules.rules[1].reversible = true;
  SetId(&rules.rules[1]);
  rules.BuildIndex();
  EXPECT_EQ(rules.Find(rules.rules[0].id), &rules.rules[0]);
  EXPECT_EQ(rules.Find(rules.rules[0].id + "^-1"), nullptr);
  const Rule* inverse = rules.Find(rules.rules[1].id + "^-1");
  ASSERT_NE(inverse, nullptr);
  EXPECT_EQ(inverse->source, rules.rules[1].target);
  EXPECT_EQ(rules.Find("r0"), nullptr);
}

TEST(RulesFile, ReadsAsTheEquation) {
  EXPECT_EQ(RowsRule().ToString(),
            "matmul(x0, x1) -> combine(matmul(partition(x0; axis=-2, degree=d), "
            "replicate(x1; degree=d)); axis=-2, degree=d) if d*degree divides size(x0,-2)");
}

TEST(RulesFile, DigestCoversTheTheoremOnly) {
  const Rule rule = RowsRule();
  Rule other = rule;
  other.origin = "elsewhere";
  other.proof.seconds = 9;
  EXPECT_EQ(rule.Digest(), other.Digest());
  other = rule;
  other.ranks.pop_back();
  EXPECT_NE(rule.Digest(), other.Digest());
  other = rule;
  other.conditions.clear();
  EXPECT_NE(rule.Digest(), other.Digest());
  other = rule;
  std::swap(other.target.nodes[2].inputs[0], other.target.nodes[2].inputs[1]);
  EXPECT_NE(rule.Digest(), other.Digest());
}

TEST(CorruptRulesFile, TruncatedEmptyOtherVersionAndRandom) {
  RuleSet rules;
  rules.rules = {RowsRule()};
  for (const char* name : {"damaged.rules", "damaged.txt"}) {
    const std::string path = TempPath(name);
    ASSERT_TRUE(SaveRules(path, rules).ok());
    const std::string whole = *ReadFile(path);
    for (size_t size : {size_t{0}, size_t{5}, whole.size() / 2, whole.size() - 3}) {
      Write(path, whole.substr(0, size));
      ExpectOneLine(LoadRules(path).status(), path);
    }
    std::string version = whole;
    const size_t at = name[8] == 't' ? version.find("v1") + 1 : 24;
    version[at] = '7';
    Write(path, version);
    ExpectOneLine(LoadRules(path).status(), path);
    std::string noise(500, '\0');
    std::mt19937 random(3);
    for (char& c : noise) c = static_cast<char>(random());
    Write(path, noise);
    ExpectOneLine(LoadRules(path).status(), path);
  }
  ExpectOneLine(LoadRules(TempPath("absent.rules")).status(), TempPath("absent.rules"));
}

// The header's digest is right, so that only reading the rule itself can tell.
TEST(CorruptRulesFile, BytesThatAreNoRule) {
  proto::SerializedRuleSet rules;
  rules.add_rules("\x0a\x7f no rule");
  const std::string path = TempPath("no_rule.rules");
  Write(path, BinaryForm("rules", rules));
  ExpectOneLine(LoadRules(path).status(), path);
}

TEST(CorruptRulesFile, OneRuleTwice) {
  const std::string path = TempPath("twice.rules");
  RuleSet rules;
  rules.rules = {RowsRule(), RowsRule()};
  ASSERT_TRUE(SaveRules(path, rules).ok());
  ExpectOneLine(LoadRules(path).status(), path);
}

// Large files are read in threads.
TEST(RulesFile, OrderAndErrorsOfALargeFileAreThoseOfTheFile) {
  RuleSet rules;
  for (int i = 0; i < 1200; ++i) {
    rules.rules.push_back(RowsRule());
    rules.rules.back().ranks.push_back({3 + i % 10, 2});
    rules.rules.back().id = "r" + std::to_string(i);
  }
  const std::string path = TempPath("large.rules");
  ASSERT_TRUE(SaveRules(path, rules).ok());
  const auto read = LoadRules(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Digest(), rules.Digest());
  for (int i = 0; i < 1200; ++i) ASSERT_EQ(read->rules[i].id, rules.rules[i].id);

  for (int i : {1100, 700, 300}) {
    rules.rules[i].ranks.clear();
    ASSERT_TRUE(SaveRules(path, rules).ok());
    const absl::Status status = LoadRules(path).status();
    EXPECT_EQ(status.message(), path + ": rule r" + std::to_string(i) + ": has no rank vectors");
  }
}

struct Defect {
  const char* name;
  void (*damage)(Rule*);
  const char* message;
};

TEST(CorruptRulesFile, IllFormedRulesAreNamed) {
  const Defect defects[] = {
      {"no input", [](Rule* r) { r->source.nodes[0].inputs[1] = PatternRef::Input(7); },
       "there is no input 7"},
      {"forward reference", [](Rule* r) { r->target.nodes[0].inputs[0] = PatternRef::Node(2); },
       "uses node 2"},
      {"undeclared variable", [](Rule* r) { r->variables.clear(); }, "'d' is not declared"},
      {"unknown attribute", [](Rule* r) { r->target.nodes[1].attributes[0].name = "decree"; },
       "needs the attribute 'degree'"},
      {"missing operand", [](Rule* r) { r->target.nodes[2].inputs.pop_back(); }, "1 operands"},
      {"axis from the front",
       [](Rule* r) { r->target.nodes[0].attributes[0].value = IntExpr::Constant(0); },
       "count from the end"},
      {"attribute twice",
       [](Rule* r) { r->target.nodes[1].attributes.push_back(r->target.nodes[1].attributes[0]); },
       "'degree' occurs twice"},
      {"attributes out of order",
       [](Rule* r) {
         std::swap(r->target.nodes[0].attributes[0], r->target.nodes[0].attributes[1]);
       },
       "not sorted"},
      {"too many variables",
       [](Rule* r) {
         for (int i = 0; i < 300; ++i)
           r->variables.push_back({"v" + std::to_string(i), VariableKind::kAxis});
       },
       "has 301 variables"},
      {"variable twice", [](Rule* r) { r->variables.push_back(r->variables[0]); },
       "'d' is declared twice"},
      {"no ranks", [](Rule* r) { r->ranks.clear(); }, "rank vectors"},
      {"outputs", [](Rule* r) { r->target.outputs.clear(); }, "outputs"},
      {"condition", [](Rule* r) { r->conditions[0].input = 9; }, "there is no input 9"},
  };
  const std::string path = TempPath("ill_formed.txt");
  for (const Defect& defect : defects) {
    RuleSet rules;
    rules.rules = {RowsRule()};
    defect.damage(&rules.rules[0]);
    ASSERT_TRUE(SaveRules(path, rules).ok());
    const absl::Status status = LoadRules(path).status();
    ExpectOneLine(status, path);
    EXPECT_NE(status.message().find(defect.message), absl::string_view::npos)
        << defect.name << ": " << status;
    EXPECT_NE(status.message().find(rules.rules[0].id), absl::string_view::npos) << status;
  }
}

}  // namespace
}  // namespace isomer
