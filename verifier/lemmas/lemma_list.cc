#include "verifier/lemmas/lemma_list.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace isomer {

std::optional<OpKind> OperatorOfLemma(const std::string& id) {
  absl::string_view rest = id;
  if (!absl::ConsumePrefix(&rest, "sum_of_pieces_of_")) absl::ConsumePrefix(&rest, "pieces_of_");
  std::optional<OpKind> longest;
  size_t length = 0;
  for (OpKind kind : AllOpKinds()) {
    const absl::string_view name = OpName(kind);
    if (name.size() <= length || !absl::StartsWith(rest, name)) continue;
    if (rest.size() > name.size() && rest[name.size()] != '_') continue;
    longest = kind;
    length = name.size();
  }
  return longest;
}

LemmaKind KindOfLemma(const std::string& id) {
  if (id == "partials_mean_their_sum") return LemmaKind::kDefinition;
  if (absl::StartsWith(id, "elements_of_")) return LemmaKind::kElements;
  const std::optional<OpKind> op = OperatorOfLemma(id);
  if (!op) return LemmaKind::kUnknown;
  if (absl::EndsWith(id, "_is_identity") && IsParallel(*op)) return LemmaKind::kDefinition;
  if (absl::StartsWith(id, "pieces_of_") || absl::StartsWith(id, "sum_of_pieces_of_")) {
    return LemmaKind::kPieces;
  }
  if (absl::StrContains(id, "_is_linear_in_")) return LemmaKind::kLinear;
  for (const char* part : {"_moves_elements", "_takes_factor_of_", "_skips_zeros"}) {
    if (absl::StrContains(id, part)) return LemmaKind::kStructure;
  }
  return LemmaKind::kUnknown;
}

const char* LemmaKindName(LemmaKind kind) {
  switch (kind) {
    case LemmaKind::kDefinition:
      return "definition";
    case LemmaKind::kPieces:
      return "pieces";
    case LemmaKind::kLinear:
      return "linearity";
    case LemmaKind::kStructure:
      return "structure";
    case LemmaKind::kElements:
      return "elements";
    case LemmaKind::kUnknown:
      break;
  }
  return "unknown";
}

std::vector<LemmaEntry> LemmasOf(const RuleSet& rules) {
  std::map<std::string, std::vector<const Rule*>> users;
  for (const Rule& rule : rules.rules) {
    for (const std::string& id :
         std::set<std::string>(rule.proof.lemmas.begin(), rule.proof.lemmas.end())) {
      users[id].push_back(&rule);
    }
  }
  std::vector<LemmaEntry> lemmas;
  for (auto& [id, used_by] : users) {
    lemmas.push_back({id, KindOfLemma(id), std::move(used_by), {}, {}});
  }
  std::sort(lemmas.begin(), lemmas.end(), [](const LemmaEntry& a, const LemmaEntry& b) {
    return std::tie(a.kind, a.id) < std::tie(b.kind, b.id);
  });
  return lemmas;
}

bool AllHold(const std::vector<LemmaEntry>& lemmas) {
  return std::all_of(lemmas.begin(), lemmas.end(), [](const LemmaEntry& lemma) {
    return lemma.proof.proved && (!lemma.opinion || (lemma.opinion->instances > 0 &&
                                                     lemma.opinion->disagreements.empty()));
  });
}

}  // namespace isomer
