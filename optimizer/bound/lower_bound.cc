#include "optimizer/bound/lower_bound.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/bound/bound_tree.h"
#include "optimizer/bound/bounded_calls.h"
#include "optimizer/bound/choice_parts.h"
#include "optimizer/mapping/mapping_memo.h"
#include "optimizer/mapping/mapping_reduction.h"
#include "optimizer/sharding/choice_axes.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr double kComputeParts[] = {1, 0.75, 0.5, 0.25, 0};
// Values of l tried first, and rounds of refinement around the best.
constexpr int kParts = 4, kRounds = 3;

// The full machine and its halves.
constexpr int kNumShares = 3;

// Above all steps.
constexpr double kNoBoundUs = kImpossibleUs / 2;

// Margin for float32 sums in another order than the simulator's picoseconds.
constexpr double kSafe = 1 - 1e-5;

class StepBound {
 public:
  StepBound(const Graph& graph, const BoundOptions& options, CostTables* tables)
      : options_(options),
        bounded_(graph, options.loss, tables),
        compute_(bounded_.compute()),
        tables_(*tables) {
    splits_.push_back({Share::kWhole, Share::kLower, Share::kUpper});
  }

  absl::StatusOr<LowerBound> Run() {
    const CostOptions saved = tables_.options();
    auto bound = OverDevices();
    tables_.set_options(saved);
    return bound;
  }

 private:
  absl::StatusOr<LowerBound> OverDevices() {
    LowerBound least;
    least.by = "resources";
    // A graph without calls takes no time.
    if (compute_.nodes.empty()) return least;
    least.step_us = least.beside_us = kImpossibleUs;
    for (int64_t devices : Divisors()) {
      ISOMER_ASSIGN_OR_RETURN(calls_, bounded_.On(devices, /*halves=*/false));
      LowerBound bound;
      const auto enough = [&] { return bound.step_us >= least.step_us; };
      for (double part : kComputeParts) Improve(part, ResourcesUs(part), "resources", &bound);
      const bool moves_count = devices <= options_.most_devices;
      if (moves_count) {
        Maximise(
            "paths", [&](double part) { return PathUs(part); }, enough, &bound);
      } else {
        Improve(1, LeastPathUs(), "paths", &bound);
      }
      if (moves_count && !enough()) {
        const int cuts = options_.beside ? 0 : options_.cuts;
        Improve(1, MixtureUs(least.step_us, cuts), "mixture", &bound);
      }
      if (bound.step_us >= least.step_us) continue;
      bound.devices = devices;
      bound.resources_us = ResourcesUs(bound.compute_part);
      bound.beside_us = least.beside_us;
      least = bound;
    }
    for (int64_t devices : Divisors()) {
      ISOMER_ASSIGN_OR_RETURN(calls_, bounded_.On(devices, /*halves=*/true));
      double us = LeastPathUs();
      for (double part : kComputeParts) us = std::max(us, ResourcesUs(part));
      if (options_.beside && devices <= options_.most_devices && us < least.beside_us) {
        us = std::max(us, MixtureUs(least.beside_us, options_.cuts));
      }
      least.beside_us = std::min(least.beside_us, us);
    }
    least.step_us *= kSafe;
    least.beside_us = std::min(least.beside_us * kSafe, least.step_us);
    return least;
  }

  double MixtureUs(double enough, int cuts) {
    const RelaxedStep step(calls_, &edges_, &tables_);
    return BestBoundUs(step, calls_,
                       {.solutions = options_.solutions,
                        .cuts = options_.deadline.Reached().has_value() ? 0 : cuts,
                        .enough_us = std::min({enough, options_.enough_us / kSafe, kNoBoundUs}),
                        .deadline = options_.deadline},
                       &tables_);
  }

  std::vector<int64_t> Divisors() const {
    if (options_.devices > 0) return {options_.devices};
    std::vector<int64_t> divisors = DivisorsOf(tables_.cost().machine().num_devices());
    std::reverse(divisors.begin(), divisors.end());
    return divisors;
  }

  static void Improve(double part, double us, const char* by, LowerBound* bound) {
    if (us <= bound->step_us) return;
    bound->step_us = us;
    bound->compute_part = part;
    bound->by = by;
  }

