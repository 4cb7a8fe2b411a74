// What the zoo has, as text: --list_models, --describe, docs/models.md.
#ifndef ISOMER_MODELS_ZOO_LISTING_H_
#define ISOMER_MODELS_ZOO_LISTING_H_

#include <string>

#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"

namespace isomer {

// A line for each network: name, operators, parameters, forward GFLOPs at the default batch,
// description; below it its parameters with their defaults.
absl::StatusOr<std::string> ModelListText();

// The page docs/models.md.
absl::StatusOr<std::string> ModelListMarkdown();

// Operators, by kind too, parameters, FLOPs, and the types of inputs and outputs.
// REQUIRES: the types are sequential.
std::string DescribeModel(const Model& model);

}  // namespace isomer

#endif  // ISOMER_MODELS_ZOO_LISTING_H_
