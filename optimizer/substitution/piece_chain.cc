#include "optimizer/substitution/piece_chain.h"

#include <algorithm>

namespace isomer {

PieceChain ChainOf(absl::Span<const CostTable* const> tables) {
  std::vector<std::vector<double>> least;  // [piece][column]
  std::vector<std::vector<int>> from;
  for (size_t p = 0; p < tables.size(); ++p) {
    const CostTable& table = *tables[p];
    least.emplace_back(table.cols, kImpossibleUs);
    from.emplace_back(table.cols, 0);
    for (int r = 0; r < table.rows; ++r) {
      const double before = p == 0 ? 0 : least[p - 1][r];
      for (int c = 0; c < table.cols; ++c) {
        const double us = before + table.at(r, c);
        if (us >= least[p][c]) continue;
        least[p][c] = us;
        from[p][c] = r;
      }
    }
  }
  PieceChain chain;
  chain.rows.resize(tables.size());
  chain.cols.resize(tables.size());
  const auto& last = least.back();
  int at = static_cast<int>(std::min_element(last.begin(), last.end()) - last.begin());
  chain.us = last[at];
  for (size_t p = tables.size(); p-- > 0;) {
    chain.cols[p] = at;
    chain.rows[p] = at = from[p][at];
  }
  return chain;
}

}  // namespace isomer
