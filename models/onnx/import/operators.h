// The ONNX operators that Isomer reads, and how each becomes nodes of its own.
// To add one: a function in the file of its family, a line in operators.cc.
#ifndef ISOMER_MODELS_ONNX_IMPORT_OPERATORS_H_
#define ISOMER_MODELS_ONNX_IMPORT_OPERATORS_H_

#include "absl/strings/string_view.h"
#include "models/onnx/import/node_importer.h"

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
void ImportMod(NodeImporter& node);
void ImportPow(NodeImporter& node);
void ImportUnary(NodeImporter& node);     // functions of one number, trigonometric ones as formulas
void ImportVariadic(NodeImporter& node);  // Sum, Mean, Max, Min
void ImportIdentity(NodeImporter& node);
void ImportCast(NodeImporter& node);  // also CastLike
void ImportDropout(NodeImporter& node);

// activation.cc
void ImportGelu(NodeImporter& node);
void ImportSwish(NodeImporter& node);
void ImportActivation(NodeImporter& node);  // LeakyRelu, Elu, Selu, ..
void ImportPRelu(NodeImporter& node);
void ImportClip(NodeImporter& node);

// comparison.cc
void ImportComparison(NodeImporter& node);  // also And, Or, Xor
void ImportNot(NodeImporter& node);
void ImportBitwiseNot(NodeImporter& node);
void ImportWhere(NodeImporter& node);
void ImportIsNaN(NodeImporter& node);
void ImportIsInf(NodeImporter& node);

// layout.cc
void ImportReshape(NodeImporter& node);
void ImportFlatten(NodeImporter& node);
void ImportUnsqueeze(NodeImporter& node);
void ImportSqueeze(NodeImporter& node);
void ImportTranspose(NodeImporter& node);
void ImportConcat(NodeImporter& node);
void ImportExpand(NodeImporter& node);
void ImportTile(NodeImporter& node);
void ImportPad(NodeImporter& node);
void ImportDepthToSpace(NodeImporter& node);
void ImportSpaceToDepth(NodeImporter& node);
void ImportTrilu(NodeImporter& node);
void ImportEyeLike(NodeImporter& node);
void ImportCenterCropPad(NodeImporter& node);

// lookup.cc
void ImportSplit(NodeImporter& node);
void ImportSlice(NodeImporter& node);
void ImportGather(NodeImporter& node);
void ImportGatherElements(NodeImporter& node);
void ImportScatterElements(NodeImporter& node);  // also Scatter
void ImportGatherNd(NodeImporter& node);
void ImportScatterNd(NodeImporter& node);
void ImportTensorScatter(NodeImporter& node);
void ImportCompress(NodeImporter& node);
void ImportOneHot(NodeImporter& node);
void ImportReverseSequence(NodeImporter& node);

// contraction.cc
void ImportConv(NodeImporter& node);
void ImportConvTranspose(NodeImporter& node);
void ImportCol2Im(NodeImporter& node);
void ImportMatMul(NodeImporter& node);
void ImportGemm(NodeImporter& node);
void ImportEinsum(NodeImporter& node);

// pooling.cc
void ImportPool(NodeImporter& node);  // MaxPool, AveragePool
void ImportLpPool(NodeImporter& node);
void ImportGlobalPool(NodeImporter& node);

// normalization.cc
void ImportSoftmax(NodeImporter& node);  // also LogSoftmax
void ImportHardmax(NodeImporter& node);
void ImportLayerNorm(NodeImporter& node);
void ImportRmsNorm(NodeImporter& node);
void ImportBatchNorm(NodeImporter& node);
void ImportInstanceNorm(NodeImporter& node);
void ImportGroupNorm(NodeImporter& node);
void ImportLrn(NodeImporter& node);
void ImportLpNormalization(NodeImporter& node);
void ImportMeanVarianceNormalization(NodeImporter& node);

// reduction.cc
void ImportReduction(NodeImporter& node);
void ImportArgMax(NodeImporter& node);  // also ArgMin
void ImportTopK(NodeImporter& node);
void ImportCumSum(NodeImporter& node);

// recurrent.cc
void ImportRecurrent(NodeImporter& node);  // RNN, GRU, LSTM

// attention.cc
void ImportAttention(NodeImporter& node);
void ImportRotaryEmbedding(NodeImporter& node);

// sampling.cc
void ImportGridSample(NodeImporter& node);
void ImportAffineGrid(NodeImporter& node);
void ImportDeformConv(NodeImporter& node);
void ImportRoiAlign(NodeImporter& node);

// spectrum.cc
void ImportDft(NodeImporter& node);
void ImportStft(NodeImporter& node);

// resize.cc
void ImportResize(NodeImporter& node);  // also Upsample

// loss.cc
void ImportNegativeLogLikelihoodLoss(NodeImporter& node);
void ImportSoftmaxCrossEntropyLoss(NodeImporter& node);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_IMPORT_OPERATORS_H_
