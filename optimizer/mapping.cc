#include "optimizer/mapping.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "optimizer/mapping_trace.h"
#include "pcg/support/check.h"

namespace isomer {
namespace {

CostTable Transposed(const CostTable& t) {
  CostTable result(t.cols, t.rows, 0);
  for (int r = 0; r < t.rows; ++r) {
    for (int c = 0; c < t.cols; ++c) result.at(c, r) = t.at(r, c);
  }
  return result;
}

}  // namespace

MappingSolution::MappingSolution() = default;
MappingSolution::MappingSolution(MappingSolution&&) noexcept = default;
MappingSolution& MappingSolution::operator=(MappingSolution&&) noexcept = default;
MappingSolution::~MappingSolution() = default;

// Each branch costs as much as the core that is left: the larger it is, the fewer there are.
constexpr int64_t kMostBranchedNodes = 512;

class MappingSolver {
 public:
  MappingSolver(const MappingProblem& problem, int64_t budget)
      : problem_(problem), budget_(budget), trace_(std::make_unique<MappingSolution::Trace>()) {
    trace_->nodes = problem.nodes;
    trace_->terminals = problem.terminals;
    gone_.assign(problem.nodes.size(), false);
    for (int terminal : problem.terminals) ForbidHalves(terminal);
    for (const MappingProblem::Edge& edge : problem.edges) {
      ISOMER_CHECK(edge.from != edge.to);
      Composite c;
      c.a = edge.from;
      c.b = edge.to;
      c.from = edge.from;
      c.us[0] = *edge.table;
      c.plain = true;
      AddComposite(std::move(c));
    }
  }

  MappingSolution Solve() {
    Reduce();
    MappingSolution solution;
    int stuck = MostConnected();
    budget_ = std::clamp<int64_t>(kMostBranchedNodes / std::max(1, NumRemaining()), 1, budget_);
    bool exact = true;
    while (stuck >= 0 && budget_ == 1) {
      exact &= Fix(stuck);
      Reduce();
      stuck = MostConnected();
    }
    if (stuck >= 0) {
      solution = Condition(stuck);
    } else {
      Finish(&solution);
      solution.exact_ = exact;
    }
    solution.trace_ = std::move(trace_);
    return solution;
  }

 private:
  bool IsTerminal(int node) const {
    return std::find(problem_.terminals.begin(), problem_.terminals.end(), node) !=
           problem_.terminals.end();
  }
  int NumChoices(int node) const { return static_cast<int>(trace_->nodes[node].us.size()); }
  bool Allows(int node, int choice, int share) const {
    const auto& shares = trace_->nodes[node].shares;
    return static_cast<int>(shares.empty() ? Share::kWhole : shares[choice]) == share;
  }
  // Half a machine is for branches that run beside each other: everything else uses all of it.
  void ForbidHalves(int node) {
    for (int k = 0; k < NumChoices(node); ++k) {
      if (!Allows(node, k, 0)) trace_->nodes[node].us[k] = kImpossibleUs;
    }
  }

  // Adds an edge, in parallel to the one that is there already.
  void AddComposite(Composite c) {
    auto& composites = trace_->composites;
    if (c.a > c.b) {
      std::swap(c.a, c.b);
      for (CostTable& t : c.us) t = Transposed(t);
      std::swap(c.left, c.right);
    }
    composites.push_back(std::move(c));
    const int added = static_cast<int>(composites.size()) - 1;
    for (int& live : live_) {
      if (composites[live].a == composites[added].a && composites[live].b == composites[added].b) {
        const int first = live;
        composites.push_back(Parallel(first, added));
        live = static_cast<int>(composites.size()) - 1;
        return;
      }
    }
    live_.push_back(added);
  }

  Composite Parallel(int left, int right) const {
    const Composite &l = trace_->composites[left], &r = trace_->composites[right];
    Composite p;
    p.a = l.a;
    p.b = l.b;
    p.from = l.from == r.from ? l.from : -1;
    p.left = left;
    p.right = right;
    p.plain = l.plain && r.plain;
    for (int share = 0; share < (p.plain ? 1 : kShares); ++share) {
      CostTable table = l.Us(share);
      const CostTable& other = r.Us(share);
      for (size_t i = 0; i < table.us.size(); ++i) table.us[i] += other.us[i];
      p.us[share] = std::move(table);
    }
    if (!RunBeside(l, r)) return p;
    for (size_t i = 0; i < p.us[0].us.size(); ++i) {
      const float beside =
          std::min(std::max(l.us[1].us[i], r.us[2].us[i]), std::max(l.us[2].us[i], r.us[1].us[i]));
      p.us[0].us[i] = std::min(p.us[0].us[i], beside);
    }
    return p;
  }

  // The tables of composite `c` with `node`'s choices as columns.
  static CostTable Towards(const Composite& c, int node, int share) {
    return c.b == node ? c.Us(share) : Transposed(c.Us(share));
  }

