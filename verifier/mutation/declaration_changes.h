// Small changes of declarations: what goes wrong when an operator is declared.
#ifndef ISOMER_VERIFIER_MUTATION_DECLARATION_CHANGES_H_
#define ISOMER_VERIFIER_MUTATION_DECLARATION_CHANGES_H_

#include <string>
#include <vector>

#include "pcg/ir/declaration.h"

namespace isomer {

struct ChangedDeclaration {
  std::string change;
  Declaration declaration;
};

// Every declaration that differs from `d` in one place and whose loads that claim to stay inside of
// their tensors do: of an access, the dim, stride or offset of an index, the tensor, what it reads
// outside; of a statement, its reduction, its look-up, an operation, a constant, an access; of a
// dim, its kind. REQUIRES: known sizes.
std::vector<ChangedDeclaration> ChangesOf(const Declaration& d);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_MUTATION_DECLARATION_CHANGES_H_
