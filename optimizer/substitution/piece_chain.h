// Picks the placements of crossing tensors: a dynamic program over the tables of a chain of pieces.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_PIECE_CHAIN_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_PIECE_CHAIN_H_

#include <vector>

#include "absl/types/span.h"
#include "optimizer/mapping/mapping_problem.h"

namespace isomer {

struct PieceChain {
  double us = 0;          // kImpossibleUs or more: infeasible
  std::vector<int> rows;  // per piece: the row and the column of its table
  std::vector<int> cols;
};

// `tables`: per piece, rows are placements of what crosses in, columns of what crosses out; each
// has as many rows as its predecessor has columns.
PieceChain ChainOf(absl::Span<const CostTable* const> tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_PIECE_CHAIN_H_
