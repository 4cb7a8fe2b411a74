#include "optimizer/substitution/search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "optimizer/sharding/growing_graph.h"
#include "optimizer/substitution/carried_tensors.h"
#include "optimizer/substitution/egraph_search.h"
#include "optimizer/substitution/piece_chain.h"
#include "optimizer/substitution/search_cache.h"
#include "optimizer/substitution/substitution.h"
#include "pcg/support/hash.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Cheapest candidates of a piece that later runs map again, besides those that are best for a
// border.
constexpr int kCheapestKnown = 8;
// Maximum candidates per turn.
constexpr int64_t kLongestTurn = 32;
// Further gain expected of a piece, as a fraction of its time.
constexpr double kHope = 0.05;

// State shared by runs.
struct Knowledge {
  std::vector<Piece> pieces;
  int distinct_pieces = 0;
  std::map<uint64_t, std::vector<Steps>> candidates;  // by Piece::key
  std::map<uint64_t, RootMatches> root_matches;       // likewise
  std::set<uint64_t> settled;  // pieces found in the cache, which need no search
  // Pieces that later searches do not sweep: steps one by one found more, or the cache had them,
  // and what sweeps once found is known.
  std::set<uint64_t> not_swept_again;
};

// One run over the chain of pieces.
class ChainSearch {
 public:
  ChainSearch(const Graph& graph, const SearchOptions& options, const Deadline& deadline,
              int64_t budget, const std::vector<const Rule*>& algebra, Knowledge* knowledge,
              RuleMatcher* matcher, CostTables* tables)
      : graph_(graph),
        options_(options),
        deadline_(deadline),
        budget_(budget),
        algebra_(algebra),
        knowledge_(*knowledge),
        pieces_(knowledge->pieces),
        matcher_(*matcher),
        tables_(*tables) {}

  absl::StatusOr<SearchResult> Run() {
    result_.pieces = static_cast<int>(pieces_.size());
    result_.distinct_pieces = knowledge_.distinct_pieces;
    ISOMER_RETURN_IF_ERROR(StartPieces());
    ISOMER_RETURN_IF_ERROR(ShareOutBudget());
    for (std::unique_ptr<Solved>& solved : solved_) {
      const uint64_t key = pieces_[solved->first].key;
      knowledge_.candidates[key] = solved->search->Known(kCheapestKnown);
      if (!solved->search->SweepsLead()) knowledge_.not_swept_again.insert(key);
      solved->result = solved->search->TakeResult();
      result_.candidates += solved->result.mapped;
      result_.exact_mappings &= solved->result.exact;
      if (budget_ > 0) result_.stop = std::max(result_.stop, solved->result.stop);
    }
    ISOMER_RETURN_IF_ERROR(PickBorders());
    GrowingGraph whole(graph_);
    for (size_t p = 0; p < pieces_.size(); ++p) ISOMER_RETURN_IF_ERROR(Assemble(p, &whole));
    ISOMER_ASSIGN_OR_RETURN(result_.mapped.graph, std::move(whole).Build());
    return std::move(result_);
  }

 private:
  // A candidate in the result, possibly for several equal pieces.
  struct Used {
    PieceMapping mapping;
    RecordedSteps steps;
  };
  // A distinct piece with given borders.
  struct Solved {
    size_t first = 0;  // piece
    int repeats = 0;
    std::unique_ptr<SubstitutionSearch> search;
    double gain_us = 0;  // of the last turn
    SubstitutionResult result;
    std::map<int, Used> used;  // candidates
  };
  using SolvedKey = std::tuple<uint64_t, Borders>;

