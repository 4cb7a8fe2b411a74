// What the lemmas that a proof record names say.
#ifndef ISOMER_VERIFIER_FAMILIES_LEMMA_TEXT_H_
#define ISOMER_VERIFIER_FAMILIES_LEMMA_TEXT_H_

#include <string>

namespace isomer {

// One line: what the lemma states, and whether it is proved or only checked. Records of other
// versions may name lemmas that this one does not have; the line says so.
std::string LemmaText(const std::string& id);

// What it states alone; "" if this version has no lemma of that id.
std::string LemmaStatement(const std::string& id);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_FAMILIES_LEMMA_TEXT_H_
