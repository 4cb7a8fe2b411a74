#include "verifier/judge_rules.h"

#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "pcg/support/process_pool.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"
#include "verifier/prover.h"

namespace isomer {
namespace {

ProofRecord JudgeOne(Prover* prover, const Rule& rule, const std::string& counterexample_dir) {
  Judgement judgement = prover->Judge(rule);
  if (judgement.counterexample && !counterexample_dir.empty()) {
    const absl::Status saved = SaveCounterexample(absl::StrCat(counterexample_dir, "/", rule.id),
                                                  rule, *judgement.counterexample);
    if (!saved.ok()) absl::StrAppend(&judgement.record.note, " (", saved.message(), ")");
  }
  return std::move(judgement.record);
}

// A record as one line: verdict, seconds, solver, lemmas, note, separated by tabs.
std::string ToLine(const ProofRecord& record) {
  auto field = [](const std::string& text) {
    return absl::StrReplaceAll(text, {{"\t", " "}, {"\n", " "}});
  };
  return absl::StrCat(static_cast<int>(record.verdict), "\t", record.seconds, "\t",
                      field(record.solver), "\t", absl::StrJoin(record.lemmas, ","), "\t",
                      field(record.note));
}

// REQUIRES: the line is one of ToLine's.
ProofRecord FromLine(const std::string& line) {
  const std::vector<std::string> fields = absl::StrSplit(line, '\t');
  ProofRecord record;
  int verdict = 0;
  if (fields.size() != 5 || !absl::SimpleAtoi(fields[0], &verdict) ||
      !absl::SimpleAtod(fields[1], &record.seconds)) {
    return record;
  }
  record.verdict = static_cast<ProofRecord::Verdict>(verdict);
  record.solver = fields[2];
  record.lemmas = absl::StrSplit(fields[3], ',', absl::SkipEmpty());
  record.note = fields[4];
  return record;
}

}  // namespace

absl::StatusOr<std::vector<ProofRecord>> JudgeRules(const std::vector<Rule>& rules, int jobs,
                                                    const std::string& counterexample_dir) {
  std::vector<ProofRecord> records(rules.size());
  Progress progress("prove", static_cast<int64_t>(rules.size()));
  auto make_worker = [&]() -> ItemWorker {
    auto prover = std::make_shared<Prover>();
    return [&, prover](size_t i) {
      return ToLine(JudgeOne(prover.get(), rules[i], counterexample_dir));
    };
  };
  auto done = [&](size_t i, const std::string& line) {
    records[i] = FromLine(line);
    progress.Advance();
  };
  ISOMER_RETURN_IF_ERROR(ForEachInProcesses(jobs, rules.size(), make_worker, done));
  return records;
}

}  // namespace isomer
