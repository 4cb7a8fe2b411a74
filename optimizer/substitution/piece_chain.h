// What crosses between the pieces of a chain: a dynamic program over their tables.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_PIECE_CHAIN_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_PIECE_CHAIN_H_

#include <vector>

#include "absl/types/span.h"
#include "optimizer/mapping/mapping_problem.h"

namespace isomer {

struct PieceChain {
  double us = 0;          // kImpossibleUs or more: there is no way
  std::vector<int> rows;  // per piece: the row and the column of its table
  std::vector<int> cols;
};

// `tables`: of each piece, by what crosses in and out; each has as many rows as the one before it
// has columns.
PieceChain ChainOf(absl::Span<const CostTable* const> tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_PIECE_CHAIN_H_
