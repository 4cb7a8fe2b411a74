#include "optimizer/proposal/refinement.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "optimizer/simulator/task_graph.h"
#include "optimizer/walk/guided_walk.h"
#include "optimizer/walk/mcmc.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Cuts of the first round, and of the one around the best.
constexpr int kCuts = 4, kFinerCuts = 16;
// By so much the best of the first round may be slower than the best plan for another.
constexpr double kPromising = 1.03;

// A proposal takes time with devices and calls: a walk, some hundredths of a search.
constexpr int64_t kWalkWork = 375'000;
// There is another for as long as they gain so much, but for a few.
constexpr int kMostWalks = 20, kMostMisses = 3;
// On so many devices a walk takes so little that more may gain nothing.
constexpr int64_t kFewDevices = 32;
constexpr int kMostMissesOnFew = 5;
// Where there is time for that, a walk does not end before each call had so many proposals.
constexpr int64_t kProposalsPerCall = 50;
// Every other walk takes steps that make it slower more easily, and leaves where the others end.
constexpr double kWarmBeta = 100;
constexpr double kWorthWalking = 0.00125;

// Calls that have a choice, in the graph's order.
std::vector<NodeId> ChosenCalls(const MappedModel& mapped) {
  std::vector<NodeId> calls;
  for (NodeId id : mapped.graph.TopologicalOrder()) {
    if (mapped.choices.contains(id)) calls.push_back(id);
  }
  return calls;
}

// Of `calls`, the first `cut` as in `before`, the others as in `behind`.
MappedModel Spliced(const MappedModel& before, const MappedModel& behind,
                    const std::vector<NodeId>& calls, size_t cut) {
  MappedModel spliced = behind;
  for (size_t i = 0; i < cut; ++i) spliced.choices[calls[i]] = before.choices.at(calls[i]);
  return spliced;
}

bool SameGraph(const MappedModel& a, const MappedModel& b) {
  return a.steps == b.steps && a.choices.size() == b.choices.size() &&
         std::equal(a.choices.begin(), a.choices.end(), b.choices.begin(),
                    [](const auto& x, const auto& y) { return x.first == y.first; });
}

bool SameChoices(const MappedModel& a, const MappedModel& b) {
  return std::equal(a.choices.begin(), a.choices.end(), b.choices.begin(),
                    [](const auto& x, const auto& y) {
                      return x.second.axes == y.second.axes && x.second.start == y.second.start;
                    });
}

absl::Status SplicePair(const MappedModel& before, const MappedModel& behind, double best_us,
                        const Deadline& deadline, const ConsiderMapping& consider) {
  const std::vector<NodeId> calls = ChosenCalls(before);
  std::map<int, double> step_us;  // by the cut, in parts of kFinerCuts
  const auto splice_at = [&](int part) -> absl::Status {
    if (part <= 0 || part >= kFinerCuts || step_us.contains(part)) return absl::OkStatus();
    if (deadline.Reached().has_value()) return absl::OkStatus();
    const size_t cut = calls.size() * part / kFinerCuts;
    ISOMER_ASSIGN_OR_RETURN(const Prediction found, consider(Spliced(before, behind, calls, cut)));
    step_us[part] = found.step_us;
    return absl::OkStatus();
  };
  for (int part = kFinerCuts / kCuts; part < kFinerCuts; part += kFinerCuts / kCuts) {
    ISOMER_RETURN_IF_ERROR(splice_at(part));
  }
  for (int width = kFinerCuts / kCuts / 2; width >= 1 && !step_us.empty(); width /= 2) {
    const auto best =
        std::min_element(step_us.begin(), step_us.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best->second > kPromising * best_us) break;
    const int part = best->first;
    ISOMER_RETURN_IF_ERROR(splice_at(part - width));
    ISOMER_RETURN_IF_ERROR(splice_at(part + width));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ConsiderSplices(const std::vector<MappedModel>& mappings, double best_us,
                             const Deadline& deadline, const ConsiderMapping& consider) {
  for (size_t a = 0; a + 1 < mappings.size(); ++a) {
    // The last of the same graph, which synchronises most; those in between differ less.
    size_t b = mappings.size() - 1;
    while (b > a && !SameGraph(mappings[a], mappings[b])) --b;
    if (b == a || SameChoices(mappings[a], mappings[b])) continue;
    return SplicePair(mappings[a], mappings[b], best_us, deadline, consider);
  }
  return absl::OkStatus();
}

bool IsWorthWalking(int64_t calls, int64_t devices) {
  return calls > 0 && calls * calls * devices <= kWalkWork;
}

absl::Status ConsiderWalks(const Model& model, MappedModel mapped, double us, uint64_t seed,
                           const Deadline& deadline, const Restrictions* restrictions,
                           CostTables* tables, MoveMemo* moves, const ConsiderWalked& consider) {
  const int64_t calls = static_cast<int64_t>(mapped.choices.size());
  if (!IsWorthWalking(calls, tables->num_devices())) return absl::OkStatus();
  const int most_misses = tables->num_devices() <= kFewDevices ? kMostMissesOnFew : kMostMisses;
  int misses = 0;
  for (int walk = 0; walk < kMostWalks && misses < most_misses; ++walk) {
    if (deadline.Reached().has_value()) break;
    // Anew, as the order of the calls follows from their choices.
    ISOMER_ASSIGN_OR_RETURN(
        const auto graph,
        TaskGraph::Create(model, mapped, tables, restrictions, TaskGraph::Lists::kChoices,
                          TaskGraph::Order::kInterleaved, moves));
    McmcOptions options{.seed = seed + walk,
                        .max_proposals = kWalkWork / (calls * tables->num_devices()),
                        .proposals_per_node = kProposalsPerCall,
                        .deadline = deadline};
    if (walk % 2 == 1) options.beta = kWarmBeta;
    ISOMER_ASSIGN_OR_RETURN(options.propose, GuidedProposer(*graph, restrictions, tables));
    ISOMER_ASSIGN_OR_RETURN(const McmcResult walked, SearchByMcmc(options, graph.get()));
    if (walked.best >= walked.initial) {
      ++misses;
      continue;
    }
    MappedModel next = graph->Mapped();
    ISOMER_ASSIGN_OR_RETURN(const Prediction found, consider(next, MicrosecondsOf(walked.best)));
    if (found.step_us > (1 - kWorthWalking) * us) ++misses;
    if (found.step_us >= us) continue;
    us = found.step_us;
    mapped = std::move(next);
  }
  return absl::OkStatus();
}

}  // namespace isomer
