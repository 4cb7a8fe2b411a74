// How long a mapping takes (level 3 of the search), piece by piece: the first time, with nothing in
// the memo, and for a candidate that is the same again; and how far it is from its bound.
//
//   mapping MODEL MACHINE NODES DEVICES_PER_NODE

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "bench/resources.h"
#include "bench/zoo_training.h"
#include "optimizer/machine/machine.h"
#include "optimizer/mapping/mapping_memo.h"
#include "optimizer/sharding/rule_index.h"
#include "optimizer/substitution/piece_mapping.h"
#include "pcg/support/data_path.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr int kMinPieceNodes = 5;

absl::Status Run(const std::string& name, const char* machine_name, int64_t nodes,
                 int64_t devices) {
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, LoadRules(DataPath("rules/default.rules")));
  const RuleIndex index(rules);
  ISOMER_ASSIGN_OR_RETURN(const Model model, TrainedInZoo(name));
  ISOMER_ASSIGN_OR_RETURN(Machine machine, LoadMachine(machine_name, nodes, devices));
  const CostModel cost(std::move(machine));
  CostTables tables(index, cost, CostOptions{});
  ISOMER_ASSIGN_OR_RETURN(const std::vector<Piece> pieces, SplitGraph(model.graph, kMinPieceNodes));
  std::set<uint64_t> seen;
  Borders borders;
  std::printf(
      "| piece | nodes | tables us | mapping us | again us | gap |\n|--:|--:|--:|--:|--:|--:|\n");
  for (size_t p = 0; p < pieces.size(); ++p) {
    const Piece& piece = pieces[p];
    borders = {borders.out, Borders::kNone};
    if (piece.has_out) {
      ISOMER_ASSIGN_OR_RETURN(borders.out,
                              PlacementsLeft(model.graph, piece.out, -1, nullptr, &tables));
    }
    if (!seen.insert(piece.key).second) continue;
    double us[3], gap = 0;
    for (int run = 0; run < 3; ++run) {
      if (run < 2) tables.mapping_memo()->Clear();
      const double start = CpuSeconds();
      ISOMER_ASSIGN_OR_RETURN(const PieceMapping mapping,
                              PieceMapping::Solve(piece, piece.graph, borders, &tables));
      us[run] = 1e6 * (CpuSeconds() - start);
      gap = mapping.gap();
    }
    std::printf("| %zu | %zu | %.0f | %.0f | %.0f | %.2f %% |\n", p,
                AnalyzeCompute(piece.graph).nodes.size(), us[0] - us[1], us[1], us[2], 100 * gap);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: mapping MODEL MACHINE NODES DEVICES_PER_NODE\n");
    return 2;
  }
  const absl::Status run = isomer::Run(argv[1], argv[2], std::atoll(argv[3]), std::atoll(argv[4]));
  if (run.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(run.message()).c_str());
  return 1;
}
