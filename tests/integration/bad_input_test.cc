// Every program, given every kind of bad file: one clear line that names the file, exit code 2.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "models/onnx/import/onnx_import.h"
#include "pcg/support/file.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

// A place where a program reads a file: `FILE` in an argument stands for it.
struct Reader {
  std::string name;
  std::string program;
  std::vector<std::string> arguments;
  std::string valid;  // a good file of that kind: a source file, or one that MakeValid makes
};

std::vector<Reader> Readers() {
  const std::string mlp = "zoo:mlp?layers=3&inputs=64&hidden=8&classes=10&batch=8";
  const std::string machine = "--machine=laptop_cpu", out = "--out=OUT";
  return {
      {"OptimizeOnnx", "isomer-optimize", {"FILE", machine, out}, "models/data/bert_tiny.onnx"},
      {"OptimizeModel", "isomer-optimize", {"FILE", machine, out}, "small.model"},
      {"OptimizeMachine",
       "isomer-optimize",
       {mlp, "--machine=FILE", out},
       "optimizer/machines/laptop_cpu.textproto"},
      {"OptimizeRules",
       "isomer-optimize",
       {mlp, machine, "--rules=FILE", out},
       "rules/default.rules"},
      {"OptimizeProfile",
       "isomer-optimize",
       {mlp, machine, "--profile=FILE", out},
       "small.profile"},
      {"VerifyRules", "isomer-verify", {"rules", "FILE"}, "rules/default.rules"},
      {"VerifyPlan", "isomer-verify", {"plan", "FILE"}, "small.plan"},
      {"VerifyPlanRules", "isomer-verify", {"plan", "PLAN", "--rules=FILE"}, "rules/default.rules"},
      {"AuditUnity", "isomer-verify", {"unity", "FILE"}, "tests/data/audit/unity.json"},
      {"OptimizeGraphText", "isomer-optimize", {"FILE", machine, out}, "small.pcg"},
      {"RunPlan", "isomer-run", {"FILE", "--backend=cpu"}, "small.plan"},
      {"RunModel", "isomer-run", {"FILE", "--backend=cpu"}, "small.model"},
      {"RunOnnx", "isomer-run", {"FILE", "--backend=cpu"}, "models/data/digits_cnn.onnx"},
      {"ProfileOnnx",
       "isomer-profile",
       {"FILE", "--backend=cpu", out},
       "models/data/digits_cnn.onnx"},
  };
}

void PrintTo(const Reader& reader, std::ostream* out) { *out << reader.name; }

// The files that are not in the source tree, made by the programs themselves.
std::string ValidFile(const std::string& name) {
  if (!absl::StartsWith(name, "small.")) return SourceFile(name);
  static auto& made = *new std::map<std::string, std::string>;
  std::string& path = made[name];
  if (!path.empty()) return path;
  path = testing::TempDir() + absl::StrCat("/isomer-bad-input-", getpid(), "-", name);
  const std::string mlp = "zoo:mlp?layers=3&inputs=64&hidden=8&classes=10&batch=8";
  ProgramResult result;
  if (name == "small.plan") {
    result = RunBinary("isomer-optimize", {mlp, "--machine=laptop_cpu", "--out=" + path});
  } else if (name == "small.profile") {
    result = RunBinary("isomer-profile", {mlp, "--backend=cpu", "--devices=1",
                                          "--seconds_per_kernel=0.002", "--out=" + path});
  } else if (name == "small.model") {
    result = RunBinary("isomer-run", {mlp, "--steps=1", "--out=" + path});
  } else {
    EXPECT_TRUE(WriteFileAtomically(path,
                                    "%0 = input \"x\" : f32[4,8]\n%1 = weight \"w\" : f32[8,2]\n"
                                    "%2 = matmul(%0, %1) : f32[4,2]\noutput \"y\" = %2\n")
                    .ok());
    result.exit_code = 0;
  }
  EXPECT_EQ(result.exit_code, 0) << name << ": " << result.err;
  return path;
}

