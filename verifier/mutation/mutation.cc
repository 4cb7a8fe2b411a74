#include "verifier/mutation/mutation.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "pcg/support/process_pool.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"
#include "verifier/mutation/mutants.h"

namespace isomer {
namespace {

std::string ToLine(const MutantVerdict& verdict) {
  auto field = [](const std::string& text) {
    return absl::StrReplaceAll(text, {{"\t", " "}, {"\n", " "}});
  };
  return absl::StrCat(static_cast<int>(verdict.outcome), "\t", field(verdict.reason), "\t",
                      field(verdict.details));
}

// REQUIRES: the line is one of ToLine's.
MutantVerdict FromLine(const std::string& line) {
  const std::vector<std::string> fields = absl::StrSplit(line, '\t');
  MutantVerdict verdict;
  int outcome = 0;
  if (fields.size() != 3 || !absl::SimpleAtoi(fields[0], &outcome)) return verdict;
  verdict.outcome = static_cast<MutantVerdict::Outcome>(outcome);
  verdict.reason = fields[1];
  verdict.details = fields[2];
  return verdict;
}

// Every n-th, so that `limit` stay.
void Thin(int limit, std::vector<Mutant>* mutants) {
  if (limit == 0 || static_cast<int>(mutants->size()) <= limit) return;
  std::vector<Mutant> kept;
  for (int i = 0; i < limit; ++i) {
    kept.push_back(std::move((*mutants)[static_cast<size_t>(i) * mutants->size() / limit]));
  }
  *mutants = std::move(kept);
}

void Append(std::vector<Mutant> more, std::vector<Mutant>* mutants) {
  mutants->insert(mutants->end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
}

}  // namespace

absl::StatusOr<std::vector<Mutant>> AllMutants(const RuleSet& rules,
                                               const MutationOptions& options) {
  std::vector<Mutant> mutants;
  ISOMER_ASSIGN_OR_RETURN(std::vector<Mutant> declarations, DeclarationMutants(options.seed));
  ISOMER_ASSIGN_OR_RETURN(std::vector<Mutant> plans, PlanMutants(rules, options.seed));
  ISOMER_ASSIGN_OR_RETURN(std::vector<Mutant> schedules, ScheduleMutants(options.seed));
  ISOMER_ASSIGN_OR_RETURN(std::vector<Mutant> programs, ProgramMutants(options.seed));
  for (std::vector<Mutant>* some : {&declarations, &plans, &schedules, &programs}) {
    Thin(options.limit, some);
  }
  Append(std::move(declarations), &mutants);
  Append(RuleMutants(rules.rules, options.rule_mutants, options.seed), &mutants);
  Append(std::move(plans), &mutants);
  Append(std::move(schedules), &mutants);
  Append(std::move(programs), &mutants);
  return mutants;
}

absl::StatusOr<std::vector<MutantVerdict>> JudgeMutants(const std::vector<Mutant>& mutants,
                                                        int jobs) {
  std::vector<MutantVerdict> verdicts(mutants.size());
  std::vector<bool> is_judged(mutants.size(), false);
  Progress progress("mutate", static_cast<int64_t>(mutants.size()));
  auto make_worker = [&]() -> ItemWorker {
    auto prover = std::make_shared<Prover>();
    return [&, prover](size_t i) { return ToLine(mutants[i].judge(prover.get())); };
  };
  auto done = [&](size_t i, const std::string& line) {
    verdicts[i] = FromLine(line);
    is_judged[i] = true;
    progress.Advance();
  };
  const absl::Status judged = ForEachInProcesses(jobs, mutants.size(), make_worker, done);
  if (judged.ok()) return verdicts;
  const auto at = std::find(is_judged.begin(), is_judged.end(), false) - is_judged.begin();
  const Mutant& mutant = mutants[std::min<size_t>(at, mutants.size() - 1)];
  return absl::InternalError(absl::StrCat(judged.message(), "; the first without a verdict is ",
                                          mutant.subject, ", ", mutant.change));
}

}  // namespace isomer
