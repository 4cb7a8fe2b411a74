#include "optimizer/substitution/substitution.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/algorithm/container.h"
#include "optimizer/mapping/step_experience.h"
#include "optimizer/substitution/step_estimate.h"
#include "optimizer/substitution/sweeps.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "rules/matching/rewrite.h"

namespace isomer {
namespace {

// Candidate graphs kept; others are rebuilt from their steps.
constexpr size_t kGraphsKept = 256;

constexpr int kNotMapped = -1;
constexpr int kThePiece = 0;  // the first that is expanded

// Time of a piece in a chain of equal pieces, from its table. If the same placements cross in and
// out, the minimum over entries that leave as they enter; else over all.
float Summary(const CostTable& table, bool repeats) {
  float best = kImpossibleUs;
  if (repeats) {
    for (int i = 0; i < table.rows; ++i) best = std::min(best, table.at(i, i));
  }
  if (best < kImpossibleUs) return best;
  return *std::min_element(table.us.begin(), table.us.end());
}

struct Expanded {
  std::vector<int> taken = {};  // matches, in order; steps of a known candidate have no numbers
  int known = 0;                // the known candidate that they start from
  std::optional<Graph> graph = {};
  uint64_t key = 0;  // hash of the set of steps
  float us = 0;
  std::vector<Step> steps = {};  // best first
  size_t next = 0;
};

}  // namespace

class SubstitutionSearch::Impl {
 public:
  Impl(const Piece& piece, const Borders& borders, const SubstitutionOptions& options,
       RuleMatcher* matcher, RootMatches* root_matches, CostTables* tables)
      : piece_(piece),
        borders_(borders),
        options_(options),
        matcher_(*matcher),
        root_matches_(*root_matches),
        tables_(*tables),
        estimator_(*tables),
        repeats_(piece.has_in && piece.has_out && borders.in == borders.out) {}

  absl::Status Start(const std::vector<Steps>& known) {
    roots_.push_back({piece_.graph, {}});
    for (Way* way : {&stepwise_, &swept_}) way->seen[piece_.graph.StructuralHash()] = 0;
    ISOMER_RETURN_IF_ERROR(Map(0, {}, piece_.graph, &stepwise_).status());
    for (const Steps& steps : known) {
      if (options_.deadline.Reached().has_value()) break;
      SubstitutionResult::Candidate candidate{piece_.graph, steps};
      if (!Replay(steps, &candidate.graph)) continue;
      const auto [seen, is_new] =
          stepwise_.seen.try_emplace(candidate.graph.StructuralHash(), kNotMapped);
      if (!is_new) continue;
      roots_.push_back(std::move(candidate));
      const int root = static_cast<int>(roots_.size()) - 1;
      const int number = static_cast<int>(all_.size());
      if (Map(root, {}, roots_[root].graph, &stepwise_).ok()) seen->second = number;
    }
    return absl::OkStatus();
  }

  void TakeSweeps() {
    ExpandRoots();
    const auto us = [this](int number) { return expanded_[number].us; };
    // Those that take as long are mostly the same but for steps that change nothing.
    const auto alike = [&](int a, int b) { return us(b) <= us(a) * (1 + 1e-5f); };
    float before_us = kImpossibleUs;
    std::vector<int> level = {kThePiece};
    while (!level.empty() && us(level[0]) < before_us) {
      before_us = us(level[0]);
      std::vector<int> next;
      for (int parent : level) {
        for (const std::vector<Step>& sweep :
             SweepsOf(expanded_[parent].steps, matches_, options_.sweeps_of_each)) {
          if (options_.deadline.Reached().has_value()) return;
          const std::optional<int> number = Try(parent, sweep, &swept_);
          if (number.has_value()) next.push_back(*number);
        }
      }
      absl::c_stable_sort(next, [&](int a, int b) { return us(a) < us(b); });
      next.erase(std::unique(next.begin(), next.end(), alike), next.end());
      next.resize(std::min(next.size(), options_.swept_candidates));
      level = std::move(next);
    }
  }

  absl::Status Continue(int64_t candidates) {
    const int64_t mapped_end = result_.mapped + candidates;
    const int64_t tries_end = tries_ + candidates * options_.tries_per_candidate;
    ExpandRoots();
    result_.stop = StopReason::kBudget;
    while (result_.mapped < mapped_end && tries_ < tries_end) {
      if (const auto reason = options_.deadline.Reached(); reason.has_value()) {
        result_.stop = *reason;
        break;
      }
      if (queue_.empty()) {
        result_.stop = StopReason::kExhausted;
        break;
      }
      const int number = queue_.top().second;
      queue_.pop();
      Expanded& parent = expanded_[number];
      if (parent.us > options_.alpha * stepwise_.best_us || Reconsider(number)) continue;
      const Step step = parent.steps[parent.next++];
      Enqueue(number);
      const std::optional<int> next = Try(number, {step}, &stepwise_);
      if (next.has_value()) Enqueue(*next);
    }
    return absl::OkStatus();
  }

