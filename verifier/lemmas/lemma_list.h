// The lemmas that the proofs of a rules file use, and what is known of each.
#ifndef ISOMER_VERIFIER_LEMMAS_LEMMA_LIST_H_
#define ISOMER_VERIFIER_LEMMAS_LEMMA_LIST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rules/language/rule.h"
#include "verifier/exhaustive/check_operator.h"

namespace isomer {

enum class LemmaKind {
  kDefinition,  // of a parallel operator: an identity on meanings
  kPieces,      // a call may be spread over tasks
  kLinear,      // a call of a sum is the sum of the calls
  kStructure,   // moves elements, takes factors, skips zeros
  kElements,    // both sides of rules, written out
  kUnknown,     // no lemma of this version
};
LemmaKind KindOfLemma(const std::string& id);
const char* LemmaKindName(LemmaKind kind);

// The operator that a lemma on pieces, on linearity or on structure is about.
std::optional<OpKind> OperatorOfLemma(const std::string& id);

struct LemmaProof {
  bool proved = false;
  std::string how;    // "normal forms", "theorem pieces"; or why it is not proved
  int64_t cases = 0;  // instances, calls or rules in which it was proved
};

struct LemmaEntry {
  std::string id;
  LemmaKind kind = LemmaKind::kUnknown;
  std::vector<const Rule*> rules;  // that use it
  LemmaProof proof;
  std::optional<Tally> opinion;  // the second; none: not asked, or a definition
};

// In order of kinds, then of ids. Pointers are into `rules`.
std::vector<LemmaEntry> LemmasOf(const RuleSet& rules);

// Every lemma is proved; and the second opinion, if asked, has seen it and does not disagree.
bool AllHold(const std::vector<LemmaEntry>& lemmas);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_LEMMAS_LEMMA_LIST_H_
