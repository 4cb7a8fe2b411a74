#include "models/onnx/export/export_operators.h"
#include "pcg/ir/declared_operator.h"

namespace isomer {

// Null: ONNX has no form for it, or none is written yet.
OnnxExporter FindOnnxExporter(OpKind kind) {
  if (!IsBuiltIn(kind))
    return DeclaredOperatorOf(kind).onnx_name.empty() ? nullptr : ExportDeclared;
  switch (kind) {
    case OpKind::kMatMul:
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kDiv:
    case OpKind::kPow:
    case OpKind::kEqual:
    case OpKind::kLess:
    case OpKind::kLessEqual:
    case OpKind::kRelu:
    case OpKind::kTanh:
    case OpKind::kSigmoid:
    case OpKind::kExp:
    case OpKind::kHardSwish:
    case OpKind::kSoftplus:
    case OpKind::kLog:
    case OpKind::kSqrt:
    case OpKind::kReciprocal:
    case OpKind::kErf:
    case OpKind::kSin:
    case OpKind::kCos:
    case OpKind::kAtan:
    case OpKind::kAbs:
    case OpKind::kSign:
    case OpKind::kFloor:
    case OpKind::kCeil:
    case OpKind::kRound:
    case OpKind::kNot:
    case OpKind::kWhere:
      return ExportSimple;
    case OpKind::kMaximum:
    case OpKind::kMinimum:
      return ExportMaximum;
    case OpKind::kScale:
      return ExportScale;
    case OpKind::kGelu:
      return ExportGelu;
    case OpKind::kGeluTanh:
      return ExportGeluTanh;
    case OpKind::kSwish:
      return ExportSwish;
    case OpKind::kHardSigmoid:
    case OpKind::kLeakyRelu:
    case OpKind::kElu:
      return ExportElementwiseWithNumbers;
    case OpKind::kClip:
      return ExportClip;
    case OpKind::kCast:
      return ExportCast;
    case OpKind::kLinear:
      return ExportLinear;
    case OpKind::kConv1d:
    case OpKind::kConv2d:
    case OpKind::kConv3d:
      return ExportConvolution;
    case OpKind::kConvTranspose:
      return ExportConvTranspose;
    case OpKind::kMaxPool:
    case OpKind::kAvgPool:
      return ExportPool;
    case OpKind::kAdaptiveAvgPool:
      return ExportAdaptivePool;
    case OpKind::kSoftmax:
    case OpKind::kLogSoftmax:
      return ExportSoftmax;
    case OpKind::kLayerNorm:
      return ExportLayerNorm;
    case OpKind::kRmsNorm:
      return ExportRmsNorm;
    case OpKind::kGroupNorm:
      return ExportGroupNorm;
    case OpKind::kBatchNorm:
      return ExportBatchNorm;
    case OpKind::kBatchNormTraining:
      return ExportBatchNormTraining;
    case OpKind::kCrossEntropy:
      return ExportCrossEntropy;
    case OpKind::kMeanSquaredError:
      return ExportMeanSquaredError;
    case OpKind::kBinaryCrossEntropy:
      return ExportBinaryCrossEntropy;
    case OpKind::kReduceSum:
    case OpKind::kReduceMean:
    case OpKind::kReduceMax:
    case OpKind::kReduceMin:
    case OpKind::kReduceProd:
      return ExportReduction;
    case OpKind::kArgMax:
    case OpKind::kArgMin:
      return ExportArg;
    case OpKind::kTopK:
      return ExportTopK;
    case OpKind::kCumSum:
      return ExportCumSum;
    case OpKind::kTranspose:
      return ExportTranspose;
    case OpKind::kReshape:
      return ExportReshape;
    case OpKind::kConcat:
      return ExportConcat;
    case OpKind::kSplit:
      return ExportSplit;
    case OpKind::kSlice:
      return ExportSlice;
    case OpKind::kPad:
      return ExportPad;
    case OpKind::kExpand:
      return ExportExpand;
    case OpKind::kTrilu:
      return ExportTrilu;
    case OpKind::kEmbedding:
      return ExportEmbedding;
    case OpKind::kGatherMatMul:
      return ExportGatherMatMul;
    case OpKind::kGatherRows:
      return ExportGatherRows;
    case OpKind::kGatherSum:
      return ExportGatherSum;
    case OpKind::kEmbeddingBag:
      return ExportEmbeddingBag;
    case OpKind::kGather:
    case OpKind::kGatherElements:
      return ExportGather;
    case OpKind::kScatterElements:
      return ExportScatterElements;
    case OpKind::kOneHot:
      return ExportOneHot;
    case OpKind::kAttention:
    case OpKind::kCappedAttention:
      return ExportAttention;
    case OpKind::kRotary:
      return ExportRotary;
    case OpKind::kLstmCell:
      return ExportLstmCell;
    case OpKind::kGruCell:
      return ExportGruCell;
    default:
      return nullptr;
  }
}

void ExportDeclared(NodeExporter& node) {
  const DeclaredOperator& declared = DeclaredOperatorOf(node.kind());
  std::vector<std::string> inputs;
  for (int i = 0; i < node.num_inputs(); ++i) inputs.push_back(node.In(i));
  OnnxAttributeList attributes;
  for (const DeclaredAttribute& attribute : declared.attributes) {
    const char* const name = attribute.name.c_str();
    if (attribute.is_number) {
      attributes.emplace_back(name, node.op().Number(name));
    } else {
      attributes.emplace_back(name, node.op().Int(name));
    }
  }
  node.ResultOf(declared.onnx_domain, declared.onnx_name, std::move(inputs), std::move(attributes));
}

}  // namespace isomer
