#ifndef ISOMER_VERIFIER_TERMS_SYMBOL_RENAMING_H_
#define ISOMER_VERIFIER_TERMS_SYMBOL_RENAMING_H_

#include <map>

#include "pcg/ir/extent.h"

namespace isomer {

// Numbers size symbols in order of appearance, so that terms that differ in names alone are one.
class SymbolRenaming {
 public:
  Extent operator()(const Extent& extent);
  Shape operator()(const Shape& shape);

 private:
  std::map<int, int> ids_;
};

}  // namespace isomer

#endif  // ISOMER_VERIFIER_TERMS_SYMBOL_RENAMING_H_
