#ifndef ISOMER_MODELS_PADDING_ROWS_H_
#define ISOMER_MODELS_PADDING_ROWS_H_

#include "pcg/ir/plan.h"

namespace isomer {

// An embedding whose padding row PyTorch does not train is imported as
//
//   where(indices == row, value, embedding(table, indices))
//
// with the row's value as a constant. Where nothing trains, that is the embedding: the table has
// the value in that row, which is looked at, and it may be any. Returns how many became that.
// REQUIRES: the types of the model are sequential.
int OmitPaddingRows(Model* model);

}  // namespace isomer

#endif  // ISOMER_MODELS_PADDING_ROWS_H_
