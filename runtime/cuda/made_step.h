// Generated kernels of declarations that are no operator's: what is between products, and gradients
// that are better written than derived.
#ifndef ISOMER_RUNTIME_CUDA_MADE_STEP_H_
#define ISOMER_RUNTIME_CUDA_MADE_STEP_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "pcg/ir/declaration.h"
#include "runtime/cuda/products.h"

namespace isomer {

// Operands first, then Begin, the declaration's dims and statements, and outputs in their order.
class MadeStep {
 public:
  // `op`: whose errors they are.
  explicit MadeStep(const Operator& op) { step_.call.op = op; }

  // The number of the operand.
  int AddOperand(const std::vector<int64_t>& shape, DataType dtype, const GpuPlace& place,
                 Layout layout = Layout::kRowMajor) {
    step_.call.layouts.operands.push_back(layout);
    step_.call.operands.push_back(WholeBox(shape));
    step_.call.dtypes.push_back(dtype);
    step_.reads.push_back(place);
    return static_cast<int>(step_.call.operands.size()) - 1;
  }
  void AddOutput(const std::vector<int64_t>& shape, DataType dtype, const GpuPlace& place) {
    step_.call.layouts.outputs.push_back(Layout::kRowMajor);
    step_.call.outputs.push_back(WholeBox(shape));
    step_.call.output_dtypes.push_back(dtype);
    step_.writes.push_back(place);
  }
  DeclarationBuilder& Begin() {
    std::vector<Shape> shapes;
    for (const Box& operand : step_.call.operands) {
      Shape& shape = shapes.emplace_back();
      for (int64_t size : operand.shape) shape.push_back(Extent(size));
    }
    return d_.emplace(shapes);
  }
  GeneratedStep Build() && {
    step_.call.declaration = d_->Build();
    step_.call.iteration = FullBox(step_.call.declaration);
    return std::move(step_);
  }

 private:
  static Box WholeBox(const std::vector<int64_t>& shape) {
    return {std::vector<int64_t>(shape.size(), 0), shape};
  }

  GeneratedStep step_;
  std::optional<DeclarationBuilder> d_;
};

// So many elements behind it.
inline GpuPlace Behind(GpuPlace place, int64_t elements, DataType dtype) {
  place.bytes += elements * BytesPerElement(dtype);
  return place;
}

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_MADE_STEP_H_
