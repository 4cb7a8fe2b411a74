// An adversary who draws rules and plans for as long as one likes (scripts/attack.sh): what is
// proved or accepted is run, and must be right.
//
// ISOMER_ATTACK_SECONDS=1800 ISOMER_ATTACK_SEED=1 ISOMER_ATTACK_JOBS=2; a second or two by default.
// ISOMER_ATTACK_FROM=N repeats the draws from N, as a finding names them.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "pcg/support/process_pool.h"
#include "rules/language/rule.h"
#include "tests/from_environment.h"
#include "tests/unsound/hostile_plans.h"
#include "tests/unsound/hostile_rules.h"
#include "verifier/proving/prover.h"

namespace isomer {
namespace {

// What became of the draws, by word, and what was found.
struct Tally {
  std::map<std::string, int64_t> counts;
  std::vector<std::string> findings;
  std::string ToText() const {
    std::vector<std::string> lines;
    for (const auto& [word, count] : counts) lines.push_back(absl::StrCat(word, "\t", count));
    for (const std::string& finding : findings) lines.push_back("!\t" + finding);
    return absl::StrJoin(lines, "\v");
  }
  void Add(const std::string& text) {
    for (absl::string_view line : absl::StrSplit(text, '\v', absl::SkipEmpty())) {
      const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits('\t', 1));
      int64_t count = 0;
      if (fields[0] == "!") {
        findings.push_back(fields[1]);
      } else if (absl::SimpleAtoi(fields[1], &count)) {
        counts[fields[0]] += count;
      }
    }
  }
  std::string Summary() const { return absl::StrJoin(counts, ", ", absl::PairFormatter(" ")); }
};

const RuleSet& ShippedRules() {
  static const RuleSet* const rules =
      new RuleSet(LoadRules(ISOMER_SOURCE_DIR "/rules/default.rules").value());
  return *rules;
}

// How many draws a process makes before it says what it found.
constexpr int kRulesAtATime = 10, kItems = 128, kAssignments = 30;

Tally AttackWithRules(uint64_t seed, absl::Time end, Prover* prover) {
  HostileRules hostile(ShippedRules().rules, seed);
  Tally tally;
  for (int draw = 0; draw < kRulesAtATime && absl::Now() < end; ++draw) {
    const HostileRule drawn = hostile.Draw();
    const ProofRecord record = prover->Prove(drawn.rule);
    ++tally.counts[std::string("rules ") + VerdictName(record.verdict)];
    if (record.verdict != ProofRecord::Verdict::kProved) continue;
    const std::string seen = DifferenceSeen(drawn.rule, kAssignments, seed + 1);
    if (seen.empty()) continue;
    tally.findings.push_back(absl::StrCat("proved, and false: ", drawn.rule.ToString(), "\n  ",
                                          drawn.how, "\n  ", seen, "\n  from ",
                                          absl::StrJoin(record.lemmas, ", ")));
  }
  return tally;
}

// One piece of work: rules, or plans.
Tally AttackFrom(uint64_t seed, absl::Time end, Prover* prover, HostilePlans* plans) {
  if (seed % 4 > 0) return AttackWithRules(seed, end, prover);
  Tally tally;
  plans->Attack(seed, &tally.counts, &tally.findings);
  return tally;
}

// What ended a process, again in this one.
TEST(Attack, FromOneSeed) {
  const int64_t seed = FromEnvironment("ISOMER_ATTACK_FROM", 1);
  Prover prover;
  HostilePlans plans(ShippedRules());
  const Tally tally =
      AttackFrom(static_cast<uint64_t>(seed), absl::InfiniteFuture(), &prover, &plans);
  EXPECT_TRUE(tally.findings.empty()) << absl::StrJoin(tally.findings, "\n\n");
  EXPECT_FALSE(tally.counts.empty());
}

TEST(Attack, FindsNothing) {
  const int64_t seconds = FromEnvironment("ISOMER_ATTACK_SECONDS", 2);
  const uint64_t seed = static_cast<uint64_t>(FromEnvironment("ISOMER_ATTACK_SEED", 1));
  const int jobs = static_cast<int>(FromEnvironment("ISOMER_ATTACK_JOBS", 1));
  const absl::Time end = absl::Now() + absl::Seconds(seconds);
  ShippedRules();
  Tally tally;
  for (uint64_t round = 0; absl::Now() < end; ++round) {
    auto seed_of = [&](size_t item) { return (seed << 40) + (round << 20) + item; };
    auto make_worker = [&]() -> ItemWorker {
      auto prover = std::make_shared<Prover>();
      auto plans = std::make_shared<HostilePlans>(ShippedRules());
      return [&, prover, plans](size_t item) -> std::string {
        if (absl::Now() >= end) return "";
        return AttackFrom(seed_of(item), end, prover.get(), plans.get()).ToText();
      };
    };
    const auto done = [&](size_t, const std::string& text) { tally.Add(text); };
    const auto died = [&](size_t item, const std::string& why) {
      tally.findings.push_back(absl::StrCat("the draws from ", seed_of(item), " end it: ", why));
    };
    const absl::Status ran =
        ForEachInIsolation(jobs, {.seconds_per_item = 300, .bytes = int64_t{6} << 30}, kItems,
                           make_worker, done, died);
    ASSERT_TRUE(ran.ok()) << ran;
    if (!tally.findings.empty()) break;
  }
  std::printf("attack, seed %llu: %s\n", static_cast<unsigned long long>(seed),
              tally.Summary().c_str());
  EXPECT_TRUE(tally.findings.empty()) << absl::StrJoin(tally.findings, "\n\n");
  EXPECT_GT(tally.counts.size(), 2u) << "nothing was drawn";
}

}  // namespace
}  // namespace isomer