  bool Done() const {
    return result_.stop == StopReason::kTimeLimit || result_.stop == StopReason::kInterrupted ||
           (expanded_once_ && queue_.empty());
  }
  int64_t mapped() const { return result_.mapped; }
  double best_us() const { return std::min(stepwise_.best_us, swept_.best_us); }
  bool SweepsLead() const { return swept_.best_us < stepwise_.best_us; }

  std::vector<Steps> Known(int cheapest) const {
    std::vector<int> order;
    std::vector<bool> wanted(all_.size(), false);
    for (size_t i = 0; i < all_.size(); ++i) order.push_back(static_cast<int>(i));
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return all_[a].us < all_[b].us; });
    for (int i = 0; i < std::min<int>(cheapest, static_cast<int>(order.size())); ++i) {
      wanted[order[i]] = true;
    }
    for (int number : result_.best) wanted[number] = true;
    // In mapping order, so that ties are broken equally.
    std::vector<Steps> known;
    for (size_t i = 0; i < all_.size(); ++i) {
      Steps steps = StepsOf(all_[i]);
      if (wanted[i] && !steps.empty()) known.push_back(std::move(steps));
    }
    return known;
  }

  // Omits candidates that are best for no border.
  SubstitutionResult TakeResult() {
    std::vector<int> kept(all_.size(), -1);
    for (int number : result_.best) kept[number] = 0;
    kept[0] = 0;
    for (size_t i = 0; i < all_.size(); ++i) {
      if (kept[i] < 0) continue;
      kept[i] = static_cast<int>(result_.candidates.size());
      SubstitutionResult::Candidate candidate{piece_.graph, StepsOf(all_[i])};
      Replay(candidate.steps, &candidate.graph);
      result_.candidates.push_back(std::move(candidate));
    }
    for (int& number : result_.best) number = kept[number];
    return std::move(result_);
  }

 private:
  // What is known and steps one by one, or sweeps. These are far ahead at first: what takes longer
  // would not be looked at beside them, nor go on from where they have been.
  struct Way {
    float best_us = kImpossibleUs;
    std::unordered_map<uint64_t, int> seen;  // by hash of the graph: index in all_
    std::unordered_set<uint64_t> tried;      // sets of steps
  };

  struct Mapped {
    int root = 0;
    std::vector<int> taken;
    float us = 0;
  };

  bool Replay(const Steps& steps, Graph* graph) const {
    for (const DerivationStep& step : steps) {
      const Rule* rule = tables_.rules().rules().Find(step.rule);
      if (rule == nullptr || !ApplyStep(*rule, step, graph).ok()) return false;
    }
    return true;
  }

  Steps StepsOf(const Mapped& mapped) const {
    Steps steps = roots_[mapped.root].steps;
    for (int match : mapped.taken) steps.push_back(matches_[match].step);
    return steps;
  }

  // Maps a candidate and returns its cost; records it for the borders that it is best for.
  absl::StatusOr<float> Map(int root, std::vector<int> taken, const Graph& graph, Way* way) {
    const Deadline* until = options_.dynamic_program ? nullptr : &options_.deadline;
    ISOMER_ASSIGN_OR_RETURN(const PieceMapping mapping,
                            PieceMapping::Solve(piece_, graph, borders_, &tables_, until,
                                                options_.concurrent_branches));
    ++result_.mapped;
    result_.exact &= mapping.exact();
    const int number = static_cast<int>(all_.size());
    const std::vector<float>& us = mapping.table().us;
    if (number == 0) {
      result_.us = mapping.table();
      result_.best.assign(us.size(), 0);
    }
    for (size_t i = 0; i < us.size(); ++i) {
      // Ignores improvements by rounding.
      if (us[i] >= result_.us.us[i] * (1 - 1e-6f)) continue;
      result_.us.us[i] = us[i];
      result_.best[i] = number;
    }
    const float summary = Summary(mapping.table(), repeats_);
    way->best_us = std::min(way->best_us, summary);
    all_.push_back({root, std::move(taken), summary});
    return summary;
  }

  // Expands the starting candidates: matches are sought only if there is a budget.
  void ExpandRoots() {
    if (expanded_once_) return;
    expanded_once_ = true;
    experience_.set_scale_us(stepwise_.best_us);
    for (size_t i = 0; i < all_.size(); ++i) {
      // The piece itself, too, as sweeps begin there: what is known may have gone another way.
      if (i > 0 && all_[i].us > options_.alpha * stepwise_.best_us) continue;
      Expanded root{.known = all_[i].root, .graph = roots_[all_[i].root].graph, .us = all_[i].us};
      root.key = HashMix(i);
      AddMatches({}, &root);
      SortSteps(&root);
      Enqueue(Add(std::move(root)));
    }
  }

  // Nodes that a step added, and the new users of its results: a match with other operands is
  // another match.
  static std::vector<NodeId> ChangedNodes(const Graph& before, const Graph& after) {
    std::vector<NodeId> changed;
    for (int i = 0; i < after.num_nodes(); ++i) {
      if (i >= before.num_nodes() || after.node(i).inputs != before.node(i).inputs) {
        changed.push_back(NodeId{i});
      }
    }
    return changed;
  }

  // Adds the parent's matches that the last step left valid, and the new ones near the nodes that
  // it changed; all matches, if there was no step. Returns the estimate of the best new one.
  float AddMatches(const std::vector<NodeId>& near, Expanded* expanded) {
    const Graph& graph = *expanded->graph;
    const GraphIndex index(graph);
    std::erase_if(expanded->steps,
                  [&](const Step& step) { return !StillMatches(index, matches_[step.match]); });
    float best_us = 0;
    if (near.empty() && !expanded->taken.empty()) return best_us;
    const ComputeGraph compute =
        AnalyzeCompute(graph, tables_.options().training, piece_.FedWithGradient());
    const auto add = [&](RuleMatch match) {
      if (IsRestricted(match.step)) return;
      const float delta_us = estimator_.DeltaUs(index, compute, match);
      const int number = static_cast<int>(matches_.size());
      const uint64_t tie = HashCombine(options_.seed, static_cast<uint64_t>(number));
      const int kind = experience_.KindOf(match.signature);
      expanded->steps.push_back({.delta_us = delta_us, .kind = kind, .tie = tie, .match = number});
      best_us = std::min(best_us, experience_.PromiseUs(kind, delta_us));
      matches_.push_back(std::move(match));
    };
    if (expanded->taken.empty()) {
      const Steps& steps = roots_[expanded->known].steps;
      for (const RuleMatch& match : root_matches_.Of(index, steps, &matcher_)) add(match);
    } else {
      for (RuleMatch& match : matcher_.Find(index, near)) add(std::move(match));
    }
    return best_us;
  }

  // Sorts the remaining steps by the current estimates of their kinds.
  void SortSteps(Expanded* expanded) const {
    const auto rest = expanded->steps.begin() + static_cast<ptrdiff_t>(expanded->next);
    for (auto step = rest; step != expanded->steps.end(); ++step) {
      step->promise_us = experience_.PromiseUs(step->kind, step->delta_us);
    }
    std::sort(rest, expanded->steps.end());
  }

  // Whether the best step's estimate is worse than when it was queued; then queues it again.
  bool Reconsider(int number) {
    Expanded& expanded = expanded_[number];
    const Step& step = expanded.steps[expanded.next];
    if (experience_.PromiseUs(step.kind, step.delta_us) <= step.promise_us) return false;
    SortSteps(&expanded);
    Enqueue(number);
    return true;
  }

  // Whether the step would rewrite a restricted call.
  bool IsRestricted(const DerivationStep& step) const {
    return std::any_of(step.nodes.begin(), step.nodes.end(),
                       [&](NodeId id) { return piece_.RestrictionOf(id) != nullptr; });
  }

  int Add(Expanded expanded) {
    expanded_.push_back(std::move(expanded));
    const int number = static_cast<int>(expanded_.size()) - 1;
    with_graph_.push_back(number);
    if (with_graph_.size() > kGraphsKept) {
      expanded_[with_graph_.front()].graph.reset();
      with_graph_.pop_front();
    }
    return number;
  }

  void Enqueue(int number) {
    const Expanded& expanded = expanded_[number];
    if (expanded.next == expanded.steps.size()) return;
    queue_.push({-(expanded.us + expanded.steps[expanded.next].promise_us), number});
  }

  const Graph& GraphOf(Expanded* expanded) {
    if (!expanded->graph.has_value()) {
      scratch_ = piece_.graph;
      Replay(StepsOf({expanded->known, expanded->taken}), &scratch_);
      return scratch_;
    }
    return *expanded->graph;
  }

  // Takes one step, or those of a sweep that still match after the ones before, and expands what
  // that leads to: its number, if it is new and may be worth it.
  std::optional<int> Try(int parent_number, absl::Span<const Step> steps, Way* way) {
    Expanded& parent = expanded_[parent_number];
    uint64_t key = parent.key;
    for (const Step& step : steps) key += HashMix(HashMix(static_cast<uint64_t>(step.match)));
    if (!way->tried.insert(key).second) return std::nullopt;
    ++tries_;
    const Graph& before = GraphOf(&parent);
    Graph& graph = trial_;
    graph = before;
    std::vector<int> taken = parent.taken;
    for (const Step& step : steps) {
      const RuleMatch& match = matches_[step.match];
      if (ApplyStep(*match.rule, match.step, &graph).ok()) taken.push_back(step.match);
    }
    if (taken.size() == parent.taken.size()) return std::nullopt;
    const auto [seen, is_new] = way->seen.try_emplace(graph.StructuralHash(), kNotMapped);
    if (!is_new) {
      Shorten(seen->second, parent.known, std::move(taken));
      return std::nullopt;
    }
    const int number = static_cast<int>(all_.size());
    const auto us = Map(parent.known, taken, graph, way);
    if (us.ok()) seen->second = number;
    // What a sweep is worth shows when others follow it; and one step leads to less than all do.
    const bool is_step = steps.size() == 1;
    const int kind = steps[0].kind;
    const float change_us = us.ok() ? *us - parent.us : 0;
    if (!us.ok() || (is_step && *us > options_.alpha * way->best_us)) {
      if (is_step) experience_.Took(kind, change_us, 0);
      return std::nullopt;
    }
    Expanded next{.taken = std::move(taken), .known = parent.known, .key = key, .us = *us};
    next.steps = parent.steps;
    const std::vector<NodeId> near = ChangedNodes(before, graph);
    next.graph = std::move(graph);
    const float next_us = AddMatches(near, &next);
    if (is_step) experience_.Took(kind, change_us, next_us);
    SortSteps(&next);
    return Add(std::move(next));
  }

  // Keeps the shortest derivation of a known graph.
  void Shorten(int number, int root, std::vector<int> taken) {
    if (number == kNotMapped) return;
    const auto length = [&](int from, const std::vector<int>& steps) {
      return roots_[from].steps.size() + steps.size();
    };
    Mapped& known = all_[number];
    if (length(root, taken) >= length(known.root, known.taken)) return;
    known.root = root;
    known.taken = std::move(taken);
  }

  const Piece& piece_;
  const Borders borders_;
  const SubstitutionOptions options_;
  RuleMatcher& matcher_;
  RootMatches& root_matches_;
  CostTables& tables_;
  StepEstimator estimator_;
  StepExperience experience_;
  const bool repeats_;
  bool expanded_once_ = false;
  int64_t tries_ = 0;
  SubstitutionResult result_;
  std::vector<SubstitutionResult::Candidate> roots_;  // the piece, then known candidates
  std::vector<Mapped> all_;
  std::deque<RuleMatch> matches_;
  std::vector<Expanded> expanded_;
  std::deque<int> with_graph_;
  // trial_: reused for each tried step, to avoid allocations.
  Graph scratch_, trial_;
  std::priority_queue<std::pair<float, int>> queue_;
  Way stepwise_, swept_;
};

SubstitutionSearch::SubstitutionSearch(const Piece& piece, const Borders& borders,
                                       const SubstitutionOptions& options, RuleMatcher* matcher,
                                       RootMatches* root_matches, CostTables* tables)
    : impl_(std::make_unique<Impl>(piece, borders, options, matcher, root_matches, tables)) {}
SubstitutionSearch::~SubstitutionSearch() = default;

absl::Status SubstitutionSearch::Start(const std::vector<Steps>& known) {
  return impl_->Start(known);
}
void SubstitutionSearch::TakeSweeps() { impl_->TakeSweeps(); }
absl::Status SubstitutionSearch::Continue(int64_t candidates) {
  return impl_->Continue(candidates);
}
bool SubstitutionSearch::Done() const { return impl_->Done(); }
int64_t SubstitutionSearch::mapped() const { return impl_->mapped(); }
double SubstitutionSearch::best_us() const { return impl_->best_us(); }
bool SubstitutionSearch::SweepsLead() const { return impl_->SweepsLead(); }
std::vector<Steps> SubstitutionSearch::Known(int cheapest) const { return impl_->Known(cheapest); }
SubstitutionResult SubstitutionSearch::TakeResult() { return impl_->TakeResult(); }

}  // namespace isomer
