#include "optimizer/substitution.h"

#include <algorithm>
#include <queue>
#include <set>
#include <unordered_set>
#include <utility>

#include "pcg/support/status_macros.h"
#include "rules/rewrite.h"

namespace isomer {
namespace {

using Match = std::pair<const Rule*, DerivationStep>;

// One number for a table: what a piece costs in a chain of its like. Where the same placements
// cross in and out, the best that comes out as it came in; else the best.
float Summary(const CostTable& table, bool repeats) {
  float best = kImpossibleUs;
  if (repeats) {
    for (int i = 0; i < table.rows; ++i) best = std::min(best, table.at(i, i));
  }
  if (best < kImpossibleUs) return best;
  return *std::min_element(table.us.begin(), table.us.end());
}

struct Open {
  SubstitutionResult::Candidate candidate;
  std::vector<Match> matches;
  float us = 0;
};

class SubstitutionSearch {
 public:
  SubstitutionSearch(const Piece& piece, const Borders& borders, const SubstitutionOptions& options,
                     CostTables* tables)
      : piece_(piece), borders_(borders), options_(options), tables_(*tables) {
    repeats_ = piece.has_in && piece.has_out && borders.in == borders.out;
  }

  absl::StatusOr<SubstitutionResult> Run() {
    Open first;
    first.candidate.graph = piece_.graph;
    ISOMER_RETURN_IF_ERROR(Map(&first));
    first.matches = Matches(first.candidate.graph, {});
    seen_.insert(piece_.graph.StructuralHash());
    Push(std::move(first));
    while (!queue_.empty() && !Spent()) {
      const int at = queue_.top().second;
      queue_.pop();
      Open open = std::move(open_[at]);
      if (open.us > options_.alpha * best_us_) break;
      Expand(open);
    }
    KeepBest();
    return std::move(result_);
  }

 private:
  bool Spent() {
    if (result_.mapped >= options_.budget ||
        tries_ >= options_.budget * options_.tries_per_candidate) {
      result_.stop = StopReason::kBudget;
    } else if (const auto reason = options_.deadline.Reached(); reason.has_value()) {
      result_.stop = *reason;
    }
    return result_.stop != StopReason::kExhausted;
  }

  absl::Status Map(Open* open) {
    ISOMER_ASSIGN_OR_RETURN(const PieceMapping mapping,
                            PieceMapping::Solve(piece_, open->candidate.graph, borders_, &tables_));
    ++result_.mapped;
    result_.exact &= mapping.exact();
    open->us = Summary(mapping.table(), repeats_);
    best_us_ = std::min(best_us_, open->us);
    const int number = static_cast<int>(all_.size());
    const std::vector<float>& us = mapping.table().us;
    if (number == 0) {
      result_.us = mapping.table();
      result_.best.assign(us.size(), 0);
    }
    bool improves = number == 0;
    for (size_t i = 0; i < us.size(); ++i) {
      // Rounding alone is no improvement.
      if (us[i] >= result_.us.us[i] * (1 - 1e-6f)) continue;
      result_.us.us[i] = us[i];
      result_.best[i] = number;
      improves = true;
    }
    all_.push_back(improves ? open->candidate : SubstitutionResult::Candidate());
    return absl::OkStatus();
  }

  std::vector<Match> Matches(const Graph& graph, const std::vector<NodeId>& near) const {
    std::vector<Match> matches;
    const GraphIndex index(graph);
    for (const Rule* rule : tables_.rules().algebra()) {
      if (rule->source.nodes.empty()) continue;  // x -> .. grows graphs without end.
      for (DerivationStep& step : FindMatches(index, *rule, {}, near)) {
        matches.emplace_back(rule, std::move(step));
      }
    }
    return matches;
  }

  // Whether it would rewrite what a user has a say in.
  bool IsRestricted(const DerivationStep& step) const {
    return std::any_of(step.nodes.begin(), step.nodes.end(),
                       [&](NodeId id) { return piece_.RestrictionOf(id) != nullptr; });
  }

  void Push(Open open) {
    queue_.push({-open.us, static_cast<int>(open_.size())});
    open_.push_back(std::move(open));
  }

  void Expand(const Open& open) {
    for (size_t m = 0; m < open.matches.size() && !Spent(); ++m) {
      ++tries_;
      const auto& [rule, step] = open.matches[m];
      if (IsRestricted(step)) continue;
      Open next;
      next.candidate = open.candidate;
      Graph& graph = next.candidate.graph;
      const int first_new = graph.num_nodes();
      if (!ApplyStep(*rule, step, &graph).ok()) continue;
      if (!seen_.insert(graph.StructuralHash()).second) continue;
      next.candidate.steps.push_back(step);
      if (!Map(&next).ok() || next.us > options_.alpha * best_us_) continue;
      std::vector<NodeId> near;
      for (int i = first_new; i < graph.num_nodes(); ++i) near.push_back(NodeId{i});
      next.matches = open.matches;
      next.matches.erase(next.matches.begin() + static_cast<std::ptrdiff_t>(m));
      if (!near.empty()) {
        for (Match& match : Matches(graph, near)) next.matches.push_back(std::move(match));
      }
      Push(std::move(next));
    }
  }

  // Drops the candidates that are best for no border.
  void KeepBest() {
    std::vector<int> kept(all_.size(), -1);
    for (int number : result_.best) kept[number] = 0;
    kept[0] = 0;
    for (size_t i = 0; i < all_.size(); ++i) {
      if (kept[i] < 0) continue;
      kept[i] = static_cast<int>(result_.candidates.size());
      result_.candidates.push_back(std::move(all_[i]));
    }
    for (int& number : result_.best) number = kept[number];
  }

  const Piece& piece_;
  const Borders borders_;
  const SubstitutionOptions& options_;
  CostTables& tables_;
  bool repeats_ = false;
  int64_t tries_ = 0;
  SubstitutionResult result_;
  std::vector<SubstitutionResult::Candidate> all_;
  std::vector<Open> open_;
  std::priority_queue<std::pair<float, int>> queue_;
  std::unordered_set<uint64_t> seen_;
  float best_us_ = kImpossibleUs;
};

}  // namespace

absl::StatusOr<SubstitutionResult> SearchSubstitutions(const Piece& piece, const Borders& borders,
                                                       const SubstitutionOptions& options,
                                                       CostTables* tables) {
  return SubstitutionSearch(piece, borders, options, tables).Run();
}

}  // namespace isomer
