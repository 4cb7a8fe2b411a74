// The leaves of an imported graph: which graph inputs are data and which weights, and their sizes.
#ifndef ISOMER_MODELS_ONNX_IMPORT_LEAVES_H_
#define ISOMER_MODELS_ONNX_IMPORT_LEAVES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/onnx/graph/graph.h"
#include "models/onnx/import/onnx_import.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

struct OnnxLeaves {
  struct Leaf {
    std::string name;
    TensorType type;
  };
  std::vector<Leaf> data;                     // in the file's order
  std::map<std::string, TensorType> weights;  // graph inputs that are parameters
  // The batch that the file fixes where another one was asked for; 0 otherwise.
  int64_t replaced_batch = 0;
  int64_t batch = 0;         // dim 0 of the first data input
  std::string batch_symbol;  // what the file calls it; "" for none
};

// See models/onnx/import/onnx_import.h for the rules. Call it after RecognizePatterns. Errors begin
// with the file. `assumed`, where it is not null, receives lines on sizes that nothing gives: they
// are then made up (to look at the operators of a file) instead of asked for.
absl::StatusOr<OnnxLeaves> ReadLeaves(const OnnxGraph& graph, const ImportOptions& options,
                                      std::vector<std::string>* assumed = nullptr);

// Ok if a computed output has the type that the file declares, as far as it declares one.
absl::Status CheckDeclaredType(const onnx::ValueInfoProto& declared, const TensorType& computed,
                               const OnnxLeaves& leaves);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_IMPORT_LEAVES_H_
