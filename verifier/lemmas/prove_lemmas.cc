#include "verifier/lemmas/prove_lemmas.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "pcg/support/check.h"
#include "pcg/support/process_pool.h"
#include "pcg/support/status_macros.h"
#include "verifier/exhaustive/call_space.h"
#include "verifier/proving/judge_rules.h"
#include "verifier/terms/representative_calls.h"

namespace isomer {
namespace {

std::vector<Declaration> CallsOf(OpKind kind) {
  constexpr int kMostSmallCalls = 400;
  std::vector<Declaration> calls;
  for (const OperatorCall& call : CallsToTry(kind)) {
    absl::StatusOr<Declaration> d = DeclarationOf(call);
    if (d.ok()) calls.push_back(*std::move(d));
  }
  const CallSpace space(kind);
  for (int64_t place = 0; place < std::min<int64_t>(space.size(), kMostSmallCalls); ++place) {
    std::optional<SmallCall> call = space.At(space.Spread(place));
    if (call) calls.push_back(std::move(call->declaration));
  }
  return calls;
}

// Whether a lemma on pieces speaks of the call, and if so, whether the theorem's premise holds.
std::optional<bool> PiecesPremise(const Declaration& d, absl::string_view dim, bool sums) {
  std::optional<bool> premise;
  for (int v = 0; v < static_cast<int>(d.dims.size()); ++v) {
    if (!dim.empty() && (d.dims[v].name != dim || (d.dims[v].kind == DimKind::kSum) != sums)) {
      continue;
    }
    if (d.dims[v].kind != DimKind::kWhole)
      premise = premise.value_or(false) || d.IsPartitionable(v);
  }
  return premise;
}

std::optional<bool> LinearPremise(const Declaration& d, absl::string_view operands) {
  std::vector<bool> set(d.operands.size(), false);
  for (absl::string_view word : absl::StrSplit(operands, '_')) {
    int operand;
    if (!absl::SimpleAtoi(word, &operand) || operand >= d.num_operands()) return std::nullopt;
    set[operand] = true;
  }
  return d.IsLinearIn(set);
}

LemmaProof ProofOfPremise(const LemmaEntry& lemma) {
  const PremiseCount count = DecidePremise(lemma.id, *OperatorOfLemma(lemma.id));
  if (count.holds == 0)
    return {false, absl::StrCat("its premise holds at none of ", count.calls, " calls"), 0};
  return {true, lemma.kind == LemmaKind::kPieces ? "theorem pieces" : "theorem linear",
          count.holds};
}

std::string MethodOf(const std::string& id) {
  if (absl::EndsWith(id, "_moves_elements")) return "theorem moves";
  if (absl::EndsWith(id, "_skips_zeros")) return "theorem zeros";
  if (absl::StrContains(id, "_takes_factor_of_")) return "theorem factor";
  return "normal forms";
}

// Lemmas that are proved where they are used: the rules that use them are proved again.
absl::Status ProveByRules(int jobs, const std::vector<LemmaEntry*>& lemmas) {
  std::vector<Rule> rules;
  std::map<const Rule*, size_t> places;
  for (const LemmaEntry* lemma : lemmas) {
    for (const Rule* rule : lemma->rules) {
      if (places.emplace(rule, rules.size()).second) rules.push_back(*rule);
    }
  }
  JudgeOptions options;
  options.jobs = jobs;
  ISOMER_ASSIGN_OR_RETURN(const JudgedRules judged, JudgeRules(rules, options));
  for (LemmaEntry* lemma : lemmas) {
    std::string failed;
    for (const Rule* rule : lemma->rules) {
      const ProofRecord& record = judged.records[places.at(rule)];
      const bool uses =
          std::find(record.lemmas.begin(), record.lemmas.end(), lemma->id) != record.lemmas.end();
      if (record.verdict == ProofRecord::Verdict::kProved && uses) continue;
      failed = rule->id;
    }
    if (!failed.empty()) {
      lemma->proof = {false, absl::StrCat("rule ", failed, " is not proved from it"), 0};
    } else {
      lemma->proof = {true, MethodOf(lemma->id), static_cast<int64_t>(lemma->rules.size())};
    }
  }
  return absl::OkStatus();
}

}  // namespace

PremiseCount DecidePremise(const std::string& lemma_id, OpKind kind) {
  absl::string_view rest = lemma_id;
  const bool sums = absl::ConsumePrefix(&rest, "sum_of_");
  const bool pieces = absl::ConsumePrefix(&rest, "pieces_of_");
  absl::ConsumePrefix(&rest, OpName(kind));
  absl::ConsumePrefix(&rest, pieces ? "_" : "_is_linear_in_");
  PremiseCount count;
  for (const Declaration& d : CallsOf(kind)) {
    const std::optional<bool> premise =
        pieces ? PiecesPremise(d, rest, sums) : LinearPremise(d, rest);
    if (!premise) continue;
    ++count.calls;
    count.holds += *premise ? 1 : 0;
  }
  return count;
}

absl::Status ProveLemmas(int jobs, std::vector<LemmaEntry>* lemmas) {
  std::vector<LemmaEntry*> by_rules, here;
  for (LemmaEntry& lemma : *lemmas) {
    switch (lemma.kind) {
      case LemmaKind::kDefinition:
        lemma.proof = {true, "by definition", 1};
        break;
      case LemmaKind::kUnknown:
        lemma.proof = {false, "not a lemma of this version", 0};
        break;
      case LemmaKind::kPieces:
      case LemmaKind::kLinear:
        here.push_back(&lemma);
        break;
      case LemmaKind::kStructure:
      case LemmaKind::kElements:
        by_rules.push_back(&lemma);
        break;
    }
  }
  ISOMER_RETURN_IF_ERROR(ForEachInProcesses(
      jobs, here.size(),
      [&] {
        return [&](size_t item) {
          const LemmaProof proof = ProofOfPremise(*here[item]);
          return absl::StrCat(proof.proved ? "+" : "-", proof.cases, " ", proof.how);
        };
      },
      [&](size_t item, const std::string& result) {
        const size_t space = result.find(' ');
        LemmaProof& proof = here[item]->proof;
        proof.proved = result[0] == '+';
        proof.how = result.substr(space + 1);
        ISOMER_CHECK(absl::SimpleAtoi(result.substr(1, space - 1), &proof.cases));
      }));
  return ProveByRules(jobs, by_rules);
}

}  // namespace isomer
