// Plans written for the frameworks that people train with, without these: what is refused, that
// files are Python, and that settings mean the plan that they were made from.
// scripts/check_pytorch_export.sh and check_jax_export.sh run them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/examples.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/file.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class FrameworkExport : public testing::Test {
 protected:
  ProgramResult Optimize(std::vector<std::string> flags) const {
    flags.insert(flags.end(), machine_.begin(), machine_.end());
    flags.insert(flags.end(), {"--cache=false", "--json=" + json_});
    return RunBinary("isomer-optimize", flags);
  }
  void MakePlan(const std::string& model, std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {model, "--out=" + plan_});
    const ProgramResult made = Optimize(std::move(flags));
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  ProgramResult Export(const std::string& to, const std::string& out,
                       const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"export", plan_, "--to=" + to, "--out=" + out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunBinary("isomer-optimize", arguments);
  }
  // What a device holds tells configurations apart. (Steps differ a little, as buckets are chosen.)
  std::string PeakBytes() const {
    const std::string json = ReadFile(json_).value();
    const size_t at = json.find("\"predicted_peak_bytes\"");
    return json.substr(at, json.find_first_of(",\n", at) - at);
  }

  static std::string LineWith(const std::string& text, const std::string& part) {
    const size_t at = text.find(part);
    if (at == text.npos) return "no line with " + part;
    const size_t begin = text.rfind('\n', at) + 1;
    return text.substr(begin, text.find('\n', at) - begin);
  }
  // Where there is a Python to ask.
  static void ExpectPython(const std::string& path) {
    if (std::system("python3 --version >/dev/null 2>&1") != 0) return;
    const std::string parse = "python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' '";
    EXPECT_EQ(std::system(absl::StrCat(parse, path, "'").c_str()), 0);
  }

  const std::vector<std::string> machine_ = {"--machine=dgx_h100", "--nodes=1",
                                             "--devices_per_node=4"};
  const std::string plan_ = ScratchFile("net.plan"), json_ = ScratchFile("net.json");
};

TEST_F(FrameworkExport, PyTorchHasNoLion) {
  MakePlan("zoo:mlp?layers=2&inputs=8&hidden=8&classes=4&batch=8", {"--optimizer=lion"});
  const std::string out = ScratchFile("lion_plan.py");
  const ProgramResult exported = Export("pytorch", out);
  EXPECT_EQ(exported.exit_code, 1);
  EXPECT_THAT(exported.err, HasSubstr("the optimizer lion: torch.optim has none"));
  EXPECT_FALSE(ReadFile(out).ok());
}

TEST_F(FrameworkExport, PyTorchIsPythonWithTheNamesOfTheWeights) {
  MakePlan(SourceFile("models/data/bert_tiny.onnx"), {"--plan=grid", "--tensor=2"});
  const std::string out = ScratchFile("bert_plan.py");
  const ProgramResult exported = Export("pytorch", out);
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  const std::string text = ReadFile(out).value();
  EXPECT_THAT(text, HasSubstr("MESH = (2, 2)"));
  EXPECT_THAT(text, HasSubstr("layers.0.attention"));
  EXPECT_TRUE(ReadFile(ScratchFile("bert_plan.safetensors")).ok());
  ExpectPython(out);
}

TEST_F(FrameworkExport, JaxHasAPlacementForEachWeightInputAndOutput) {
  MakePlan(SourceFile("models/data/bert_tiny.onnx"), {"--plan=grid", "--tensor=2"});
  const std::string out = ScratchFile("bert_jax.py");
  const ProgramResult exported = Export("jax", out);
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  const std::string text = ReadFile(out).value();
  EXPECT_THAT(text, HasSubstr("MESH = (2, 2)"));
  EXPECT_THAT(LineWith(text, "\"layers.0.attention.query.bias\": "), HasSubstr("(64,), [R, S0], "));
  EXPECT_THAT(LineWith(text, "\"input_ids\": "), HasSubstr("None, [S0, R], "));
  EXPECT_THAT(LineWith(text, "\"loss\": "), HasSubstr("Output(None, [R, R])"));
  EXPECT_THAT(LineWith(text, "RECOMPUTES"), HasSubstr("False"));
  EXPECT_TRUE(ReadFile(ScratchFile("bert_jax.safetensors")).ok());
  ExpectPython(out);
}

