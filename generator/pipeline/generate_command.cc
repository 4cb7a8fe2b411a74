#include "generator/pipeline/generate_command.h"

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "generator/inspect/kinds.h"
#include "generator/pipeline/steps.h"
#include "generator/workers/local_workers.h"
#include "pcg/support/file.h"
#include "pcg/support/hash.h"
#include "pcg/support/messages.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

void Sort(std::vector<Rule> judged, GenerateOutcome* outcome) {
  std::set<std::string> seen;
  for (Rule& rule : judged) {
    if (rule.proof.verdict == ProofRecord::Verdict::kProved) {
      // Two rules may have been repaired to one.
      if (seen.insert(rule.id).second) outcome->proved.rules.push_back(std::move(rule));
      continue;
    }
    const bool refuted = rule.proof.verdict == ProofRecord::Verdict::kRefuted;
    ++(refuted ? outcome->refuted : outcome->unknown);
    outcome->rejected.push_back(std::move(rule));
  }
}

absl::Status WriteReasons(const std::string& folder, const Statistics& statistics,
                          const std::vector<Rule>& rejected) {
  std::string pruned, verdicts;
  for (const auto& [reason, examples] : statistics.pruned_examples) {
    absl::StrAppend(&pruned, "# ", reason, ": ", statistics.pruned.at(reason), "\n");
    for (const std::string& example : examples) absl::StrAppend(&pruned, example, "\n");
  }
  for (const Rule& rule : rejected) {
    absl::StrAppend(&verdicts, VerdictName(rule.proof.verdict), " ", rule.id, " ", rule.ToString(),
                    "\n  ", rule.proof.note, "\n");
  }
  ISOMER_RETURN_IF_ERROR(WriteFileAtomically(folder + "/pruned.txt", pruned));
  return WriteFileAtomically(folder + "/rejected.txt", verdicts);
}

int64_t PeakRssBytes(int whose) {
  rusage usage{};
  getrusage(whose, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace

absl::StatusOr<GenerateOutcome> RunGenerate(const GenerateCommand& command) {
  auto memo = std::make_unique<Memo>();
  if (!command.work_dir.empty()) {
    ISOMER_ASSIGN_OR_RETURN(memo, Memo::Open(command.work_dir));
    for (const std::string& note : memo->notes()) PrintNote(note);
  }
  std::unique_ptr<Workers> own;
  if (command.workers == nullptr) {
    ISOMER_ASSIGN_OR_RETURN(own,
                            MakeLocalWorkers(command.jobs, GeneratorSteps(command.make_judge)));
  }
  Workers* const workers = own != nullptr ? own.get() : command.workers;
  if (!command.work_dir.empty()) workers->KeepLogsIn(command.work_dir);
  WorkQueue queue(workers, memo.get());
  GenerateOptions options = command.options;
  options.queue = &queue;
  const StepKeys keys(options.seed, options.meanings);
  // Rules are proved while others are looked for.
  Proofs proofs(&queue, &keys);
  options.on_likely_rule = [&](const GeneralRule& rule) { proofs.Expect(rule); };
  options.on_rule = [&](const GeneralRule& rule) { proofs.Begin(rule); };
  GenerateOutcome outcome;
  ISOMER_ASSIGN_OR_RETURN(const std::vector<GeneralRule> rules,
                          Generate(options, &outcome.statistics));
  outcome.settled = static_cast<int64_t>(rules.size());

  const auto start = std::chrono::steady_clock::now();
  ISOMER_ASSIGN_OR_RETURN(std::vector<Rule> judged, proofs.Take(options.progress));
  outcome.statistics.seconds["prove"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  Sort(std::move(judged), &outcome);
  outcome.proved.generator = command.generator;
  outcome.memo = memo->counts();
  for (const std::string& file : command.files) {
    ISOMER_RETURN_IF_ERROR(SaveRules(file, outcome.proved));
  }
  if (!command.work_dir.empty()) {
    ISOMER_RETURN_IF_ERROR(WriteReasons(command.work_dir, outcome.statistics, outcome.rejected));
    ISOMER_RETURN_IF_ERROR(memo->status());
  }
  return outcome;
}

Json SummaryOf(const GenerateOutcome& outcome) {
  const Statistics& statistics = outcome.statistics;
  Json json;
  json["graphs_enumerated"] = statistics.graphs_enumerated;
  json["tensors_kept"] = statistics.tensors_kept;
  json["bytes_kept"] = statistics.bytes_kept;
  json["candidates"] = statistics.candidates;
  json["pruned"] = Json::EmptyObject();
  for (const auto& [reason, count] : statistics.pruned) json["pruned"][reason] = count;
  json["settled"] = outcome.settled;
  json["proved"] = outcome.proved.rules.size();
  json["refuted"] = outcome.refuted;
  json["unknown"] = outcome.unknown;
  json["rules"] = outcome.proved.rules.size();
  std::map<RuleKind, int64_t> by_kind = {
      {RuleKind::kAlgebra, 0}, {RuleKind::kMixing, 0}, {RuleKind::kMoving, 0}};
  for (const Rule& rule : outcome.proved.rules) ++by_kind[KindOf(rule)];
  for (const auto& [kind, count] : by_kind) json["rules_by_kind"][RuleKindName(kind)] = count;
  json["digest"] = DigestString(outcome.proved.Digest());
  for (const auto& [phase, seconds] : statistics.seconds) json["seconds"][phase] = seconds;
  json["memo"] = Json::EmptyObject();
  for (const auto& [step, counts] : outcome.memo) {
    json["memo"][step]["hits"] = counts.hits;
    json["memo"][step]["misses"] = counts.misses;
  }
  json["peak_rss_bytes"] = PeakRssBytes(RUSAGE_SELF);
  json["peak_rss_bytes_of_a_child"] = PeakRssBytes(RUSAGE_CHILDREN);
  return json;
}

}  // namespace isomer
