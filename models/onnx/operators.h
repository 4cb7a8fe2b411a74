// The ONNX operators that Isomer reads, and how each becomes nodes of its own.
// To add one: a function in the file of its family, a line in operators.cc.
#ifndef ISOMER_MODELS_ONNX_OPERATORS_H_
#define ISOMER_MODELS_ONNX_OPERATORS_H_

#include "absl/strings/string_view.h"
#include "models/onnx/node_importer.h"

namespace isomer {

struct OnnxOperator {
  const char* name;
  int min_inputs;
  int max_inputs;
  int max_outputs;  // further outputs, such as the mask of Dropout, are refused where wanted
  void (*import)(NodeImporter& node);
};

// Null for operators that are not known.
const OnnxOperator* FindOnnxOperator(absl::string_view name);

// elementwise.cc
void ImportAdd(NodeImporter& node);
void ImportSub(NodeImporter& node);
void ImportMul(NodeImporter& node);
void ImportDiv(NodeImporter& node);
void ImportNeg(NodeImporter& node);
void ImportPow(NodeImporter& node);
void ImportUnary(NodeImporter& node);          // Relu, Gelu, Swish, Tanh, Sigmoid, Exp
void ImportPartOfPattern(NodeImporter& node);  // Erf, Sqrt: only as part of Gelu, LayerNorm
void ImportIdentity(NodeImporter& node);
void ImportCast(NodeImporter& node);
void ImportDropout(NodeImporter& node);

// layout.cc
void ImportReshape(NodeImporter& node);
void ImportFlatten(NodeImporter& node);
void ImportUnsqueeze(NodeImporter& node);
void ImportSqueeze(NodeImporter& node);
void ImportTranspose(NodeImporter& node);
void ImportConcat(NodeImporter& node);
void ImportSplit(NodeImporter& node);
void ImportSlice(NodeImporter& node);
void ImportGather(NodeImporter& node);

// contraction.cc
void ImportConv(NodeImporter& node);
void ImportMatMul(NodeImporter& node);
void ImportGemm(NodeImporter& node);
void ImportPool(NodeImporter& node);  // MaxPool, AveragePool

// normalization.cc
void ImportSoftmax(NodeImporter& node);
void ImportLayerNorm(NodeImporter& node);
void ImportBatchNorm(NodeImporter& node);
void ImportReduction(NodeImporter& node);  // ReduceMean, ReduceSum
void ImportGlobalAveragePool(NodeImporter& node);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_OPERATORS_H_
