// isomer-run --test_data on the cases of tests/data/onnx, which models/export/make_onnx_cases.py
// makes.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pcg/support/file.h"
#include "tests/integration/program.h"
#include "tests/models/onnx_file.h"

namespace isomer {
namespace {

using testing::HasSubstr;

std::vector<std::string> CasesThat(const std::string& verdict) {
  std::vector<std::string> cases;
  const std::string folder = SourceFile("tests/data/onnx/" + verdict);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    cases.push_back(entry.path().string());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

ProgramResult RunCase(const std::string& folder) {
  return RunBinary("isomer-run", {folder + "/model.onnx", "--test_data=" + folder});
}

TEST(OnnxCases, Agree) {
  const std::vector<std::string> cases = CasesThat("agree");
  EXPECT_GE(cases.size(), 30u);
  for (const std::string& folder : cases) {
    const ProgramResult result = RunCase(folder);
    EXPECT_EQ(result.exit_code, 0) << folder << "\n" << result.out << result.err;
  }
}

TEST(OnnxCases, DifferSayWhereAndByHowMuch) {
  for (const std::string& folder : CasesThat("differ")) {
    const ProgramResult result = RunCase(folder);
    EXPECT_EQ(result.exit_code, 1) << folder << "\n" << result.out << result.err;
    EXPECT_THAT(result.out, HasSubstr("DIFFERS: output 'y': ["));
    EXPECT_THAT(result.out, HasSubstr("off by"));
  }
}

TEST(OnnxCases, AUserSaysHowFarOff) {
  const std::string folder = SourceFile("tests/data/onnx/differ/value");
  const auto run = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {folder + "/model.onnx", "--test_data=" + folder};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return RunBinary("isomer-run", arguments);
  };
  EXPECT_THAT(run({}).out, HasSubstr("(off by 0.01 of up to 1.76; 12 of 12 elements differ)"));
  for (const std::string flag : {"--rtol=1", "--atol=0.011"}) {
    const ProgramResult result = run({flag});
    EXPECT_EQ(result.exit_code, 0) << flag << result.out;
    EXPECT_THAT(result.out,
                HasSubstr("1 output agrees, off by at most 0.0057 of its largest element"));
  }
  EXPECT_EQ(run({"--atol=0.009"}).exit_code, 1);
  EXPECT_THAT(run({"--rtol=-1"}).err, HasSubstr("--rtol and --atol must not be negative"));
}

void WriteTensor(const std::string& path, const std::string& name,
                 const std::vector<uint16_t>& halves) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT16);
  tensor.add_dims(static_cast<int64_t>(halves.size()));
  for (const uint16_t half : halves) tensor.add_int32_data(half);
  ASSERT_TRUE(WriteFileAtomically(path, tensor.SerializeAsString()).ok());
}

// (x + 1,000) - 1,000: float16 has 1 or 2 between its numbers there, and other programs round
// neither sum, or both.
TEST(OnnxCases, InLowPrecisionMayBeOffByWhatItRounds) {
  OnnxFile file(18);
  file.Input("x", {3}, onnx::TensorProto::FLOAT16).Output("y", {3}, onnx::TensorProto::FLOAT16);
  onnx::TensorProto* const thousand = file.model().mutable_graph()->add_initializer();
  thousand->set_name("thousand");
  thousand->set_data_type(onnx::TensorProto::FLOAT16);
  thousand->add_int32_data(0x63d0);
  file.Node("Add", {"x", "thousand"}, {"sum"}).Node("Sub", {"sum", "thousand"}, {"y"});
  const std::string folder = ScratchFile("case");
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(WriteFileAtomically(folder + "/model.onnx", file.Bytes()).ok());
  WriteTensor(folder + "/input_0.pb", "x", {0x3d00, 0x3b00, 0x3900});   // 1.25, 0.875, 0.625
  WriteTensor(folder + "/output_0.pb", "y", {0x3d00, 0x3b00, 0x3900});  // of the reals
  const ProgramResult agrees = RunCase(folder);
  EXPECT_EQ(agrees.exit_code, 0) << agrees.out << agrees.err;
  EXPECT_THAT(agrees.out, HasSubstr("none of 1 outputs and 0 gradients is off by more than"));
  WriteTensor(folder + "/output_0.pb", "y", {0x4900, 0x4900, 0x4900});  // 10
  const ProgramResult differs = RunCase(folder);
  EXPECT_EQ(differs.exit_code, 1) << differs.out << differs.err;
  EXPECT_THAT(differs.out, HasSubstr("DIFFERS: "));
}

TEST(OnnxCases, AreRefusedInOneLine) {
  for (const std::string& folder : CasesThat("refused")) {
    const ProgramResult result = RunCase(folder);
    EXPECT_EQ(result.exit_code, 2) << folder << "\n" << result.out << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST(OnnxCases, ModelIsFoundBesideItsData) {
  const std::string folder = SourceFile("tests/data/onnx/agree/gather_0");
  EXPECT_EQ(RunBinary("isomer-run", {"--test_data=" + folder + "/test_data_set_0"}).exit_code, 0);
  EXPECT_EQ(RunBinary("isomer-run", {"--test_data=" + folder + "/none"}).exit_code, 2);
}

TEST(OnnxFlags, DimsMayBeGivenOneByOne) {
  const std::string model = SourceFile("models/data/digits_cnn_dynamic.onnx");
  EXPECT_EQ(RunBinary("isomer-run", {model, "--mode=inference", "--dim", "batch=4", "--steps=1"})
                .exit_code,
            0);
  const ProgramResult result = RunBinary("isomer-run", {model, "--dim=batch=4", "--dim=width=2"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--dim width=2: no input has a dim of that name"));
}

TEST(OnnxFlags, ListUnsupported) {
  for (const char* program : {"isomer-run", "isomer-optimize"}) {
    const ProgramResult none =
        RunBinary(program, {SourceFile("models/data/resnext50.onnx"), "--list_unsupported"});
    EXPECT_EQ(none.exit_code, 0) << none.out << none.err;
    EXPECT_THAT(none.err, HasSubstr("resnext50.onnx: all of it is supported"));
    const ProgramResult some = RunBinary(
        program, {SourceFile("tests/data/onnx/refused/slice_start_out_of_bounds/model.onnx"),
                  "--list_unsupported"});
    EXPECT_EQ(some.exit_code, 1) << some.err;
    EXPECT_THAT(some.out, HasSubstr("Slice (domain ai.onnx, opset 13): 1 node"));
  }
}

TEST(OnnxExportFlag, OptimisedGraphIsWritten) {
  const std::string file = ScratchFile("digits.onnx");
  const ProgramResult result =
      RunBinary("isomer-optimize", {SourceFile("models/data/digits_cnn.onnx"), "--mode=inference",
                                    "--machine=laptop_cpu", "--devices_per_node=1", "--budget=20",
                                    "--export_onnx=" + file});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(RunBinary("isomer-run", {file, "--mode=inference", "--steps=1"}).exit_code, 0);
}

}  // namespace
}  // namespace isomer
