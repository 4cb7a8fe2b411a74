// Models from ONNX files.
//
// What comes out is a sequential Model: every tensor keeps its ONNX name (a node is called after
// its output), initializers are weights with values. Opsets 11 to 17 of the default domain are
// read; an operator whose meaning Isomer does not have is refused, never approximated.
//
// The importer undoes what exporters take apart: LayerNorm (ReduceMean, Sub, Pow, ReduceMean, Add,
// Sqrt, Div, Mul, Add), Gelu (Div, Erf, Add, Mul, Mul), Swish (Sigmoid, Mul), Scale (Mul or Div by
// a scalar). Biases of Conv and Gemm become an Add; shape arithmetic on constants is done at
// import.
//
// Weights of graph-only files. A file without initializers states its parameters as graph inputs.
// In such a file an input of floats, other than the first input, is a weight when every use of it,
// seen through Identity, Cast, Transpose, Reshape, Unsqueeze and Squeeze, is a parameter's place:
//   Conv 1 2, Gemm 1 2, BatchNormalization 1-4, LayerNormalization 1 2, Gather 0 (the table);
//   MatMul 1 at rank 2; Add, Sub, Mul, Div at rank 0 or 1, or where dim 0 is 1.
// In a file with initializers all other inputs are data.
//
// Sizes. A dim of a data input that is symbolic or zero is asked for, never guessed: the batch
// (dim 0, and dims of the same symbol) is options.batch_size, any other must be fixed in the file.
// A batch that the file fixes may be changed where no Reshape has it written in.
#ifndef ISOMER_MODELS_ONNX_IMPORT_H_
#define ISOMER_MODELS_ONNX_IMPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/plan.h"

namespace isomer {

struct ImportOptions {
  int64_t batch_size = 0;  // 0: as the file has it
  // Lines that the user should see although nothing is wrong; null: dropped.
  std::vector<std::string>* notes = nullptr;
};

// Errors are one line with file and node, and dim where it is one:
//   "net.onnx: input 'image': dim 0 is symbolic ('batch'): give --batch_size=N"
//   "net.onnx: unknown operators: NonMaxSuppression (opset 13), first at node 'nms_1'"
absl::StatusOr<Model> ImportOnnx(const std::string& path, const ImportOptions& options = {});
// The same on the contents of a file; `name` is what errors call it.
absl::StatusOr<Model> ParseOnnx(absl::string_view contents, const std::string& name,
                                const ImportOptions& options = {});

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_IMPORT_H_
