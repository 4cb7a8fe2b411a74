#include "generator/inspect/difference.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace isomer {
namespace {

// Rules of one digest, first to last.
std::map<uint64_t, std::vector<const Rule*>> ByDigest(const RuleSet& rules) {
  std::map<uint64_t, std::vector<const Rule*>> result;
  for (const Rule& rule : rules.rules) result[rule.Digest()].push_back(&rule);
  return result;
}

// Of the patterns alone: ranks, conditions and direction left out.
uint64_t PatternsDigest(const Rule& rule) {
  Rule bare = rule;
  bare.ranks.clear();
  bare.conditions.clear();
  bare.reversible = false;
  return bare.Digest();
}

void SortById(std::vector<const Rule*>* rules) {
  std::sort(rules->begin(), rules->end(),
            [](const Rule* a, const Rule* b) { return a->id < b->id; });
}

void SortById(std::vector<std::pair<const Rule*, const Rule*>>* pairs) {
  std::sort(pairs->begin(), pairs->end(), [](const auto& a, const auto& b) {
    return std::tie(a.first->id, a.second->id) < std::tie(b.first->id, b.second->id);
  });
}

// Moves rules of the same patterns from the two lists to the pairs.
void PairUp(RuleSetDifference* difference) {
  std::map<uint64_t, std::vector<const Rule*>> second;
  for (const Rule* rule : difference->only_second) second[PatternsDigest(*rule)].push_back(rule);
  std::vector<const Rule*> first_left, second_left;
  for (const Rule* rule : difference->only_first) {
    std::vector<const Rule*>& partners = second[PatternsDigest(*rule)];
    if (partners.empty()) {
      first_left.push_back(rule);
    } else {
      difference->other_conditions.push_back({rule, partners.front()});
      partners.erase(partners.begin());
    }
  }
  for (const auto& [digest, rules] : second) {
    second_left.insert(second_left.end(), rules.begin(), rules.end());
  }
  difference->only_first = first_left;
  difference->only_second = second_left;
}

std::string ConditionsText(const Rule& rule) {
  return absl::StrCat(
      rule.reversible ? "<-> " : "-> ",
      rule.conditions.empty()
          ? "always"
          : absl::StrJoin(rule.conditions, ", ",
                          [](std::string* out, const Condition& c) { out->append(c.ToString()); }),
      "; ranks ", absl::StrJoin(rule.ranks, " ", [](std::string* out, const std::vector<int>& r) {
        absl::StrAppend(out, "(", absl::StrJoin(r, ","), ")");
      }));
}

std::string ProofText(const ProofRecord& proof) {
  const char* const verdicts[] = {"no proof", "proved", "refuted", "unknown"};
  return absl::StrCat(verdicts[static_cast<int>(proof.verdict)], " from ",
                      proof.lemmas.empty() ? "no lemma" : absl::StrJoin(proof.lemmas, ", "));
}

}  // namespace

RuleSetDifference Compare(const RuleSet& first, const RuleSet& second) {
  RuleSetDifference difference;
  std::map<uint64_t, std::vector<const Rule*>> others = ByDigest(second);
  for (const auto& [digest, rules] : ByDigest(first)) {
    std::vector<const Rule*>& partners = others[digest];
    for (const Rule* rule : rules) {
      if (partners.empty()) {
        difference.only_first.push_back(rule);
        continue;
      }
      const Rule* const partner = partners.front();
      partners.erase(partners.begin());
      ++difference.same;
      if (rule->proof.verdict != partner->proof.verdict ||
          rule->proof.lemmas != partner->proof.lemmas) {
        difference.other_proofs.push_back({rule, partner});
      }
    }
  }
  for (const auto& [digest, rules] : others) {
    difference.only_second.insert(difference.only_second.end(), rules.begin(), rules.end());
  }
  SortById(&difference.only_first);
  SortById(&difference.only_second);
  PairUp(&difference);
  SortById(&difference.only_second);
  SortById(&difference.other_conditions);
  SortById(&difference.other_proofs);
  return difference;
}

std::string DifferenceText(const RuleSetDifference& d) {
  std::string text;
  for (const Rule* rule : d.only_first) {
    absl::StrAppend(&text, "- ", rule->id, " ", rule->ToString(), "\n");
  }
  for (const Rule* rule : d.only_second) {
    absl::StrAppend(&text, "+ ", rule->id, " ", rule->ToString(), "\n");
  }
  for (const auto& [a, b] : d.other_conditions) {
    Rule bare = *a;
    bare.conditions.clear();
    absl::StrAppend(&text, "~ ", bare.ToString(), "\n  - ", a->id, " ", ConditionsText(*a),
                    "\n  + ", b->id, " ", ConditionsText(*b), "\n");
  }
  for (const auto& [a, b] : d.other_proofs) {
    absl::StrAppend(&text, "~ proof of ", a->id, " ", a->ToString(), "\n  - ", ProofText(a->proof),
                    "\n  + ", ProofText(b->proof), "\n");
  }
  absl::StrAppend(&text, d.same, " rules in both (", d.other_proofs.size(), " with other proofs), ",
                  d.only_first.size(), " only in the first, ", d.only_second.size(),
                  " only in the second, ", d.other_conditions.size(), " with other conditions\n");
  return text;
}

}  // namespace isomer
