// Numbers that long runs of tests take from the environment.
#ifndef ISOMER_TESTS_FROM_ENVIRONMENT_H_
#define ISOMER_TESTS_FROM_ENVIRONMENT_H_

#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace isomer {

// The number that the variable `name` is; `otherwise` where it is none.
inline int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  int64_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

}  // namespace isomer

#endif  // ISOMER_TESTS_FROM_ENVIRONMENT_H_
