// Inference of decoders token by token: keys and values of earlier tokens are kept.
#ifndef ISOMER_MODELS_ZOO_BLOCKS_KEY_VALUE_CACHE_H_
#define ISOMER_MODELS_ZOO_BLOCKS_KEY_VALUE_CACHE_H_

#include <cstdint>
#include <string>

#include "models/zoo/blocks/model_builder.h"

namespace isomer {

// What the layers of a step with caches share. Each layer has the states (pcg/ir/states.h)
// "NAME.key" and "NAME.value" [batch, key heads, length, head size], into which the step's tokens
// are written at `rows`.
//
// A step of one token (decode) is at the place that the input `position` (a number) says, the same
// for all samples, and sees the cache up to there. A step of more (prefill) has the first tokens of
// each sample, which see each other.
struct KeyValueCache {
  int64_t length = 0;
  TensorRef rows = {};   // [tokens], of whole numbers
  TensorRef index = {};  // the row of each element of keys and values
  TensorRef mask = {};   // decode: what is added to scores [1, length]
  bool decodes = false;
};

struct KeyValueSizes {
  int64_t batch, tokens;  // of a step
  int64_t length, key_heads, head_size;
};
KeyValueCache MakeCache(ModelBuilder& b, const KeyValueSizes& sizes);

// Writes `x` [batch, key heads, tokens, head size] to state `name`; what queries see: the state, or
// in prefill x itself.
TensorRef Cached(ModelBuilder& b, const KeyValueCache& cache, TensorRef x, const std::string& name);

// Of a step's tokens x [batch, tokens, hidden] those that logits are wanted of: the last.
TensorRef LastTokens(ModelBuilder& b, TensorRef x);

// The rows of `table` [length, width] that the tokens are at: [tokens, width].
TensorRef AtRows(ModelBuilder& b, const KeyValueCache& cache, TensorRef table,
                 const std::string& name);

}  // namespace isomer

#endif  // ISOMER_MODELS_ZOO_BLOCKS_KEY_VALUE_CACHE_H_
