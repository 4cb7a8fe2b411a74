// Transformer encoders.
#ifndef ISOMER_MODELS_ZOO_BLOCKS_ENCODER_H_
#define ISOMER_MODELS_ZOO_BLOCKS_ENCODER_H_

#include <vector>

#include "models/zoo/zoo.h"

namespace isomer {

struct EncoderSizes {
  int64_t layers = 2;
  int64_t hidden = 64;
  int64_t heads = 4;
  int64_t intermediate = 256;
  int64_t vocabulary = 128;
  int64_t sequence = 16;
  int64_t batch = 8;
};
// With `segments` (of the table of segment embeddings; 0: none) and `pooler` (a dense layer with
// tanh on the first token, as a second output) off.
std::vector<ZooParameter> EncoderParameters(const EncoderSizes& sizes);

absl::StatusOr<Model> BuildEncoder(const ZooArguments& arguments);

}  // namespace isomer

#endif  // ISOMER_MODELS_ZOO_BLOCKS_ENCODER_H_