// One model of all operators: the examples of the catalogue, their operands as weights, their
// results compared with other weights in one loss, so that everything has a gradient.
std::string ModelOfAllOperators() {
  Graph graph;
  TensorRef loss;
  const auto add = [&](const Operator& op, std::vector<TensorRef> inputs) {
    return *graph.AddOp(op, std::move(inputs));
  };
  for (const ExampleCall& example : Examples()) {
    const OperatorTraits& traits = TraitsOf(example.op.kind());
    std::vector<TensorRef> operands;
    for (size_t o = 0; o < example.operands.size(); ++o) {
      const TensorType& type = example.operands[o];
      const std::string name = absl::StrCat(example.name, ".", o);
      const bool is_float = type.dtype == DataType::kFloat32;
      operands.push_back(is_float ? graph.AddWeight(name, type) : graph.AddInput(name, type));
      if (is_float && traits.takes_positive_numbers) {
        operands.back() = add(Operator(OpKind::kExp), {operands.back()});
      }
    }
    const NodeId call = *graph.Add(example.op, operands, example.name);
    for (int t = 0; t < static_cast<int>(graph.node(call).outputs.size()); ++t) {
      const TensorRef result = {call, t};
      const TensorType& type = graph.type(result);
      if (type.dtype != DataType::kFloat32) {
        graph.AddOutput(absl::StrCat(example.name, "_", t), result);
        continue;
      }
      const TensorRef other = graph.AddWeight(absl::StrCat(example.name, ".result", t), type);
      const TensorRef off = add(Operator(OpKind::kMeanSquaredError), {result, other});
      loss = loss.node.value < 0 ? off : add(Operator(OpKind::kAdd), {loss, off});
    }
  }
  graph.AddOutput("loss", loss);
  return graph.ToString();
}

// The scripts that run exports read it from a file.
TEST_F(FrameworkExport, AModelOfAllOperators) {
  const std::string model = SourceFile("tests/integration/all_operators.txt");
  if (const char* record = std::getenv("ISOMER_RECORD_OPERATORS"); record != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(record, ModelOfAllOperators()).ok());
  }
  EXPECT_TRUE(ReadFile(model).value() == ModelOfAllOperators())
      << "not what the examples are: run this test with ISOMER_RECORD_OPERATORS=" << model;
  const ProgramResult made =
      RunBinary("isomer-optimize", {model, "--loss=none:loss", "--machine=dgx_h100", "--nodes=1",
                                    "--devices_per_node=1", "--cache=false", "--out=" + plan_});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  for (const std::string to : {"pytorch", "jax"}) {
    const std::string out = ScratchFile(to + ".py");
    const ProgramResult exported = Export(to, out);
    ASSERT_EQ(exported.exit_code, 0) << exported.err;
    ExpectPython(out);
  }
}

// Where weights lie between steps and when gradients are summed is what tells the stages apart.
TEST_F(FrameworkExport, ZeroInJaxIsAPlacement) {
  const std::string out = ScratchFile("zero.py");
  const auto text_of = [&](std::vector<std::string> flags) {
    MakePlan("zoo:mlp?layers=2&inputs=16&hidden=16&classes=4&batch=16", std::move(flags));
    const ProgramResult exported = Export("jax", out);
    EXPECT_EQ(exported.exit_code, 0) << exported.err;
    return ReadFile(out).value();
  };
  const std::vector<std::string> micro_batches = {"--plan=grid", "--micro_batch_size=2"};
  const auto with = [&](const std::string& update) {
    std::vector<std::string> flags = micro_batches;
    flags.push_back("--update=" + update);
    return text_of(flags);
  };
  const std::string weight = "\"layer0/dense.weight\": ";
  EXPECT_THAT(LineWith(with("all_reduce"), weight),
              ContainsRegex("[[]R[]], .*, summed=[[]P[]][)]"));
  EXPECT_THAT(LineWith(with("sharded"), weight),
              ContainsRegex("[[]S0[]], .*, read=[[]R[]], summed=[[]P[]][)]"));
  EXPECT_THAT(LineWith(with("sharded_gradients"), weight),
              ContainsRegex("[[]S0[]], .*, read=[[]R[]], summed=[[]P[]], sums_each=True[)]"));
  const std::string zero3 = with("sharded_weights");
  EXPECT_THAT(LineWith(zero3, weight), ContainsRegex("[[]S0[]], Drawn[^=]*$"));
  EXPECT_THAT(LineWith(zero3, "RECOMPUTES"), HasSubstr("True"));
}

