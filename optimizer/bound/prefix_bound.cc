#include "optimizer/bound/prefix_bound.h"

#include <algorithm>

namespace isomer {

PrefixBound::PrefixBound(const PairwiseProblem& problem) {
  const int n = static_cast<int>(problem.us.size());
  earlier_.resize(n);
  root_us_of_.assign(n, 0);
  for (const auto& us : problem.us) total_.emplace_back(us.begin(), us.end());
  for (const auto& edge : problem.edges) earlier_[edge.b].push_back({edge.a, edge.table, {}});
  for (int v = n - 1; v >= 0; --v) {
    const std::vector<double>& total = total_[v];
    if (earlier_[v].empty()) {
      root_us_of_[v] = *std::min_element(total.begin(), total.end());
      root_us_ += root_us_of_[v];
      continue;
    }
    const auto parts = static_cast<double>(earlier_[v].size());
    for (Earlier& u : earlier_[v]) {
      u.message.assign(u.table->rows, kImpossibleUs);
      for (int r = 0; r < u.table->rows; ++r) {
        for (int c = 0; c < u.table->cols; ++c) {
          u.message[r] = std::min(u.message[r], total[c] / parts + u.table->at(r, c));
        }
        total_[u.node][r] += u.message[r];
      }
    }
  }
}

double PrefixBound::AddedUs(int node, int choice, const std::vector<int>& choices) const {
  double us = total_[node][choice] - root_us_of_[node];
  for (const Earlier& u : earlier_[node]) {
    const int of_u = choices[u.node];
    us += u.table->at(of_u, choice) - u.message[of_u];
  }
  return us;
}

}  // namespace isomer
