#ifndef ISOMER_RUNTIME_WEIGHT_FILES_WEIGHT_FILE_H_
#define ISOMER_RUNTIME_WEIGHT_FILES_WEIGHT_FILE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/ir/stored_values.h"
#include "runtime/device/control_plane.h"

namespace isomer {

struct WeightTensor {
  std::string name;
  std::string file;  // that has it
  std::vector<int64_t> dims;
  // Its numbers, row-major; those of float32, float16 and bfloat16 stay in the file until they are
  // read. Error: the file has them in another type: "w.safetensors: 'mask' is BOOL; ..".
  std::function<absl::StatusOr<StoredValues>()> values;
};

struct WeightFile {
  std::string path;
  std::vector<WeightTensor> tensors;
  // Of all files: of sizes, and of what each begins and ends with. Processes that were given
  // different files under one name find out by it.
  uint64_t fingerprint = 0;
  std::vector<std::string> files;
};

// What `path` is:
//   a .safetensors file
//   an .npz archive, not compressed
//   a folder with model.safetensors, or with model.safetensors.index.json, which names several
//   files, as Hugging Face writes it
//   a folder with checkpoints, of which the newest is taken that is whole, or one of them
//     (runtime/checkpoint/checkpoint.h): its weights, not the optimizer's states
// Nothing if it begins like neither. `control`: of processes that all do this; null: there is one.
// `notes`: a line for each checkpoint that is damaged. Errors name the file: it is missing, cut
// short, has a tensor twice.
absl::StatusOr<std::optional<WeightFile>> OpenWeightFile(const std::string& path,
                                                         ControlPlane* control,
                                                         std::vector<std::string>* notes);

// "[3,4]".
std::string DimsText(const std::vector<int64_t>& dims);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_WEIGHT_FILES_WEIGHT_FILE_H_
