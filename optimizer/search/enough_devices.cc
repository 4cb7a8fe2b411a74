#include "optimizer/search/enough_devices.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "optimizer/simulator/stored_bytes.h"
#include "pcg/ir/states.h"
#include "pcg/support/bytes_text.h"
#include "pcg/support/status_macros.h"
#include "pcg/support/stopping.h"

namespace isomer {
namespace {

constexpr int64_t kTimes[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

// Of a device's memory. One device has an output up to four times: as it is computed, perhaps in
// another type, as its parts arrive and are joined, and as it is given back.
constexpr double kRoomForOutputs = 0.125;

// Candidates per search: algebra saves little memory.
constexpr int64_t kBudget = 1;

// The largest categories that together are most of the memory.
std::string LargestParts(const MemoryPeak& peak) {
  constexpr double kMost = 0.8;
  std::vector<std::pair<int64_t, int>> parts;
  for (int c = 0; c < kNumMemoryCategories; ++c) parts.emplace_back(-peak.categories[c], c);
  std::sort(parts.begin(), parts.end());
  std::string text;
  int64_t sum = 0;
  for (const auto& [bytes, c] : parts) {
    if (static_cast<double>(sum) > kMost * static_cast<double>(peak.bytes)) break;
    sum -= bytes;
    absl::StrAppend(&text, text.empty() ? "" : ", ", BytesText(-bytes), " of ",
                    MemoryCategoryName(static_cast<MemoryCategory>(c)));
  }
  return text;
}

// What a step gives back, which one device has whole.
struct WholeOutputs {
  int64_t bytes = 0;
  std::string largest;
};

WholeOutputs OutputsOf(const Model& model, bool training) {
  WholeOutputs outputs;
  int64_t most = -1;
  for (const Graph::NamedOutput& output : OutputsForHost(model.graph, training)) {
    const TensorType& type = model.graph.type(output.tensor);
    const int64_t bytes = type.LocalBytes();
    outputs.bytes += bytes;
    if (bytes <= most) continue;
    most = bytes;
    outputs.largest =
        absl::StrCat("output '", output.name, "' ", type.ToString(), " is ", BytesText(bytes));
  }
  return outputs;
}

}  // namespace

double LeastBytesOnMore(int64_t half_bytes, int64_t bytes, double times) {
  const double kept = std::min(1.0, static_cast<double>(bytes) / static_cast<double>(half_bytes));
  return static_cast<double>(bytes) * std::pow(kept, std::log2(times));
}

absl::StatusOr<std::optional<int64_t>> EnoughNodes(const Model& model, const RuleIndex& rules,
                                                   const CostModel& cost,
                                                   const OptimizeOptions& options,
                                                   int64_t smallest_bytes) {
  if (!cost.machine().topology.empty()) return std::nullopt;
  const Deadline deadline =
      Deadline::In(options.policy.enough_devices_seconds, options.search.watch);
  OptimizeOptions probe = options;
  probe.strategy = Strategy::kHierarchical;
  probe.plan.clear();
  probe.search.budget = kBudget;
  probe.search.cache_folder.clear();
  // By how many times as many nodes, of doublings: others may not divide what is to be shared.
  std::map<int64_t, int64_t> smallest = {{1, smallest_bytes}};
  for (int64_t times : kTimes) {
    if (deadline.Reached().has_value()) break;
    Machine machine = cost.machine();
    machine.levels.back().count *= times;
    if (machine.num_devices() > kMaxDevices) break;
    const int64_t nodes = machine.num_nodes();
    probe.search.time_limit_s = deadline.SecondsLeft();
    ISOMER_ASSIGN_OR_RETURN(
        const OptimizeResult result,
        Optimize(model, rules, CostModel(std::move(machine), cost.profile()), probe));
    if (result.fits) return nodes;
    const auto half = smallest.find(times / 2);
    if (times % 2 != 0 || half == smallest.end()) continue;
    const int64_t bytes = smallest[times] = result.plan.predicted_peak_bytes;
    const double most_times =
        static_cast<double>(std::end(kTimes)[-1]) / static_cast<double>(times);
    const double least = LeastBytesOnMore(half->second, bytes, most_times);
    if (least > static_cast<double>(cost.machine().memory_bytes())) break;
  }
  return std::nullopt;
}

std::optional<std::string> NoPlanFitsText(const Model& model, const OptimizeOptions& options,
                                          const Machine& machine) {
  const WholeOutputs outputs = OutputsOf(model, options.training);
  if (outputs.bytes > machine.memory_bytes()) {
    return absl::StrCat("does not fit: a step gives its outputs back whole, ", outputs.largest,
                        ", and ", machine.device_name(), " has ", BytesText(machine.memory_bytes()),
                        !options.training ? "" : "; --loss_alone leaves out all but the loss");
  }
  // What a configuration would take that a user names is an answer, too.
  if (!options.plan.empty()) return std::nullopt;
  const int64_t stored =
      LeastStoredOnAll(model.graph, options.precision, options.update,
                       options.training ? Keeps::kStates : Keeps::kWeights, machine);
  const int64_t memory = machine.total_memory_bytes();
  if (stored <= memory) return std::nullopt;
  const int64_t nodes = machine.num_nodes();
  return absl::StrCat("does not fit: weights", options.training ? " and their states" : "", " are ",
                      BytesText(stored), ", and ", machine.num_devices(), " ",
                      machine.device_name(), " have ", BytesText(memory), "; it takes ",
                      (nodes * stored + memory - 1) / memory, " such nodes at least");
}

std::optional<std::string> OutputsLeaveNoRoomText(const Model& model, const Machine& machine) {
  const WholeOutputs outputs = OutputsOf(model, /*training=*/true);
  const auto room = kRoomForOutputs * static_cast<double>(machine.memory_bytes());
  if (static_cast<double>(outputs.bytes) <= room) return std::nullopt;
  return absl::StrCat("a step gives its loss back alone: ", outputs.largest,
                      ", and would lie whole on one ", machine.device_name(),
                      " (--loss_alone=false keeps outputs)");
}

std::string DoesNotFitText(const OptimizeResult& result, const Machine& machine,
                           std::optional<int64_t> enough_nodes) {
  std::string text = absl::StrCat(
      "does not fit: the smallest plan found needs ", BytesText(result.plan.predicted_peak_bytes),
      " per device (", LargestParts(result.simulation.memory), "), and ", machine.device_name(),
      " has ", BytesText(machine.memory_bytes()));
  if (enough_nodes.has_value()) {
    absl::StrAppend(&text, "; a plan fits on ", *enough_nodes, " nodes (",
                    *enough_nodes * machine.devices_per_node(), " devices)");
  }
  return text;
}

}  // namespace isomer