TEST_F(FrameworkExport, JaxHasNoPipelines) {
  MakePlan("zoo:mlp?layers=4&inputs=16&hidden=16&classes=4&batch=16",
           {"--plan=grid", "--pipeline=2", "--micro_batch_size=4"});
  const std::string out = ScratchFile("pipeline.py");
  const ProgramResult exported = Export("jax", out);
  EXPECT_EQ(exported.exit_code, 1) << exported.out;
  EXPECT_THAT(exported.err, HasSubstr("cannot be said in jax: a pipeline of 2 stages"));
  EXPECT_EQ(std::count(exported.err.begin(), exported.err.end(), '\n'), 1) << exported.err;
  EXPECT_FALSE(ReadFile(out).ok());
}

// A name that would end the string, or the comment, that it is put into.
TEST_F(FrameworkExport, NamesDoNotBreakOut) {
  MakePlan("zoo:mlp?layers=2&inputs=16&hidden=16&classes=4&batch=8", {"--plan=data_parallel"});
  for (const std::string to : {"pytorch", "jax"}) {
    const std::string out = ScratchFile("a'b\"c.py");
    const ProgramResult exported = Export(to, out);
    ASSERT_EQ(exported.exit_code, 0) << exported.err;
    const std::string plain = ScratchFile("plain.py");
    std::filesystem::copy_file(out, plain, std::filesystem::copy_options::overwrite_existing);
    ExpectPython(plain);
  }
}

TEST_F(FrameworkExport, SettingsMeanThePlan) {
  const std::string model =
      "zoo:bert_large?layers=4&hidden=256&heads=4&intermediate=1024&seq=64&batch=16";
  MakePlan(model, {"--plan=grid", "--tensor=2", "--optimizer=adam", "--update=sharded"});
  const std::string planned = PeakBytes();
  for (const std::string to : {"megatron", "deepspeed", "torchtitan"}) {
    const std::string settings = ScratchFile(to == "deepspeed"    ? "settings.json"
                                             : to == "torchtitan" ? "settings.toml"
                                                                  : "settings.txt");
    const ProgramResult exported = Export(to, settings, machine_);
    if (exported.exit_code == 1) {
      // What it cannot say is said, and nothing is written.
      EXPECT_THAT(exported.err, Not(testing::IsEmpty())) << to;
      EXPECT_FALSE(ReadFile(settings).ok()) << to;
      continue;
    }
    ASSERT_EQ(exported.exit_code, 0) << to << ": " << exported.err;
    const ProgramResult compared = Optimize({model, "--compare=" + settings, "--optimizer=adam",
                                             "--budget=1", "--out=" + ScratchFile("better.plan")});
    ASSERT_EQ(compared.exit_code, 0) << to << ": " << compared.err;
    EXPECT_TRUE(absl::StrContains(ReadFile(json_).value(), planned)) << to << " " << planned;
  }
}

TEST_F(FrameworkExport, TheSummaryNamesWhatWasWritten) {
  MakePlan(SourceFile("models/data/bert_tiny.onnx"), {"--plan=data_parallel"});
  const std::string out = ScratchFile("summary.py"), json = ScratchFile("summary.json");
  ASSERT_EQ(Export("pytorch", out, {"--json=" + json}).exit_code, 0);
  const std::string summary = ReadFile(json).value_or("");
  EXPECT_THAT(summary, HasSubstr("summary.py\""));
  EXPECT_THAT(summary, HasSubstr("summary.safetensors\""));
}

