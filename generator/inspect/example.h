// A rule run on numbers, for people.
#ifndef ISOMER_GENERATOR_INSPECT_EXAMPLE_H_
#define ISOMER_GENERATOR_INSPECT_EXAMPLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "rules/language/rule.h"

namespace isomer {

// Both sides at a small assignment with degrees 2: the graphs with their types, the inputs shard by
// shard, and the outputs of both sides beside each other. NotFound: no small assignment was found.
absl::StatusOr<std::string> ExampleText(const Rule& rule);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_INSPECT_EXAMPLE_H_