  // Where data comes from if it flows over `m` from one of the composites into the other, else -1.
  int DirectedSource(int m, int left, int right) const {
    for (const auto& [in, out] : {std::pair(left, right), std::pair(right, left)}) {
      const Composite &i = trace_->composites[in], &o = trace_->composites[out];
      if (i.from >= 0 && i.from != m && o.from == m) return i.from;
    }
    return -1;
  }

  void Series(int m, int left, int right) {
    const auto& composites = trace_->composites;
    Composite s;
    s.a = composites[left].a == m ? composites[left].b : composites[left].a;
    s.b = composites[right].a == m ? composites[right].b : composites[right].a;
    s.from = DirectedSource(m, left, right);
    s.inner = m;
    s.left = left;
    s.right = right;
    for (int share = 0; share < kShares; ++share) {
      const CostTable l = Towards(composites[left], m, share);
      const CostTable r = Transposed(Towards(composites[right], m, share));
      s.us[share] = MinPlus(l, m, share, r);
    }
    gone_[m] = true;
    std::erase_if(live_, [&](int c) { return c == left || c == right; });
    AddComposite(std::move(s));
  }

  CostTable MinPlus(const CostTable& l, int m, int share, const CostTable& r) const {
    CostTable out(l.rows, r.cols, kImpossibleUs);
    for (int k = 0; k < l.cols; ++k) {
      const float node_us = trace_->nodes[m].us[k];
      if (node_us >= kImpossibleUs || !Allows(m, k, share)) continue;
      const float* row = r.us.data() + static_cast<size_t>(k) * r.cols;
      for (int a = 0; a < l.rows; ++a) {
        const float base = l.at(a, k) + node_us;
        if (base >= kImpossibleUs) continue;
        float* to = out.us.data() + static_cast<size_t>(a) * out.cols;
        for (int b = 0; b < out.cols; ++b) to[b] = std::min(to[b], base + row[b]);
      }
    }
    return out;
  }

  // `node` has one neighbour left: its best answer to each choice of that becomes part of it.
  void FoldInto(int node, int composite) {
    const Composite& c = trace_->composites[composite];
    const int neighbour = c.a == node ? c.b : c.a;
    ForbidHalves(node);
    const CostTable table = Towards(c, node, 0);
    for (int n = 0; n < table.rows; ++n) {
      float best = kImpossibleUs;
      for (int k = 0; k < table.cols; ++k) {
        best = std::min(best, table.at(n, k) + trace_->nodes[node].us[k]);
      }
      trace_->nodes[neighbour].us[n] += best;
    }
    trace_->folds.push_back({node, neighbour, composite});
    gone_[node] = true;
    std::erase(live_, composite);
  }

  std::vector<int> EdgesOf(int node) const {
    std::vector<int> at;
    for (int c : live_) {
      if (trace_->composites[c].a == node || trace_->composites[c].b == node) at.push_back(c);
    }
    return at;
  }

  // Removes node m if it has at most two neighbours; between two, only if data flows over it from
  // one to the other, unless `any`.
  bool ReduceNode(int m, bool any) {
    const std::vector<int> at = EdgesOf(m);
    if (at.size() > 2) return false;
    if (at.size() == 2) {
      if (!any && DirectedSource(m, at[0], at[1]) < 0) return false;
      Series(m, at[0], at[1]);
    } else if (at.size() == 1) {
      FoldInto(m, at[0]);
    } else {
      ForbidHalves(m);
      trace_->folds.push_back({m, -1, -1});
      gone_[m] = true;
    }
    return true;
  }

  // Branches are reduced before the forks and joins at their ends, so that they are seen as
  // branches.
  void Reduce() {
    bool any = false;
    while (true) {
      bool changed = false;
      for (int m = 0; m < static_cast<int>(gone_.size()); ++m) {
        if (gone_[m] || IsTerminal(m) || !ReduceNode(m, any)) continue;
        changed = true;
        if (any) break;
      }
      if (!changed && any) return;
      any = !changed;
    }
  }

  // The remaining inner node with most neighbours, or -1 if none remains.
  int MostConnected() const {
    int best = -1;
    std::vector<int> degree(gone_.size(), 0);
    for (int c : live_) {
      ++degree[trace_->composites[c].a];
      ++degree[trace_->composites[c].b];
    }
    for (int m = 0; m < static_cast<int>(gone_.size()); ++m) {
      if (gone_[m] || IsTerminal(m)) continue;
      if (best < 0 || degree[m] > degree[best]) best = m;
    }
    return best;
  }

  CostTable EmptyTable(float fill) const {
    const auto& t = problem_.terminals;
    return CostTable(t.empty() ? 1 : NumChoices(t[0]), t.size() < 2 ? 1 : NumChoices(t[1]), fill);
  }

  // Nodes without neighbours do as they like.
  float IsolatedUs() const {
    float sum = 0;
    for (const auto& fold : trace_->folds) {
      if (fold.node < 0 || fold.neighbour >= 0) continue;
      const auto& us = trace_->nodes[fold.node].us;
      sum += *std::min_element(us.begin(), us.end());
    }
    return sum;
  }

