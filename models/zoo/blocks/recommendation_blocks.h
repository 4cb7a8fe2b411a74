// Blocks of recommendation networks: DLRM, XDL, CANDLE-Uno.
#ifndef ISOMER_MODELS_ZOO_BLOCKS_RECOMMENDATION_BLOCKS_H_
#define ISOMER_MODELS_ZOO_BLOCKS_RECOMMENDATION_BLOCKS_H_

#include <string>
#include <vector>

#include "models/zoo/blocks/model_builder.h"
#include "models/zoo/zoo.h"

namespace isomer {

// For each width a product with a weight and Relu. Their names count from `first`.
TensorRef DenseLayers(ModelBuilder& b, TensorRef x, const std::vector<int64_t>& widths,
                      const std::string& name, int first = 0, bool biases = false);

// What `tables` tables of `rows` x `features` say about the inputs table0_ids, .. of `batch` rows:
// one index a row, or the sum over `bag` of them. [batch, features] each. With `look_ups` such
// a sum is an Embedding and a ReduceSum instead of an EmbeddingBag.
std::vector<TensorRef> EmbeddingTables(ModelBuilder& b, const ZooArguments& arguments);

// The first part, and beside it the inner products of every two parts (Naumov et al., 2019).
TensorRef PairsOfFeatures(ModelBuilder& b, const std::vector<TensorRef>& parts,
                          const std::string& name);

// The first product of what tables and other layers give, side by side. With `apart` each is
// multiplied by a weight of its own and the results are added, as Unity rewrites it (OSDI'22,
// figure 16b).
TensorRef ProductOfFeatures(ModelBuilder& b, std::vector<TensorRef> parts, int64_t width,
                            bool apart, const std::string& concat, const std::string& name);

}  // namespace isomer

#endif  // ISOMER_MODELS_ZOO_BLOCKS_RECOMMENDATION_BLOCKS_H_
