#include "optimizer/search.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "optimizer/series_parallel.h"
#include "pcg/support/status_macros.h"
#include "rules/rewrite.h"

namespace isomer {
namespace {

bool IsSeriesParallel(const Piece& piece) {
  const ComputeGraph compute = AnalyzeCompute(piece.graph);
  std::vector<std::pair<int, int>> edges;
  for (int i = 0; i < static_cast<int>(compute.nodes.size()); ++i) {
    for (const auto& operand : compute.nodes[i].operands) {
      if (operand.producer >= 0) edges.emplace_back(operand.producer, i);
    }
  }
  return DecomposeSeriesParallel(static_cast<int>(compute.nodes.size()), edges).has_value();
}

class ChainSearch {
 public:
  ChainSearch(const Graph& graph, const SearchOptions& options, CostTables* tables)
      : graph_(graph),
        options_(options),
        tables_(*tables),
        deadline_(Deadline::In(options.time_limit_s)) {}

  absl::StatusOr<SearchResult> Run() {
    const int min_nodes = options_.split ? options_.min_piece_nodes : graph_.num_nodes();
    ISOMER_ASSIGN_OR_RETURN(pieces_, SplitGraph(graph_, min_nodes, options_.restrictions));
    std::set<uint64_t> keys;
    if (!options_.cache) {
      for (size_t p = 0; p < pieces_.size(); ++p) pieces_[p].key = p;
    }
    for (const Piece& piece : pieces_) {
      if (keys.insert(piece.key).second) result_.series_parallel_pieces += IsSeriesParallel(piece);
    }
    result_.pieces = static_cast<int>(pieces_.size());
    result_.distinct_pieces = static_cast<int>(keys.size());
    budget_each_ = std::max<int64_t>(1, options_.budget / static_cast<int64_t>(keys.size()));
    for (size_t p = 0; p < pieces_.size(); ++p) ISOMER_RETURN_IF_ERROR(SolvePiece(p));
    ISOMER_RETURN_IF_ERROR(PickBorders());
    result_.mapped.graph = graph_;
    for (size_t p = 0; p < pieces_.size(); ++p) ISOMER_RETURN_IF_ERROR(Assemble(p));
    return std::move(result_);
  }

 private:
  struct Solved {
    SubstitutionResult result;
    std::map<int, PieceMapping> mappings;  // of candidates that are used
  };
  using SolvedKey = std::tuple<uint64_t, PlacementSetId, PlacementSetId>;

  absl::Status SolvePiece(size_t p) {
    const Piece& piece = pieces_[p];
    Borders borders;
    if (p > 0) borders.in = borders_[p - 1].out;
    if (piece.has_out) {
      ISOMER_ASSIGN_OR_RETURN(borders.out,
                              PlacementsLeft(graph_, piece.out, options_.restrictions, &tables_));
    }
    borders_.push_back(borders);
    std::unique_ptr<Solved>& solved = solved_[{piece.key, borders.in, borders.out}];
    if (solved == nullptr) {
      solved = std::make_unique<Solved>();
      ISOMER_ASSIGN_OR_RETURN(solved->result, Substitute(piece, borders));
      result_.candidates += solved->result.mapped;
      result_.stop = std::max(result_.stop, solved->result.stop);
      result_.exact_mappings &= solved->result.exact;
    }
    solutions_.push_back(solved.get());
    return absl::OkStatus();
  }

  absl::StatusOr<SubstitutionResult> Substitute(const Piece& piece, const Borders& borders) {
    switch (options_.engine) {
      case Engine::kBestFirst:
        return SearchSubstitutions(
            piece, borders,
            {.alpha = options_.alpha, .budget = budget_each_, .deadline = deadline_}, &tables_);
    }
    return absl::InternalError("no such engine");
  }

  // crossing_[p]: the placement (its place in the set) that crosses out of piece p.
  absl::Status PickBorders() {
    std::vector<std::vector<double>> least;  // [piece][out]
    std::vector<std::vector<int>> from;
    for (size_t p = 0; p < pieces_.size(); ++p) {
      const CostTable& table = solutions_[p]->result.us;
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
    crossing_.assign(pieces_.size(), 0);
    const auto& last = least.back();
    int at = static_cast<int>(std::min_element(last.begin(), last.end()) - last.begin());
    result_.us = last[at];
    if (result_.us >= kImpossibleUs) {
      return absl::FailedPreconditionError("no way to spread the model over the machine was found");
    }
    for (size_t p = pieces_.size(); p-- > 0;) {
      crossing_[p] = at;
      at = from[p][at];
    }
    first_row_ = at;
    return absl::OkStatus();
  }

  absl::Status Assemble(size_t p) {
    const Piece& piece = pieces_[p];
    Solved& solved = *solutions_[p];
    const int in = p == 0 ? first_row_ : crossing_[p - 1], out = crossing_[p];
    const int number = solved.result.best[static_cast<size_t>(in) * solved.result.us.cols + out];
    const auto& candidate = solved.result.candidates[number];
    if (solved.mappings.count(number) == 0) {
      ISOMER_ASSIGN_OR_RETURN(PieceMapping mapping,
                              PieceMapping::Solve(piece, candidate.graph, borders_[p], &tables_));
      solved.mappings.emplace(number, std::move(mapping));
    }
    // The piece's nodes in the whole graph: its own, then what the steps add, in the same order.
    std::vector<NodeId> whole = piece.whole_ids;
    auto whole_ref = [&](TensorRef ref) {
      return piece.has_in && ref.node == piece.in_node
                 ? crossed_
                 : TensorRef{whole[ref.node.value], ref.output};
    };
    Graph& graph = result_.mapped.graph;
    for (DerivationStep step : candidate.steps) {
      for (NodeId& node : step.nodes) node = whole[node.value];
      for (TensorRef& input : step.inputs) input = whole_ref(input);
      const int first = graph.num_nodes();
      ISOMER_RETURN_IF_ERROR(ApplyStep(*tables_.rules().rules().Find(step.rule), step, &graph));
      for (int id = first; id < graph.num_nodes(); ++id) whole.push_back(NodeId{id});
      result_.mapped.steps.push_back(std::move(step));
    }
    for (auto& [id, choice] : solved.mappings.at(number).Choices(in, out)) {
      result_.mapped.choices[whole[id.value]] = std::move(choice);
    }
    for (const auto& output : candidate.graph.outputs()) {
      if (output.name == kCrossingOutput) crossed_ = whole_ref(output.tensor);
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const SearchOptions& options_;
  CostTables& tables_;
  std::vector<Piece> pieces_;
  std::vector<Borders> borders_;
  std::map<SolvedKey, std::unique_ptr<Solved>> solved_;
  std::vector<Solved*> solutions_;  // per piece
  std::vector<int> crossing_;
  int first_row_ = 0;
  const Deadline deadline_;
  int64_t budget_each_ = 1;
  TensorRef crossed_;  // what crossed out of the last assembled piece, in the whole graph
  SearchResult result_;
};

}  // namespace

absl::StatusOr<SearchResult> HierarchicalSearch(const Graph& graph, const SearchOptions& options,
                                                CostTables* tables) {
  return ChainSearch(graph, options, tables).Run();
}

}  // namespace isomer
