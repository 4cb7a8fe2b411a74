// isomer-generate check: the rules of a file, tried on random numbers.
#ifndef ISOMER_GENERATOR_CHECKING_CHECK_COMMAND_H_
#define ISOMER_GENERATOR_CHECKING_CHECK_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "generator/checking/check_rules.h"

namespace isomer {

struct CheckCommand {
  CheckOptions options;
  std::vector<std::string> ids;  // only these rules; empty: all
  int sample = 0;                // that many rules, spread over the file; 0: all
};

// Prints one line per rule and the summary; the exit code: 1 if a rule fails.
// Errors: the file cannot be read, or an id is not in it.
absl::StatusOr<int> RunCheck(const std::string& file, const CheckCommand& command);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_CHECKING_CHECK_COMMAND_H_
