// What importers of operators write formulas with: single calls by name, and values that the file
// does not hold. Nodes are named after the first output of the ONNX node: "y/sqrt".
#ifndef ISOMER_MODELS_ONNX_IMPORT_FORMULAS_H_
#define ISOMER_MODELS_ONNX_IMPORT_FORMULAS_H_

#include <cstdint>
#include <vector>

#include "models/onnx/import/node_importer.h"

namespace isomer {

using Sizes = std::vector<int64_t>;

// Constants of the graph.
TensorRef Literal(NodeImporter& node, OnnxTensor value);
TensorRef FloatLiteral(NodeImporter& node, Sizes dims, std::vector<float> values);
TensorRef IntLiteral(NodeImporter& node, Sizes dims, std::vector<int64_t> values,
                     DataType dtype = DataType::kInt64);
// False, and an error, where a table of these dims is too large to be computed, by itself or with
// those before it. To be asked before the table is filled.
bool FitsLiteral(NodeImporter& node, const Sizes& dims);
// A scalar of the type of `like`, which broadcasts to it; an error where that type lacks the
// number.
TensorRef Number(NodeImporter& node, double value, TensorRef like);
// `value` everywhere, of the type of `like`.
TensorRef Filled(NodeImporter& node, double value, Sizes dims, TensorRef like);

TensorRef Apply(NodeImporter& node, OpKind kind, TensorRef x);
TensorRef Apply(NodeImporter& node, OpKind kind, TensorRef a, TensorRef b);
TensorRef Apply(NodeImporter& node, OpKind kind, TensorRef x, double number);
TensorRef Scaled(NodeImporter& node, TensorRef x, double factor);
TensorRef Where(NodeImporter& node, TensorRef condition, TensorRef yes, TensorRef no);
// To bool: whether it is not zero.
TensorRef Cast(NodeImporter& node, TensorRef x, DataType to);
TensorRef Clipped(NodeImporter& node, TensorRef x, double low, double high);
// Which elements are below 0 (bool).
TensorRef IsNegative(NodeImporter& node, TensorRef x);

// Over no axes: x.
TensorRef Reduced(NodeImporter& node, OpKind kind, TensorRef x, Sizes axes, bool keepdims = true);
TensorRef Transposed(NodeImporter& node, TensorRef x, Sizes perm);
TensorRef Reshaped(NodeImporter& node, TensorRef x, Sizes shape);
TensorRef Expanded(NodeImporter& node, TensorRef x, Sizes shape);
TensorRef Concatenated(NodeImporter& node, std::vector<TensorRef> parts, int axis);
std::vector<TensorRef> SplitInto(NodeImporter& node, TensorRef x, int axis, const Sizes& sizes);
// Elements begin, begin + step, .. along `axis`, `count` of them.
TensorRef Sliced(NodeImporter& node, TensorRef x, int axis, int64_t begin, int64_t count,
                 int64_t step = 1);
// Padding as the operator has it: all begins, then all ends.
TensorRef Padded(NodeImporter& node, TensorRef x, Sizes padding, double value, int64_t mode = 0);
// x[.., k] (any rank from 2) times w [k, n].
TensorRef Product(NodeImporter& node, TensorRef x, TensorRef w);

// The axes 0 .. rank - 1, and those from `first` on.
Sizes AllAxes(int rank, int first = 0);

// Defines an output, which gives its node the name of the output.
void DefineAs(NodeImporter& node, int output, TensorRef tensor);
// Whether anything uses the output.
bool IsWanted(NodeImporter& node, int output);

// The random seed of training, an input that every Dropout shares; and a number for each use.
TensorRef RandomSeed(NodeImporter& node);
int64_t NextSalt(NodeImporter& node);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_IMPORT_FORMULAS_H_
