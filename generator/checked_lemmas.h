// Rules that rest on lemmas which are checked at representative calls, and not proved.
#ifndef ISOMER_GENERATOR_CHECKED_LEMMAS_H_
#define ISOMER_GENERATOR_CHECKED_LEMMAS_H_

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "rules/rule.h"

namespace isomer {

inline bool RestsOnCheckedLemmas(const ProofRecord& record) {
  return std::any_of(record.lemmas.begin(), record.lemmas.end(),
                     [](const std::string& lemma) { return absl::StartsWith(lemma, "checked:"); });
}

}  // namespace isomer

#endif  // ISOMER_GENERATOR_CHECKED_LEMMAS_H_
