#include "runtime/cpu/memory_order.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace isomer {
namespace {

// [batch, channels, d1 ..] becomes [batch, d1 .., channels].
template <typename List>
void TurnDims(typename List::iterator first, int rank) {
  std::rotate(first + 1, first + 2, first + rank);
}
template <typename List>
void TurnDims(List* list) {
  TurnDims<List>(list->begin(), static_cast<int>(list->size()));
}

int64_t TurnedAxis(int64_t axis, int rank) {
  if (axis < 0) axis += rank;
  return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1;
}

// What does with tensors of so many dims, turned, what `op` does with them as they are.
Operator Turned(Operator op, int rank) {
  const auto turn = [&](const char* attribute, int lists) {
    std::vector<int64_t> values = op.Ints(attribute);
    for (int i = 0; i < lists; ++i) {
      TurnDims<std::vector<int64_t>>(values.begin() + static_cast<int64_t>(i) * rank, rank);
    }
    op.Set(attribute, std::move(values));
  };
  switch (op.kind()) {
    case OpKind::kConcat:
    case OpKind::kSplit:
      op.Set("axis", TurnedAxis(op.Int("axis"), rank));
      break;
    case OpKind::kReduceSum:
    case OpKind::kReduceMean:
    case OpKind::kReduceMax:
    case OpKind::kReduceMin:
    case OpKind::kReduceProd: {
      std::vector<int64_t> axes = op.Ints("axes");
      for (int64_t& axis : axes) axis = TurnedAxis(axis, rank);
      op.Set("axes", std::move(axes));
      break;
    }
    case OpKind::kSlice:
      turn("starts", 1);
      turn("steps", 1);
      break;
    case OpKind::kPad:
      turn("padding", 2);
      break;
    default:
      break;
  }
  return op;
}

}  // namespace

bool LooksAtLayouts(OpKind kind) {
  switch (kind) {
    case OpKind::kConv1d:
    case OpKind::kConv2d:
    case OpKind::kConv3d:
    case OpKind::kBatchNorm:
    case OpKind::kBatchNormTraining:
    case OpKind::kGroupNorm:
    case OpKind::kMaxPool:
    case OpKind::kAvgPool:
    case OpKind::kAdaptiveAvgPool:
    case OpKind::kDropout:
      return true;
    default:
      return false;
  }
}

std::optional<KernelCall> InMemoryOrder(const KernelCall& call) {
  const auto types = [](const std::vector<Shape>& shapes) {
    std::vector<TensorType> types;
    for (const Shape& shape : shapes) {
      std::vector<int64_t> sizes;
      for (const Extent& size : shape) sizes.push_back(size.value());
      types.push_back(SequentialType(sizes));
    }
    return types;
  };
  const LayoutUse use =
      LayoutUseOf(call.op, types(call.declaration.operands), types(call.declaration.outputs));
  if (use != LayoutUse::kTogether) return std::nullopt;
  KernelCall turned = call;
  turned.layouts = {};
  const int rank = static_cast<int>((call.outputs[0].shape.size() > call.operands[0].shape.size()
                                         ? call.outputs
                                         : call.operands)[0]
                                        .shape.size());
  turned.op = Turned(call.op, rank);
  // Boxes of which both orders are one lie in either.
  const auto turn = [&](Layout layout, Box* box, Shape* shape) {
    const bool is_operand_of_fewer = static_cast<int>(box->shape.size()) < rank;
    while (static_cast<int>(box->shape.size()) < rank) {
      box->origin.insert(box->origin.begin(), 0);
      box->shape.insert(box->shape.begin(), 1);
      shape->insert(shape->begin(), Extent(1));
    }
    const std::vector<int64_t> sizes = box->shape;
    if (HasLayouts(sizes) && (is_operand_of_fewer || layout != Layout::kChannelsLast)) return false;
    *box = InMemory(*box, Layout::kChannelsLast);
    TurnDims(shape);
    return true;
  };
  bool all = true;
  for (size_t o = 0; o < call.operands.size(); ++o) {
    all &= turn(call.layouts.OfOperand(o), &turned.operands[o], &turned.declaration.operands[o]);
  }
  for (size_t t = 0; t < call.outputs.size(); ++t) {
    // What a reduction drops dims of has one order.
    if (static_cast<int>(call.outputs[t].shape.size()) < rank) continue;
    all &= turn(call.layouts.OfOutput(t), &turned.outputs[t], &turned.declaration.outputs[t]);
  }
  return all ? std::optional<KernelCall>(std::move(turned)) : std::nullopt;
}

}  // namespace isomer
