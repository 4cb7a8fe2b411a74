// The corpus of false plans: each is refused, in one line and for its own reason, beside sound
// twins that are accepted. Rules, proofs and seals are the forger's: plans are sealed again, and
// rules files say what suits them.
//
// Plans that use a false rule are lines of plans/CLASS.txt:
//
//   false RULE  [TYPES | BINDINGS]  # a part of the refusal
//   true  RULE  [TYPES | BINDINGS]
//   open  RULE  [TYPES | BINDINGS]  # false, and accepted: a hole that is known, and why it is one
//
// RULE in the words of rule_from_text.h, TYPES of its inputs ("f32[4,8] i64[3]"), BINDINGS of its
// variables ("d=2 f=0.5"). The model is the source, trained if it can be; the plan applies the
// rule. ISOMER_WRITE_CORPUS=1 writes refusals as they are now. Which plans are false is for people
// to say.
//
// All others are changes of true plans (false_plans.h).
#include "tests/unsound/false_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "pcg/support/file.h"
#include "tests/unsound/base_plans.h"
#include "tests/unsound/hostile_plans.h"
#include "tests/verifier/rule_from_text.h"

namespace isomer {
namespace {

constexpr char kPlanFolder[] = ISOMER_SOURCE_DIR "/tests/unsound/plans";
constexpr size_t kLongestRefusal = 60;

struct PlanLine {
  std::string text;  // as it is; all that a comment has
  bool is_plan = false, is_true = false, is_open = false;
  std::string rule, binding, reason;
};

// What follows `mark`, which ends there.
std::string TakeBehind(absl::string_view mark, absl::string_view* text) {
  const size_t at = text->find(mark);
  if (at == absl::string_view::npos) return "";
  const std::string behind(text->substr(at + mark.size()));
  *text = absl::StripTrailingAsciiWhitespace(text->substr(0, at));
  return behind;
}

PlanLine ParsePlanLine(const std::string& text) {
  PlanLine line;
  line.text = text;
  if (text.empty() || text[0] == '#') return line;
  line.is_plan = true;
  absl::string_view rest = text;
  line.is_true = absl::ConsumePrefix(&rest, "true");
  line.is_open = absl::ConsumePrefix(&rest, "open");
  EXPECT_TRUE(line.is_true || line.is_open || absl::ConsumePrefix(&rest, "false")) << text;
  line.reason = TakeBehind("  # ", &rest);
  line.binding = std::string(absl::StripSuffix(TakeBehind("  [", &rest), "]"));
  line.rule = std::string(absl::StripAsciiWhitespace(rest));
  return line;
}

std::string TextOfLine(const PlanLine& line) {
  if (!line.is_plan) return line.text;
  const char* word = line.is_true ? "true  " : line.is_open ? "open  " : "false ";
  return absl::StrCat(word, line.rule, "  [", line.binding, "]", line.reason.empty() ? "" : "  # ",
                      line.reason);
}

Binding BindingOf(const PlanLine& line, const Rule& rule) {
  Binding binding;
  const std::vector<std::string> halves = absl::StrSplit(line.binding, " | ");
  for (absl::string_view type : absl::StrSplit(halves[0], ' ')) {
    binding.inputs.push_back(ParseTensorType(type).value());
  }
  if (halves.size() < 2) return binding;
  for (absl::string_view word : absl::StrSplit(halves[1], ' ')) {
    const std::pair<std::string, std::string> bound = absl::StrSplit(word, '=');
    const bool is_number = std::any_of(
        rule.variables.begin(), rule.variables.end(), [&](const RuleVariable& variable) {
          return variable.name == bound.first && variable.kind == VariableKind::kNumber;
        });
    EXPECT_TRUE(is_number ? absl::SimpleAtod(bound.second, &binding.numbers[bound.first])
                          : absl::SimpleAtoi(bound.second, &binding.variables[bound.first]))
        << word;
  }
  return binding;
}

absl::StatusOr<PlanClaim> ClaimOf(const PlanLine& line) {
  Rule rule = RuleFromText(line.rule, {{}});
  const Binding binding = BindingOf(line, rule);
  rule.ranks = {{}};
  for (const TensorType& type : binding.inputs) rule.ranks[0].push_back(type.rank());
  rule.proof.verdict = ProofRecord::Verdict::kProved;
  SetId(&rule);
  return ClaimOfRule(rule, binding);
}

// What is said of the plan at hand: without the step, and of steps that are not shown to be equal
// without the theorems that do not speak of them.
std::string ReasonIn(absl::string_view message) {
  if (absl::StartsWith(message, "step ")) message.remove_prefix(message.find("): ") + 3);
  if (message.find("compute the same") != absl::string_view::npos) {
    if (const size_t last = message.rfind("; "); last != absl::string_view::npos) {
      message.remove_prefix(last + 2);
    } else {
      message.remove_prefix(message.find("same: ") + 6);
    }
  }
  return std::string(absl::StripAsciiWhitespace(message.substr(0, kLongestRefusal)));
}

std::vector<PlanLine> LinesOf(const std::string& path) {
  std::vector<PlanLine> lines;
  const std::string text = ReadFile(path).value();
  for (absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    lines.push_back(ParsePlanLine(std::string(line)));
  }
  return lines;
}

std::vector<std::string> Files() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kPlanFolder)) {
    paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// In one line, for the reason that is expected.
void ExpectRefused(const absl::Status& verdict, const std::string& reason) {
  const std::string message(verdict.message());
  EXPECT_FALSE(verdict.ok()) << "a false plan is accepted";
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_NE(reason, "") << message;
  EXPECT_THAT(message, testing::HasSubstr(reason));
}

class FalseRulesInPlans : public testing::TestWithParam<std::string> {};

TEST_P(FalseRulesInPlans, AreRefusedWhereTheyAreUsed) {
  const bool write = std::getenv("ISOMER_WRITE_CORPUS") != nullptr;
  std::vector<std::string> written;
  for (PlanLine& line : LinesOf(GetParam())) {
    if (line.is_plan) {
      SCOPED_TRACE(line.text);
      const absl::StatusOr<PlanClaim> claim = ClaimOf(line);
      ASSERT_TRUE(claim.ok()) << claim.status();
      const absl::Status verdict = Judge(*claim);
      if (line.is_true) {  // Our own word is not taken for it either.
        EXPECT_TRUE(verdict.ok()) << verdict;
        EXPECT_EQ(DifferenceSeen(claim->own.graph, claim->plan.graph, !claim->own.loss.empty(), 7),
                  "");
      } else if (line.is_open && verdict.ok()) {
        std::printf("accepted, and false: %s\n", line.text.c_str());
      } else if (write) {
        line.is_open = false;
        EXPECT_FALSE(verdict.ok()) << "a false plan is accepted";
        line.reason = ReasonIn(verdict.message());
      } else {
        ExpectRefused(verdict, line.reason);
      }
    }
    written.push_back(TextOfLine(line));
  }
  if (write) {
    ASSERT_TRUE(WriteFileAtomically(GetParam(), absl::StrJoin(written, "\n") + "\n").ok());
  }
}

INSTANTIATE_TEST_SUITE_P(All, FalseRulesInPlans, testing::ValuesIn(Files()), [](const auto& path) {
  return std::filesystem::path(path.param).stem().string();
});

class BasePlansTest : public testing::TestWithParam<std::string> {};

TEST_P(BasePlansTest, IsAccepted) {
  const absl::Status verdict = Judge(BasePlan(GetParam()));
  EXPECT_TRUE(verdict.ok()) << verdict;
}

INSTANTIATE_TEST_SUITE_P(All, BasePlansTest, testing::ValuesIn(BasePlans()),
                         [](const auto& name) { return name.param; });

class Forgeries : public testing::TestWithParam<std::string> {};

TEST_P(Forgeries, AreRefused) {
  for (const Forgery& forgery : AllForgeries()) {
    if (forgery.of_class != GetParam()) continue;
    SCOPED_TRACE(absl::StrCat(forgery.name, " of ", forgery.base));
    const absl::Status verdict = Judge(forgery);
    if (forgery.refused_for.empty()) {
      EXPECT_TRUE(verdict.ok()) << verdict;
    } else {
      ExpectRefused(verdict, forgery.refused_for);
    }
  }
}

std::vector<std::string> ClassesOfForgeries() {
  std::vector<std::string> names;
  for (const Forgery& forgery : AllForgeries()) {
    if (names.empty() || names.back() != forgery.of_class) names.push_back(forgery.of_class);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Forgeries, testing::ValuesIn(ClassesOfForgeries()),
                         [](const auto& of_class) { return of_class.param; });

// Every class has a twin that is sound.
TEST(CorpusOfFalsePlans, IsAsLargeAsWasPromised) {
  struct Count {
    int refused = 0, accepted = 0;
  };
  std::map<std::string, Count> counts;  // by class
  for (const std::string& path : Files()) {
    Count& count = counts[std::filesystem::path(path).stem().string()];
    for (const PlanLine& line : LinesOf(path)) {
      if (line.is_plan && !line.is_open) ++(line.is_true ? count.accepted : count.refused);
    }
  }
  for (const Forgery& forgery : AllForgeries()) {
    Count& count = counts[forgery.of_class];
    ++(forgery.refused_for.empty() ? count.accepted : count.refused);
  }
  int refused = 0;
  for (const auto& [name, count] : counts) {
    EXPECT_GT(count.accepted, 0) << name;
    refused += count.refused;
  }
  EXPECT_GE(refused, 200);
}

}  // namespace
}  // namespace isomer
