// The corpus of the unsound: rules that are false, by class, each refused for its own reason,
// beside true ones that are proved.
//
// A line of rules/CLASS.txt is
//
//   false refuted    RULE  [OPTIONS]  # what an assignment shows
//   false unknown    RULE  [OPTIONS]  # why there is no proof
//   false invalid    RULE  [OPTIONS]  # why it is no rule
//   true  proved     RULE  [OPTIONS]
//   true  unknown    RULE  [OPTIONS]  # what the prover lacks
//
// in the words of rule_from_text.h. OPTIONS: ranks of the inputs (all 2 if none are given), and
// conditions: "2,1 same(0,1) whole(0) unpartitioned(0,-1) divides(d,0,-1) by_structure".
//
// ISOMER_WRITE_CORPUS=1 writes verdicts and reasons as they are now. Which rules are true is for
// people to say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "pcg/support/file.h"
#include "tests/unsound/hostile_rules.h"
#include "tests/verifier/rule_from_text.h"
#include "verifier/proving/prover.h"

namespace isomer {
namespace {

constexpr char kFolder[] = ISOMER_SOURCE_DIR "/tests/unsound/rules";
constexpr size_t kLongestReason = 70;

struct Line {
  std::string text;  // as it is; all that a comment has
  bool is_rule = false, is_true = false;
  std::string verdict, rule, options, reason;
};

struct File {
  std::string path;
  std::vector<Line> lines;
};

Line ParseLine(const std::string& text) {
  Line line;
  line.text = text;
  if (text.empty() || text[0] == '#') return line;
  line.is_rule = true;
  absl::string_view rest = text;
  line.is_true = absl::ConsumePrefix(&rest, "true");
  EXPECT_TRUE(line.is_true || absl::ConsumePrefix(&rest, "false")) << text;
  rest = absl::StripLeadingAsciiWhitespace(rest);
  const size_t word = rest.find(' ');
  line.verdict = std::string(rest.substr(0, word));
  rest = absl::StripAsciiWhitespace(rest.substr(word));
  if (const size_t at = rest.find("  # "); at != absl::string_view::npos) {
    line.reason = std::string(rest.substr(at + 4));
    rest = absl::StripTrailingAsciiWhitespace(rest.substr(0, at));
  }
  if (const size_t at = rest.find("  ["); at != absl::string_view::npos) {
    line.options = std::string(absl::StripSuffix(rest.substr(at + 3), "]"));
    rest = rest.substr(0, at);
  }
  line.rule = std::string(rest);
  return line;
}

std::vector<File> LoadCorpus() {
  std::vector<File> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    File file = {entry.path().string(), {}};
    const std::string text = ReadFile(file.path).value();
    for (absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
      file.lines.push_back(ParseLine(std::string(line)));
    }
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.path < b.path; });
  return files;
}

const std::vector<File>& Corpus() {
  static const std::vector<File>* const files = new std::vector<File>(LoadCorpus());
  return *files;
}

int64_t Integer(absl::string_view text) {
  int64_t value = 0;
  EXPECT_TRUE(absl::SimpleAtoi(text, &value)) << text;
  return value;
}

Condition ConditionOf(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(absl::StripSuffix(text, ")"), '(');
  const std::vector<std::string> arguments = absl::StrSplit(parts.size() > 1 ? parts[1] : "", ',');
  auto number = [&](size_t i) { return Integer(arguments[i]); };
  if (parts[0] == "same") return SameType(static_cast<int>(number(0)), static_cast<int>(number(1)));
  if (parts[0] == "whole") return NoPartials(static_cast<int>(number(0)));
  if (parts[0] == "unpartitioned") return Unpartitioned(static_cast<int>(number(0)), number(1));
  if (parts[0] == "divides") return Divides(arguments[0], static_cast<int>(number(1)), number(2));
  EXPECT_EQ(parts[0], "by_structure");
  return ByStructure();
}

Rule RuleOf(const Line& line) {
  std::vector<int> ranks;
  std::vector<Condition> conditions;
  for (absl::string_view word : absl::StrSplit(line.options, ' ', absl::SkipEmpty())) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(word[0]))) {
      conditions.push_back(ConditionOf(word));
      continue;
    }
    for (absl::string_view rank : absl::StrSplit(word, ',')) {
      ranks.push_back(static_cast<int>(Integer(rank)));
    }
  }
  Rule rule = RuleFromText(line.rule, {{}}, std::move(conditions));
  ranks.resize(static_cast<size_t>(rule.num_inputs), 2);
  rule.ranks = {std::move(ranks)};
  SetId(&rule);
  return rule;
}

struct Found {
  std::string verdict, reason;
};

