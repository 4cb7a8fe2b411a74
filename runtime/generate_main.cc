#include "runtime/generate_main.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "pcg/ir/expert_room.h"
#include "pcg/ir/states.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/json.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"
#include "runtime/device/statistics.h"
#include "runtime/execution/host_memory.h"
#include "runtime/execution/host_values.h"
#include "runtime/execution/job.h"
#include "runtime/execution/leaf_values.h"

ABSL_FLAG(int64_t, generate, 0,
          "N: of a decoder whose step leaves keys and values to the next: the N tokens that follow "
          "--prompt, each the likeliest (docs/inference.md)");
ABSL_FLAG(std::string, prompt, "",
          "with --generate: token ids, 1,2,3 for all samples, or 1,2,3/4,5,6 for two");
ABSL_FLAG(std::string, prefill, "",
          "with --generate: a plan of the same model for all tokens of --prompt at once; without, "
          "they go one by one");

ABSL_DECLARE_FLAG(uint64_t, seed);
ABSL_DECLARE_FLAG(bool, pin);

namespace isomer {
namespace {

using Tokens = std::vector<std::vector<int64_t>>;  // by sample

constexpr int64_t kMostTokens = int64_t{1} << 30;

absl::Status GenerateError(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("--generate: ", what));
}

// What a step of a decoder takes and gives.
struct DecoderInputs {
  std::string tokens, position, position_ids, attention_mask;  // names; "": there is none
  std::string logits;
  int64_t batch = 1, length = 1;  // tokens of a step
  int64_t mask = 0;               // places that attention_mask is of
  int64_t places = 0;             // tokens that a step can see; 0: not known
  std::vector<State> states;
};

absl::StatusOr<DecoderInputs> DecoderInputsOf(const Graph& graph) {
  DecoderInputs inputs;
  inputs.states = StatesOf(graph);
  if (inputs.states.empty()) {
    return GenerateError("a step of the model leaves nothing to the next (--carry)");
  }
  const auto is_state = [&](int id) {
    return std::any_of(inputs.states.begin(), inputs.states.end(),
                       [&](const State& state) { return state.input.value == id; });
  };
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.op.kind() != OpKind::kInput || is_state(id)) continue;
    const std::vector<int64_t> sizes = node.outputs[0].Sizes();
    const bool is_integer = !IsFloat(node.outputs[0].dtype);
    if (is_integer && node.name == "position" && node.outputs[0].NumElements() == 1) {
      inputs.position = node.name;
    } else if (node.name == "attention_mask" && sizes.size() == 2) {
      inputs.attention_mask = node.name;
      inputs.mask = sizes[1];
    } else if (is_integer && node.name == "position_ids" && sizes.size() == 2) {
      inputs.position_ids = node.name;
    } else if (is_integer && sizes.size() == 2 && inputs.tokens.empty()) {
      inputs.tokens = node.name;
      inputs.batch = sizes[0];
      inputs.length = sizes[1];
    } else {
      return GenerateError(absl::StrCat("what input '", node.name, "' ", node.outputs[0].ToString(),
                                        " is to be is not known"));
    }
  }
  if (inputs.tokens.empty()) return GenerateError("no input of the model takes tokens");
  inputs.places = inputs.mask;
  const std::vector<int64_t> cache = graph.type({inputs.states[0].input, 0}).Sizes();
  // [.., tokens, features] with a row for the token at each position.
  if (!inputs.position.empty() && cache.size() >= 2) inputs.places = cache[cache.size() - 2];
  const auto outputs = OutputsForHost(graph, /*training=*/false);
  for (const Graph::NamedOutput& output : outputs) {
    if (inputs.logits.empty() || output.name == "logits") inputs.logits = output.name;
  }
  if (inputs.logits.empty()) return GenerateError("the model has no output but its states");
  return inputs;
}