  void Finish(MappingSolution* solution) {
    const auto& t = problem_.terminals;
    CostTable table = EmptyTable(IsolatedUs());
    if (!live_.empty()) trace_->last = live_[0];
    for (int r = 0; r < table.rows; ++r) {
      for (int c = 0; c < table.cols; ++c) {
        float& x = table.at(r, c);
        if (!t.empty()) x += trace_->nodes[t[0]].us[r];
        if (t.size() > 1) x += trace_->nodes[t[1]].us[c];
        if (trace_->last < 0) continue;
        const Composite& last = trace_->composites[trace_->last];
        x += last.a == t[0] ? last.Us(0).at(r, c) : last.Us(0).at(c, r);
      }
    }
    solution->table_ = std::move(table);
  }

  // Choices of `node`, the ones with the least time if the others answer as they like best first.
  std::vector<int> Promising(int node) const {
    std::vector<float> estimate = trace_->nodes[node].us;
    for (int c : live_) {
      const Composite& composite = trace_->composites[c];
      if (composite.a != node && composite.b != node) continue;
      const CostTable table = Towards(composite, node, 0);
      for (int k = 0; k < table.cols; ++k) {
        float best = kImpossibleUs;
        for (int n = 0; n < table.rows; ++n) best = std::min(best, table.at(n, k));
        estimate[k] += best;
      }
    }
    std::vector<int> order(estimate.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int x, int y) { return estimate[x] < estimate[y]; });
    std::erase_if(order, [&](int k) { return estimate[k] >= kImpossibleUs; });
    if (order.empty()) order.push_back(0);
    return order;
  }

  int NumRemaining() const {
    int remaining = 0;
    for (size_t m = 0; m < gone_.size(); ++m) remaining += !gone_[m] && !IsTerminal(m);
    return remaining;
  }

  // Gives `node` its most promising choice for good, without a copy of the rest. False: it had
  // others.
  bool Fix(int node) {
    ForbidHalves(node);
    const std::vector<int> promising = Promising(node);
    const int choice = promising[0];
    std::vector<float>& us = trace_->nodes[node].us;
    for (int k = 0; k < NumChoices(node); ++k) {
      if (k != choice) us[k] = kImpossibleUs;
    }
    for (int c : EdgesOf(node)) {
      const Composite& composite = trace_->composites[c];
      const int other = composite.a == node ? composite.b : composite.a;
      const CostTable table = Towards(composite, node, 0);
      for (int n = 0; n < table.rows; ++n) trace_->nodes[other].us[n] += table.at(n, choice);
      trace_->folds.push_back({-1, -1, c});
      std::erase(live_, c);
    }
    trace_->folds.push_back({node, -1, -1});
    gone_[node] = true;
    return promising.size() == 1;
  }

  MappingSolution Condition(int node) {
    MappingSolution solution;
    ForbidHalves(node);
    std::vector<int> conditions = Promising(node);
    const size_t affordable = static_cast<size_t>(std::max<int64_t>(1, budget_));
    if (conditions.size() > affordable) {
      conditions.resize(affordable);
      solution.exact_ = false;
    }
    const int64_t budget_each = budget_ / static_cast<int64_t>(conditions.size());
    const float isolated_us = IsolatedUs();
    solution.table_ = EmptyTable(kImpossibleUs);
    trace_->conditioned = node;
    for (int choice : conditions) {
      MappingProblem rest;
      rest.nodes = trace_->nodes;
      rest.terminals = problem_.terminals;
      std::vector<CostTable> keep;
      keep.reserve(live_.size());
      for (int m = 0; m < static_cast<int>(gone_.size()); ++m) {
        // Nodes that are gone cost nothing in the rest.
        if (gone_[m] || m == node) rest.nodes[m] = {{0.0f}, {}};
      }
      for (int c : live_) {
        const Composite& composite = trace_->composites[c];
        if (composite.a == node || composite.b == node) {
          const int other = composite.a == node ? composite.b : composite.a;
          const CostTable table = Towards(composite, node, 0);
          for (int n = 0; n < table.rows; ++n) rest.nodes[other].us[n] += table.at(n, choice);
        } else {
          keep.push_back(composite.Us(0));
          rest.edges.push_back({composite.a, composite.b, &keep.back()});
        }
      }
      MappingSolution part = MappingSolver(rest, budget_each).Solve();
      solution.exact_ &= part.exact_;
      const float own = trace_->nodes[node].us[choice] + isolated_us;
      for (float& x : part.table_.us) x += own;
      for (size_t i = 0; i < part.table_.us.size(); ++i) {
        solution.table_.us[i] = std::min(solution.table_.us[i], part.table_.us[i]);
      }
      trace_->conditions.push_back(choice);
      trace_->alternatives.push_back(std::move(part));
    }
    return solution;
  }

  const MappingProblem& problem_;
  int64_t budget_;
  std::unique_ptr<MappingSolution::Trace> trace_;
  std::vector<bool> gone_;
  std::vector<int> live_;  // composites that are edges of the graph as reduced so far
};

MappingSolution SolveMapping(const MappingProblem& problem, const MappingOptions& options) {
  return MappingSolver(problem, options.max_conditions).Solve();
}

}  // namespace isomer
