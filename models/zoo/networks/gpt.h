// Decoder-only transformers after GPT-2 and GPT-3.
#ifndef ISOMER_MODELS_ZOO_NETWORKS_GPT_H_
#define ISOMER_MODELS_ZOO_NETWORKS_GPT_H_

#include <vector>

#include "models/zoo/zoo.h"

namespace isomer {

// `tied`: whether embedding and logits share their table.
std::vector<ZooParameter> GptParameters(int64_t layers, int64_t hidden, int64_t heads, bool tied);

absl::StatusOr<Model> BuildGpt(const ZooArguments& arguments);

}  // namespace isomer

#endif  // ISOMER_MODELS_ZOO_NETWORKS_GPT_H_
