// Blocks of recommendation networks: DLRM, XDL, CANDLE-Uno.
#ifndef ISOMER_MODELS_ZOO_RECOMMENDATION_BLOCKS_H_
#define ISOMER_MODELS_ZOO_RECOMMENDATION_BLOCKS_H_

#include <string>
#include <vector>

#include "models/zoo/model_builder.h"
#include "models/zoo/zoo.h"

namespace isomer {

// For each width a product with a weight, without bias, and Relu.
TensorRef DenseLayers(ModelBuilder& b, TensorRef x, const std::vector<int64_t>& widths,
                      const std::string& name);

// What `tables` tables of `rows` x `features` say about the inputs table0_ids, .. of `batch` rows:
// one index a row, or the sum over `bag` of them. [batch, features] each.
std::vector<TensorRef> EmbeddingTables(ModelBuilder& b, const ZooArguments& arguments);

}  // namespace isomer

#endif  // ISOMER_MODELS_ZOO_RECOMMENDATION_BLOCKS_H_
