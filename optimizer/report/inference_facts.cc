#include "optimizer/report/inference_facts.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "optimizer/machine/machine_units.h"
#include "optimizer/sharding/batch_dims.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/states.h"
#include "pcg/profile/model_statistics.h"
#include "pcg/schedule/memory/carries.h"
#include "pcg/schedule/memory/views.h"
#include "pcg/support/bytes_text.h"

namespace isomer {
namespace {

struct Stored {
  int64_t states = 0, weights = 0;
  int64_t read = 0;  // of both, in a step
};

// What a call reads of one that it reads somewhere in a buffer: of a table the rows that it finds.
// A scatter that writes into a state's place reads none of it.
int64_t BytesRead(const Graph& graph, const Schedule& schedule, const Task& task, size_t operand,
                  bool in_place) {
  const Buffer& buffer = schedule.buffers[task.reads[operand]];
  if (task.kind != TaskKind::kCompute) return buffer.bytes();
  const Operator& op = graph.node(task.node).op;
  if (in_place && static_cast<int>(operand) == OperandInPlace(op)) return 0;
  if (!IsLookUp(op.kind()) || operand > 0) return buffer.bytes();
  const int64_t found = schedule.buffers[task.writes[0]].box.Volume();
  return std::min(buffer.bytes(), found * BytesPerElement(buffer.dtype));
}

// By device.
std::map<int32_t, Stored> StoredOn(const Graph& graph, const Schedule& schedule) {
  std::vector<bool> is_state(schedule.buffers.size(), false);
  for (const Task& task : schedule.tasks) {
    if (!IsCarry(schedule, task)) continue;
    for (BufferId id : task.writes) is_state[id] = true;
  }
  std::map<int32_t, Stored> stored;
  for (size_t id = 0; id < schedule.buffers.size(); ++id) {
    const Buffer& buffer = schedule.buffers[id];
    if (is_state[id]) stored[buffer.device].states += buffer.bytes();
    if (buffer.role == BufferRole::kParameter) stored[buffer.device].weights += buffer.bytes();
  }
  // What is read of each, by the call that reads most of it, also of views of it.
  const std::vector<BufferId> holders = HoldersOf(schedule);
  std::vector<int64_t> read(schedule.buffers.size(), 0);
  for (const Task& task : schedule.tasks) {
    if (task.is_view || task.phase != Phase::kForward) continue;
    for (size_t o = 0; o < task.reads.size(); ++o) {
      if (task.reads[o] == kNoBuffer) continue;
      const BufferId holder = holders[task.reads[o]];
      const bool is_weight = schedule.buffers[holder].role == BufferRole::kParameter;
      if (!is_weight && !is_state[holder]) continue;
      const bool in_place =
          !task.writes.empty() && task.writes[0] != kNoBuffer && holders[task.writes[0]] == holder;
      read[holder] = std::max(read[holder], BytesRead(graph, schedule, task, o, in_place));
    }
  }
  for (size_t id = 0; id < read.size(); ++id) {
    stored[schedule.buffers[id].device].read += std::min(read[id], schedule.buffers[id].bytes());
  }
  return stored;
}

}  // namespace

std::optional<InferenceFacts> InferenceFactsOf(const Plan& plan, const LoweredPlan& lowered,
                                               const Machine& machine) {
  if (plan.mode != "inference" || StatesOf(plan.model.graph).empty()) return std::nullopt;
  const int64_t tokens = StatisticsOf(plan.model.graph).tokens;
  InferenceFacts facts{.samples = BatchSize(plan.model.graph), .step_us = plan.predicted_step_us};
  if (tokens == 0 || facts.step_us <= 0) return std::nullopt;
  facts.tokens_of_sample = std::max<int64_t>(1, tokens / facts.samples);
  facts.tokens_per_s = static_cast<double>(tokens) * 1e6 / facts.step_us;
  double least_us = 0;
  for (const auto& [device, stored] : StoredOn(lowered.mapped.graph, lowered.schedule)) {
    facts.state_bytes = std::max(facts.state_bytes, stored.states);
    facts.weight_bytes = std::max(facts.weight_bytes, stored.weights);
    least_us = std::max(
        least_us, static_cast<double>(stored.read) / machine.kind(device).memory_bytes_per_us);
  }
  facts.memory_share = least_us / facts.step_us;
  return facts;
}

std::string InferenceText(const InferenceFacts& facts) {
  const std::string samples =
      absl::StrCat(facts.samples, facts.samples == 1 ? " sample" : " samples");
  std::string text;
  if (facts.tokens_of_sample == 1) {
    text = absl::StrFormat("Decoding: %s a token, %.0f tokens/s of %s", TimeText(facts.step_us),
                           facts.tokens_per_s, samples);
  } else {
    text = absl::StrFormat("Prefill: %s to the first token, %d tokens of %s, %.0f tokens/s",
                           TimeText(facts.step_us), facts.tokens_of_sample, samples,
                           facts.tokens_per_s);
  }
  absl::StrAppend(&text, "\n  states stay on the devices, ", BytesText(facts.state_bytes),
                  " a device beside weights of ", BytesText(facts.weight_bytes), "\n");
  if (facts.tokens_of_sample == 1) {
    absl::StrAppendFormat(&text, "  reading once what it needs of both takes %.1f %% of the step\n",
                          100 * facts.memory_share);
  }
  return text;
}

Json InferenceJson(const InferenceFacts& facts) {
  Json json;
  json["samples"] = facts.samples;
  json["tokens_of_sample"] = facts.tokens_of_sample;
  json["step_us"] = facts.step_us;
  json["tokens_per_s"] = facts.tokens_per_s;
  json["state_bytes"] = facts.state_bytes;
  json["weight_bytes"] = facts.weight_bytes;
  json["memory_share"] = facts.memory_share;
  return json;
}

}  // namespace isomer
