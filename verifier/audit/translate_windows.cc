// Convolutions and pooling of a foreign rule: windows of literal size over [n,c,y,x].
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "verifier/audit/translate_operator.h"

namespace isomer {
namespace {

constexpr int64_t kSame = 0;  // of PM_PAD; 1 is valid

// a / b, if that is a number for all sizes.
absl::StatusOr<int64_t> Ratio(const Extent& a, const Extent& b) {
  for (int64_t ratio = 1; ratio <= 64; ++ratio) {
    if (a == b * ratio) return ratio;
  }
  return absl::UnknownError(absl::StrCat("has as many groups as ", SizeText(a), " is of ",
                                         SizeText(b), ", which varies"));
}

}  // namespace

// How windows of PM_KERNEL slide over the last two dims. "Same" pads k - 1 in all, at stride 1.
absl::StatusOr<OperatorTranslator::Window> OperatorTranslator::SlideWindow(
    const ForeignOperator& op, const TypedTensor& x) const {
  if (x.rank() != 4) {
    return absl::InvalidArgumentError(absl::StrCat("operand 0 has ", x.rank(), " dims, not 4"));
  }
  ISOMER_ASSIGN_OR_RETURN(const int64_t pad, Parameter(op, "PM_PAD"));
  Window window;
  std::vector<int64_t> begin, end, strides;
  for (int i = 0; i < 2; ++i) {
    const std::string dim = i == 0 ? "H" : "W";
    ISOMER_ASSIGN_OR_RETURN(const int64_t kernel, Parameter(op, absl::StrCat("PM_KERNEL_", dim)));
    ISOMER_ASSIGN_OR_RETURN(const int64_t stride, Parameter(op, absl::StrCat("PM_STRIDE_", dim)));
    const int64_t around = pad == kSame ? kernel - 1 : 0;
    begin.push_back(around / 2);
    end.push_back(around - around / 2);
    strides.push_back(stride);
    if (stride != 1) {
      return absl::UnknownError("strides, so that its output's size is a quotient");
    }
    window.sizes[i] = x.shape[2 + i] + around - (kernel - 1);
  }
  begin.insert(begin.end(), end.begin(), end.end());
  window.attributes = {IntegersAttribute("padding", begin), IntegersAttribute("stride", strides)};
  return window;
}

OperatorTranslator::Result OperatorTranslator::Convolution(const ForeignOperator& op,
                                                           const TypedTensor& x,
                                                           const TypedTensor& w) {
  if (format_ == ForeignFormat::kUnity) {
    return absl::UnimplementedError("its weight is no part of the rule");
  }
  ISOMER_ASSIGN_OR_RETURN(Window window, SlideWindow(op, x));
  if (w.rank() != 4) {
    return absl::InvalidArgumentError(absl::StrCat("operand 1 has ", w.rank(), " dims, not 4"));
  }
  has_convolutions_ = true;
  ISOMER_RETURN_IF_ERROR(ties_->Equal(w.shape[2], *op.Find("PM_KERNEL_H")));
  ISOMER_RETURN_IF_ERROR(ties_->Equal(w.shape[3], *op.Find("PM_KERNEL_W")));
  int64_t groups = groups_;
  if (groups == 0) {
    const Extent have = ties_->Resolved(x.shape[1]), want = ties_->Resolved(w.shape[1]);
    ISOMER_ASSIGN_OR_RETURN(groups, Ratio(have, want));
  } else {
    ISOMER_RETURN_IF_ERROR(ties_->Equal(x.shape[1], w.shape[1] * groups));
  }
  window.attributes.push_back(IntegersAttribute("dilation", {1, 1}));
  window.attributes.push_back({"groups", IntExpr::Constant(groups)});
  TypedTensor y = x;
  y.ref = Emit(OpKind::kConv2d, {x.ref, w.ref}, std::move(window.attributes));
  y.shape = {x.shape[0], w.shape[0], window.sizes[0], window.sizes[1]};
  y.seams = {x.seams[0], w.seams[0], {}, {}};
  ISOMER_ASSIGN_OR_RETURN(y, Activated(op, std::move(y)));
  return Result({std::move(y)});
}

OperatorTranslator::Result OperatorTranslator::Pool(OpKind kind, const ForeignOperator& op,
                                                    const TypedTensor& x) {
  if (format_ == ForeignFormat::kUnity) {
    return absl::UnimplementedError("its window is that of a matched operator");
  }
  ISOMER_ASSIGN_OR_RETURN(Window window, SlideWindow(op, x));
  window.attributes.push_back(
      IntegersAttribute("kernel", {*op.Find("PM_KERNEL_H"), *op.Find("PM_KERNEL_W")}));
  if (kind == OpKind::kAvgPool) {
    window.attributes.push_back({"count_include_pad", IntExpr::Constant(0)});
  }
  TypedTensor y = x;
  y.ref = Emit(kind, {x.ref}, std::move(window.attributes));
  y.shape[2] = window.sizes[0];
  y.shape[3] = window.sizes[1];
  y.seams = {x.seams[0], x.seams[1], {}, {}};
  ISOMER_ASSIGN_OR_RETURN(y, Activated(op, std::move(y)));
  return Result({std::move(y)});
}

// A kernel amid zeros, so that its windows become those of a larger one.
OperatorTranslator::Result OperatorTranslator::Enlarge(const ForeignOperator& op,
                                                       const std::vector<TypedTensor>& operands) {
  const TypedTensor& w = operands[0];
  if (w.rank() != 4 || operands.size() > 2 || (operands.size() == 2 && operands[1].rank() != 4)) {
    return absl::InvalidArgumentError("enlarges what is no kernel");
  }
  std::vector<int64_t> padding = {0, 0, 0, 0, 0, 0, 0, 0};
  TypedTensor y = w;
  for (int i = 2; i < 4; ++i) {
    const auto stated = op.Find(i == 2 ? "PM_KERNEL_H" : "PM_KERNEL_W");
    Extent to = stated ? Extent(*stated) : Extent();
    if (operands.size() == 2) to = ties_->Resolved(operands[1].shape[i]);
    const Extent from = ties_->Resolved(w.shape[i]);
    if (!from.known() || !to.known() || to == Extent(0)) {
      return absl::UnknownError("enlarges a kernel of unknown size");
    }
    const int64_t around = to.value() - from.value();
    if (around < 0) return absl::InvalidArgumentError("enlarges to less");
    padding[i] = around / 2;
    padding[4 + i] = around - around / 2;
    y.shape[i] = to;
    y.seams[i] = {};
  }
  y.ref = Emit(OpKind::kPad, {w.ref},
               {{"mode", IntExpr::Constant(0)},
                IntegersAttribute("padding", padding),
                {"value", NumberExpr{0, {}}}});
  return Result({std::move(y)});
}

}  // namespace isomer
