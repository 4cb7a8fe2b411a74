// Decoder-only transformers after Llama 3.
#ifndef ISOMER_MODELS_ZOO_NETWORKS_LLAMA_H_
#define ISOMER_MODELS_ZOO_NETWORKS_LLAMA_H_

#include <string>
#include <vector>

#include "models/zoo/zoo.h"

namespace isomer {

struct LlamaSizes {
  int64_t layers;
  int64_t hidden;
  int64_t heads;
  int64_t key_heads;
  int64_t intermediate;
};
std::vector<ZooParameter> LlamaParameters(const LlamaSizes& sizes);

absl::StatusOr<Model> BuildLlama(const ZooArguments& arguments);

}  // namespace isomer

#endif  // ISOMER_MODELS_ZOO_NETWORKS_LLAMA_H_