// A plan on its devices.
class Decoder {
 public:
  static absl::StatusOr<std::unique_ptr<Decoder>> Start(Plan plan, const Execution& execution,
                                                        Backend* backend,
                                                        ProcessCommunicator* processes) {
    if (plan.mode != "inference") {
      return GenerateError(absl::StrCat("the plan of ", plan.model.name, " is for training"));
    }
    if (processes == nullptr) {
      ISOMER_RETURN_IF_ERROR(CheckRunsInThreads(plan));
    } else if (processes->num_ranks() != plan.num_devices) {
      return GenerateError(absl::StrCat("the plan is for ", plan.num_devices,
                                        " devices, but there are ", processes->num_ranks(),
                                        " processes"));
    }
    std::unique_ptr<Decoder> decoder(new Decoder(std::move(plan)));
    ISOMER_ASSIGN_OR_RETURN(decoder->inputs_, DecoderInputsOf(decoder->plan_.graph));
    ISOMER_ASSIGN_OR_RETURN(decoder->lowered_, LowerPlan(decoder->plan_));
    const JobOptions options = {.pin = absl::GetFlag(FLAGS_pin) && decoder->plan_.num_devices > 1,
                                .execution = execution,
                                .expert_imbalance = AssumedImbalance(decoder->plan_.model),
                                .control = processes,
                                .communicator = processes};
    LoweredPlan& lowered = decoder->lowered_;
    ISOMER_ASSIGN_OR_RETURN(
        decoder->job_,
        Job::Start(lowered.mapped.graph, std::move(lowered.schedule), backend, options));
    const InitialLeafValues initial(decoder->plan_.model, absl::GetFlag(FLAGS_seed));
    ISOMER_RETURN_IF_ERROR(decoder->job_->SetParameters(initial));
    for (const State& state : decoder->inputs_.states) {
      const TensorType& type = decoder->plan_.graph.type({state.input, 0});
      decoder->states_[state.name] = Array<double>(type.Sizes());
    }
    return decoder;
  }

  const DecoderInputs& inputs() const { return inputs_; }
  const std::vector<double>& step_us() const { return step_us_; }

  // States of the next step, in place of zeros. REQUIRES: it was not run yet.
  absl::Status SetStates(HostValues states) {
    for (auto& [name, value] : states_) {
      const auto given = states.find(name);
      if (given == states.end()) {
        return GenerateError(absl::StrCat("the model of --prefill has no state '", name, "'"));
      }
      if (given->second.shape != value.shape) {
        return GenerateError(absl::StrCat("state '", name, "' has other sizes in --prefill: [",
                                          absl::StrJoin(given->second.shape, ","), "] and [",
                                          absl::StrJoin(value.shape, ","), "]"));
      }
      value = std::move(given->second);
    }
    return absl::OkStatus();
  }
  absl::StatusOr<HostValues> States() {
    HostValues values;
    for (const State& state : inputs_.states) {
      ISOMER_ASSIGN_OR_RETURN(values[state.name], job_->Output(state.name));
    }
    return values;
  }

  // Of tokens from place `first` on, as many for each sample as a step takes; of each sample, which
  // token is likeliest behind the one at `last` of the step.
  absl::StatusOr<std::vector<int64_t>> Step(const Tokens& tokens, int64_t first, int64_t last) {
    HostValues values = std::exchange(states_, {});  // Then they are there.
    Array<double>& ids = values[inputs_.tokens];
    ids = Array<double>({inputs_.batch, inputs_.length});
    Array<double> places = ids;
    for (int64_t i = 0; i < ids.size(); ++i) {
      ids.data[i] = static_cast<double>(tokens[i / inputs_.length][i % inputs_.length]);
      places.data[i] = static_cast<double>(first + i % inputs_.length);
    }
    if (!inputs_.position_ids.empty()) values[inputs_.position_ids] = places;
    if (!inputs_.position.empty()) {
      const Graph& graph = plan_.graph;
      Array<double> place(SizesOf(graph, inputs_.position));
      place.data[0] = static_cast<double>(first);
      values[inputs_.position] = std::move(place);
    }
    if (!inputs_.attention_mask.empty()) {
      Array<double> mask({inputs_.batch, inputs_.mask});
      for (int64_t i = 0; i < mask.size(); ++i) {
        mask.data[i] = i % inputs_.mask >= inputs_.mask - first - inputs_.length ? 1 : 0;
      }
      values[inputs_.attention_mask] = std::move(mask);
    }
    ISOMER_RETURN_IF_ERROR(job_->Evaluate(values));
    ISOMER_ASSIGN_OR_RETURN(const double us, job_->StepUs());
    step_us_.push_back(us);
    ISOMER_ASSIGN_OR_RETURN(const Array<double> logits, job_->Output(inputs_.logits));
    return Likeliest(logits, last);
  }

