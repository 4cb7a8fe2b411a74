#ifndef ISOMER_PCG_SUPPORT_FILE_H_
#define ISOMER_PCG_SUPPORT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isomer {

// The whole of a file. Errors name it: "model.onnx: no such file", "models: is a directory".
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Writes to a temporary name beside `path`, syncs, and renames, so that a reader sees the old file
// or the new one and never a part. A symbolic link is followed; a pipe or device is written to
// directly.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view contents);
// Whether that would do, found out by writing nothing to such a temporary name: for who computes
// for long first.
absl::Status CheckCanWrite(const std::string& path);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_FILE_H_
