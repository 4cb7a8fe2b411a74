// How each operator is written to an ONNX file. To add one: a function in the file of its family,
// a line in the table of export_table.cc.
#ifndef ISOMER_MODELS_ONNX_EXPORT_EXPORT_OPERATORS_H_
#define ISOMER_MODELS_ONNX_EXPORT_EXPORT_OPERATORS_H_

#include "models/onnx/export/node_exporter.h"

namespace isomer {

// Writes one call; null for operators that have no form in ONNX (and for leaves).
using OnnxExporter = void (*)(NodeExporter& node);
OnnxExporter FindOnnxExporter(OpKind kind);

// export_table.cc
void ExportDeclared(NodeExporter& node);  // operators that users declare

// export_elementwise.cc
void ExportSimple(NodeExporter& node);   // an ONNX node without attributes
void ExportMaximum(NodeExporter& node);  // and minimum
void ExportScale(NodeExporter& node);
void ExportGelu(NodeExporter& node);
void ExportGeluTanh(NodeExporter& node);
void ExportSwish(NodeExporter& node);
void ExportElementwiseWithNumbers(NodeExporter& node);  // HardSigmoid, LeakyRelu, Elu
void ExportClip(NodeExporter& node);
void ExportCast(NodeExporter& node);
// x * 0.5 * (1 + erf(x / sqrt(2))) and x * sigmoid(x); the name of the result.
std::string GeluOf(NodeExporter& node, const std::string& x, DataType dtype);
std::string SwishOf(NodeExporter& node, const std::string& x);

// export_contraction.cc
void ExportLinear(NodeExporter& node);
void ExportConvolution(NodeExporter& node);
void ExportConvTranspose(NodeExporter& node);
void ExportPool(NodeExporter& node);
void ExportAdaptivePool(NodeExporter& node);

// export_normalization.cc
void ExportSoftmax(NodeExporter& node);  // and log-softmax
void ExportLayerNorm(NodeExporter& node);
void ExportRmsNorm(NodeExporter& node);
void ExportGroupNorm(NodeExporter& node);
void ExportBatchNorm(NodeExporter& node);
void ExportBatchNormTraining(NodeExporter& node);
void ExportCrossEntropy(NodeExporter& node);
void ExportMeanSquaredError(NodeExporter& node);
void ExportBinaryCrossEntropy(NodeExporter& node);

// export_reduction.cc
void ExportReduction(NodeExporter& node);
void ExportArg(NodeExporter& node);
void ExportTopK(NodeExporter& node);
void ExportCumSum(NodeExporter& node);

// export_layout.cc
void ExportTranspose(NodeExporter& node);
void ExportReshape(NodeExporter& node);
void ExportConcat(NodeExporter& node);
void ExportSplit(NodeExporter& node);
void ExportSlice(NodeExporter& node);
void ExportPad(NodeExporter& node);
void ExportExpand(NodeExporter& node);
void ExportTrilu(NodeExporter& node);
void ExportEmbedding(NodeExporter& node);
void ExportGatherMatMul(NodeExporter& node);
void ExportEmbeddingBag(NodeExporter& node);
void ExportGatherRows(NodeExporter& node);
void ExportGatherSum(NodeExporter& node);
void ExportGather(NodeExporter& node);  // and gather_elements
void ExportScatterElements(NodeExporter& node);
void ExportOneHot(NodeExporter& node);

// export_attention.cc
void ExportAttention(NodeExporter& node);
void ExportRotary(NodeExporter& node);
void ExportLstmCell(NodeExporter& node);
void ExportGruCell(NodeExporter& node);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_EXPORT_EXPORT_OPERATORS_H_
