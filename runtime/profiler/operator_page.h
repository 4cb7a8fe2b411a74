// docs/operators.md: every operator as its declaration has it, and what runs it.
#ifndef ISOMER_RUNTIME_PROFILER_OPERATOR_PAGE_H_
#define ISOMER_RUNTIME_PROFILER_OPERATOR_PAGE_H_

#include <string>

#include "absl/status/statusor.h"

namespace isomer {

// Markdown. The first example of an operator (pcg/ir/examples.h) stands for it.
absl::StatusOr<std::string> OperatorPage();

}  // namespace isomer

#endif  // ISOMER_RUNTIME_PROFILER_OPERATOR_PAGE_H_
