#ifndef ISOMER_RUNTIME_WEIGHT_FILES_WRITE_WEIGHTS_H_
#define ISOMER_RUNTIME_WEIGHT_FILES_WRITE_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "pcg/ir/stored_values.h"

namespace isomer {

struct NamedWeight {
  std::string name;
  std::vector<int64_t> dims;
  StoredValues values;
};

// Whether a format can say the names of all weights, told by a file's: "w.npz: a weight's name has
// 70000 bytes, ..".
absl::Status CheckSafetensorsNames(const std::string& path, absl::Span<const std::string> names);
absl::Status CheckNpzNames(const std::string& path, absl::Span<const std::string> names);

// As float32, all of the file or nothing. Errors name the file. REQUIRES: such names, no two alike.
absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedWeight> weights);
// As np.savez does: an archive of .npy files, not compressed.
absl::Status WriteNpz(const std::string& path, absl::Span<const NamedWeight> weights);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_WEIGHT_FILES_WRITE_WEIGHTS_H_