TEST_F(FrameworkExport, WhatIsAskedWronglyIsOneLine) {
  MakePlan("zoo:mlp?layers=2&inputs=16&hidden=16&classes=4&batch=8", {"--plan=data_parallel"});
  const auto refuse = [](const ProgramResult& result, const std::string& why) {
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_THAT(result.err, HasSubstr(why));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  const std::string out = ScratchFile("out");
  refuse(Export("tensorflow", out), "--to=tensorflow: there are pytorch, jax, megatron");
  refuse(Export("megatron", out), "--to=megatron needs --machine");
  refuse(Export("jax", out, machine_), "--machine is for settings");
  refuse(Export("pytorch", plan_), plan_);
  refuse(Export("pytorch", ScratchFile("none/out.py")), "folder");
  refuse(RunBinary("isomer-optimize", {"export", "nowhere.plan", "--to=pytorch", "--out=" + out}),
         "nowhere.plan: no such file");
  refuse(RunBinary("isomer-optimize", {"export", "--to=pytorch"}), "export takes one PLAN");
  EXPECT_FALSE(ReadFile(out).ok());
}

// What is made of weights alone is the same in all micro-batches, and they take their parts of it;
// gloo sends no views.
TEST_F(FrameworkExport, MicroBatchesTakeTheirPartsOfWhatIsTheSameInAll) {
  const std::string model = ScratchFile("net.txt"), out = ScratchFile("net_plan.py");
  ASSERT_TRUE(WriteFileAtomically(model, R"(%0 = input "x" : f32[8,4]
%1 = weight "b" : f32[1,4]
%2 = weight "w" : f32[4,4]
%3 = weight "v" : f32[4,4]
%4 = input "target" : f32[8,4]
%5 = expand(%1) {shape=[8,4]} : f32[8,4]
%6 = matmul(%0, %2) : f32[8,4]
%7 = maximum(%6, %5) : f32[8,4]
%8 = matmul(%7, %3) : f32[8,4]
%9 = matmul(%8, %2) : f32[8,4]
%10 = mse(%9, %4) : f32[]
output "loss" = %10
)")
                  .ok());
  MakePlan(model, {"--plan=grid", "--pipeline=4", "--micro_batch_size=2"});
  ASSERT_EQ(Export("pytorch", out).exit_code, 0);
  const std::string text = ReadFile(out).value();
  EXPECT_THAT(text, ContainsRegex("= self.move\\(self.micro_batch\\(expand_[0-9]+, 0\\)"));
  EXPECT_THAT(LineWith(text, "        return w.contiguous(), "), HasSubstr(".contiguous()"));
  ExpectPython(out);
}

// PyTorch's optimizers refuse to have no parameters: that of a pipeline stage without weights has
// one of no elements.
TEST_F(FrameworkExport, AStageWithoutWeightsHasAnOptimizer) {
  if (std::system("python3 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no python3";
  MakePlan("zoo:mlp?layers=1&inputs=8&hidden=8&classes=8&batch=8", {"--plan=pipeline"});
  const std::string out = ScratchFile("net_plan.py"), script = ScratchFile("make_optimizer.py");
  ASSERT_EQ(Export("pytorch", out).exit_code, 0);
  ASSERT_TRUE(WriteFileAtomically(script, R"(import ast, sys
from types import SimpleNamespace
names = {"OPTIMIZER": "sgd", "torch": SimpleNamespace(
    empty=lambda size: ["empty"] * (size + 1), nn=SimpleNamespace(Parameter=lambda x: x[0]),
    optim=SimpleNamespace(SGD=lambda parameters, lr, momentum: list(parameters)))}
body = [node for node in ast.parse(open(sys.argv[1]).read()).body
        if isinstance(node, ast.FunctionDef) and node.name == "make_optimizer"]
exec(compile(ast.Module(body, []), "net", "exec"), names)
make = names["make_optimizer"]
sys.exit(0 if make(iter(()), 0.1) == ["empty"] and make(iter("ab"), 0.1) == ["a", "b"] else 1)
)")
                  .ok());
  EXPECT_EQ(std::system(absl::StrCat("python3 '", script, "' '", out, "'").c_str()), 0);
}

}  // namespace
}  // namespace isomer