class BadInput : public testing::TestWithParam<Reader> {
 protected:
  ProgramResult RunWith(const std::string& path, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = GetParam().arguments;
    arguments.insert(arguments.end(), more.begin(), more.end());
    for (std::string& argument : arguments) {
      const auto replace = [&](const std::string& what, const std::string& with) {
        const size_t at = argument.find(what);
        if (at != std::string::npos) argument.replace(at, what.size(), with);
      };
      replace("FILE", path);
      replace("OUT", ScratchFile("out"));
      if (argument == "PLAN") argument = ValidFile("small.plan");
    }
    return RunBinary(GetParam().program, arguments);
  }
  // Same extension as the valid file: readers of several kinds look at it.
  std::string BadPath() {
    const std::string& valid = GetParam().valid;
    return ScratchFile("bad" + valid.substr(valid.rfind('.')));
  }
  // What a text file of ours would call itself.
  std::string kind() {
    return absl::StrContains(GetParam().valid, "machines/") ? "machine" : "model";
  }
  void ExpectRefused(const std::string& contents, const std::string& what) {
    SCOPED_TRACE(what);
    const std::string path = BadPath();
    ASSERT_TRUE(WriteFileAtomically(path, contents).ok());
    const ProgramResult result = RunWith(path);
    EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_TRUE(absl::StrContains(result.err, path)) << result.err;
    EXPECT_FALSE(ReadFile(ScratchFile("out")).ok()) << "something was written";
  }
};

TEST_P(BadInput, Empty) { ExpectRefused("", "empty"); }

TEST_P(BadInput, CutInHalf) {
  const std::string valid = *ReadFile(ValidFile(GetParam().valid));
  // Half of a text file may be a smaller, valid one if the cut falls between two entries.
  ExpectRefused(valid.substr(0, valid.size() / 2 + 3), "cut");
}

