// The safetensors format, read: eight bytes with the size of a JSON header, the header with names,
// types, shapes and places, and the elements, row-major, little-endian.
// https://github.com/huggingface/safetensors
#ifndef ISOMER_RUNTIME_WEIGHT_FILES_SAFETENSORS_H_
#define ISOMER_RUNTIME_WEIGHT_FILES_SAFETENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/data_file.h"

namespace isomer {

struct SafetensorsEntry {
  std::string name;
  std::string type;  // "BF16"
  std::vector<int64_t> dims;
  int64_t offset = 0, bytes = 0;  // in the file
};

// Whether a file begins like one. `head`: its first bytes, 16 at least.
bool IsSafetensors(absl::string_view head);
// In the order of their places. Errors: the header is damaged, a tensor does not lie in the file,
// has not as many bytes as its shape says, or shares some with another; the file is longer.
absl::StatusOr<std::vector<SafetensorsEntry>> EntriesOfSafetensors(const DataFile& file);

// Bytes of an element of the types that the format has; 0: it has no such type.
int64_t BytesOfSafetensorsType(absl::string_view type);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_WEIGHT_FILES_SAFETENSORS_H_