  absl::Status StartPieces() {
    if (tables_.options().moments > 1) moment_dims_ = BatchDims(graph_);
    for (const Piece& piece : pieces_) {
      Borders borders;
      if (!borders_.empty()) borders.in = borders_.back().out;
      if (piece.has_out) {
        ISOMER_ASSIGN_OR_RETURN(borders.out, PlacementsLeftOf(piece.out));
      }
      borders_.push_back(borders);
    }
    ISOMER_RETURN_IF_ERROR(HoldCarried(
        pieces_, [this](TensorRef tensor) { return PlacementsLeftOf(tensor); }, &tables_,
        &borders_));
    std::map<SolvedKey, Solved*> known;
    for (size_t p = 0; p < pieces_.size(); ++p) {
      const Piece& piece = pieces_[p];
      Solved*& slot = known[{piece.key, borders_[p]}];
      if (slot == nullptr) {
        solved_.push_back(std::make_unique<Solved>());
        slot = solved_.back().get();
        slot->first = p;
        slot->search = std::make_unique<SubstitutionSearch>(
            piece, borders_[p],
            SubstitutionOptions{.alpha = options_.alpha,
                                .seed = options_.seed,
                                .deadline = deadline_,
                                .dynamic_program = options_.dynamic_program,
                                .concurrent_branches = options_.concurrent_branches},
            &matcher_, &knowledge_.root_matches[piece.key], &tables_);
        ISOMER_RETURN_IF_ERROR(slot->search->Start(KnownOf(piece)));
      }
      ++slot->repeats;
      solutions_.push_back(slot);
      result_.exact_mappings &= piece.carried_in.empty();
    }
    return absl::OkStatus();
  }

  // Candidates of earlier runs; else those of equality saturation, where it is an engine.
  const std::vector<Steps>& KnownOf(const Piece& piece) {
    std::vector<Steps>& known = knowledge_.candidates[piece.key];
    if (known.empty() && budget_ > 0 && options_.engine != Engine::kBestFirst) {
      const int64_t budget = std::max<int64_t>(1, options_.budget / knowledge_.distinct_pieces);
      known = CandidatesByEGraph(piece, {budget, options_.seed, deadline_}, algebra_, &tables_);
    }
    return known;
  }

  absl::StatusOr<PlacementSetId> PlacementsLeftOf(TensorRef tensor) {
    const int moment_dim = moment_dims_.empty() ? -1 : moment_dims_[tensor.node.value];
    return PlacementsLeft(graph_, tensor, moment_dim, options_.restrictions, &tables_);
  }

  bool IsSettled(const Solved& solved) const {
    return knowledge_.settled.count(pieces_[solved.first].key) > 0;
  }

  // Distributes the budget in turns. First one per piece, then the turn goes to the most promising
  // piece: by its last turn's gain, or else by a small fraction of its time, times the number of
  // its occurrences in the model.
  absl::Status ShareOutBudget() {
    if (budget_ == 0 || options_.engine == Engine::kEGraph) return absl::OkStatus();
    const int64_t pieces = static_cast<int64_t>(solved_.size());
    const int64_t turn = std::clamp<int64_t>(budget_ / (4 * pieces), 1, kLongestTurn);
    int64_t left = budget_;
    Progress progress("search", budget_, options_.watch != nullptr ? nullptr : stderr);
    const auto take_turn = [&](Solved* solved) {
      const double before_us = solved->search->best_us();
      const int64_t mapped = solved->search->mapped();
      ISOMER_RETURN_IF_ERROR(solved->search->Continue(std::min(turn, left)));
      // A turn without candidates also counts: it used up tries.
      const int64_t used = std::max<int64_t>(1, solved->search->mapped() - mapped);
      left -= used;
      progress.Advance(used);
      solved->gain_us = before_us - solved->search->best_us();
      return absl::OkStatus();
    };
    // They are few, and beside the budget.
    for (auto& solved : solved_) {
      const bool is_swept = !knowledge_.not_swept_again.contains(pieces_[solved->first].key);
      if (is_swept && !IsSettled(*solved)) solved->search->TakeSweeps();
    }
    for (auto& solved : solved_) {
      if (left > 0 && !IsSettled(*solved)) ISOMER_RETURN_IF_ERROR(take_turn(solved.get()));
    }
    while (left > 0) {
      Solved* next = nullptr;
      double most = -1;
      for (auto& solved : solved_) {
        if (solved->search->Done() || IsSettled(*solved)) continue;
        const double hope_us = kHope * solved->search->best_us();
        const double promise = solved->repeats * (solved->gain_us + hope_us) /
                               static_cast<double>(solved->search->mapped() + 1);
        if (promise <= most) continue;
        most = promise;
        next = solved.get();
      }
      if (next == nullptr) break;
      ISOMER_RETURN_IF_ERROR(take_turn(next));
    }
    return absl::OkStatus();
  }

