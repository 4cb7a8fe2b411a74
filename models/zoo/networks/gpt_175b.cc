#include "models/zoo/models.h"
#include "models/zoo/networks/gpt.h"

namespace isomer {

ZooModel Gpt175B() {
  return {.name = "gpt_175b",
          .description = "GPT-3: 96 layers; logits of each next token",
          .parameters = GptParameters(96, 12288, 96, /*tied=*/false),
          .build = BuildGpt,
          .small = "layers=2&hidden=32&heads=16&vocabulary=64&seq=8&batch=16",
          .source = "Brown et al., 2020, table 2.1",
          .notes =
              "as `gpt`, but the logits have a weight of their own, as pipelines copy the table to "
              "their last stage (tied=1 shares it); published as 175.0 billion"};
}

}  // namespace isomer
