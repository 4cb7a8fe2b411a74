#include "optimizer/proposal/offload_choice.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "optimizer/proposal/contest.h"
#include "optimizer/proposal/search_context.h"
#include "pcg/support/status_macros.h"

namespace isomer {

std::vector<NodeId> ByTimePerByte(absl::Span<const NodeId> nodes,
                                  absl::Span<const NodeResults> results) {
  std::vector<NodeId> sorted;
  absl::c_copy_if(nodes, std::back_inserter(sorted),
                  [&](NodeId id) { return results[id.value].kept_bytes > 0; });
  absl::c_stable_sort(sorted, [&](NodeId a, NodeId b) {
    const NodeResults &of_a = results[a.value], &of_b = results[b.value];
    return of_a.us * static_cast<double>(of_b.kept_bytes) >
           of_b.us * static_cast<double>(of_a.kept_bytes);
  });
  return sorted;
}

Plan WithOffloaded(Plan plan, absl::Span<const NodeId> nodes,
                   absl::Span<const NodeResults> results) {
  std::set<NodeId> offloaded(plan.offloaded.begin(), plan.offloaded.end());
  std::set<NodeId> recomputed(plan.recomputed.begin(), plan.recomputed.end());
  for (NodeId id : nodes) {
    offloaded.insert(id);
    recomputed.erase(id);
  }
  std::vector<bool> is_away(plan.graph.num_nodes(), false);
  for (NodeId id : offloaded) is_away[id.value] = true;
  for (NodeId id : plan.graph.TopologicalOrder()) {
    const Node& node = plan.graph.node(id);
    const bool names_bytes = results[id.value].bytes == 0 && node.inputs.size() == 1;
    if (is_away[id.value] || !names_bytes || !is_away[node.inputs[0].node.value]) continue;
    is_away[id.value] = true;
    recomputed.insert(id);
  }
  plan.offloaded.assign(offloaded.begin(), offloaded.end());
  plan.recomputed.assign(recomputed.begin(), recomputed.end());
  return plan;
}

namespace {

class OffloadChoice {
 public:
  explicit OffloadChoice(SearchContext* context) : context_(*context), contest_(context->contest) {}

  absl::Status Run() {
    const Plan plan = contest_.best().plan;
    origin_ = contest_.best().origin;
    const absl::StatusOr<std::vector<NodeResults>> results = ResultsOfNodes(context_.cost, plan);
    // Too few devices are alike to simulate it as it would be without recomputation.
    if (absl::IsResourceExhausted(results.status())) return absl::OkStatus();
    ISOMER_RETURN_IF_ERROR(results.status());
    results_ = *results;
    if (!contest_.fits()) ISOMER_RETURN_IF_ERROR(OffloadWhatIsKept(plan));
    const Plan& best = contest_.best().plan;
    if (!contest_.fits() || best.recomputed.empty()) return absl::OkStatus();
    const Plan with = best;
    return OffloadInsteadOf(with, ByTimePerByte(with.recomputed, results_));
  }

 private:
  // Results that the plan keeps, in the order of the forward pass.
  std::vector<NodeId> KeptBy(const Plan& plan) const {
    const std::set<NodeId> recomputed(plan.recomputed.begin(), plan.recomputed.end());
    std::vector<NodeId> kept;
    for (NodeId id : plan.graph.TopologicalOrder()) {
      const bool is_kept = results_[id.value].kept_bytes > 0 && !recomputed.contains(id);
      if (is_kept && !IsLeaf(plan.graph.node(id).op.kind())) kept.push_back(id);
    }
    return kept;
  }

  // The first of `nodes` that have this share of all their bytes.
  absl::Span<const NodeId> ShareOf(absl::Span<const NodeId> nodes, double share) const {
    int64_t all = 0, bytes = 0;
    for (NodeId id : nodes) all += results_[id.value].kept_bytes;
    size_t count = 0;
    while (count < nodes.size() && static_cast<double>(bytes) < share * static_cast<double>(all)) {
      bytes += results_[nodes[count++].value].kept_bytes;
    }
    return nodes.first(count);
  }

  std::pair<int, double> RankOfBest() const {
    const SimulatedStep& step = contest_.best().step;
    return contest_.Rank({step.step_us, step.peak_bytes});
  }

  int Enter(const Plan& plan, absl::Span<const NodeId> nodes, double share) {
    return contest_.Enter(WithOffloaded(plan, ShareOf(nodes, share), results_), origin_);
  }

  // Steps of shares of `nodes`, that are begun together; those that are known already are not.
  absl::Status Predict(const Plan& plan, absl::Span<const NodeId> nodes,
                       absl::Span<const double> shares) {
    std::vector<std::pair<double, int>> entered;
    for (double share : shares) {
      if (!ranks_.contains(share)) entered.emplace_back(share, Enter(plan, nodes, share));
    }
    for (const auto& [share, entry] : entered) {
      ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, contest_.PredictionOf(entry));
      ranks_[share] = contest_.Rank(prediction);
    }
    return absl::OkStatus();
  }

  // The share that is best, between those beside it.
  absl::Status Narrow(const Plan& plan, absl::Span<const NodeId> nodes) {
    constexpr int kTimes = 2;
    for (int i = 0; i < kTimes && !context_.deadline.Reached().has_value(); ++i) {
      const auto best = absl::c_min_element(
          ranks_, [](const auto& a, const auto& b) { return a.second < b.second; });
      std::vector<double> between;
      if (best != ranks_.begin()) between.push_back((std::prev(best)->first + best->first) / 2);
      if (std::next(best) != ranks_.end()) {
        between.push_back((best->first + std::next(best)->first) / 2);
      }
      ISOMER_RETURN_IF_ERROR(Predict(plan, nodes, between));
    }
    return absl::OkStatus();
  }

  // Where nothing fits, not even the best. All of it first: if that is too large, so is less of it.
  absl::Status OffloadWhatIsKept(const Plan& plan) {
    const std::vector<NodeId> kept = KeptBy(plan);
    ranks_ = {{0, RankOfBest()}};
    ISOMER_RETURN_IF_ERROR(Predict(plan, kept, {1.0}));
    return contest_.fits() ? Narrow(plan, kept) : absl::OkStatus();
  }

  // REQUIRES: the plan is the best.
  absl::Status OffloadInsteadOf(const Plan& plan, absl::Span<const NodeId> nodes) {
    ranks_ = {{0, RankOfBest()}};
    ISOMER_RETURN_IF_ERROR(Predict(plan, nodes, {0.125, 0.25, 0.5, 1.0}));
    return Narrow(plan, nodes);
  }

  SearchContext& context_;
  Contest& contest_;
  std::string origin_;
  std::vector<NodeResults> results_;
  std::map<double, std::pair<int, double>> ranks_;  // by share
};

}  // namespace

constinit const Proposer kOffload = {
    "offload", "activations in the host's memory, in place of computing them again or of no plan",
    Proposer::When::kAfterwards,
    [](const SearchContext& context, const Submachine&) {
      const Contest& contest = context.contest;
      return context.options.may_offload && context.options.training && !contest.empty() &&
             !context.step.recompute.has_value() && context.cost.machine().has_host_memory() &&
             (!contest.fits() || !contest.best().plan.recomputed.empty());
    },
    [](SearchContext* context, Submachine*) { return OffloadChoice(context).Run(); }};

}  // namespace isomer