Found Judge(const Rule& rule, Prover* prover) {
  if (const absl::Status valid = ValidateRule(rule); !valid.ok()) {
    std::string reason(valid.message());
    if (const size_t at = reason.find(": "); at != std::string::npos) reason.erase(0, at + 2);
    return {"invalid", reason};
  }
  const Judgement judgement = prover->Judge(rule);
  Found found = {VerdictName(judgement.record.verdict), judgement.record.note};
  if (judgement.counterexample.has_value()) {
    switch (judgement.counterexample->kind) {
      case Counterexample::Kind::kTargetIllTyped:
        found.reason = "no types: " + judgement.counterexample->difference.substr(
                                          judgement.counterexample->difference.find(": ") + 2);
        break;
      case Counterexample::Kind::kOutputTypes:
        found.reason = "other types";
        break;
      case Counterexample::Kind::kValues:
        found.reason = "other values";
        break;
      case Counterexample::Kind::kUndefined:
        found.reason = "not finite where the source is";
        break;
    }
  }
  if (found.verdict == "proved") found.reason.clear();
  return found;
}

std::string Trimmed(std::string reason) {
  reason = absl::StrReplaceAll(reason, {{"\n", " "}});
  // Binary choices of a search for a proof are not what is wrong with a rule.
  if (reason.size() > kLongestReason) reason = reason.substr(0, kLongestReason) + "...";
  return reason;
}

std::string TextOf(const Line& line) {
  if (!line.is_rule) return line.text;
  std::string text =
      absl::StrFormat("%-5s %-8s %s", line.is_true ? "true" : "false", line.verdict, line.rule);
  if (!line.options.empty()) absl::StrAppend(&text, "  [", line.options, "]");
  if (!line.reason.empty()) absl::StrAppend(&text, "  # ", line.reason);
  return text;
}

class Corpora : public ::testing::TestWithParam<std::string> {};

TEST_P(Corpora, EveryVerdictIsTheOneRecorded) {
  const bool write = std::getenv("ISOMER_WRITE_CORPUS") != nullptr;
  Prover prover;
  for (const File& file : Corpus()) {
    if (std::filesystem::path(file.path).stem() != GetParam()) continue;
    std::vector<std::string> written;
    for (const Line& line : file.lines) {
      Line now = line;
      if (line.is_rule) {
        const Rule rule = RuleOf(line);
        const Found found = Judge(rule, &prover);
        now.verdict = found.verdict;
        // Which of several assignments shows it depends on what the solver was asked before.
        const bool as_before = found.verdict == "refuted" && line.verdict == "refuted";
        now.reason = as_before ? line.reason : Trimmed(found.reason);
        if (!line.is_true) {
          EXPECT_NE(found.verdict, "proved") << line.rule;
        }
        EXPECT_NE(found.verdict, "crashed") << line.rule;
        if (line.is_true) {
          EXPECT_NE(found.verdict, "refuted") << line.rule << "\n" << found.reason;
          EXPECT_NE(found.verdict, "invalid") << line.rule << "\n" << found.reason;
        }
        if (found.verdict == "proved") {
          // Our own word is not taken for it either. (Of what is true but not proved the prime
          // field knows nothing: exp increases over the reals.)
          EXPECT_EQ(DifferenceSeen(rule, /*assignments=*/12, /*seed=*/3), "") << line.rule;
        }
        if (!write) {
          EXPECT_EQ(TextOf(now), TextOf(line));
        }
      }
      written.push_back(TextOf(now));
    }
    if (write) {
      ASSERT_TRUE(WriteFileAtomically(file.path, absl::StrJoin(written, "\n") + "\n").ok());
    }
  }
}

std::vector<std::string> Classes() {
  std::vector<std::string> names;
  for (const File& file : Corpus()) names.push_back(std::filesystem::path(file.path).stem());
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Corpora, ::testing::ValuesIn(Classes()),
                         [](const auto& param) { return param.param; });

TEST(CorpusOfRules, IsAsLargeAsWasPromised) {
  int false_rules = 0, true_rules = 0;
  for (const File& file : Corpus()) {
    int in_file = 0;
    for (const Line& line : file.lines) {
      if (!line.is_rule) continue;
      ++(line.is_true ? true_rules : false_rules);
      if (line.is_true && line.verdict == "proved") ++in_file;
    }
    EXPECT_GT(in_file, 0) << file.path << " has no twin that is proved";
  }
  EXPECT_GE(false_rules, 600);
  EXPECT_GE(true_rules, 100);
  const auto page = ReadFile(ISOMER_SOURCE_DIR "/README.md");
  ASSERT_TRUE(page.ok()) << page.status();
  const std::string said = absl::StrCat("a corpus of ", false_rules, " false rules");
  EXPECT_NE(page->find(said), std::string::npos) << "README.md does not say: " << said;
}

}  // namespace
}  // namespace isomer