 private:
  explicit Decoder(Plan plan) : plan_(std::move(plan)) {}

  static std::vector<int64_t> SizesOf(const Graph& graph, const std::string& input) {
    for (int id = 0; id < graph.num_nodes(); ++id) {
      if (graph.node(id).name == input) return graph.node(id).outputs[0].Sizes();
    }
    return {};
  }

  // Logits are of all tokens of a step, or of the last.
  absl::StatusOr<std::vector<int64_t>> Likeliest(const Array<double>& logits, int64_t last) const {
    const int64_t vocabulary = logits.shape.empty() ? 1 : logits.shape.back();
    const int64_t rows = logits.size() / vocabulary, each = rows / inputs_.batch;
    if (rows != inputs_.batch && rows != inputs_.batch * inputs_.length) {
      return GenerateError(absl::StrCat("output '", inputs_.logits, "' is not of each token"));
    }
    if (each == 1 && last != inputs_.length - 1) {
      return GenerateError(absl::StrCat("output '", inputs_.logits,
                                        "' is of the last token of a step of ", inputs_.length,
                                        ", and --prompt has ", last + 1));
    }
    std::vector<int64_t> likeliest;
    for (int64_t sample = 0; sample < inputs_.batch; ++sample) {
      const auto row = logits.data.begin() + (sample * each + (each == 1 ? 0 : last)) * vocabulary;
      likeliest.push_back(std::max_element(row, row + vocabulary) - row);
    }
    return likeliest;
  }

  const Plan plan_;
  DecoderInputs inputs_;
  LoweredPlan lowered_;  // the graph of job_
  std::unique_ptr<Job> job_;
  HostValues states_;  // that the next step begins with; empty: those that it finds
  std::vector<double> step_us_;
};

// --prompt, of so many samples; all of one length.
absl::StatusOr<Tokens> PromptOfFlag(int64_t batch) {
  const std::string text = absl::GetFlag(FLAGS_prompt);
  Tokens tokens;
  for (absl::string_view sample : absl::StrSplit(text, '/')) {
    tokens.emplace_back();
    for (absl::string_view number : absl::StrSplit(sample, ',')) {
      int64_t token;
      if (!absl::SimpleAtoi(number, &token) || token < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("--prompt=", text, ": token ids are expected, as in 1,2,3"));
      }
      tokens.back().push_back(token);
    }
  }
  if (tokens.size() == 1) tokens.resize(batch, tokens[0]);
  if (static_cast<int64_t>(tokens.size()) != batch) {
    return absl::InvalidArgumentError(
        absl::StrCat("--prompt: it has ", tokens.size(), " samples, and a step takes ", batch));
  }
  for (const std::vector<int64_t>& sample : tokens) {
    if (sample.size() == tokens[0].size()) continue;
    return absl::InvalidArgumentError("--prompt: its samples have different lengths");
  }
  return tokens;
}

// So many tokens of each sample from `first` on; past the end 0.
Tokens Slice(const Tokens& all, int64_t first, int64_t count) {
  Tokens part;
  for (const std::vector<int64_t>& sample : all) {
    part.emplace_back(count, 0);
    for (int64_t i = 0; i < count && first + i < std::ssize(sample); ++i) {
      part.back()[i] = sample[first + i];
    }
  }
  return part;
}

void Append(const std::vector<int64_t>& next, Tokens* all) {
  for (size_t sample = 0; sample < next.size(); ++sample) (*all)[sample].push_back(next[sample]);
}

