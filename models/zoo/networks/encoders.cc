#include "models/zoo/blocks/encoder.h"
#include "models/zoo/models.h"

namespace isomer {

ZooModel Encoder() {
  return {.name = "encoder",
          .description =
              "post-LN transformer encoder as in BERT; token ids in, or vectors with vocabulary=0",
          .parameters = EncoderParameters({}),
          .build = BuildEncoder,
          .small = "layers=1&hidden=32&heads=16&intermediate=32&vocabulary=64&batch=16",
          .source = "models/export/networks.py"};
}

ZooModel BertLarge() {
  return {.name = "bert_large",
          .description = "BERT-Large: a transformer encoder of 24 layers; encoded tokens",
          .parameters = EncoderParameters({.layers = 24,
                                           .hidden = 1024,
                                           .heads = 16,
                                           .intermediate = 4096,
                                           .vocabulary = 30522,
                                           .sequence = 512,
                                           .batch = 16}),
          .build = BuildEncoder,
          .small = "layers=2&hidden=32&heads=16&intermediate=64&vocabulary=64&seq=8&batch=16",
          .source = "Devlin et al., 2019, section 3; Unity, table 1",
          .published_parameters = 335141888,
          .published_for = "segments=2&pooler=1",
          .notes =
              "no dropout and no mask; by default no segment embedding, no pooler and no logits of "
              "masked words (language=1); the count is that of Hugging Face's bert-large-uncased"};
}

}  // namespace isomer
