#include "optimizer/proposal/exhaustive_search.h"

#include <memory>
#include <string>
#include <utility>

#include "optimizer/simulator/task_graph.h"
#include "optimizer/walk/guided_walk.h"
#include "optimizer/walk/mcmc.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr double kStartWeights[] = {1, 0.5, 0.25, 0};
// Of each walk from the best mapping. Some hundredths of a second for what A* can prove.
constexpr int64_t kProposals = 1000;
constexpr double kBetas[] = {500, 100};

absl::StatusOr<std::unique_ptr<TaskGraph>> GraphOf(const Model& model, const MappedModel& mapped,
                                                   CostTables* tables) {
  return TaskGraph::Create(model, mapped, tables, nullptr, TaskGraph::Lists::kChoices,
                           TaskGraph::Order::kInterleaved);
}

// What walks (guided_walk.h) from a mapping find by simulated steps, each in the order of calls
// that follows from what the one before it found.
absl::StatusOr<MappedModel> WalkedFrom(const Model& model, MappedModel best,
                                       const Deadline& deadline, CostTables* tables) {
  Picoseconds least = -1;
  for (double beta : kBetas) {
    if (deadline.Reached().has_value()) return best;
    ISOMER_ASSIGN_OR_RETURN(const auto graph, GraphOf(model, best, tables));
    if (least < 0) least = graph->makespan();
    McmcOptions options{.beta = beta, .max_proposals = kProposals};
    ISOMER_ASSIGN_OR_RETURN(options.propose, GuidedProposer(*graph, nullptr, tables));
    options.deadline = deadline;
    ISOMER_RETURN_IF_ERROR(SearchByMcmc(options, graph.get()).status());
    MappedModel walked = graph->Mapped();
    ISOMER_ASSIGN_OR_RETURN(const auto anew, GraphOf(model, walked, tables));
    if (anew->makespan() >= least) continue;
    least = anew->makespan();
    best = std::move(walked);
  }
  ISOMER_ASSIGN_OR_RETURN(WalkedModel paired, WithBetterPairs(model, std::move(best), nullptr,
                                                              deadline, tables, nullptr));
  return std::move(paired.mapped);
}

}  // namespace

absl::StatusOr<MappedModel> BestMapping(const Model& model, const Deadline& deadline,
                                        CostTables* tables) {
  const CostOptions saved = tables->options();
  const int64_t all = tables->cost().machine().num_devices();
  MappedModel best;
  CostOptions best_options;
  Picoseconds least = -1;
  const auto consider = [&](int64_t devices, double weight) -> absl::Status {
    CostOptions options = saved;
    options.halves = false;
    options.updates_together = false;
    options.num_devices = devices;
    options.sync_weight = weight;
    tables->set_options(options);
    HierarchicalSearcher searcher(model.graph, {}, tables->rules());
    ISOMER_ASSIGN_OR_RETURN(SearchResult found, searcher.Search(tables, deadline, /*part=*/0));
    if (!found.mapped.steps.empty()) return absl::InternalError("a mapping rewrote the graph");
    ISOMER_ASSIGN_OR_RETURN(const auto graph, GraphOf(model, found.mapped, tables));
    if (least >= 0 && graph->makespan() >= least) return absl::OkStatus();
    least = graph->makespan();
    best = std::move(found.mapped);
    best_options = options;
    return absl::OkStatus();
  };
  absl::Status done;
  for (int64_t devices = all; devices >= 1 && done.ok(); --devices) {
    if (all % devices != 0) continue;
    for (double weight : kStartWeights) {
      // One there is, whatever the time.
      if (least >= 0 && deadline.Reached().has_value()) break;
      done.Update(consider(devices, weight));
    }
  }
  if (done.ok()) {
    tables->set_options(best_options);
    absl::StatusOr<MappedModel> walked = WalkedFrom(model, best, deadline, tables);
    done = walked.status();
    if (walked.ok()) best = *std::move(walked);
  }
  tables->set_options(saved);
  ISOMER_RETURN_IF_ERROR(done);
  return best;
}

absl::StatusOr<SearchResult> ExhaustiveSearch(const Model& model, const SearchOptions& options,
                                              const Deadline& deadline, CostTables* tables,
                                              std::string* proof) {
  if (options.restrictions != nullptr) {
    return absl::InvalidArgumentError("--search=exhaustive knows no constraints");
  }
  // What it proves is proved of task graphs, which know no casts.
  if (tables->options().precision != DataType::kFloat32) {
    return absl::InvalidArgumentError("--search=exhaustive is for --precision=float32");
  }
  ISOMER_ASSIGN_OR_RETURN(const MappedModel start, BestMapping(model, deadline, tables));
  ISOMER_ASSIGN_OR_RETURN(
      ExhaustiveResult found,
      SearchExhaustively(model, start, {.budget = options.budget, .deadline = deadline}, tables));
  *proof = found.ToString();
  SearchResult result;
  result.mapped = std::move(found.best);
  result.us = found.step_us;
  result.candidates = found.simulated;
  result.pieces = result.distinct_pieces = 1;
  result.stop = found.stop;
  result.exact_mappings = found.proved;
  return result;
}

}  // namespace isomer
