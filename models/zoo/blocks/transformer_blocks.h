// Blocks of transformers. Tokens are [batch, sequence, hidden].
#ifndef ISOMER_MODELS_ZOO_BLOCKS_TRANSFORMER_BLOCKS_H_
#define ISOMER_MODELS_ZOO_BLOCKS_TRANSFORMER_BLOCKS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "models/zoo/blocks/key_value_cache.h"
#include "models/zoo/blocks/model_builder.h"
#include "models/zoo/zoo.h"

namespace isomer {

TensorRef LayerNorm(ModelBuilder& b, TensorRef x, const std::string& name, double epsilon = 1e-5);
TensorRef RmsNorm(ModelBuilder& b, TensorRef x, const std::string& name, double epsilon = 1e-5);

// Dense (with biases) or Product.
TensorRef Projection(ModelBuilder& b, TensorRef x, int64_t outputs, bool biases,
                     const std::string& name);

// An input of token ids [batch, length].
TensorRef TokenIds(ModelBuilder& b, const std::string& name, int64_t batch, int64_t length);
TensorRef EmbeddedTokens(ModelBuilder& b, TensorRef table, TensorRef ids, const std::string& name);
// x plus a weight for each place of the sequence.
// `cache`: x is of those places.
TensorRef AddPositions(ModelBuilder& b, TensorRef x, const std::string& name,
                       const KeyValueCache* cache = nullptr);

// The angles by which queries and keys are rotated (Su et al., 2021): constants [length,
// head_size / 2] of cos and sin of place * theta^(-2i / head_size), shared by all layers.
struct Rotation {
  TensorRef cos;
  TensorRef sin;
};
Rotation RotationTables(ModelBuilder& b, int64_t length, int64_t head_size, double theta);
// Of a step's tokens with a cache.
Rotation RotationAtRows(ModelBuilder& b, const KeyValueCache& cache, int64_t head_size,
                        double theta);

struct AttentionSizes {
  int64_t heads;
  int64_t head_size;
  // Divides `heads`; as many query heads share a key head (Ainslie et al., 2023).
  int64_t key_heads;
  bool biases = true;
  bool causal = false;
  bool norms = false;  // an RMSNorm of each query and key, as Qwen3 has it
  double scale = 0;    // of scores; 0: 1 / sqrt(head_size)
  double cap = 0;      // scores are cap * tanh(score / cap); 0: as they are
  // A learned score of each head that takes part in the softmax without a value, as gpt-oss has it;
  // with sinks, queries may see the last `window` keys alone (0: all). Excludes cap and mask.
  bool sinks = false;
  int64_t window = 0;
  // Keys and values are kept for the next step (key_value_cache.h). Excludes sinks.
  const KeyValueCache* cache = nullptr;
};
// The sizes with equal numbers of heads that divide `hidden`, which is checked.
AttentionSizes HeadsOf(ModelBuilder& b, int64_t hidden, int64_t heads);

// The parameter `cache` of a network, 0 without one; and what it says.
ZooParameter CacheParameter();
std::optional<KeyValueCache> CacheOf(ModelBuilder& b, const ZooArguments& arguments,
                                     const AttentionSizes& sizes);

// Queries from `x`, keys and values from `memory`, each a projection of its own so that heads can
// be partitioned; then the projection to the hidden size of x. `mask` is added to the scores
// [batch, heads, queries, keys].
TensorRef Attention(ModelBuilder& b, TensorRef x, TensorRef memory, const AttentionSizes& sizes,
                    const std::string& name, const Rotation* rotation = nullptr,
                    const TensorRef* mask = nullptr);
// A projection of x as heads [batch, heads, sequence, head_size], and those as rows again.
TensorRef ProjectedHeads(ModelBuilder& b, TensorRef x, int64_t heads, int64_t head_size,
                         bool biases, const std::string& name);
TensorRef MergeHeads(ModelBuilder& b, TensorRef x, const std::string& name);

// outputs(activation(x W)), with biases.
TensorRef FeedForward(ModelBuilder& b, TensorRef x, int64_t intermediate, OpKind activation,
                      const std::string& name);
// down(activation(x gate) * (x up)), without biases (Shazeer, 2020).
TensorRef GatedFeedForward(ModelBuilder& b, TensorRef x, int64_t intermediate,
                           const std::string& name, const Operator& activation = OpKind::kSwish);
// GELU by tanh.
Operator GeluByTanh();

// A layer of queries, keys and feed-forward with norms before each, as in GPT-2 and ViT.
TensorRef PreNormLayer(ModelBuilder& b, TensorRef x, const AttentionSizes& sizes,
                       int64_t intermediate, double epsilon, const std::string& name);

// Logits [batch * sequence, vocabulary]: products with the rows of the embedding table, or with a
// weight of their own.
TensorRef TiedLogits(ModelBuilder& b, TensorRef x, TensorRef table);
TensorRef UntiedLogits(ModelBuilder& b, TensorRef x, int64_t vocabulary);

}  // namespace isomer

#endif  // ISOMER_MODELS_ZOO_BLOCKS_TRANSFORMER_BLOCKS_H_
