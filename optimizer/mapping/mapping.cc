#include "optimizer/mapping/mapping.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "optimizer/mapping/mapping_bound.h"
#include "optimizer/mapping/mapping_branches.h"
#include "optimizer/mapping/mapping_enumeration.h"
#include "optimizer/mapping/mapping_reduction.h"

namespace isomer {
namespace {

// A solve costs as much as the core is large, so a larger core gets fewer.
constexpr int64_t kMostBranchedNodes = 512;

// Tolerance for sums in another order.
constexpr double kRounding = 1e-5;

// Assignments between two checks of the deadline.
constexpr int64_t kLeavesPerLook = 4096;

// The best assignment for each choice of the terminals, by enumeration.
class Enumeration {
 public:
  Enumeration(const MappingProblem& problem, const Deadline& deadline)
      : problem_(problem), deadline_(deadline), choices_(problem.nodes.size(), 0) {
    edges_.resize(problem.nodes.size());
    for (const MappingProblem::Edge& edge : problem.edges) {
      edges_[std::max(edge.from, edge.to)].push_back(&edge);
    }
  }

  // False: stopped by the deadline.
  bool Run() {
    SetFrom(0, 0);
    return !over_;
  }
  // The best assignment for given choices of the terminals.
  struct Best {
    float us = kImpossibleUs;
    std::vector<int> choices;
  };
  const std::map<std::pair<int, int>, Best>& best() const { return best_; }

 private:
  void SetFrom(size_t node, float us) {
    if (over_) return;
    if (node == problem_.nodes.size()) return Note(us);
    const MappingProblem::MappingNode& n = problem_.nodes[node];
    for (int k = 0; k < static_cast<int>(n.us.size()); ++k) {
      if (!n.shares.empty() && n.shares[k] != Share::kWhole) continue;
      choices_[node] = k;
      float sum = us + n.us[k];
      for (const MappingProblem::Edge* edge : edges_[node]) {
        sum += edge->table->at(choices_[edge->from], choices_[edge->to]);
      }
      SetFrom(node + 1, sum);
    }
  }

  void Note(float us) {
    if (++leaves_ % kLeavesPerLook == 0) over_ = deadline_.Reached().has_value();
    const std::vector<int>& t = problem_.terminals;
    Best& best = best_[{t.empty() ? 0 : choices_[t[0]], t.size() < 2 ? 0 : choices_[t[1]]}];
    if (!best.choices.empty() && us >= best.us) return;
    best = {us, choices_};
  }

  const MappingProblem& problem_;
  const Deadline& deadline_;
  std::vector<std::vector<const MappingProblem::Edge*>> edges_;  // by later node
  std::vector<int> choices_;
  std::map<std::pair<int, int>, Best> best_;
  int64_t leaves_ = 0;
  bool over_ = false;
};

}  // namespace

MappingSolution::MappingSolution() = default;
MappingSolution::MappingSolution(MappingSolution&&) noexcept = default;
MappingSolution& MappingSolution::operator=(MappingSolution&&) noexcept = default;
MappingSolution::~MappingSolution() = default;

class MappingSolver {
 public:
  explicit MappingSolver(const MappingOptions& options, bool concurrent_branches = false)
      : options_(options), concurrent_branches_(concurrent_branches) {}

  MappingSolution Solve(const MappingProblem& problem) {
    MappingReduction reduction(problem, options_.memo, nullptr, concurrent_branches_);
    reduction.Reduce();
    const auto core_size = static_cast<int64_t>(reduction.Core().size());
    if (core_size == 0) {
      Add(std::make_shared<const MappingReduction>(std::move(reduction)));
    } else if (!Condition(reduction, std::clamp<int64_t>(kMostBranchedNodes / core_size, 1,
                                                         options_.max_conditions))) {
      SolveLargeCore(reduction);
    }
    return std::move(solution_);
  }

