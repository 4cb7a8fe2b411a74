#include "models/zoo/models.h"
#include "models/zoo/networks/llama.h"

namespace isomer {

ZooModel Llama70B() {
  return {.name = "llama_70b",
          .description = "Llama 3 70B: 80 layers; logits of each next token",
          .parameters = LlamaParameters(
              {.layers = 80, .hidden = 8192, .heads = 64, .key_heads = 8, .intermediate = 28672}),
          .build = BuildLlama,
          .small =
              "layers=2&hidden=32&heads=16&key_heads=4&intermediate=32&vocabulary=64&seq=8&"
              "batch=16",
          .source = "Grattafiori et al., 2024 (Llama 3), table 3",
          .published_parameters = 70553706496,
          .notes = "as `llama`"};
}

}  // namespace isomer
