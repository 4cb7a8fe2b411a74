#ifndef ISOMER_MODELS_SUPPORT_EINSUM_H_
#define ISOMER_MODELS_SUPPORT_EINSUM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/graph.h"

namespace isomer {

// Adds to `graph` what `equation` says of `operands`, made of ReduceSum, Transpose, Reshape, MatMul
// and Mul (and Slice for a diagonal). The last node is called `name`, those before it `name`/...
//
//   "GSEC,GSM->EGCM"   a batched product, its result transposed
//   "bhsd,bhtd"        no arrow: the labels that occur once, by the alphabet (here "st")
//   "...ij,...jk"      further dims, which align from the right and broadcast as in NumPy
//   "ii->i", "ii"      the diagonal, the trace
//
// More than two operands are multiplied in pairs, each time the pair with the fewest
// multiplications. Where no operand has both kept and summed dims in common, the product is one
// Mul. Errors name the equation and what is wrong with it: a label that is 3 in one operand and 4
// in another, an output label that no operand has, another number of operands.
absl::StatusOr<TensorRef> AddEinsum(Graph* graph, absl::string_view equation,
                                    std::vector<TensorRef> operands, const std::string& name);

}  // namespace isomer

#endif  // ISOMER_MODELS_SUPPORT_EINSUM_H_
