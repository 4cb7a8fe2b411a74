#include "models/onnx/operators.h"

namespace isomer {

const OnnxOperator* FindOnnxOperator(absl::string_view name) {
  static constexpr int kMany = 1 << 16;
  static constexpr OnnxOperator kOperators[] = {
      {"Add", 2, 2, 1, ImportAdd},
      {"AveragePool", 1, 1, 1, ImportPool},
      {"BatchNormalization", 5, 5, 1, ImportBatchNorm},
      {"Cast", 1, 1, 1, ImportCast},
      {"Concat", 1, kMany, 1, ImportConcat},
      {"Conv", 2, 3, 1, ImportConv},
      {"Div", 2, 2, 1, ImportDiv},
      {"Dropout", 1, 3, 1, ImportDropout},
      {"Erf", 1, 1, 1, ImportPartOfPattern},
      {"Exp", 1, 1, 1, ImportUnary},
      {"Flatten", 1, 1, 1, ImportFlatten},
      {"Gather", 2, 2, 1, ImportGather},
      {"Gelu", 1, 1, 1, ImportUnary},
      {"Gemm", 2, 3, 1, ImportGemm},
      {"GlobalAveragePool", 1, 1, 1, ImportGlobalAveragePool},
      {"Identity", 1, 1, 1, ImportIdentity},
      {"LayerNormalization", 2, 3, 1, ImportLayerNorm},
      {"MatMul", 2, 2, 1, ImportMatMul},
      {"MaxPool", 1, 1, 1, ImportPool},
      {"Mul", 2, 2, 1, ImportMul},
      {"Neg", 1, 1, 1, ImportNeg},
      {"Pow", 2, 2, 1, ImportPow},
      {"ReduceMean", 1, 1, 1, ImportReduction},
      {"ReduceSum", 1, 2, 1, ImportReduction},
      {"Relu", 1, 1, 1, ImportUnary},
      {"Reshape", 2, 2, 1, ImportReshape},
      {"Sigmoid", 1, 1, 1, ImportUnary},
      {"Slice", 3, 5, 1, ImportSlice},
      {"Softmax", 1, 1, 1, ImportSoftmax},
      {"Split", 1, 2, kMany, ImportSplit},
      {"Sqrt", 1, 1, 1, ImportPartOfPattern},
      {"Squeeze", 1, 2, 1, ImportSqueeze},
      {"Sub", 2, 2, 1, ImportSub},
      {"Swish", 1, 1, 1, ImportUnary},
      {"Tanh", 1, 1, 1, ImportUnary},
      {"Transpose", 1, 1, 1, ImportTranspose},
      {"Unsqueeze", 1, 2, 1, ImportUnsqueeze},
  };
  for (const OnnxOperator& op : kOperators) {
    if (name == op.name) return &op;
  }
  return nullptr;
}

}  // namespace isomer
