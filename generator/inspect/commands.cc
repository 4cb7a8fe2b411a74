#include "generator/inspect/commands.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "generator/inspect/counts.h"
#include "generator/inspect/difference.h"
#include "generator/inspect/drawing.h"
#include "generator/inspect/example.h"
#include "generator/inspect/kinds.h"
#include "generator/inspect/use.h"
#include "generator/inspect/words.h"
#include "pcg/support/file.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"
#include "rules/language/find_rule.h"

namespace isomer {
namespace {

void Print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

std::string Indented(const std::string& text, const char* indent = "  ") {
  std::string result;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&result, indent, line, "\n");
  }
  return result;
}

// Lines of two texts beside each other.
std::string SideBySide(const std::string& left, const std::string& right) {
  const std::vector<std::string> a = absl::StrSplit(left, '\n', absl::SkipEmpty());
  const std::vector<std::string> b = absl::StrSplit(right, '\n', absl::SkipEmpty());
  size_t width = 0;
  for (const std::string& line : a) width = std::max(width, line.size());
  std::string result;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string l = i < a.size() ? a[i] : "", r = i < b.size() ? b[i] : "";
    std::string line = absl::StrFormat("%-*s   %s", static_cast<int>(width), l, r);
    absl::StripTrailingAsciiWhitespace(&line);
    absl::StrAppend(&result, line, "\n");
  }
  return result;
}

std::string ProofText(const ProofRecord& proof, DescribeLemma describe_lemma) {
  std::string text = absl::StrFormat("%s, %s, %.2f s%s\n", VerdictName(proof.verdict),
                                     proof.solver.empty() ? "no solver" : proof.solver,
                                     proof.seconds, proof.note.empty() ? "" : ": " + proof.note);
  for (const std::string& lemma : proof.lemmas) {
    absl::StrAppend(&text, lemma, ": ", describe_lemma(lemma), "\n");
  }
  return text;
}

std::string RanksText(const Rule& rule) {
  return absl::StrJoin(rule.ranks, " ", [](std::string* out, const std::vector<int>& ranks) {
    absl::StrAppend(out, "(", absl::StrJoin(ranks, ","), ")");
  });
}

}  // namespace

absl::StatusOr<int> StatsCommand(const std::vector<std::string>& arguments,
                                 const std::string& markdown) {
  if (arguments.size() != 1) return absl::InvalidArgumentError("expected 'stats FILE'");
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, LoadRules(arguments[0]));
  const RuleCounts counts = CountRules(rules);
  if (!markdown.empty()) ISOMER_RETURN_IF_ERROR(WriteFileAtomically(markdown, CountsPage(counts)));
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(CountsJson(counts)));
  Print(CountsText(counts));
  return kExitDone;
}

absl::StatusOr<int> UseCommand(const std::vector<std::string>& arguments,
                               const std::vector<std::string>& plans) {
  if (arguments.size() != 1) return absl::InvalidArgumentError("expected 'stats FILE --use=PLANS'");
  ISOMER_ASSIGN_OR_RETURN(RuleSet rules, LoadRules(arguments[0]));
  rules.BuildIndex();
  std::vector<Plan> loaded;
  for (const std::string& plan : plans) {
    ISOMER_ASSIGN_OR_RETURN(loaded.emplace_back(), LoadPlan(plan));
  }
  const absl::StatusOr<UseOfRules> use = CountUse(rules, loaded);
  if (!use.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(arguments[0], ": ", use.status().message()));
  }
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(UseJson(*use)));
  Print(UseText(*use));
  return kExitDone;
}

std::string DescribeRule(const Rule& rule, DescribeLemma describe_lemma) {
  std::string conditions;
  for (const Condition& condition : rule.conditions) {
    absl::StrAppend(&conditions, ConditionInWords(condition, rule), "\n");
  }
  const absl::StatusOr<std::string> example = ExampleText(rule);
  return absl::StrCat(rule.id, "\n\n", rule.ToString(), "\n\nNodes\n",
                      Indented(SideBySide(absl::StrCat("source\n", NodeLines(rule.source)),
                                          absl::StrCat("target\n", NodeLines(rule.target)))),
                      "\nDrawing\n",
                      Indented(SideBySide(absl::StrCat("source\n", TreeText(rule.source)),
                                          absl::StrCat("target\n", TreeText(rule.target)))),
                      "\nVariables: ", VariablesInWords(rule),
                      "\nRanks of the inputs: ", RanksText(rule), "\nDirection: ",
                      rule.reversible ? "both, under the same conditions" : "from source to target",
                      "\nKind: ", RuleKindName(KindOf(rule)), IsJoint(rule) ? ", joint" : "",
                      "\nOrigin: ", rule.origin, "\n\nConditions\n",
                      Indented(conditions.empty() ? "none" : conditions), "\nProof\n",
                      Indented(ProofText(rule.proof, describe_lemma)), "\nExample\n",
                      Indented(example.ok() ? *example : std::string(example.status().message())));
}

absl::StatusOr<int> ShowCommand(const std::vector<std::string>& arguments,
                                const ShowOptions& options, DescribeLemma describe_lemma) {
  if (arguments.size() != 1) return absl::InvalidArgumentError("expected 'show FILE --id=ID'");
  ISOMER_RETURN_IF_ERROR(RefuseFlags({"json"}, "is not of show, which prints alone"));
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, LoadRules(arguments[0]));
  const absl::StatusOr<const Rule*> found = FindByPrefix(rules, options.id);
  if (!found.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(arguments[0], ": ", found.status().message()));
  }
  const Rule& rule = **found;
  if (!options.dot.empty()) {
    ISOMER_RETURN_IF_ERROR(WriteFileAtomically(options.dot, RuleToDot(rule)));
  }
  if (!options.svg.empty()) {
    ISOMER_RETURN_IF_ERROR(WriteFileAtomically(options.svg, RuleToSvg(rule)));
  }
  Print(DescribeRule(rule, describe_lemma));
  return kExitDone;
}

absl::StatusOr<int> DiffCommand(const std::vector<std::string>& arguments) {
  if (arguments.size() != 2) return absl::InvalidArgumentError("expected 'diff FILE FILE'");
  ISOMER_RETURN_IF_ERROR(RefuseFlags({"json"}, "is not of diff, which prints alone"));
  ISOMER_ASSIGN_OR_RETURN(const RuleSet first, LoadRules(arguments[0]));
  ISOMER_ASSIGN_OR_RETURN(const RuleSet second, LoadRules(arguments[1]));
  const RuleSetDifference difference = Compare(first, second);
  Print(DifferenceText(difference));
  return difference.empty() ? kExitDone : kExitNo;
}

}  // namespace isomer
