#include "generator/schemas/algebra_form_kinds.h"

#include <cstddef>
#include <iterator>
#include <set>

namespace isomer {

bool HasAxes(AlgebraForm form) { return form < AlgebraForm::kAdd; }

bool HasTwo(AlgebraForm form) {
  return form != AlgebraForm::kSplit && form != AlgebraForm::kSplitBack &&
         form != AlgebraForm::kScale && form != AlgebraForm::kPointwise;
}

bool SplitsOthers(AlgebraForm form) {
  return form == AlgebraForm::kSumSplitRest || form == AlgebraForm::kSumSplitFirst;
}

bool PutsTogether(AlgebraForm form) {
  return form == AlgebraForm::kMerge || form == AlgebraForm::kSumBack ||
         form == AlgebraForm::kConcatBack;
}

bool ShapeCut::IsOneAxis() const {
  std::set<int64_t> distinct;
  for (const auto* axes : {&operand_axes, &output_axes}) {
    for (const std::optional<int64_t>& axis : *axes) {
      if (axis.has_value()) distinct.insert(*axis);
    }
  }
  return distinct.size() == 1;
}

const char* AlgebraFormName(AlgebraForm form) {
  static constexpr const char* kNames[] = {"concat",
                                           "concat, back",
                                           "sum of pieces",
                                           "sum of pieces, back",
                                           "sum of pieces, rest split",
                                           "sum of pieces, first split",
                                           "split",
                                           "split, back",
                                           "merge",
                                           "add",
                                           "sub",
                                           "scale",
                                           "elementwise",
                                           "elementwise, two operands"};
  static_assert(std::size(kNames) == static_cast<size_t>(AlgebraForm::kPointwise2) + 1);
  return kNames[static_cast<size_t>(form)];
}

}  // namespace isomer
