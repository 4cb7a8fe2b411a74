#ifndef ISOMER_PCG_SUPPORT_STATUS_MACROS_H_
#define ISOMER_PCG_SUPPORT_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function when `expression` (an absl::Status) is not OK.
#define ISOMER_RETURN_IF_ERROR(expression)                                \
  do {                                                                    \
    if (absl::Status isomer_status = (expression); !isomer_status.ok()) { \
      return isomer_status;                                               \
    }                                                                     \
  } while (false)

// Assigns the value of `expression` (an absl::StatusOr<T>) to `target`, which may be a declaration,
// or returns its error:
//   ISOMER_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
// A declaration with a comma outside of parentheses needs `auto` or an alias.
#define ISOMER_ASSIGN_OR_RETURN(target, ...) \
  ISOMER_ASSIGN_OR_RETURN_IMPL(ISOMER_STATUS_NAME(isomer_status_or, __LINE__), target, __VA_ARGS__)

#define ISOMER_STATUS_NAME_IMPL(prefix, line) prefix##_##line
#define ISOMER_STATUS_NAME(prefix, line) ISOMER_STATUS_NAME_IMPL(prefix, line)
#define ISOMER_ASSIGN_OR_RETURN_IMPL(holder, target, ...) \
  auto holder = (__VA_ARGS__);                            \
  if (!holder.ok()) return std::move(holder).status();    \
  target = *std::move(holder)

#endif  // ISOMER_PCG_SUPPORT_STATUS_MACROS_H_
