#include "verifier/proving/judge_rules.h"

#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "pcg/support/process_pool.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"
#include "verifier/proving/prover.h"
#include "verifier/refutation/shrink.h"

namespace isomer {
namespace {

ProofRecord JudgeOne(Prover* prover, const Rule& rule, const std::string& counterexample_dir) {
  Judgement judgement = prover->Judge(rule);
  if (!judgement.counterexample) return std::move(judgement.record);
  // One direction of a reversible rule is refuted: the counterexample may be the inverse's.
  const bool forward = Replay(rule, *judgement.counterexample).ok();
  const Rule refuted = forward ? rule : Inverse(rule);
  const Counterexample shrunk = Shrink(refuted, *judgement.counterexample);
  judgement.record.note = absl::StrCat(forward ? "" : "from target to source: ", shrunk.Summary());
  if (!counterexample_dir.empty()) {
    const absl::Status saved =
        SaveCounterexample(absl::StrCat(counterexample_dir, "/", rule.id), refuted, shrunk);
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

absl::StatusOr<JudgedRules> JudgeRules(const std::vector<Rule>& rules,
                                       const JudgeOptions& options) {
  JudgedRules judged;
  judged.records.resize(rules.size());
  std::vector<size_t> open;  // rules without a verdict
  for (size_t i = 0; i < rules.size(); ++i) {
    std::optional<ProofRecord> known;
    if (options.cache != nullptr) known = options.cache->Find(rules[i]);
    // A refutation's files are made of its counterexample, which is not kept.
    const bool wants_files = !options.counterexample_dir.empty() && known.has_value() &&
                             known->verdict == ProofRecord::Verdict::kRefuted;
    if (known.has_value() && !wants_files) {
      judged.records[i] = *std::move(known);
    } else {
      open.push_back(i);
    }
  }
  judged.from_cache = static_cast<int>(rules.size() - open.size());
  Progress progress("prove", static_cast<int64_t>(open.size()));
  auto make_worker = [&]() -> ItemWorker {
    auto prover = std::make_shared<Prover>();
    return [&, prover](size_t item) {
      return ToLine(JudgeOne(prover.get(), rules[open[item]], options.counterexample_dir));
    };
  };
  size_t done_rules = 0;
  auto done = [&](size_t item, const std::string& line) {
    judged.records[open[item]] = FromLine(line);
    progress.Advance();
    const bool judged_one = judged.records[open[item]].verdict != ProofRecord::Verdict::kNone;
    if (options.cache == nullptr || !judged_one) return;
    options.cache->Put(rules[open[item]], judged.records[open[item]]);
    // A killed run goes on about where it stopped.
    constexpr size_t kSaveEvery = 250;
    if (++done_rules % kSaveEvery == 0) judged.cache_status.Update(options.cache->Save());
  };
  auto died = [&](size_t item, const std::string& why) {
    ProofRecord& record = judged.records[open[item]];
    record.verdict = ProofRecord::Verdict::kCrashed;
    record.note = "the prover ended: " + why;
    progress.Advance();
  };
  // Rules may be of strangers: one that ends the prover must not hide the verdicts on the others.
  ISOMER_RETURN_IF_ERROR(
      ForEachInIsolation(options.jobs, options.isolation, open.size(), make_worker, done, died));
  if (options.cache != nullptr) judged.cache_status.Update(options.cache->Save());
  return judged;
}

}  // namespace isomer
