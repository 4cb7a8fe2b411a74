// The table of lemmas, for the terminal, as docs/lemmas.md and as JSON.
#ifndef ISOMER_VERIFIER_LEMMAS_LEMMAS_PAGE_H_
#define ISOMER_VERIFIER_LEMMAS_LEMMAS_PAGE_H_

#include <string>
#include <vector>

#include "pcg/support/json.h"
#include "verifier/lemmas/lemma_list.h"

namespace isomer {

// Lemmas that fail, one a line, and a line of counts.
std::string LemmasText(const std::vector<LemmaEntry>& lemmas);

// The page. Lemmas on the dims of one operator are one row: "pieces_of_matmul_{b0,m,n}". `digest`:
// of the rules.
std::string LemmasPage(const std::vector<LemmaEntry>& lemmas, uint64_t digest);

// The page without what a run finds out: the columns of proofs and of the second opinion. What must
// not fall behind the rules file.
std::string WithoutFindings(const std::string& page);

Json LemmasJson(const std::vector<LemmaEntry>& lemmas);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_LEMMAS_LEMMAS_PAGE_H_