TEST_P(BadInput, RandomBytes) {
  constexpr uint64_t kSeed = 17;
  std::mt19937_64 random(kSeed);
  std::string bytes(4096, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  ExpectRefused(bytes, absl::StrCat("random, seed ", kSeed));
}

TEST_P(BadInput, WrongVersion) {
  std::string bytes = *ReadFile(ValidFile(GetParam().valid));
  const std::string opset_13("\x42\x02\x10\x0d", 4);  // opset_import of ONNX
  if (absl::StartsWith(bytes, "ISOMER")) {
    bytes[24] = 99;  // pcg/support/proto_io.h
  } else if (const size_t at = bytes.find(opset_13); at != std::string::npos) {
    bytes[at + 3] = 99;
  } else {
    bytes = absl::StrCat("# isomer ", kind(), " v9\n", bytes);
  }
  ExpectRefused(bytes, "a version of the future");
}

TEST_P(BadInput, Absent) {
  const ProgramResult result = RunWith(ScratchFile("no_such_file.onnx"));
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_TRUE(absl::StrContains(result.err, "no_such_file")) << result.err;
}

// Nor by another name of the same file.
TEST_P(BadInput, IsNeverOverwritten) {
  const std::string valid = *ReadFile(ValidFile(GetParam().valid)), path = BadPath();
  ASSERT_TRUE(WriteFileAtomically(path, valid).ok());
  const std::string other = absl::StrCat(path, ".link");
  ASSERT_EQ(symlink(path.c_str(), other.c_str()), 0);
  for (const std::string& out : {path, other}) {
    const ProgramResult result = RunWith(path, {absl::StrCat("--json=", out)});
    EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
    EXPECT_TRUE(absl::StrContains(result.err, absl::StrCat("--json: ", out, ": it is read")))
        << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  EXPECT_EQ(*ReadFile(path), valid);
}

INSTANTIATE_TEST_SUITE_P(EveryReader, BadInput, testing::ValuesIn(Readers()),
                         [](const auto& info) { return info.param.name; });

TEST(BadFlags, UnknownFlagIsOneLineAndExitCode2) {
  for (const char* program :
       {"isomer-generate", "isomer-verify", "isomer-profile", "isomer-optimize", "isomer-run"}) {
    const ProgramResult result = RunBinary(program, {"--no_such_flag=1"});
    EXPECT_EQ(result.exit_code, 2) << program;
    EXPECT_TRUE(absl::StrContains(result.err, "no_such_flag")) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

// One line each, at once, and nothing is written.
TEST(BadFlags, WhatCannotBeIsRefused) {
  const std::string mlp = "zoo:mlp?layers=3&inputs=64&hidden=8&classes=10&batch=8";
  const std::string out = ScratchFile("out");
  const auto optimize = [&](const std::string& flag) {
    return std::vector<std::string>{mlp, "--machine=laptop_cpu", "--out=" + out, flag};
  };
  const auto optimize_also = [&](const std::string& first, const std::string& flag) {
    std::vector<std::string> arguments = optimize(first);
    arguments.push_back(flag);
    return arguments;
  };
  const auto of_inference = [&](const std::string& flag) {
    return optimize_also("--mode=inference", flag);
  };
  const auto of_fp8 = [&](const std::string& flag) {
    return optimize_also("--precision=fp8", flag);
  };
  const auto run = [&](const std::string& flag) { return std::vector<std::string>{mlp, flag}; };
  struct Refused {
    const char* program;
    std::vector<std::string> arguments;
    std::string why;
  };
  for (const auto& [program, arguments, why] : std::vector<Refused>{
           {"isomer-generate",
            {"--out=" + out, "--configurations=all"},
            "--configurations must be written, derived or both, not 'all'"},
           {"isomer-generate",
            {"--out=" + out, "--max_ops=5"},
            "--max_ops must be 1 to 4, as far as the written configurations go"},
           {"isomer-generate",
            {"--out=" + out, "--max_ops=1001", "--configurations=derived"},
            "--max_ops must be 1 to 1000"},
           {"isomer-optimize", optimize("--svg=x.svg"), "--svg is for --describe"},
           {"isomer-optimize", optimize("--threads=100000"), "there are 1 to 1024, or 0"},
           {"isomer-optimize", optimize("--time_limit=1e300"), "--time_limit is 0 to 1e+09"},
           {"isomer-optimize", optimize("--time_limit=nan"), "a finite number is expected"},
           {"isomer-optimize", optimize("--device_memory_gib=1e9"), "is 0 to 1e+06"},
           {"isomer-optimize", optimize("--dot=" + out), "it is --dot's file, too"},
           {"isomer-optimize", of_inference("--optimizer=adam"),
            "--optimizer is for --mode=training"},
           {"isomer-optimize", of_inference("--update=sharded"), "--update is for --mode=training"},
           {"isomer-optimize", of_inference("--bucket_bytes=0"),
            "--bucket_bytes is for --mode=training"},
           {"isomer-optimize", of_inference("--loss_alone"), "--loss_alone is for --mode=training"},
           {"isomer-optimize", of_fp8("--fp8_keep=none,ends"),
            "--fp8_keep: none does not go with others"},
           {"isomer-optimize", of_fp8("--fp8_keep="), "names of weights, ends or none"},
           {"isomer-optimize", of_fp8("--gradient_precision=float16"),
            "of --precision=fp8 there are float32, bfloat16 and auto"},
           {"isomer-optimize", {"--describe", mlp, "--out=" + out}, "is for a plan"},
           {"isomer-optimize", {"--describe", mlp, "--trace=" + out}, "--trace is of a plan"},
           {"isomer-optimize", {"--describe", mlp, "--json=" + out}, "--json is of a plan"},
           {"isomer-optimize",
            {"--describe", mlp, "--plan=megatron"},
            "--plan is not for --describe of a MODEL"},
           {"isomer-optimize",
            {"--describe", "--machine=laptop_cpu", "--budget=3"},
            "--budget is not for --describe of a machine"},
           {"isomer-optimize", {"--list_proposers", "--json=" + out}, "--json is of a plan"},
           {"isomer-optimize", {"--list_models", mlp}, "--list_models takes no MODEL"},
           {"isomer-optimize",
            {"--list_models", "--machine=laptop_cpu"},
            "--machine is not for --list_models"},
           {"isomer-optimize", optimize_also("--plan=zero3", "--search=mcmc"),
            "--search does not go with --plan=zero3"},
           {"isomer-optimize", optimize_also("--plan=megatron", "--budget=3"),
            "--budget does not go with --plan=megatron"},
           {"isomer-optimize", optimize_also("--plan=pipeline", "--whole_machine"),
            "--whole_machine does not go with --plan=pipeline: it has no pipelines"},
           {"isomer-optimize",
            {"zoo:mlp?layers=2&inputs=8&hidden=8&classes=4&batch=1", "--machine=dgx_h100",
             "--nodes=1", "--plan=pipeline", "--out=" + out},
            "--plan=pipeline: none of 6 calls: devices (8) divide by stages, a batch (1) by"},
           {"isomer-optimize", optimize_also("--plan=grid", "--whole_machine"),
            "--whole_machine does not go with --plan=grid, whose degrees say the devices"},
           {"isomer-optimize", optimize_also("--search=mcmc", "--alpha=1.1"),
            "--alpha does not go with --search=mcmc"},
           {"isomer-optimize", optimize_also("--search=exhaustive", "--nosplit"),
            "--split does not go with --search=exhaustive"},
           {"isomer-optimize", optimize_also("--whole_machine", "--steps_between_flushes=2"),
            "--steps_between_flushes is for pipelines, and --whole_machine has none"},
           {"isomer-optimize", optimize_also("--nocache", "--cache_dir=" + out),
            "--cache_dir does not go with --nocache"},
           {"isomer-optimize", optimize("--profile_of_another_device"),
            "--profile_of_another_device needs --profile"},
           {"isomer-generate",
            {"diff", "a.rules", "b.rules", "--json=" + out},
            "--json is not of diff, which prints alone"},
           {"isomer-generate",
            {"show", "a.rules", "--id=r1", "--json=" + out},
            "--json is not of show, which prints alone"},
           {"isomer-profile",
            {"--list_operators", "--json=" + out},
            "--json does not go with --list_operators"},
           {"isomer-profile", {"--list_operators", mlp}, "--list_operators takes no MODEL"},
           {"isomer-profile",
            {"--show=a.profile", "--devices=2"},
            "--devices does not go with --show"},
           {"isomer-run",
            {mlp, "--list_kernels", "--json=" + out},
            "--json does not go with --list_kernels"},
           {"isomer-run",
            {mlp, "--fetch=logits", "--json=" + out},
            "--json does not go with --fetch, which writes arrays"},
           {"isomer-run", run("--learning_rate=nan"), "a finite number is expected"},
           {"isomer-run", run("--learning_rate=-1"), "--learning_rate=-1: a number from 0"},
           {"isomer-run", run("--learning_rate=1e39"), "finite in float32"},
           {"isomer-run", run("--schedule=cosin"), "--schedule is constant, linear, cosine"},
           {"isomer-run", run("--final_rate=0.1"), "does not apply to --schedule=constant"},
           {"isomer-run",
            {mlp, "--schedule=linear", "--final_rate=2"},
            "--final_rate=2: a fraction"},
           {"isomer-run",
            {mlp, "--schedule=cosine", "--warmup_steps=10"},
            "--warmup_steps=10: the decay is over at step 10; fewer are expected"},
           {"isomer-run", run("--warmup_steps=-1"), "must not be negative"},
           {"isomer-run",
            {mlp, "--mode=inference", "--schedule=linear"},
            "--schedule is for --mode=training"},
           {"isomer-run", run("--beta1=0.8"), "--beta1 does not apply to --optimizer=sgd"},
           {"isomer-run",
            {mlp, "--optimizer=lion", "--epsilon=1"},
            "--epsilon does not apply to --optimizer=lion"},
           {"isomer-run", {mlp, "--optimizer=adam", "--beta2=1"}, "--beta2=1: a number from 0"},
           {"isomer-run", run("--optimizer=adamw"),
            "there are sgd, momentum, adam, lion, adagrad, lamb and muon"},
           {"isomer-run", run("--weight_decay=-1"), "--weight_decay=-1: a number from 0"},
           {"isomer-run", run("--no_decay=w"), "--no_decay needs a --weight_decay above 0"},
           {"isomer-run",
            {mlp, "--weight_decay=1", "--no_decay=[w"},
            "--no_decay=[w: is no regular expression"},
           {"isomer-run",
            {mlp, "--weight_decay=1", "--no_decay=no such"},
            "matches no weight that is trained"},
           {"isomer-run", run("--clip_norm=-1"), "--clip_norm must not be negative"},
           {"isomer-run", run("--data=/dev/zero"), "/dev/zero: is no regular file"},
           {"isomer-run", {"zoo:llama_70b"}, "and this computer has"},
           {"isomer-run", {"zoo:llama_70b", "--out=x.onnx"}, "above 2 GB, the limit of ONNX"},
           {"isomer-run",
            {"zoo:qwen3_moe?layers=1&hidden=32&vocabulary=64&seq=8&batch=4", "--out=x.onnx"},
            "--out=x.onnx: "},
           {"isomer-run", run("--out=no/such/x.model"), "the folder to write to does not exist"}}) {
    const ProgramResult result = RunBinary(program, arguments);
    EXPECT_EQ(result.exit_code, 2) << why << result.out;
    EXPECT_TRUE(absl::StrContains(result.err, why)) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_FALSE(ReadFile(out).ok()) << why;
  }
}

TEST(Lists, EmptyItemsNameNothing) {
  const ProgramResult result = RunBinary(
      "isomer-generate",
      {"check", SourceFile("rules/default.rules"), "--ids=r00b628fc6e6a,,", "--instances=5"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(absl::StrContains(result.out, "1 rules")) << result.out;
}

// What is saved as .onnx is read by who reads ONNX: it gives what the plan's weights give.
TEST(TrainedModels, AreOnnxUnderThatName) {
  const std::string onnx = ScratchFile("trained.onnx"), json = ScratchFile("losses.json");
  const std::string mlp = "zoo:mlp?layers=3&inputs=64&hidden=8&classes=10&batch=8";
  const ProgramResult saved = RunBinary("isomer-run", {mlp, "--steps=3", "--out=" + onnx});
  ASSERT_EQ(saved.exit_code, 0) << saved.err;
  EXPECT_FALSE(absl::StartsWith(*ReadFile(onnx), "ISOMER"));
  const ProgramResult described = RunBinary("isomer-optimize", {"--describe", onnx});
  EXPECT_EQ(described.exit_code, 0) << described.err;
  EXPECT_TRUE(absl::StrContains(described.out, "matmul 3")) << described.out;
  const ProgramResult run = RunBinary("isomer-run", {onnx, "--mode=inference", "--steps=1"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

// What is stored and not trained, such as running statistics, is saved, too: nothing but data is
// fed.
TEST(TrainedModels, KeepWhatIsNotTrained) {
  const std::string onnx = ScratchFile("statistics.onnx");
  const ProgramResult saved =
      RunBinary("isomer-run",
                {"zoo:resnext50?blocks1=1&blocks2=1&blocks3=1&blocks4=1&side=32&training=0&batch=2",
                 "--mode=inference", "--steps=1", "--out=" + onnx});
  ASSERT_EQ(saved.exit_code, 0) << saved.err;
  const absl::StatusOr<Model> model = ImportOnnx(onnx);
  ASSERT_TRUE(model.ok()) << model.status();
  int inputs = 0;
  for (int id = 0; id < model->graph.num_nodes(); ++id) {
    inputs += model->graph.node(id).op.kind() == OpKind::kInput ? 1 : 0;
  }
  EXPECT_EQ(inputs, 1);
}

TEST(Help, IsShortAndHasAnExample) {
  for (const char* program :
       {"isomer-generate", "isomer-verify", "isomer-profile", "isomer-optimize", "isomer-run"}) {
    const ProgramResult result = RunBinary(program, {"--help"});
    EXPECT_EQ(result.exit_code, 0) << program;
    EXPECT_TRUE(absl::StrContains(result.out, program)) << result.out;
    EXPECT_TRUE(absl::StrContains(result.out, "xample")) << result.out;
    // Of each topic.
    for (absl::string_view part : absl::StrSplit(result.out, "\n\n")) {
      EXPECT_LE(std::count(part.begin(), part.end(), '\n'), 72) << part;
    }
  }
}

}  // namespace
}  // namespace isomer
