#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/hash.h"
#include "rules/matching/conditions.h"
#include "verifier/mutation/mutants.h"
#include "verifier/mutation/pattern_changes.h"
#include "verifier/refutation/counterexample.h"
#include "verifier/types/type_proof.h"
#include "verifier/values/representative_bindings.h"

namespace isomer {
namespace {

constexpr int kMutantsOfARule = 4, kBindings = 24;
// Larger rules take longer and say nothing that smaller ones do not.
constexpr size_t kMaxNodes = 12;

struct Search {
  int evaluated = 0;
  std::string difference;  // empty: none was seen
};

// Evaluates both sides at bindings that the prover did not choose.
Search SearchDifference(const Rule& rule) {
  std::vector<Binding> bindings;
  if (const auto instances = InstancesOf(rule); instances.ok()) {
    const size_t step = instances->size() / kBindings + 1;
    for (size_t i = 0; i < instances->size(); i += step) {
      for (Binding& binding : SmallBindings((*instances)[i], 3, 1000 + i)) {
        bindings.push_back(std::move(binding));
      }
    }
  } else {
    bindings = RepresentativeBindings(rule);
  }
  Search search;
  for (const Binding& binding : bindings) {
    const uint64_t seed = 77 + static_cast<uint64_t>(search.evaluated);
    const auto found = TryBinding(rule, binding, seed);
    if (!found.ok()) continue;
    ++search.evaluated;
    if (*found) search.difference = (*found)->Summary();
    if (const absl::Status equal = ExpectEqualInField(rule, binding, seed); !equal.ok()) {
      search.difference = std::string(equal.message());
    }
    if (!search.difference.empty() || search.evaluated == kBindings) break;
  }
  return search;
}

}  // namespace

MutantVerdict JudgeMutant(const Rule& rule, Prover* prover) {
  const Judgement judgement = prover->Judge(rule);
  const ProofRecord& record = judgement.record;
  if (record.verdict == ProofRecord::Verdict::kRefuted) {
    return Caught("refuted by the prover", record.note);
  }
  Search search = SearchDifference(rule);
  if (rule.reversible && search.difference.empty()) {
    const Search back = SearchDifference(Inverse(rule));
    search.evaluated += back.evaluated;
    search.difference = back.difference;
  }
  if (record.verdict == ProofRecord::Verdict::kProved) {
    const std::string text = absl::StrCat("from ", absl::StrJoin(record.lemmas, ", "));
    if (!search.difference.empty()) {
      return Missed("proved, though evaluation differs", search.difference);
    }
    return Equal("proved, and evaluates alike",
                 absl::StrCat(text, "; at ", search.evaluated, " assignments"));
  }
  if (!search.difference.empty()) return Caught("not proved by the prover", search.difference);
  return Undecided(search.evaluated > 0 ? "not proved, and evaluates alike"
                                        : "not proved, and no assignment was found",
                   record.note);
}

namespace {

// A false equation that speaks only of calls at which a theorem shows it is true, of none: it is
// judged as one that speaks of all calls first.
MutantVerdict JudgeOfAllCalls(const Rule& rule, Prover* prover) {
  if (!HasCondition(rule, Condition::Kind::kByStructure)) return JudgeMutant(rule, prover);
  const Rule bare = WithoutConditions(rule, Condition::Kind::kByStructure);
  const MutantVerdict verdict = JudgeMutant(bare, prover);
  return verdict.outcome == MutantVerdict::Outcome::kUndecided ? JudgeMutant(rule, prover)
                                                               : verdict;
}

}  // namespace

std::vector<Mutant> RuleMutants(const std::vector<Rule>& rules, int count, uint64_t seed) {
  // A rule's place in the sample depends on its id alone, so that rules that come or go leave most
  // of the sample as it is.
  std::vector<std::pair<uint64_t, const Rule*>> order;
  for (const Rule& rule : rules) {
    if (rule.source.nodes.size() + rule.target.nodes.size() > kMaxNodes) continue;
    order.emplace_back(HashBytes(rule.id, seed), &rule);
  }
  std::sort(order.begin(), order.end());
  std::set<std::string> seen;
  for (const Rule& rule : rules) seen.insert(rule.id);
  std::vector<Mutant> mutants;
  for (const auto& [place, rule] : order) {
    std::vector<ChangedRule> changes = ChangesOf(*rule);
    std::sort(changes.begin(), changes.end(), [&](const ChangedRule& a, const ChangedRule& b) {
      return HashBytes(a.rule.id, seed) < HashBytes(b.rule.id, seed);
    });
    int taken = 0;
    for (ChangedRule& change : changes) {
      if (taken == kMutantsOfARule || static_cast<int>(mutants.size()) == count) break;
      // Two changes may come to the same, but for how it is written down.
      if (!seen.insert(change.rule.id).second) continue;
      if (!seen.insert(change.rule.ToString()).second) continue;
      ++taken;
      mutants.push_back({MutantKind::kRule, absl::StrCat(rule->id, ": ", change.rule.ToString()),
                         change.change, [changed = std::move(change.rule)](Prover* prover) {
                           return JudgeOfAllCalls(changed, prover);
                         }});
    }
    if (static_cast<int>(mutants.size()) == count) break;
  }
  return mutants;
}

}  // namespace isomer
