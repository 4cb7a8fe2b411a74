// Weights as a .safetensors file: 8 bytes with the length of a header, the header, which is JSON,
// and the elements of one tensor behind the other.
// https://github.com/huggingface/safetensors#format
#ifndef ISOMER_MODELS_FRAMEWORKS_SAFETENSORS_H_
#define ISOMER_MODELS_FRAMEWORKS_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>

#include "pcg/ir/plan.h"

namespace isomer {

struct SafetensorsFile {
  std::string contents;
  std::map<std::string, int64_t> offsets;  // of each tensor's elements, from the file's first byte
};

// The leaves whose values `model` holds, as the type that the graph says; those that stay in
// another file are left there.
SafetensorsFile SafetensorsOf(const Model& model);

}  // namespace isomer

#endif  // ISOMER_MODELS_FRAMEWORKS_SAFETENSORS_H_
