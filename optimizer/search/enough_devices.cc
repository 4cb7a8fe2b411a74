#include "optimizer/search/enough_devices.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/ir/states.h"
#include "pcg/support/bytes_text.h"
#include "pcg/support/status_macros.h"
#include "pcg/support/stopping.h"

namespace isomer {
namespace {

constexpr int64_t kTimes[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

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
  int64_t computed_bytes = 0;  // of what is computed in another type than it is given back in
  std::string largest;
};

WholeOutputs OutputsOf(const Model& model, bool training, DataType precision) {
  WholeOutputs outputs;
  int64_t most = -1;
  for (const Graph::NamedOutput& output : OutputsForHost(model.graph, training)) {
    const TensorType& type = model.graph.type(output.tensor);
    const int64_t bytes = type.LocalBytes();
    outputs.bytes += bytes;
    if (type.dtype == DataType::kFloat32 && precision != type.dtype) {
      outputs.computed_bytes += type.LocalElements() * BytesPerElement(precision);
    }
    if (bytes <= most) continue;
    most = bytes;
    outputs.largest =
        absl::StrCat("output '", output.name, "' ", type.ToString(), " is ", BytesText(bytes));
  }
  return outputs;
}

}  // namespace

absl::StatusOr<std::optional<int64_t>> EnoughNodes(const Model& model, const RuleIndex& rules,
                                                   const CostModel& cost,
                                                   const OptimizeOptions& options) {
  if (!cost.machine().topology.empty()) return std::nullopt;
  const Deadline deadline =
      Deadline::In(options.policy.enough_devices_seconds, options.search.watch);
  OptimizeOptions probe = options;
  probe.strategy = Strategy::kHierarchical;
  probe.plan.clear();
  probe.search.budget = kBudget;
  probe.search.cache_folder.clear();
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
  }
  return std::nullopt;
}

std::optional<std::string> OutputsDoNotFitText(const Model& model, bool training,
                                               const Machine& machine) {
  const WholeOutputs outputs = OutputsOf(model, training, DataType::kFloat32);
  if (outputs.bytes <= machine.memory_bytes()) return std::nullopt;
  return absl::StrCat("does not fit: a step gives its outputs back whole, ", outputs.largest,
                      ", and ", machine.device_name(), " has ", BytesText(machine.memory_bytes()),
                      !training ? "" : "; --loss_alone leaves out all but the loss");
}

std::optional<std::string> OutputsLeaveNoRoomText(const Model& model, DataType precision,
                                                  const Machine& machine) {
  const WholeOutputs outputs = OutputsOf(model, /*training=*/true, precision);
  if (outputs.bytes + outputs.computed_bytes <= machine.memory_bytes()) return std::nullopt;
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
