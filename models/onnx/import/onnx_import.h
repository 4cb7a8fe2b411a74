// Models from ONNX files.
//
// What comes out is a sequential Model: every tensor keeps its ONNX name (a node is called after
// its output). Opsets 9 to 26 of the default domain ("" or "ai.onnx") are read, and of older ones
// the operators that have not changed since; an operator whose meaning Isomer does not have, and
// any of another domain, is refused, never approximated.
//
// Leaves. Float initializers are weights; integers, values of Constant nodes, and the running
// statistics of BatchNormalization are constants, which training leaves as they are (but for what
// evaluation normalises by: Model::statistics). What follows
// from constants and from shapes is computed at import; an If whose condition does is replaced by
// its branch. FLOAT, FLOAT16, BFLOAT16, INT64, INT32 and BOOL keep their type, DOUBLE is read as
// FLOAT. Data may lie in other files of the model's folder.
//
// Numbers of formulas are initializers to the dynamo exporter of PyTorch ("val_7", of one element),
// and so are tables of angles, from which only sines and cosines are made: neither is trained.
// Masks that are computed from constants are computed once for what is the same along a dim.
//
// Attention that is spelled out with a mask, a guard against NaN, or keys between two reshapes
// becomes one operator (models/onnx/graph/attention_reading.h); the lowest number of a float type
// in a mask means exclusion, which a note says.
//
// Functions of the file (models/onnx/graph/functions.h) are replaced by their bodies, in the opset
// that each imports.
//
// The importer undoes what exporters take apart: LayerNorm (ReduceMean, Sub, Pow, ReduceMean, Add,
// Sqrt, Div, Mul, Add), Gelu (Div, Erf, Add, Mul, Mul), Swish (Sigmoid, Mul), Scale (Mul or Div by
// a scalar). Biases of Conv and Gemm become an Add.
//
// Weights of graph-only files. A file without initializers states its parameters as graph inputs.
// In such a file an input of floats, other than the first input, is a weight when every use of it,
// seen through Identity, Cast, Transpose, Reshape, Unsqueeze and Squeeze, is a parameter's place:
//   Conv 1 2, Gemm 1 2, BatchNormalization 1-4, LayerNormalization 1 2, Gather 0 (the table);
//   MatMul 1 at rank 2; Add, Sub, Mul, Div at rank 0 or 1, or where dim 0 is 1.
// In a file with initializers all other inputs are data.
//
// Sizes. A dim of an input that is symbolic or zero is asked for, never guessed: by its name in
// options.dims, or, for the batch (dim 0 of the first input, and dims of the same symbol), in
// options.batch_size. A batch that the file fixes may be changed where no Reshape has it written
// in.
#ifndef ISOMER_MODELS_ONNX_IMPORT_ONNX_IMPORT_H_
#define ISOMER_MODELS_ONNX_IMPORT_ONNX_IMPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/plan.h"

namespace isomer {

struct OnnxTensor;

struct ImportOptions {
  int64_t batch_size = 0;                    // 0: as the file has it
  std::map<std::string, int64_t> dims = {};  // sizes of symbolic dims by name; --dim name=N
  // Lines that the user should see although nothing is wrong; null: dropped.
  std::vector<std::string>* notes = nullptr;
  // The contents are those of the file `name`, where the data of large weights stays.
  bool leave_data = false;
  // For inputs whose values are known beforehand: shapes, which fix every dim that the file leaves
  // open, and values of those that are to be constants (which then are no inputs any more).
  std::map<std::string, std::vector<int64_t>> input_shapes = {};
  const std::map<std::string, OnnxTensor>* input_values = nullptr;
};

// Errors are one line with file and node, and dim where it is one:
//   "net.onnx: input 'image': dim 0 is symbolic ('batch'): give --batch_size=N"
//   "net.onnx: unknown operators: NonMaxSuppression (opset 13), first at node 'nms_1'"
absl::StatusOr<Model> ImportOnnx(const std::string& path, const ImportOptions& options = {});
// The same on the contents of a file; `name` is what errors call it, and where external data is
// looked for.
absl::StatusOr<Model> ParseOnnx(absl::string_view contents, const std::string& name,
                                const ImportOptions& options = {});

// Everything for which a file would be refused, not only the first: operators that are not known,
// and uses of known ones that are not read (as far as their operands are known). One line each:
//   "NonMaxSuppression (domain ai.onnx, opset 13): 2 nodes, first 'nms_1': unknown operator"
// Sizes that nothing gives are made up; the notes then say so.
absl::StatusOr<std::vector<std::string>> ListUnsupported(absl::string_view contents,
                                                         const std::string& name,
                                                         const ImportOptions& options = {});

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_IMPORT_ONNX_IMPORT_H_