  // The possible placements of the tensor that crosses out of each piece.
  absl::Status PickBorders() {
    std::vector<const CostTable*> tables;
    for (const Solved* solved : solutions_) tables.push_back(&solved->result.us);
    chain_ = ChainOf(tables);
    result_.us = chain_.us;
    if (result_.us >= kImpossibleUs) {
      return absl::FailedPreconditionError("no way to spread the model over the machine was found");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<const Used*> Use(Solved* solved, const Borders& borders, int number) {
    const auto found = solved->used.find(number);
    if (found != solved->used.end()) return &found->second;
    const Piece& piece = pieces_[solved->first];
    const auto& candidate = solved->result.candidates[number];
    Used used;
    ISOMER_ASSIGN_OR_RETURN(used.mapping,
                            PieceMapping::Solve(piece, candidate.graph, borders, &tables_,
                                                options_.dynamic_program ? nullptr : &deadline_,
                                                options_.concurrent_branches));
    Graph graph = piece.graph;
    for (const DerivationStep& step : candidate.steps) {
      const Rule& rule = *tables_.rules().rules().Find(step.rule);
      ISOMER_RETURN_IF_ERROR(used.steps.Apply(rule, step, &graph));
    }
    return &solved->used.emplace(number, std::move(used)).first->second;
  }

  absl::Status Assemble(size_t p, GrowingGraph* whole) {
    const Piece& piece = pieces_[p];
    Solved& solved = *solutions_[p];
    const int in = chain_.rows[p], out = chain_.cols[p];
    const int number = solved.result.best[static_cast<size_t>(in) * solved.result.us.cols + out];
    ISOMER_ASSIGN_OR_RETURN(const Used* used, Use(&solved, borders_[p], number));
    // Images of the piece's nodes in the full graph: its own, then those that steps add, in the
    // same order.
    std::vector<TensorRef> place;
    for (NodeId id : piece.whole_ids) place.push_back({id, 0});
    if (piece.has_in) place[piece.in_node.value] = crossed_;
    for (const Piece::CarriedIn& carried : piece.carried_in) {
      place[carried.node.value] = carried_.at(carried.tensor);
    }
    whole->Apply(used->steps, &place, &result_.mapped.steps);
    for (auto& [id, choice] : used->mapping.Choices(in, out)) {
      result_.mapped.choices[place[id.value].node] = std::move(choice);
    }
    for (const auto& output : solved.result.candidates[number].graph.outputs()) {
      const TensorRef at = place[output.tensor.node.value];
      const TensorRef made = {at.node, at.output + output.tensor.output};
      if (output.name == kCrossingOutput) crossed_ = made;
      for (size_t c = 0; c < piece.carried_out.size(); ++c) {
        if (output.name == CarriedOutput(c)) carried_[piece.carried_out[c].tensor] = made;
      }
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const SearchOptions& options_;
  const Deadline& deadline_;
  const int64_t budget_;
  const std::vector<const Rule*>& algebra_;
  Knowledge& knowledge_;
  const std::vector<Piece>& pieces_;
  std::vector<int> moment_dims_;  // per node, if there are micro-batches
  RuleMatcher& matcher_;
  CostTables& tables_;
  std::vector<Borders> borders_;
  std::vector<std::unique_ptr<Solved>> solved_;
  std::vector<Solved*> solutions_;  // per piece
  PieceChain chain_;
  TensorRef crossed_;  // tensor that crosses out of the last assembled piece, in the full graph
  std::map<TensorRef, TensorRef> carried_;  // tensors carried out of assembled pieces, likewise
  SearchResult result_;
};

// With one set of rules.
class RulesSearcher {
 public:
  RulesSearcher(const Graph& graph, const SearchOptions& options, std::vector<const Rule*> algebra)
      : graph_(graph), options_(options), algebra_(std::move(algebra)), matcher_(algebra_) {}

  absl::StatusOr<SearchResult> Run(double part, CostTables* tables, const Deadline& deadline) {
    const int64_t budget = static_cast<int64_t>(std::ceil(part * options_.budget));
    if (knowledge_.pieces.empty()) ISOMER_RETURN_IF_ERROR(Split());
    SearchCache cache(options_.cache ? options_.cache_folder : "", ContextOf(*tables, budget));
    knowledge_.settled.clear();
    for (auto& [key, candidates] : knowledge_.candidates) {
      const std::vector<Steps>* known = cache.Find(key);
      if (known == nullptr) continue;
      candidates = *known;
      knowledge_.settled.insert(key);
    }
    ISOMER_ASSIGN_OR_RETURN(
        SearchResult result,
        ChainSearch(graph_, options_, deadline, budget, algebra_, &knowledge_, &matcher_, tables)
            .Run());
    result.remembered_pieces = static_cast<int>(knowledge_.settled.size());
    result.cache_note = cache.note();
    // Results of an interrupted search are not cached.
    if (result.stop >= StopReason::kTimeLimit) return result;
    for (const auto& [key, candidates] : knowledge_.candidates) {
      if (knowledge_.settled.count(key) == 0) cache.Put(key, candidates);
    }
    // Failing to write the cache must not lose the plan.
    cache.Save().IgnoreError();
    return result;
  }

 private:
  uint64_t ContextOf(const CostTables& tables, int64_t budget) const {
    return HashCombine(DigestOfCosts(tables, algebra_), std::bit_cast<uint64_t>(options_.alpha),
                       static_cast<uint64_t>(budget), static_cast<uint64_t>(options_.engine),
                       options_.seed, options_.dynamic_program);
  }

  absl::Status Split() {
    const int min_nodes = options_.split ? options_.min_piece_nodes : graph_.num_nodes();
    // Without candidates cuts lose no matches.
    RuleMatcher* const matcher = options_.budget > 0 ? &matcher_ : nullptr;
    ISOMER_ASSIGN_OR_RETURN(knowledge_.pieces,
                            SplitGraph(graph_, min_nodes, options_.restrictions, matcher));
    std::set<uint64_t> keys;
    for (size_t p = 0; p < knowledge_.pieces.size(); ++p) {
      Piece& piece = knowledge_.pieces[p];
      if (!options_.cache) piece.key = p;
      keys.insert(piece.key);
      knowledge_.candidates.try_emplace(piece.key);
    }
    knowledge_.distinct_pieces = static_cast<int>(keys.size());
    return absl::OkStatus();
  }

  const Graph& graph_;
  const SearchOptions options_;
  const std::vector<const Rule*> algebra_;
  RuleMatcher matcher_;
  Knowledge knowledge_;
};

}  // namespace

class HierarchicalSearcher::Impl {
 public:
  Impl(const Graph& graph, const SearchOptions& options, const RuleIndex& rules) {
    for (std::vector<const Rule*>& algebra : rules.AlgebraByFiles()) {
      searchers_.push_back(std::make_unique<RulesSearcher>(graph, options, std::move(algebra)));
    }
  }

  // The best of the searches with the rules of the first file, of the first two, and so on: a
  // budget that more rules would spread too thin has been spent on fewer before.
  absl::StatusOr<SearchResult> Run(double part, CostTables* tables, const Deadline& deadline) {
    absl::StatusOr<SearchResult> best = searchers_[0]->Run(part, tables, deadline);
    for (size_t s = 1; s < searchers_.size(); ++s) {
      if (const auto reason = deadline.Reached(); reason.has_value()) {
        if (best.ok()) best->stop = std::max(best->stop, *reason);
        break;
      }
      absl::StatusOr<SearchResult> other = searchers_[s]->Run(part, tables, deadline);
      if (!other.ok()) continue;
      const int64_t candidates = other->candidates + (best.ok() ? best->candidates : 0);
      const StopReason stop = std::max(other->stop, best.ok() ? best->stop : other->stop);
      if (!best.ok() || other->us < best->us) best = std::move(other);
      best->candidates = candidates;
      best->stop = stop;
    }
    return best;
  }

 private:
  std::vector<std::unique_ptr<RulesSearcher>> searchers_;  // never empty
};

HierarchicalSearcher::HierarchicalSearcher(const Graph& graph, const SearchOptions& options,
                                           const RuleIndex& rules)
    : impl_(std::make_unique<Impl>(graph, options, rules)) {}
HierarchicalSearcher::~HierarchicalSearcher() = default;

absl::StatusOr<SearchResult> HierarchicalSearcher::Search(CostTables* tables,
                                                          const Deadline& deadline, double part) {
  return impl_->Run(part, tables, deadline);
}

absl::StatusOr<SearchResult> HierarchicalSearch(const Graph& graph, const SearchOptions& options,
                                                CostTables* tables) {
  HierarchicalSearcher searcher(graph, options, tables->rules());
  return searcher.Search(tables, Deadline::In(options.time_limit_s, options.watch));
}

}  // namespace isomer
