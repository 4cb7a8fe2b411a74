#include "optimizer/substitution/egraph_search.h"

#include <algorithm>
#include <set>
#include <utility>

#include "optimizer/substitution/egraph_extract.h"
#include "optimizer/substitution/egraph_replay.h"
#include "rules/equality/egraph.h"
#include "rules/equality/saturation.h"

namespace isomer {

std::vector<Steps> CandidatesByEGraph(const Piece& piece, const EGraphSearchOptions& options,
                                      const std::vector<const Rule*>& algebra, CostTables* tables) {
  const auto stop = [&options] { return options.deadline.Reached().has_value(); };
  const auto us_of = [tables](const Operator& op, const std::vector<TensorType>& operands) {
    return WholeCallUs(tables->cost(), op, operands);
  };
  EGraph egraph(piece.graph, tables->options().training);
  SaturationOptions saturation;
  saturation.nodes = static_cast<int>(std::clamp<int64_t>(20 * options.budget, 300, 2000));
  saturation.matches = 3 * saturation.nodes;
  saturation.joint_matches = 3 * saturation.nodes / 4;
  Saturation(algebra, saturation, us_of, stop, &egraph).Run();

  const std::vector<NodeId> wants_gradient = piece.FedWithGradient();
  Extraction extraction(egraph, piece.graph, wants_gradient, tables);
  ExtractionOptions extract;
  extract.restarts = static_cast<int>(std::min<int64_t>(180, 50 + 2 * options.budget));
  extract.seed = options.seed;
  std::vector<Steps> candidates;
  std::set<uint64_t> seen = {piece.graph.StructuralHash()};
  for (const Selection& selection : extraction.Run(extract, stop)) {
    SubstitutionResult::Candidate candidate = ReplaySelection(piece, egraph, extraction, selection);
    if (!seen.insert(candidate.graph.StructuralHash()).second) continue;
    candidates.push_back(std::move(candidate.steps));
  }
  return candidates;
}

}  // namespace isomer