  MappingSolution Enumerate(const MappingProblem& problem, const Deadline& deadline) {
    Enumeration enumeration(problem, deadline);
    solution_.gap_ = enumeration.Run() ? 0 : 1;
    const std::vector<int>& terminals = problem.terminals;
    const MappingReduction reduction(problem, nullptr);
    std::set<std::vector<int>> inner;  // assignments of the other nodes
    for (const auto& [ends, best] : enumeration.best()) {
      std::vector<int> choices = best.choices;
      for (int terminal : terminals) choices[terminal] = 0;
      if (!inner.insert(choices).second) continue;
      MappingReduction set = reduction;
      for (int node = 0; node < static_cast<int>(choices.size()); ++node) {
        if (std::find(terminals.begin(), terminals.end(), node) != terminals.end()) continue;
        set.Fix(node, choices[node]);
      }
      set.Reduce();
      Add(std::make_shared<const MappingReduction>(std::move(set)));
    }
    return std::move(solution_);
  }

 private:
  // Adds the alternative if it improves an entry of the table; its least.
  float Add(std::shared_ptr<const MappingReduction> reduction) {
    CostTable table = reduction->Table();
    const float least = *std::min_element(table.us.begin(), table.us.end());
    CostTable& best = solution_.table_;
    const bool improves = solution_.alternatives_.empty() || IsLessSomewhere(table, best);
    if (solution_.alternatives_.empty()) {
      best = table;
    } else if (improves) {
      for (size_t i = 0; i < best.us.size(); ++i) best.us[i] = std::min(best.us[i], table.us[i]);
    }
    if (improves) solution_.alternatives_.push_back({std::move(reduction), std::move(table)});
    return least;
  }

  static bool IsLessSomewhere(const CostTable& a, const CostTable& b) {
    for (size_t i = 0; i < a.us.size(); ++i) {
      if (a.us[i] < b.us[i]) return true;
    }
    return false;
  }

  // Solves a core by fixing its nodes to each of their choices in turn. False: needs more than
  // `budget` solves; nothing was added.
  bool Condition(const MappingReduction& reduction, int64_t budget) {
    std::vector<std::shared_ptr<const MappingReduction>> solved;
    if (!Branch(reduction, budget, &solved)) return false;
    for (auto& alternative : solved) Add(std::move(alternative));
    return true;
  }

  bool Branch(const MappingReduction& reduction, int64_t budget,
              std::vector<std::shared_ptr<const MappingReduction>>* solved) {
    const int node = MostConnected(reduction, reduction.Core(), {});
    std::vector<int> choices;
    for (int k : reduction.WholeChoices(node)) {
      if (reduction.NodeUs(node, k) < kImpossibleUs) choices.push_back(k);
    }
    if (choices.empty()) choices.push_back(reduction.WholeChoices(node).at(0));
    const auto count = static_cast<int64_t>(choices.size());
    if (count > budget) return false;
    reduction.MakeTables();
    for (int choice : choices) {
      MappingReduction rest = reduction;
      rest.Fix(node, choice);
      rest.Reduce();
      if (rest.Core().empty()) {
        solved->push_back(std::make_shared<const MappingReduction>(std::move(rest)));
      } else if (!Branch(rest, budget / count, solved)) {
        return false;
      }
    }
    return true;
  }

  void SolveLargeCore(MappingReduction& reduction) {
    // The bound covers these choices only.
    for (int node : reduction.Core()) reduction.KeepToWhole(node);
    const PairwiseBound bound = Bound(reduction);
    std::map<int, int> set;  // core nodes fixed in the last round
    float least = Descend(reduction, nullptr, &set);
    least = std::min(least, Descend(reduction, &looks_best_, &set));
    for (int round = 0; round < options_.rounds; ++round) {
      // All nodes' choices in the best solution so far, which thus stays reachable whichever are
      // fixed.
      const std::vector<float>& us = solution_.table_.us;
      const int at = static_cast<int>(std::min_element(us.begin(), us.end()) - us.begin());
      const int cols = solution_.table_.cols;
      const std::vector<int> choices = solution_.Choices(at / cols, at % cols);
      std::map<int, int> labels;
      for (int node : reduction.Core()) labels[node] = choices[node];
      const float now = Descend(reduction, &labels, &set);
      if (now >= least * (1 - kRounding)) break;
      least = now;
    }
    const double us = *std::min_element(solution_.table_.us.begin(), solution_.table_.us.end());
    solution_.gap_ = us >= kImpossibleUs ? 1 : std::max(0.0, 1 - bound.us / us);
    if (solution_.gap_ < kRounding) solution_.gap_ = 0;
  }

