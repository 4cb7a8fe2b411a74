#include "optimizer/report/headline.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "optimizer/machine/machine_units.h"
#include "optimizer/report/throughput.h"
#include "optimizer/sharding/batch_dims.h"
#include "pcg/support/bytes_text.h"

namespace isomer {
namespace {

// Calls of less than this share of the time may be split otherwise.
constexpr double kNearlyAll = 0.9;

std::string DegreesText(const WeightDegrees& degrees, const OptimizeResult& result) {
  std::vector<std::string> parts;
  const bool is_uniform = degrees.share >= kNearlyAll;
  if (is_uniform && degrees.tensor > 1) parts.push_back(absl::StrCat("tensor ", degrees.tensor));
  if (const auto& pipeline = result.pipeline; pipeline.has_value() && pipeline->stages > 1) {
    parts.push_back(
        absl::StrCat("pipeline ", pipeline->stages,
                     pipeline->chunks > 1 ? absl::StrCat(" (", pipeline->chunks, " chunks)") : ""));
  }
  if (is_uniform && degrees.context > 1) parts.push_back(absl::StrCat("context ", degrees.context));
  if (is_uniform && degrees.data > 1) parts.push_back(absl::StrCat("data ", degrees.data));
  if (!is_uniform && degrees.share > 0) {
    parts.push_back(absl::StrFormat(
        "degrees by layer (%.0f %% of the time tensor %d, %sdata %d)", 100 * degrees.share,
        degrees.tensor, degrees.context > 1 ? absl::StrCat("context ", degrees.context, ", ") : "",
        degrees.data));
  }
  return parts.empty() ? "one device" : absl::StrJoin(parts, " x ");
}

std::string UpdateText(const Plan& plan) {
  if (plan.mode != "training") return "";
  const int stage = TraitsOf(plan.update.method).zero_stage;
  if (stage > 0) return absl::StrCat(", ZeRO ", stage);
  return plan.update.method == UpdateMethod::kOwner ? ", owners update" : "";
}

// "407k", "12.3M".
std::string CountText(double count) {
  if (count >= 1e6) return absl::StrFormat("%.3gM", count / 1e6);
  if (count >= 1e4) return absl::StrFormat("%.0fk", count / 1e3);
  return absl::StrFormat("%.4g", count);
}

std::string RateText(const Throughput& throughput, const Machine& machine) {
  const auto devices = static_cast<double>(machine.num_devices());
  std::string text =
      throughput.tokens_per_s > 0
          ? absl::StrCat(CountText(devices * throughput.tokens_per_s), " tokens/s")
          : absl::StrCat(CountText(devices * throughput.samples_per_s), " samples/s");
  if (throughput.model_tflops > 0) {
    absl::StrAppendFormat(&text, ", %.3g TFLOP/s a device (MFU %.1f %%)", throughput.model_tflops,
                          100 * throughput.mfu);
  }
  return text;
}

// Of a product with a weight, in how many parts the dims of its rows behind the batch are.
int64_t PartsOfSequence(const Graph& graph, int id) {
  const Node& node = graph.node(id);
  if (node.op.kind() != OpKind::kMatMul && node.op.kind() != OpKind::kLinear) return 1;
  const std::vector<Dim>& dims = graph.type(node.inputs[0]).dims;
  int64_t parts = 1;
  for (size_t i = 1; i + 1 < dims.size(); ++i) parts *= dims[i].degree;
  return parts;
}

}  // namespace

WeightDegrees MostUsedDegrees(const MappedGraph& mapped, const std::vector<NodeTimes>& times) {
  const Graph& graph = mapped.graph;
  const std::vector<bool> of_data = OfData(graph);
  std::map<std::array<int64_t, 3>, double> us;
  double total_us = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (!of_data[id] || times[id].us() == 0) continue;
    const int64_t context = PartsOfSequence(graph, id);
    for (TensorRef input : graph.node(id).inputs) {
      const TensorType& type = graph.type(input);
      // Biases and scales are read by calls that hardly take time, and may be whole.
      if (of_data[input.node.value] || type.dims.size() < 2) continue;
      const MachineView& view = mapped.views[input.node.value];
      const int64_t copies = type.copies / view.MomentsOfAxis(view.strides.size() - 2);
      int64_t parts = 1;
      for (const Dim& dim : type.dims) parts *= dim.degree;
      us[copies % context == 0 ? std::array{parts, context, copies / context}
                               : std::array{parts, int64_t{1}, copies}] += times[id].us();
      total_us += times[id].us();
    }
  }
  WeightDegrees most;
  for (const auto& [degrees, of_degrees_us] : us) {
    if (of_degrees_us <= most.share * total_us) continue;
    most = {degrees[0], degrees[1], degrees[2], of_degrees_us / total_us};
  }
  return most;
}

std::string HeadlineOf(const OptimizeResult& result, const std::vector<NodeTimes>& times,
                       const Machine& machine) {
  const Plan& plan = result.plan;
  std::string text = DegreesText(MostUsedDegrees(result.lowered.mapped, times), result);
  if (result.pipeline.has_value()) {
    absl::StrAppend(&text, ", ", result.pipeline->micro_batches, " micro-batches");
  }
  return absl::StrCat(text, UpdateText(plan), ": ", TimeText(plan.predicted_step_us), " a step, ",
                      RateText(ThroughputOf(plan, machine), machine), ", ",
                      BytesText(plan.predicted_peak_bytes), " of ",
                      BytesText(machine.memory_bytes()), result.fits ? "" : " (it does not fit)");
}

}  // namespace isomer
