// isomer-run --test_data with the gradients of a training step: of a model and of plans of it.
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/onnx/onnx.pb.h"
#include "pcg/support/file.h"
#include "tests/integration/program.h"
#include "tests/models/onnx_file.h"

namespace isomer {
namespace {

using testing::HasSubstr;

// y = x w for x = [[1, 2], [3, 4]], w = [[1, 0], [2, -1]], with what a step of the mean of
// (y - target)^2 makes of it: the gradient of w is x^T (y - target) / 2.
class TrainingData : public testing::Test {
 protected:
  TrainingData() {
    OnnxFile file;
    file.Input("x", {2, 2}).Output("y", {2, 2}).Floats("w", {2, 2}, {1, 0, 2, -1});
    file.Node("MatMul", {"x", "w"}, {"y"});
    EXPECT_TRUE(WriteFileAtomically(model_, file.Bytes()).ok());
    std::filesystem::create_directories(folder_);
    Write("input_0", "x", {1, 2, 3, 4});
    Write("output_0", "y", {5, -2, 11, -4});
    Write("target_0", "target", {4, -2, 9, 0});
    Write("gradient_0", "w", {3.5, -6, 5, -8});
  }

  void Write(const std::string& file, const std::string& name, const std::vector<float>& values) {
    onnx::TensorProto tensor;
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_dims(2);
    tensor.add_dims(static_cast<int64_t>(values.size()) / 2);
    for (float value : values) tensor.add_float_data(value);
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/" + file + ".pb", tensor.SerializeAsString()).ok());
  }

  std::string Planned(const std::vector<std::string>& flags) {
    const std::string plan = ScratchFile("plan");
    std::vector<std::string> arguments = {model_, "--machine=laptop_cpu", "--devices_per_node=2",
                                          "--plan=data_parallel", "--out=" + plan};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProgramResult result = RunBinary("isomer-optimize", arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return plan;
  }

  ProgramResult Run(const std::string& spec) {
    return RunBinary("isomer-run", {spec, "--test_data=" + folder_});
  }

  // What is wrong, of the model and of a plan of it alike.
  void ExpectOfBoth(int exit_code, const std::string& said) {
    for (const std::string& spec : {model_, Planned({})}) {
      const ProgramResult result = Run(spec);
      EXPECT_EQ(result.exit_code, exit_code) << result.out << result.err;
      EXPECT_THAT(result.out + result.err, HasSubstr(said));
    }
  }

  const std::string model_ = ScratchFile("net.onnx"), folder_ = ScratchFile("data");
};

TEST_F(TrainingData, OutputsAndGradientsAgree) {
  ExpectOfBoth(0, "1 outputs and 1 gradients agree within 0");
}

TEST_F(TrainingData, APlanOfLowPrecisionAgreesWithinItsRounding) {
  const ProgramResult result = Run(Planned({"--precision=bfloat16"}));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST_F(TrainingData, APlanForTheLossAloneHasNoOutputsToCompare) {
  const ProgramResult result = Run(Planned({"--loss_alone"}));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("0 outputs and 1 gradients agree"));
}

TEST_F(TrainingData, APlanForInferenceIsComparedWithOutputs) {
  const ProgramResult result = Run(Planned({"--mode=inference"}));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("1 outputs and 0 gradients agree"));
}

TEST_F(TrainingData, AWrongGradientDiffers) {
  Write("gradient_0", "w", {3.5, -6, 5, -8.1});
  ExpectOfBoth(1, "DIFFERS: gradient of w: off by 0.1 of 11.8");
}

TEST_F(TrainingData, AGradientOfAnotherShapeDiffers) {
  Write("gradient_0", "w", {3.5, -6});
  ExpectOfBoth(1, "DIFFERS: gradient of w: off by inf");
}

TEST_F(TrainingData, AWrongOutputOfAPlanDiffers) {
  Write("output_0", "y", {5, -2, 11, -4.5});
  const ProgramResult result = Run(Planned({}));
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("DIFFERS: output y: off by 0.5"));
}

TEST_F(TrainingData, WithoutATargetThereIsNoStep) {
  std::filesystem::remove(folder_ + "/target_0.pb");
  ExpectOfBoth(2, "it has 1 inputs and 0 targets, and the model takes 2");
}

TEST_F(TrainingData, ATargetOfAnotherShapeIsRefused) {
  Write("target_0", "target", {4, -2});
  ExpectOfBoth(2, "it has f32[2,1] for input 'target', f32[2,2]");
}

TEST_F(TrainingData, AGradientOfNoWeightIsRefused) {
  Write("gradient_1", "bias", {0, 0});
  ExpectOfBoth(2, "it has a gradient of 'bias', which is no weight of the model");
}

TEST_F(TrainingData, ASecondGradientOfAWeightIsRefused) {
  Write("gradient_1", "w", {3.5, -6, 5, -8});
  ExpectOfBoth(2, "gradient_1.pb: a second gradient of 'w'");
}

}  // namespace
}  // namespace isomer
