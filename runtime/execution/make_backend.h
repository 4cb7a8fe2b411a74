// Backends by name.
#ifndef ISOMER_RUNTIME_EXECUTION_MAKE_BACKEND_H_
#define ISOMER_RUNTIME_EXECUTION_MAKE_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/device/backend.h"

namespace isomer {

// "cpu" or "cuda". The error names what there is.
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(absl::string_view name);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_MAKE_BACKEND_H_