  // Bounds the core, with its terminals, as a problem of its own. Keeps the messages' favourites.
  PairwiseBound Bound(const MappingReduction& reduction) {
    std::vector<int> nodes = reduction.Core();
    nodes.insert(nodes.end(), reduction.terminals().begin(), reduction.terminals().end());
    std::sort(nodes.begin(), nodes.end());
    std::map<int, int> number;
    PairwiseProblem problem;
    for (int node : nodes) {
      number[node] = static_cast<int>(problem.us.size());
      std::vector<float> us;
      for (int k : reduction.WholeChoices(node)) us.push_back(reduction.NodeUs(node, k));
      problem.us.push_back(std::move(us));
    }
    std::vector<CostTable> turned;
    const auto edges = reduction.CoreEdges();
    turned.reserve(edges.size());
    for (const auto& edge : edges) {
      if (edge.a < edge.b) {
        problem.edges.push_back({number[edge.a], number[edge.b], edge.table});
        continue;
      }
      CostTable t(edge.table->cols, edge.table->rows, 0);
      for (int r = 0; r < t.rows; ++r) {
        for (int c = 0; c < t.cols; ++c) t.at(r, c) = edge.table->at(c, r);
      }
      turned.push_back(std::move(t));
      problem.edges.push_back({number[edge.b], number[edge.a], &turned.back()});
    }
    PairwiseBound bound = BoundPairwise(problem, options_.passes);
    bound.us += reduction.IsolatedUs();
    for (size_t n = 0; n < nodes.size(); ++n) {
      const auto& us = bound.reparametrised[n];
      const auto best = std::min_element(us.begin(), us.end()) - us.begin();
      looks_best_[nodes[n]] = reduction.WholeChoices(nodes[n])[best];
    }
    return bound;
  }

  // Fixes nodes until the rest is reducible: to their labels, or to the current favourite; nodes
  // not fixed in the last round (`set`) before the others.
  float Descend(const MappingReduction& from, const std::map<int, int>* labels,
                std::map<int, int>* set) {
    MappingReduction reduction = from;
    const std::map<int, int> last = std::exchange(*set, {});
    std::vector<int> core = reduction.Core();
    while (!core.empty()) {
      const int node = MostConnected(reduction, core, last);
      int choice = labels == nullptr ? -1 : labels->at(node);
      if (choice < 0 || reduction.NodeUs(node, choice) >= kImpossibleUs) {
        choice = reduction.Promising(node);
      }
      (*set)[node] = choice;
      reduction.Fix(node, choice);
      reduction.Reduce();
      core = reduction.Core();
    }
    return Add(std::make_shared<const MappingReduction>(std::move(reduction)));
  }

  static int MostConnected(const MappingReduction& reduction, const std::vector<int>& core,
                           const std::map<int, int>& last) {
    int best = -1, most = -1;
    for (int node : core) {
      const int rank = 2 * reduction.Degree(node) - (last.count(node) > 0 ? 3 : 0);
      if (best >= 0 && rank <= most) continue;
      best = node;
      most = rank;
    }
    return best;
  }

  const MappingOptions& options_;
  const bool concurrent_branches_;
  MappingSolution solution_;
  std::map<int, int> looks_best_;  // per core node: the choice that the messages favour
};

std::vector<int> MappingSolution::Choices(int first, int second) const {
  const Alternative* best = &alternatives_[0];
  for (const Alternative& alternative : alternatives_) {
    if (alternative.table.at(first, second) < best->table.at(first, second)) best = &alternative;
  }
  return best->reduction->Choices(first, second);
}

MappingSolution EnumerateMappings(const MappingProblem& problem, const Deadline& deadline) {
  const MappingOptions options;
  return MappingSolver(options).Enumerate(problem, deadline);
}

MappingSolution SolveWithConcurrentBranches(const MappingProblem& problem,
                                            const MappingOptions& options) {
  return MappingSolver(options, /*concurrent_branches=*/true).Solve(problem);
}

MappingSolution SolveMapping(const MappingProblem& problem, const MappingOptions& options) {
  return MappingSolver(options).Solve(problem);
}

}  // namespace isomer
