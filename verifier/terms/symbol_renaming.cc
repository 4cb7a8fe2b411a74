#include "verifier/terms/symbol_renaming.h"

namespace isomer {

Extent SymbolRenaming::operator()(const Extent& extent) {
  Extent renamed = extent.constant();
  for (const auto& [symbol, coefficient] : extent.terms()) {
    const int id = ids_.emplace(symbol, static_cast<int>(ids_.size())).first->second;
    renamed += Extent::Symbol(id) * coefficient;
  }
  return renamed;
}

Shape SymbolRenaming::operator()(const Shape& shape) {
  Shape renamed;
  for (const Extent& size : shape) renamed.push_back((*this)(size));
  return renamed;
}

}  // namespace isomer
