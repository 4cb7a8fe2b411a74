#include "optimizer/report/inference_facts.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "optimizer/machine/machine_units.h"
#include "optimizer/sharding/batch_dims.h"
#include "pcg/ir/states.h"
#include "pcg/profile/model_statistics.h"
#include "pcg/schedule/memory/carries.h"
#include "pcg/support/bytes_text.h"

namespace isomer {
namespace {

struct Stored {
  int64_t states = 0, weights = 0;
};

// By device.
std::map<int32_t, Stored> StoredOn(const Schedule& schedule) {
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
  for (const auto& [device, stored] : StoredOn(lowered.schedule)) {
    facts.state_bytes = std::max(facts.state_bytes, stored.states);
    facts.weight_bytes = std::max(facts.weight_bytes, stored.weights);
    least_us = std::max(least_us, static_cast<double>(stored.states + stored.weights) /
                                      machine.kind(device).memory_bytes_per_us);
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
    absl::StrAppendFormat(&text, "  reading both once takes %.1f %% of the step\n",
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
