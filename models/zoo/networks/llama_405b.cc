#include "models/zoo/models.h"
#include "models/zoo/networks/llama.h"

namespace isomer {

ZooModel Llama405B() {
  return {
      .name = "llama_405b",
      .description = "Llama 3 405B: 126 layers; logits of each next token",
      .parameters = LlamaParameters(
          {.layers = 126, .hidden = 16384, .heads = 128, .key_heads = 8, .intermediate = 53248}),
      .build = BuildLlama,
      .small =
          "layers=1&hidden=32&heads=16&key_heads=4&intermediate=32&vocabulary=64&seq=4&"
          "batch=16",
      .source = "Grattafiori et al., 2024 (Llama 3), table 3",
      .published_parameters = 405853388800,
      .notes = "as `llama`"};
}

}  // namespace isomer