  // Maximum over l of a concave function, the minimum of linear ones. Ends early when that is
  // `enough`.
  template <typename BoundUs, typename Enough>
  static void Maximise(const char* by, BoundUs us_of, Enough enough, LowerBound* bound) {
    std::map<double, double> us;
    for (int i = 0; i <= kParts; ++i) {
      // From the ends inwards: the maximum is most often there.
      const double part = static_cast<double>(i % 2 == 0 ? kParts - i / 2 : i / 2) / kParts;
      if (enough()) return;
      Improve(part, us[part] = us_of(part), by, bound);
    }
    for (int round = 0; round < kRounds; ++round) {
      const auto best = std::max_element(
          us.begin(), us.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
      std::vector<double> between;
      if (best != us.begin()) between.push_back((std::prev(best)->first + best->first) / 2);
      if (std::next(best) != us.end())
        between.push_back((best->first + std::next(best)->first) / 2);
      for (double part : between) {
        if (enough()) return;
        Improve(part, us[part] = us_of(part), by, bound);
      }
    }
  }

  // Minimum resources of any device, or the average where a share has less.
  double ResourcesUs(double part) const {
    double sum = 0;
    for (size_t n = 0; n < calls_.parts.size(); ++n) {
      const std::vector<float> of = ResourcesOf(n, part);
      sum += of[0];
      if (of[1] < kImpossibleUs) sum += std::min(0.0f, std::min(of[1], of[2]) / 2 - of[0]);
    }
    return sum;
  }

  // Minimum time of a choice on each of its devices.
  static double BusyUs(const ChoiceParts& p, double part) {
    return p.forward_us + part * (p.compute_us() - p.forward_us) + (1 - part) * p.sync_us;
  }

  // Resources per share, whose first device every choice uses.
  std::vector<float> ResourcesOf(size_t node, double part) const {
    std::vector<float> least(kNumShares, kImpossibleUs);
    for (size_t k = 0; k < calls_.parts[node]->size(); ++k) {
      float& us = least[static_cast<size_t>(calls_.calls[node]->shares[k])];
      us = std::min(us, static_cast<float>(BusyUs((*calls_.parts[node])[k], part)));
    }
    return least;
  }

  // Time of a node on a path; includes synchronisation if all devices take part, and the final
  // parts where the path ends.
  float OnPathUs(size_t node, size_t choice, double part) const {
    const ChoiceParts& p = (*calls_.parts[node])[choice];
    const auto& operands = compute_.nodes[node].operands;
    const bool is_last = std::none_of(operands.begin(), operands.end(),
                                      [](const auto& operand) { return operand.producer >= 0; });
    const double sync_us = p.devices == calls_.devices ? p.sync_us : 0;
    return static_cast<float>(p.forward_us + p.halo_us + part * p.gradient_us +
                              (1 - part) * sync_us + (is_last ? part * p.last_us : 0));
  }

  // The longest path with every call at its fastest, and free transfers.
  double LeastPathUs() const {
    std::vector<double> us(calls_.parts.size(), 0);
    double longest = 0;
    for (size_t n = 0; n < calls_.parts.size(); ++n) {
      double own = kImpossibleUs;
      for (const ChoiceParts& p : *calls_.parts[n])
        own = std::min(own, p.forward_us + p.gradient_us);
      for (const ComputeGraph::Operand& operand : compute_.nodes[n].operands) {
        if (operand.producer >= 0) us[n] = std::max(us[n], us[operand.producer]);
      }
      us[n] += own;
      longest = std::max(longest, us[n]);
    }
    return longest;
  }

  MappingProblem::Edge EdgeOf(size_t node, const ComputeGraph::Operand& operand, size_t place) {
    const bool gradient = tables_.options().training && operand.gradient;
    return {operand.producer, static_cast<int>(node),
            &edges_.Us(calls_.calls[operand.producer]->outputs[operand.output],
                       calls_.calls[node]->operands[place], gradient)};
  }

  double PathUs(double part) {
    const auto& nodes = compute_.nodes;
    const int start = static_cast<int>(nodes.size()), end = start + 1;
    MappingProblem problem = {{}, {}, {}, splits_};
    MappingResources resources;
    std::vector<bool> leads(nodes.size(), false);
    for (size_t n = 0; n < nodes.size(); ++n) {
      MappingProblem::MappingNode on_path;
      on_path.shares = calls_.calls[n]->shares;
      for (size_t k = 0; k < calls_.parts[n]->size(); ++k)
        on_path.us.push_back(OnPathUs(n, k, part));
      problem.nodes.push_back(std::move(on_path));
      resources.push_back(ResourcesOf(n, part));
      bool led_to = false;
      for (size_t o = 0; o < nodes[n].operands.size(); ++o) {
        const ComputeGraph::Operand& operand = nodes[n].operands[o];
        if (operand.producer < 0) continue;
        led_to = leads[operand.producer] = true;
        problem.edges.push_back(EdgeOf(n, operand, o));
      }
      if (!led_to) problem.edges.push_back({start, static_cast<int>(n), Free(true, n)});
    }
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (!leads[n]) problem.edges.push_back({static_cast<int>(n), end, Free(false, n)});
    }
    MappingProblem::MappingNode terminal;
    terminal.us.assign(1, 0.0f);
    problem.nodes.resize(nodes.size() + 2, terminal);
    resources.resize(nodes.size() + 2, std::vector<float>(kNumShares, 0.0f));
    problem.terminals = {start, end};
    MappingReduction reduction(problem, tables_.mapping_memo(), &resources);
    reduction.Reduce();
    for (std::vector<int> core = reduction.Core(); !core.empty(); core = reduction.Core()) {
      // All that leads to the first of them starts at the terminal.
      reduction.Relax(core[0]);
      reduction.Reduce();
    }
    return reduction.Table().us[0];
  }

  // A zero-cost edge from or to a node of one choice.
  const CostTable* Free(bool from_one, size_t node) {
    const int choices = static_cast<int>(calls_.parts[node]->size());
    CostTable& table = free_[{from_one, choices}];
    if (table.us.empty()) table = from_one ? CostTable(1, choices, 0) : CostTable(choices, 1, 0);
    return &table;
  }

  const BoundOptions options_;
  BoundedGraph bounded_;
  const ComputeGraph& compute_;
  CostTables& tables_;
  EdgeBounds edges_{&tables_};
  BoundedCalls calls_;
  std::map<std::pair<bool, int>, CostTable> free_;
  std::vector<ShareSplit> splits_;
};

}  // namespace

absl::StatusOr<LowerBound> BoundStep(const Graph& graph, const BoundOptions& options,
                                     CostTables* tables) {
  return StepBound(graph, options, tables).Run();
}

}  // namespace isomer
