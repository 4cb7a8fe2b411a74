#ifndef ISOMER_MODELS_LOAD_H_
#define ISOMER_MODELS_LOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"

namespace isomer {

struct LoadOptions {
  int64_t batch_size = 0;              // 0: as the model has it; --batch_size
  std::vector<std::string> dims = {};  // "name=N": sizes of symbolic dims of an .onnx file; --dim
  // Lines that the user should see although nothing is wrong; null: dropped.
  std::vector<std::string>* notes = nullptr;
  // Weights of a larger .onnx file stay in it, so that a search needs no memory for them, nor a
  // plan a copy. Of a smaller one a plan has all, and may go elsewhere alone.
  int64_t most_read_bytes = int64_t{8} << 20;
};

// The MODEL of the command lines:
//   zoo:NAME?key=value&..   a network of models/zoo
//   FILE                    an .onnx file; a model file of Isomer (binary or text); a graph in the
//                           text form of pcg/ir/graph.h. Told apart by their contents.
// Errors are one line that begins with the file or zoo name.
absl::StatusOr<Model> LoadAnyModel(const std::string& spec, const LoadOptions& options = {});

// What of an .onnx file is not supported, all at once, a line each (ListUnsupported of
// models/onnx/import/onnx_import.h); if nothing, a note says so. Empty for files of other kinds.
absl::StatusOr<std::vector<std::string>> ListUnsupportedOf(const std::string& spec,
                                                           const LoadOptions& options = {});

}  // namespace isomer

#endif  // ISOMER_MODELS_LOAD_H_
