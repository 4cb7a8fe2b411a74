#include "verifier/lemmas/second_opinion.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "pcg/support/process_pool.h"
#include "verifier/lemmas/small_assignments.h"

namespace isomer {
namespace {

// Tallies as text, between processes: "id|instances|by_numbers" and the disagreements, by lines.
std::string Packed(const Tallies& tallies) {
  std::string text;
  for (const auto& [id, tally] : tallies) {
    absl::StrAppend(&text, id, "|", tally.instances, "|", tally.by_numbers, "\n");
    for (const std::string& line : tally.disagreements) absl::StrAppend(&text, "!", line, "\n");
  }
  return text;
}

void Unpack(const std::string& text, Tallies* tallies) {
  Tally* last = nullptr;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line[0] == '!') {
      last->disagreements.emplace_back(line.substr(1));
      continue;
    }
    const std::vector<std::string> words = absl::StrSplit(line, '|');
    Tally read;
    if (!absl::SimpleAtoi(words[1], &read.instances)) continue;
    if (!absl::SimpleAtoi(words[2], &read.by_numbers)) continue;
    last = &(*tallies)[words[0]];
    last->Add(read);
  }
}

// One piece of work: an operator or a rule.
struct Item {
  std::optional<OpKind> op;
  const Rule* rule = nullptr;
};

std::vector<Item> ItemsOf(const std::vector<LemmaEntry>& lemmas) {
  std::set<OpKind> ops;
  std::set<const Rule*> rules;
  std::vector<Item> items;
  for (const LemmaEntry& lemma : lemmas) {
    if (lemma.kind == LemmaKind::kPieces || lemma.kind == LemmaKind::kLinear) {
      const OpKind op = *OperatorOfLemma(lemma.id);
      if (ops.insert(op).second) items.push_back({op, nullptr});
    } else if (lemma.kind == LemmaKind::kStructure || lemma.kind == LemmaKind::kElements) {
      for (const Rule* rule : lemma.rules) {
        if (rules.insert(rule).second) items.push_back({std::nullopt, rule});
      }
    }
  }
  return items;
}

std::string Look(const Item& item, const OpinionOptions& options) {
  if (item.op) return Packed(CheckOperator(*item.op, options.points));
  return Packed({{item.rule->id, CompareRule(*item.rule, options.rule_instances)}});
}

std::string TextOf(const Binding& binding) {
  return absl::StrJoin(binding.inputs, " ", [](std::string* out, const TensorType& type) {
    out->append(type.ToString());
  });
}

}  // namespace

Tally CompareRule(const Rule& rule, int most) {
  Tally tally;
  for (const Binding& binding : SmallAssignments(rule, most)) {
    const auto source = InstantiatePattern(rule.source, binding);
    const auto target = InstantiatePattern(rule.target, binding);
    if (!source.ok() || !target.ok()) continue;
    const absl::StatusOr<LemmaComparison> comparison = CompareGraphs(*source, *target);
    if (!comparison.ok()) continue;
    tally.Add(*comparison, absl::StrCat(rule.id, " at ", TextOf(binding)));
  }
  return tally;
}

absl::Status AskSecondOpinion(const OpinionOptions& options, std::vector<LemmaEntry>* lemmas) {
  const std::vector<Item> items = ItemsOf(*lemmas);
  Tallies tallies;
  const absl::Status status = ForEachInProcesses(
      options.jobs, items.size(),
      [&] { return [&](size_t item) { return Look(items[item], options); }; },
      [&](size_t, const std::string& result) { Unpack(result, &tallies); });
  if (!status.ok()) return status;
  for (LemmaEntry& lemma : *lemmas) {
    if (lemma.kind == LemmaKind::kDefinition || lemma.kind == LemmaKind::kUnknown) continue;
    lemma.opinion = Tally();
    if (lemma.kind == LemmaKind::kStructure || lemma.kind == LemmaKind::kElements) {
      for (const Rule* rule : lemma.rules) lemma.opinion->Add(tallies[rule->id]);
    } else {
      lemma.opinion->Add(tallies[lemma.id]);
    }
  }
  return absl::OkStatus();
}

}  // namespace isomer
