// Operators that a user declares, from their text to plans that run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "pcg/support/file.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::HasSubstr;

std::string Operators() {
  return absl::StrCat("--operators=", SourceFile("models/data/operators/examples.txt"));
}

std::string Gated() { return SourceFile("models/data/operators/gated.txt"); }

ProgramResult Succeed(const std::string& program, std::vector<std::string> arguments) {
  ProgramResult result = RunBinary(program, arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result;
}

void ExpectMessage(const ProgramResult& result, const std::string& message) {
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_THAT(result.err, HasSubstr(message));
  EXPECT_TRUE(result.err.ends_with("\n")) << result.err;
}

std::string RulesOf(const std::string& operators) {
  const std::string file = ScratchFile("declared.rules");
  const ProgramResult made =
      Succeed("isomer-generate", {Operators(), absl::StrCat("--ops=", operators), "--max_ops=1",
                                  absl::StrCat("--out=", file)});
  EXPECT_THAT(made.out, HasSubstr(" 0 refuted, 0 unknown"));
  return file;
}

TEST(DeclaredOperatorFiles, FromTextToAPlanOnEightDevices) {
  const std::string rules = absl::StrCat("--rules=default,", RulesOf("scaled_glu"));
  const std::string plan = ScratchFile("gated.plan");
  const ProgramResult planned =
      Succeed("isomer-optimize", {Gated(), Operators(), rules, "--machine=laptop_cpu", "--nodes=2",
                                  "--plan=data_parallel", absl::StrCat("--out=", plan)});
  EXPECT_THAT(planned.out, HasSubstr("scaled_glu"));
  EXPECT_THAT(planned.out, HasSubstr("8 devices"));
  EXPECT_THAT(Succeed("isomer-verify", {"plan", plan, Operators(), rules}).out,
              HasSubstr("accepted"));
  EXPECT_THAT(Succeed("isomer-run", {plan, Operators(), "--check", "--steps=1"}).out,
              HasSubstr("agrees"));
  // Who does not know the operator is told how to.
  const ProgramResult unknown = RunBinary("isomer-run", {plan, "--steps=1"});
  ExpectMessage(unknown, "unknown operator 'scaled_glu'; --operators=FILE");
}

// Each of the three, split in all ways that its rules know, computes what the whole does.
TEST(DeclaredOperatorFiles, ArePlannedInParts) {
  const std::string rules = absl::StrCat("--rules=default,", RulesOf("scaled_rope,state_step"));
  for (const auto& [name, graph] :
       std::vector<std::pair<std::string, std::string>>{{"rope", R"(%0 = input "x" : f32[8,4,16,32]
%1 = weight "w" : f32[32,32]
%2 = constant "cosine" : f32[16,16]
%3 = constant "sine" : f32[16,16]
%4 = matmul(%0, %1) : f32[8,4,16,32]
%5 = scaled_rope(%4, %2, %3) {scale=0.5} : f32[8,4,16,32]
%6 = input "target" : f32[8,4,16,32]
%7 = mse(%5, %6) : f32[]
output "loss" = %7
)"},
                                                        {"state", R"(%0 = input "x" : f32[8,32]
%1 = weight "w" : f32[32,32]
%2 = matmul(%0, %1) : f32[8,32]
%3 = weight "a" : f32[32,4]
%4 = input "b" : f32[8,4]
%5 = input "r" : f32[8,4]
%6 = input "h" : f32[8,32,4]
%7 = state_step(%2, %3, %0, %4, %5, %6) : f32[8,32,4], f32[8,32]
%8 = input "target" : f32[8,32]
%9 = mse(%7.1, %8) : f32[]
output "loss" = %9
)"}}) {
    SCOPED_TRACE(name);
    const std::string model = ScratchFile(absl::StrCat(name, ".txt"));
    ASSERT_TRUE(WriteFileAtomically(model, graph).ok());
    const std::string plan = ScratchFile(absl::StrCat(name, ".plan"));
    Succeed("isomer-optimize", {model, Operators(), rules, "--machine=laptop_cpu",
                                "--plan=data_parallel", absl::StrCat("--out=", plan)});
    Succeed("isomer-verify", {"plan", plan, Operators(), rules});
    EXPECT_THAT(Succeed("isomer-run", {plan, Operators(), "--check", "--steps=1"}).out,
                HasSubstr("agrees"));
  }
}

TEST(DeclaredOperatorFiles, AreRefusedByNameInExportsToFrameworks) {
  const std::string plan = ScratchFile("exported.plan"), json = ScratchFile("exported.json");
  Succeed("isomer-optimize", {Gated(), Operators(), "--machine=laptop_cpu", "--devices_per_node=2",
                              "--plan=data_parallel", absl::StrCat("--out=", plan)});
  const ProgramResult refused =
      RunBinary("isomer-optimize", {"export", plan, "--to=pytorch", Operators(), "--json=" + json,
                                    absl::StrCat("--out=", ScratchFile("exported.py"))});
  EXPECT_EQ(refused.exit_code, 1) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("scaled_glu: there is no form for this operator"));
  EXPECT_THAT(ReadFile(json).value_or(""), HasSubstr("\"written\": []"));
}

TEST(DeclaredOperatorFiles, AreNodesOfOnnx) {
  const std::string file = ScratchFile("gated.onnx");
  Succeed("isomer-optimize", {Gated(), Operators(), "--machine=laptop_cpu", "--devices_per_node=1",
                              "--mode=inference", absl::StrCat("--export_onnx=", file)});
  const std::string plan = ScratchFile("again.plan");
  const ProgramResult again =
      Succeed("isomer-optimize", {file, Operators(), "--machine=laptop_cpu", "--mode=inference",
                                  absl::StrCat("--out=", plan)});
  EXPECT_THAT(again.out, HasSubstr("scaled_glu"));
  EXPECT_THAT(Succeed("isomer-run", {plan, Operators(), "--check", "--steps=1"}).out,
              HasSubstr("agrees"));
  ExpectMessage(
      RunBinary("isomer-optimize", {file, "--machine=laptop_cpu", absl::StrCat("--out=", plan)}),
      "('ScaledGlu') of 'com.example'");
}

// A proof is of one declaration.
TEST(DeclaredOperatorFiles, RulesAreOfTheDeclarationThatTheyWereProvedOf) {
  const std::string rules = RulesOf("scaled_glu");
  const absl::StatusOr<std::string> text =
      ReadFile(SourceFile("models/data/operators/examples.txt"));
  ASSERT_TRUE(text.ok());
  const std::string other = ScratchFile("other.txt");
  ASSERT_TRUE(WriteFileAtomically(other, absl::StrReplaceAll(*text, {{"value[.., c]\n  onnx",
                                                                      "value[.., c] * c\n  onnx"}}))
                  .ok());
  ExpectMessage(
      RunBinary("isomer-optimize", {Gated(), absl::StrCat("--operators=", other),
                                    "--machine=laptop_cpu", absl::StrCat("--rules=default,", rules),
                                    absl::StrCat("--out=", ScratchFile("no.plan"))}),
      "proved of another declaration");
  ExpectMessage(RunBinary("isomer-verify", {"rules", rules}),
                "which nothing declares; --operators=FILE does");
  // Comments and spaces are nothing.
  const std::string same = ScratchFile("same.txt");
  ASSERT_TRUE(WriteFileAtomically(
                  same, absl::StrCat("# mine\n", absl::StrReplaceAll(*text, {{"  ", "\t"}})))
                  .ok());
  Succeed("isomer-verify", {"rules", rules, absl::StrCat("--operators=", same), "--no_cache"});
}

TEST(DeclaredOperatorFiles, BadOnesAreSaidInALine) {
  const std::string file = ScratchFile("bad.txt");
  for (const auto& [text, error] : std::vector<std::pair<std::string, std::string>>{
           {"operator f x[n]\n  Y[n] = x[n\n", "bad.txt:3:1: ',' is expected"},
           {"operator gelu x[n]\n  Y[n] = x[n]\n  example gelu f32[4]\n",
            "bad.txt:1:10: there is an operator 'gelu' already"},
           {"operator f x[n]\n  Y[n] = x[n+1]\n  example f f32[4]\n",
            "bad.txt:2:10: f: index 4 of dim 0 of x, whose size is 4"},
           {"operator f x[n]\n  Y[n] = x[n]\n  example f f32[4,2]\n",
            "bad.txt:3:11: f: operand 0 has rank 2"},
           {"operator f x[n]\n  Y[n] = x[n]\n  example f i32[4]\n", "bad.txt:3:11: "},
           {"operator f x[n]\n  Y[n] = x[n]\n  example relu f32[4]\n",
            "bad.txt:3:11: an example of relu, not of f"},
           {std::string("\0\1\2", 3), "bad.txt:1:1: what is no ASCII text"}}) {
    SCOPED_TRACE(text);
    ASSERT_TRUE(WriteFileAtomically(file, text).ok());
    ExpectMessage(
        RunBinary("isomer-profile", {"--list_operators", absl::StrCat("--operators=", file)}),
        error);
  }
  ExpectMessage(RunBinary("isomer-profile", {"--list_operators", "--operators=/nowhere/ops.txt"}),
                "/nowhere/ops.txt");
  std::string many;
  for (int i = 0; i < 33; ++i) {
    absl::StrAppend(&many, "operator f", i, " x[n]\n Y[n] = x[n]\n example f", i, " f32[4]\n");
  }
  ASSERT_TRUE(WriteFileAtomically(file, many).ok());
  ExpectMessage(
      RunBinary("isomer-profile", {"--list_operators", absl::StrCat("--operators=", file)}),
      "bad.txt:97:10: more than 32 operators are declared");
}

}  // namespace
}  // namespace isomer
