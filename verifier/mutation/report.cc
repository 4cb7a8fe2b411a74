// What became of the mutants, as text, Markdown and JSON.
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "verifier/mutation/mutation.h"

namespace isomer {
namespace {

using Outcome = MutantVerdict::Outcome;

struct Counts {
  int all = 0, by_outcome[4] = {};
  int of(Outcome outcome) const { return by_outcome[static_cast<int>(outcome)]; }
  int changed() const { return of(Outcome::kCaught) + of(Outcome::kMissed); }
  void Add(const MutantVerdict& verdict) {
    ++all;
    ++by_outcome[static_cast<int>(verdict.outcome)];
  }
};

const char* OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kCaught:
      return "caught";
    case Outcome::kUndecided:
      return "undecided";
    case Outcome::kEqual:
      return "equal";
    case Outcome::kMissed:
      break;
  }
  return "missed";
}

struct Summary {
  std::map<MutantKind, Counts> by_kind;
  Counts total;
  std::map<std::tuple<MutantKind, Outcome, std::string>, int> reasons;
};

Summary Summarise(const std::vector<Mutant>& mutants, const std::vector<MutantVerdict>& verdicts) {
  Summary summary;
  for (size_t i = 0; i < mutants.size(); ++i) {
    summary.by_kind[mutants[i].kind].Add(verdicts[i]);
    summary.total.Add(verdicts[i]);
    ++summary.reasons[{mutants[i].kind, verdicts[i].outcome, verdicts[i].reason}];
  }
  return summary;
}

std::string Percent(const Counts& counts) {
  if (counts.changed() == 0) return "-";
  return absl::StrFormat("%.4g %%", 100.0 * counts.of(Outcome::kCaught) / counts.changed());
}

}  // namespace

const char* MutantKindName(MutantKind kind) {
  switch (kind) {
    case MutantKind::kDeclaration:
      return "declarations";
    case MutantKind::kRule:
      return "rules";
    case MutantKind::kPlan:
      return "plans";
    case MutantKind::kSchedule:
      return "schedules";
    case MutantKind::kProgram:
      break;
  }
  return "programs";
}

bool NothingIsMissed(const std::vector<MutantVerdict>& verdicts) {
  for (const MutantVerdict& verdict : verdicts) {
    if (verdict.outcome == Outcome::kMissed) return false;
  }
  return true;
}

std::string MutationText(const std::vector<Mutant>& mutants,
                         const std::vector<MutantVerdict>& verdicts, bool all_equal) {
  const Summary summary = Summarise(mutants, verdicts);
  std::string text;
  for (size_t i = 0; i < mutants.size(); ++i) {
    const Outcome outcome = verdicts[i].outcome;
    if (outcome != Outcome::kMissed && !(all_equal && outcome == Outcome::kEqual)) continue;
    absl::StrAppend(&text, OutcomeName(outcome), " (", MutantKindName(mutants[i].kind), ") ",
                    mutants[i].subject, "\n    ", mutants[i].change, "\n    ", verdicts[i].reason,
                    ": ", verdicts[i].details, "\n");
  }
  for (const auto& [key, count] : summary.reasons) {
    const auto& [kind, outcome, reason] = key;
    absl::StrAppendFormat(&text, "%-13s %-9s %5d  %s\n", MutantKindName(kind), OutcomeName(outcome),
                          count, reason);
  }
  absl::StrAppendFormat(&text, "%-13s %7s %15s %7s %7s %9s %7s\n", "", "mutants", "changed meaning",
                        "caught", "equal", "undecided", "missed");
  auto row = [&](const char* name, const Counts& counts) {
    absl::StrAppendFormat(&text, "%-13s %7d %15d %7d %7d %9d %7d\n", name, counts.all,
                          counts.changed(), counts.of(Outcome::kCaught), counts.of(Outcome::kEqual),
                          counts.of(Outcome::kUndecided), counts.of(Outcome::kMissed));
  };
  for (const auto& [kind, counts] : summary.by_kind) row(MutantKindName(kind), counts);
  row("all", summary.total);
  absl::StrAppend(&text, Percent(summary.total), " of those that change meaning are caught\n");
  return text;
}

std::string MutationMarkdown(const std::vector<Mutant>& mutants,
                             const std::vector<MutantVerdict>& verdicts) {
  const Summary summary = Summarise(mutants, verdicts);
  std::string text =
      "| mutants of | mutants | changed meaning | caught | equal | undecided | missed |\n"
      "|---|--:|--:|--:|--:|--:|--:|\n";
  auto row = [&](const std::string& name, const Counts& counts) {
    absl::StrAppend(&text, "| ", name, " | ", counts.all, " | ", counts.changed(), " | ",
                    counts.of(Outcome::kCaught), " (", Percent(counts), ") | ",
                    counts.of(Outcome::kEqual), " | ", counts.of(Outcome::kUndecided), " | ",
                    counts.of(Outcome::kMissed), " |\n");
  };
  for (const auto& [kind, counts] : summary.by_kind) row(MutantKindName(kind), counts);
  row("all", summary.total);
  absl::StrAppend(&text,
                  "\n| mutants of | outcome | number | who refused, or why it is equal |\n"
                  "|---|---|--:|---|\n");
  for (const auto& [key, count] : summary.reasons) {
    const auto& [kind, outcome, reason] = key;
    absl::StrAppend(&text, "| ", MutantKindName(kind), " | ", OutcomeName(outcome), " | ", count,
                    " | ", absl::StrReplaceAll(reason, {{"|", "\\|"}}), " |\n");
  }
  return text;
}

Json MutationJson(const std::vector<Mutant>& mutants, const std::vector<MutantVerdict>& verdicts) {
  const Summary summary = Summarise(mutants, verdicts);
  Json json;
  for (const auto& [kind, counts] : summary.by_kind) {
    Json& row = json["kinds"][MutantKindName(kind)];
    row["mutants"] = counts.all;
    row["changed"] = counts.changed();
    row["caught"] = counts.of(Outcome::kCaught);
    row["equal"] = counts.of(Outcome::kEqual);
    row["undecided"] = counts.of(Outcome::kUndecided);
    row["missed"] = counts.of(Outcome::kMissed);
  }
  json["mutants"] = Json::EmptyArray();
  for (size_t i = 0; i < mutants.size(); ++i) {
    Json mutant;
    mutant["kind"] = MutantKindName(mutants[i].kind);
    mutant["subject"] = mutants[i].subject;
    mutant["change"] = mutants[i].change;
    mutant["outcome"] = OutcomeName(verdicts[i].outcome);
    mutant["reason"] = verdicts[i].reason;
    mutant["details"] = verdicts[i].details;
    json["mutants"].Append(mutant);
  }
  return json;
}

}  // namespace isomer
