// Plans of decoders: a step of a token, with keys and values that stay on the devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "models/load.h"
#include "pcg/ir/plan.h"
#include "pcg/ir/states.h"
#include "pcg/support/file.h"
#include "runtime/checking/compare.h"
#include "runtime/data/npy_array.h"
#include "runtime/execution/host_values.h"
#include "tests/integration/messages.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::Not;

using TokenLists = std::vector<std::string>;  // of each sample, "5 17 60"

constexpr char kDecoders[] = "layers=2&hidden=32&heads=4&vocabulary=64&batch=2";

std::string Decoder(const std::string& network, const std::string& seq) {
  return absl::StrCat("zoo:", network, "?", kDecoders, "&cache=16&seq=", seq,
                      network == "llama" ? "&key_heads=2&intermediate=48" : "");
}

// "sample 0: 5 17" and so on.
TokenLists TokensIn(const std::string& out) {
  TokenLists tokens;
  for (absl::string_view line : absl::StrSplit(out, '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, ": ");
    if (parts.size() == 2 && parts[0] == absl::StrCat("sample ", tokens.size())) {
      tokens.push_back(parts[1]);
    }
  }
  return tokens;
}

TokenLists Generated(const std::string& spec, const std::vector<std::string>& flags) {
  std::vector<std::string> arguments = {spec};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const ProgramResult result = RunBinary("isomer-run", arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return TokensIn(result.out);
}

std::string Planned(const std::string& model, const std::vector<std::string>& flags,
                    std::string* report = nullptr) {
  const std::string plan = ScratchFile("decoder.plan");
  std::vector<std::string> arguments = {model, "--mode=inference", "--machine=dgx_h100",
                                        "--nodes=1", "--out=" + plan};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const ProgramResult result = RunBinary("isomer-optimize", arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  if (report != nullptr) *report = result.out;
  const ProgramResult verdict = RunBinary("isomer-verify", {"plan", plan, "--model=" + model});
  EXPECT_EQ(verdict.exit_code, 0) << verdict.out << verdict.err;
  return plan;
}

// The likeliest tokens by the network without caches, of which each step sees all tokens so far.
TokenLists OfWholeSequences(const std::string& network, std::vector<std::vector<int64_t>> samples,
                            int64_t count) {
  TokenLists made(samples.size());
  const size_t prompt = samples[0].size();
  for (int64_t i = 0; i < count; ++i) {
    std::string spec = Decoder(network, absl::StrCat(samples[0].size()));
    // GPT's table of places has the size of the cache.
    if (network == "llama") spec = absl::StrReplaceAll(spec, {{"&cache=16", ""}});
    const Model model = *LoadAnyModel(spec);
    HostValues inputs = RandomInputs(model.graph, 1);
    Array<double>& ids = inputs.at("input_ids");
    for (size_t j = 0; j < ids.data.size(); ++j) {
      ids.data[j] = static_cast<double>(samples[j / samples[0].size()][j % samples[0].size()]);
    }
    const auto step = ReferenceStep(model, *InitialWeights(model, 1), inputs, false);
    EXPECT_TRUE(step.ok()) << step.status();
    if (!step.ok()) return made;
    const Array<double>& logits = step->outputs.at("logits");
    const int64_t vocabulary = logits.shape.back();
    const int64_t rows = logits.size() / vocabulary / static_cast<int64_t>(samples.size());
    for (size_t s = 0; s < samples.size(); ++s) {
      const auto row = logits.data.begin() + ((s + 1) * rows - 1) * vocabulary;
      samples[s].push_back(std::max_element(row, row + vocabulary) - row);
    }
  }
  for (size_t s = 0; s < samples.size(); ++s) {
    made[s] = absl::StrJoin(samples[s].begin() + prompt, samples[s].end(), " ");
  }
  return made;
}

TEST(Inference, TokensAreThoseOfWholeSequences) {
  for (const std::string network : {"gpt", "llama"}) {
    const TokenLists expected = OfWholeSequences(network, {{7, 3, 9}, {1, 2, 50}}, 8);
    ASSERT_EQ(expected.size(), 2u);
    const std::vector<std::string> flags = {"--generate=8", "--prompt=7,3,9/1,2,50"};
    EXPECT_EQ(Generated(Decoder(network, "1"), flags), expected) << network;
    std::vector<std::string> with_prefill = flags;
    with_prefill.push_back("--prefill=" + Decoder(network, "3"));
    EXPECT_EQ(Generated(Decoder(network, "1"), with_prefill), expected) << network;
  }
}

TEST(Inference, TokensAreTheSameUnderEveryPlan) {
  const std::vector<std::string> flags = {"--generate=8", "--prompt=7,3,9/1,2,50"};
  const TokenLists expected = Generated(Decoder("llama", "1"), flags);
  ASSERT_EQ(expected.size(), 2u);
  for (const std::vector<std::string>& search : std::vector<std::vector<std::string>>{
           {"--devices_per_node=2", "--plan=grid", "--tensor=2"},
           {"--devices_per_node=2", "--plan=data_parallel"},
           {"--devices_per_node=2", "--plan=grid", "--pipeline=2"},
           {"--devices_per_node=4"}}) {
    std::string report;
    const std::string plan = Planned(Decoder("llama", "1"), search, &report);
    EXPECT_THAT(report, HasSubstr("Decoding: "));
    EXPECT_EQ(Generated(plan, flags), expected) << absl::StrJoin(search, " ");
    EXPECT_EQ(Generated(plan, {flags[0], flags[1], "--execution=threaded"}), expected)
        << absl::StrJoin(search, " ");
  }
}

// Keys and values are in eighths, and nothing but logits is put together.
TEST(Inference, TensorParallelStepsMoveNoCache) {
  std::string report;
  Planned("zoo:llama?layers=2&hidden=4096&vocabulary=1024&cache=1024&seq=1&batch=4",
          {"--precision=bfloat16", "--plan=grid", "--tensor=8"}, &report);
  // 2 layers x 2 x 4 samples x 8 heads x 1024 x 128 x 2 bytes, over 8 devices.
  EXPECT_THAT(report, HasSubstr("states stay on the devices, 4.0 MiB a device"));
  EXPECT_THAT(report, HasSubstr("attention.key/written scatter_elements"));
  EXPECT_THAT(report, Not(HasSubstr("all_gather")));
}

// models/export/make_decoder.py: what ONNX Runtime says.
TEST(Inference, AnExportedDecoderSaysWhatOnnxRuntimeSays) {
  const std::vector<std::string> lines =
      absl::StrSplit(*ReadFile(SourceFile("models/data/decoder_tokens.txt")), '\n');
  const std::string model = SourceFile("models/data/decoder.onnx");
  const std::vector<std::string> sizes = {"--dim=batch=1", "--dim=past=31", "--dim=total=32"};
  const std::vector<std::string> flags = {
      "--generate=20", "--prompt=" + absl::StrReplaceAll(lines[0], {{" ", ","}})};
  std::vector<std::string> of_model = flags;
  of_model.insert(of_model.end(), sizes.begin(), sizes.end());
  EXPECT_EQ(Generated(model, of_model), TokenLists{lines[1]});

  const std::string plan = ScratchFile("exported.plan");
  std::vector<std::string> arguments = {model,         "--mode=inference", "--machine=dgx_h100",
                                        "--nodes=1",   "--out=" + plan,    "--devices_per_node=4",
                                        "--plan=grid", "--tensor=4"};
  arguments.insert(arguments.end(), sizes.begin(), sizes.end());
  const ProgramResult planned = RunBinary("isomer-optimize", arguments);
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.err, HasSubstr("4 outputs are inputs of the next step"));
  EXPECT_EQ(Generated(plan, flags), TokenLists{lines[1]});

  // Random inputs hide all tokens: the mask is the lowest number of float32 everywhere.
  for (const char* precision : {"bfloat16", "float16"}) {
    const std::string low = ScratchFile("low.plan");
    std::vector<std::string> in_low = arguments;
    in_low.insert(in_low.end(),
                  {std::string("--precision=") + precision, "--out=" + low, "--quiet"});
    ASSERT_EQ(RunBinary("isomer-optimize", in_low).exit_code, 0) << precision;
    const ProgramResult checked = RunBinary("isomer-run", {low, "--check", "--steps=1"});
    EXPECT_EQ(checked.exit_code, 0) << precision << checked.out << checked.err;
  }
  std::vector<std::string> to_verify = {"plan", plan, "--model=" + model};
  to_verify.insert(to_verify.end(), sizes.begin(), sizes.end());
  const ProgramResult verdict = RunBinary("isomer-verify", to_verify);
  EXPECT_EQ(verdict.exit_code, 0) << verdict.err;
  EXPECT_THAT(verdict.out,
              HasSubstr("with 4 outputs that are inputs of the next step, as their names say"));
}

// Keys for values, and values for keys: of one type, and another model.
TEST(Inference, APlanWithExchangedStatesIsNotOfTheModel) {
  const std::string network = Decoder("gpt", "1"), path = ScratchFile("exchanged.plan");
  Plan plan = *LoadPlan(Planned(network, {"--devices_per_node=1", "--plan=data_parallel"}));
  const auto exchange = [](Graph* graph) {
    std::vector<Graph::NamedOutput> outputs = graph->outputs();
    std::vector<Node> nodes;
    for (int id = 0; id < graph->num_nodes(); ++id) nodes.push_back(graph->node({id}));
    std::vector<std::string> states;
    for (const State& state : StatesOf(*graph)) states.push_back(state.name);
    for (Graph::NamedOutput& output : outputs) {
      if (output.name == states[0]) {
        output.name = states[1];
      } else if (output.name == states[1]) {
        output.name = states[0];
      }
    }
    *graph = *GraphFromParts(std::move(nodes), std::move(outputs));
  };
  exchange(&plan.model.graph);
  exchange(&plan.graph);
  plan.seal = 0;
  ASSERT_EQ(SavePlan(path, plan), absl::OkStatus());
  const ProgramResult verdict = RunBinary("isomer-verify", {"plan", path, "--model=" + network});
  EXPECT_EQ(verdict.exit_code, 1) << verdict.out;
  EXPECT_THAT(verdict.out + verdict.err, HasSubstr("model: not that of " + network));
}

TEST(Inference, RefusesStatesThatThereAreNot) {
  for (const std::string carry : {"logits", "logits:nothing", "logits:input_ids"}) {
    const ProgramResult result =
        RunBinary("isomer-optimize", {Decoder("gpt", "1"), "--mode=inference", "--machine=dgx_h100",
                                      "--out=" + ScratchFile("no.plan"), "--carry=" + carry});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("--carry=" + carry + ": "));
    ExpectGoldenMessages("isomer-optimize", result.err);
  }
}

// Fed is the input, fetched what it is next.
TEST(Inference, AStateIsFedAsItWasAndFetchedAsItIsNext) {
  const std::string model = ScratchFile("counter.txt"), before = ScratchFile("before.npy"),
                    next = ScratchFile("next.npy");
  ASSERT_EQ(WriteFileAtomically(model,
                                "%0 = input \"count\" : f32[4]\n"
                                "%1 = relu(%0) : f32[4]\n"
                                "%2 = add(%0, %1) : f32[4]\n"
                                "output \"count\" = %2\n"),
            absl::OkStatus());
  Array<double> count({4});
  count.data = {1, 2, -3, 4};
  ASSERT_EQ(WriteFileAtomically(before, NpyFileOf(count, DataType::kFloat32)), absl::OkStatus());
  const ProgramResult result =
      RunBinary("isomer-run", {model, "--feed=count=" + before, "--fetch=count=" + next});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  count.data = {2, 4, -3, 8};
  EXPECT_EQ(*ReadFile(next), NpyFileOf(count, DataType::kFloat32));
}

// More devices than heads, and one sample: a cache has heads where other inputs have a sequence.
TEST(Inference, FewHeadsAreSplitOnce) {
  const std::string plan = ScratchFile("few_heads.plan");
  for (const char* heads : {"4", "6"}) {
    const ProgramResult planned = RunBinary(
        "isomer-optimize",
        {absl::StrCat("zoo:gpt?layers=1&hidden=24&vocabulary=16&cache=8&seq=1&batch=1&heads=",
                      heads),
         "--mode=inference", "--machine=dgx_h100", "--nodes=1", "--budget=1", "--out=" + plan});
    ASSERT_EQ(planned.exit_code, 0) << planned.err;
    EXPECT_EQ(RunBinary("isomer-verify", {"plan", plan}).exit_code, 0) << heads;
  }
}

TEST(Inference, ThroughputChoosesTheBatch) {
  const std::string network =
      "zoo:llama?layers=2&hidden=1024&heads=8&key_heads=8&intermediate=2048&vocabulary=1024&"
      "cache=1024&seq=1";
  const auto batch_of = [&](const std::vector<std::string>& flags) {
    const std::string json = ScratchFile("objective.json"), plan = ScratchFile("most.plan");
    std::vector<std::string> arguments = {network,
                                          "--mode=inference",
                                          "--machine=dgx_h100",
                                          "--nodes=1",
                                          "--plan=data_parallel",
                                          "--devices_per_node=1",
                                          "--device_memory_gib=1",
                                          "--out=" + plan,
                                          "--json=" + json};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProgramResult result = RunBinary("isomer-optimize", arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("samples/s"));
    const absl::StatusOr<Plan> made = LoadPlan(plan);
    EXPECT_TRUE(made.ok()) << made.status();
    if (!made.ok()) return int64_t{0};
    EXPECT_THAT(*ReadFile(json), HasSubstr("\"batches\""));
    return made->model.graph.node(StatesOf(made->model.graph)[0].input).outputs[0].dims[0].size;
  };
  // A cache of a sample takes 16 MiB, weights about 70.
  EXPECT_EQ(batch_of({"--objective=throughput"}), 32);
  const int64_t in_time = batch_of({"--objective=throughput", "--most_step_ms=0.15"});
  EXPECT_GE(in_time, 1);
  EXPECT_LT(in_time, 32);
  const ProgramResult refused = RunBinary(
      "isomer-optimize",
      {network, "--machine=dgx_h100", "--out=" + ScratchFile("no"), "--objective=throughput"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--objective is for --mode=inference"));
  ExpectGoldenMessages("isomer-optimize", refused.err);
}

// A batch of a power of two would leave one of three devices idle.
TEST(Inference, TheBatchOfMostThroughputIsSharedOutByAllDevices) {
  const std::string json = ScratchFile("three.json");
  const ProgramResult result = RunBinary(
      "isomer-optimize", {"zoo:mlp?layers=4&inputs=16&hidden=1024&classes=16", "--mode=inference",
                          "--machine=dgx_h100", "--nodes=1", "--devices_per_node=3",
                          "--device_memory_gib=0.03", "--objective=throughput", "--cache=false",
                          "--out=" + ScratchFile("three.plan"), "--json=" + json});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string summary = *ReadFile(json);
  for (const char* batch : {"1", "2", "3", "6", "12", "24"}) {
    EXPECT_THAT(summary, HasSubstr(absl::StrCat("\"batch\": ", batch, ",")));
  }
  EXPECT_THAT(result.out, HasSubstr("batch in 8 micro-batches over 3 devices of a node"));
}

// Three data-parallel pipelines cannot share out a batch of 1 or 2.
TEST(Inference, ABatchTooSmallForABaselineIsPassedOver) {
  const std::string json = ScratchFile("pipelines.json");
  const ProgramResult result = RunBinary(
      "isomer-optimize",
      {"zoo:mlp?layers=2&inputs=16&hidden=64&classes=16", "--mode=inference", "--machine=dgx_h100",
       "--nodes=1", "--devices_per_node=6", "--device_memory_gib=0.0005", "--objective=throughput",
       "--plan=grid", "--pipeline=2", "--out=" + ScratchFile("pipelines.plan"), "--json=" + json});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(*ReadFile(json), HasSubstr("\"batch\": 3,"));
  EXPECT_THAT(*ReadFile(json), Not(HasSubstr("\"batch\": 2,")));
}

TEST(Inference, RefusesWhatItCannotGenerate) {
  const std::string decoder = Decoder("gpt", "1");
  const auto error = [](const std::vector<std::string>& arguments) {
    const ProgramResult result = RunBinary("isomer-run", arguments);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    ExpectGoldenMessages("isomer-run", result.err);
    return result.err;
  };
  EXPECT_THAT(error({decoder, "--generate=4"}), HasSubstr("--generate needs --prompt"));
  EXPECT_THAT(error({decoder, "--generate=0", "--prompt=1"}), HasSubstr("must be positive"));
  EXPECT_THAT(error({decoder, "--generate=9223372036854775807", "--prompt=1"}),
              HasSubstr("--generate is at most"));
  EXPECT_THAT(error({decoder, "--prompt=1"}), HasSubstr("--prompt needs --generate"));
  EXPECT_THAT(error({decoder, "--generate=4", "--prompt=1,x"}), HasSubstr("token ids"));
  EXPECT_THAT(error({decoder, "--generate=4", "--prompt=1/2/3"}), HasSubstr("3 samples"));
  EXPECT_THAT(error({decoder, "--generate=4", "--prompt=1,2/3"}), HasSubstr("different lengths"));
  EXPECT_THAT(error({decoder, "--generate=16", "--prompt=1,2"}), HasSubstr("a step sees 16"));
  EXPECT_THAT(error({Decoder("gpt", "3"), "--generate=4", "--prompt=1"}),
              HasSubstr("takes 3 tokens of a sample"));
  EXPECT_THAT(error({decoder, "--generate=4", "--prompt=1,2", "--prefill=" + Decoder("gpt", "3")}),
              HasSubstr("of the last token of a step of 3"));
  EXPECT_THAT(error({"zoo:mlp", "--generate=4", "--prompt=1"}),
              HasSubstr("leaves nothing to the next"));
  EXPECT_THAT(error({decoder, "--generate=4", "--prompt=1", "--steps=3"}),
              HasSubstr("does not go with --generate"));
}

}  // namespace
}  // namespace isomer
