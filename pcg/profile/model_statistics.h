// How large a model is.
#ifndef ISOMER_PCG_PROFILE_MODEL_STATISTICS_H_
#define ISOMER_PCG_PROFILE_MODEL_STATISTICS_H_

#include <cstdint>

#include "pcg/ir/graph.h"

namespace isomer {

struct ModelStatistics {
  int64_t operators = 0;   // nodes that an output needs and that are no leaves
  int64_t parameters = 0;  // elements of weights; constants are not trained
  // Of one forward pass, as pcg/profile/work.h counts them: of all operators, and of products
  // (matmul, linear, convolutions, attention) alone: twice the multiply-accumulates that papers
  // give.
  double forward_flops = 0;
  double product_flops = 0;
  // Elements of the integer inputs that are looked up in tables of embeddings, of the largest: the
  // tokens of a language model; 0: there are none.
  int64_t tokens = 0;
};

// REQUIRES: the types are sequential.
ModelStatistics StatisticsOf(const Graph& graph);

}  // namespace isomer

#endif  // ISOMER_PCG_PROFILE_MODEL_STATISTICS_H_
