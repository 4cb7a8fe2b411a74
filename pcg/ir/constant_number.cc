#include "pcg/ir/constant_number.h"

#include <algorithm>
#include <cmath>

namespace isomer {

std::optional<double> NumberOfConstant(const Model& model, const Node& node) {
  if (node.op.kind() != OpKind::kConstant) return std::nullopt;
  const auto found = model.weights.find(node.name);
  if (found == model.weights.end() || found->second.empty()) return std::nullopt;
  const StoredValues& values = found->second;
  const bool is_one =
      std::all_of(values.begin(), values.end(), [&](float value) { return value == values[0]; });
  if (!is_one || !std::isfinite(values[0])) return std::nullopt;
  return values[0];
}

}  // namespace isomer