absl::Status Tell(const Tokens& all, int64_t prompt, const Decoder& decoder,
                  const Decoder* prefill) {
  Json summary;
  summary["tokens"] = Json::EmptyArray();
  for (size_t sample = 0; sample < all.size(); ++sample) {
    const absl::Span<const int64_t> made = absl::MakeConstSpan(all[sample]).subspan(prompt);
    absl::PrintF("sample %d: %s\n", sample, absl::StrJoin(made, " "));
    Json of_sample = Json::EmptyArray();
    for (int64_t token : made) of_sample.Append(token);
    summary["tokens"].Append(std::move(of_sample));
  }
  const double step_us = SpreadOf(decoder.step_us()).median;
  if (prefill != nullptr) {
    const double first_us = prefill->step_us()[0];
    absl::PrintF("first token after %.3f ms (prefill)\n", first_us / 1000);
    summary["prefill_us"] = first_us;
  }
  if (!decoder.step_us().empty()) {
    absl::PrintF("a step takes %.3f ms (median of %d), %.1f tokens/s\n", step_us / 1000,
                 decoder.step_us().size(),
                 static_cast<double>(decoder.inputs().batch) * 1e6 / step_us);
    summary["step_us"] = step_us;
  }
  return WriteJsonSummary(summary);
}

}  // namespace

bool Generates() { return WasGiven("generate"); }

absl::Status CheckFlagsOfGenerate() {
  if (absl::GetFlag(FLAGS_generate) < 1) {
    return absl::InvalidArgumentError("--generate must be positive");
  }
  if (absl::GetFlag(FLAGS_generate) > kMostTokens) {
    return absl::InvalidArgumentError(absl::StrCat("--generate is at most ", kMostTokens));
  }
  if (absl::GetFlag(FLAGS_prompt).empty()) {
    return absl::InvalidArgumentError("--generate needs --prompt");
  }
  return RefuseFlagsBut({"generate", "prompt", "prefill", "backend", "communicator", "execution",
                         "execution_seed", "pin", "mode", "precision", "batch_size", "dim", "seed",
                         "weights", "rename_weights", "partial_weights", "carry"},
                        "does not go with --generate");
}

absl::Status RunGenerate(Plan plan, std::optional<Plan> prefill, const Execution& execution,
                         Backend* backend, ProcessCommunicator* processes) {
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<Decoder> decoder,
                          Decoder::Start(std::move(plan), execution, backend, processes));
  const DecoderInputs& inputs = decoder->inputs();
  if (inputs.length != 1) {
    return GenerateError(
        absl::StrCat("a step of the plan takes ", inputs.length, " tokens of a sample, not one"));
  }
  ISOMER_ASSIGN_OR_RETURN(Tokens all, PromptOfFlag(inputs.batch));
  const int64_t prompt = std::ssize(all[0]), count = absl::GetFlag(FLAGS_generate);
  // The last token that is made is not read.
  if (inputs.places > 0 && prompt + count - 1 > inputs.places) {
    return GenerateError(absl::StrCat(prompt + count - 1,
                                      " tokens are to be read, and a step sees ", inputs.places));
  }
  std::unique_ptr<Decoder> filler;
  int64_t place = 0;
  if (prefill.has_value()) {
    ISOMER_ASSIGN_OR_RETURN(filler,
                            Decoder::Start(*std::move(prefill), execution, backend, processes));
    const DecoderInputs& of_all = filler->inputs();
    const bool fits =
        of_all.attention_mask.empty() ? prompt <= of_all.length : prompt == of_all.length;
    if (of_all.batch != inputs.batch || !fits) {
      return GenerateError(absl::StrCat("--prefill takes ", of_all.batch, " samples of ",
                                        of_all.length, " tokens, and --prompt has ", inputs.batch,
                                        " of ", prompt));
    }
    ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> next,
                            filler->Step(Slice(all, 0, of_all.length), 0, prompt - 1));
    Append(next, &all);
    ISOMER_ASSIGN_OR_RETURN(HostValues states, filler->States());
    ISOMER_RETURN_IF_ERROR(decoder->SetStates(std::move(states)));
    place = prompt;
  }
  while (std::ssize(all[0]) < prompt + count) {
    ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> next,
                            decoder->Step(Slice(all, place, 1), place, 0));
    if (++place == std::ssize(all[0])) Append(next, &all);
  }
  if (processes != nullptr && processes->rank() != 0) return absl::OkStatus();
  return Tell(all, prompt, *decoder, filler.get());
}

}  // namespace isomer
