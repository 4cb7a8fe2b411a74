// What a plan trains by is what the user says, and what the verdict says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pcg/support/file.h"
#include "tests/integration/program.h"
#include "tests/models/onnx_file.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::Not;

class LossFlags : public testing::Test {
 protected:
  ProgramResult Optimize(const std::vector<std::string>& flags) const {
    std::vector<std::string> arguments = {
        model_,       "--machine=dgx_h100", "--nodes=1",     "--devices_per_node=2",
        "--budget=1", "--cache=false",      "--out=" + plan_};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return RunBinary("isomer-optimize", arguments);
  }
  ProgramResult Verify() const {
    return RunBinary("isomer-verify", {"plan", plan_, "--model=" + model_});
  }

  const std::string model_ = SourceFile("models/data/digits_cnn.onnx");
  const std::string plan_ = ScratchFile("loss.plan");
};

TEST_F(LossFlags, TheGuessIsPrintedAndVerified) {
  const ProgramResult optimized = Optimize({});
  EXPECT_EQ(optimized.exit_code, 0) << optimized.err;
  EXPECT_THAT(optimized.err,
              HasSubstr("note: " + model_ + ": the loss is cross_entropy of 'logits'"));
  const ProgramResult verified = Verify();
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("its loss is cross_entropy of 'logits'"));
}

TEST_F(LossFlags, TheUsersIsTakenAndVerified) {
  const ProgramResult optimized = Optimize({"--loss=mse:logits"});
  EXPECT_EQ(optimized.exit_code, 0) << optimized.err;
  EXPECT_THAT(optimized.err, Not(HasSubstr("the loss is")));
  const ProgramResult verified = Verify();
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("its loss is mse of 'logits'"));
}

TEST_F(LossFlags, WhatDoesNotFitIsRefused) {
  const ProgramResult absent = Optimize({"--loss=auto:scores"});
  EXPECT_EQ(absent.exit_code, 2);
  EXPECT_THAT(absent.err, HasSubstr("it has no output 'scores'; there are 'logits'"));
  EXPECT_EQ(Optimize({"--loss=hinge"}).exit_code, 2);
  EXPECT_EQ(Optimize({"--loss=none"}).exit_code, 2);
  const ProgramResult inference = Optimize({"--mode=inference", "--loss=mse"});
  EXPECT_EQ(inference.exit_code, 2);
  EXPECT_THAT(inference.err, HasSubstr("--loss is for --mode=training"));
}

// Outputs that one device would give back whole, and that leave it no room, are kept for whoever
// asks for them alone.
TEST_F(LossFlags, OutputsThatLeaveNoRoomAreLeftOut) {
  const auto optimize = [this](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {
        "zoo:mlp?layers=1&inputs=8&hidden=8&classes=4096&batch=4096",
        "--machine=dgx_h100",
        "--nodes=1",
        "--device_memory_gib=0.06",
        "--cache=false",
        "--out=" + plan_};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return RunBinary("isomer-optimize", arguments);
  };
  const ProgramResult without = optimize({});
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.err, HasSubstr("a step gives its loss back alone: output 'logits'"));
  const ProgramResult verified = RunBinary("isomer-verify", {"plan", plan_});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  const ProgramResult kept = optimize({"--loss_alone=false"});
  EXPECT_EQ(kept.exit_code, 1) << kept.err;
  EXPECT_THAT(kept.err, HasSubstr("does not fit: a step gives its outputs back whole"));
  const ProgramResult alone = optimize({"--loss_alone"});
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_THAT(alone.err, Not(HasSubstr("gives its loss back alone")));
}

// What weights and their states take of all devices is known without a search.
TEST_F(LossFlags, WeightsThatAllDevicesCannotHoldAreRefused) {
  std::vector<std::string> arguments = {
      "zoo:mlp?layers=2&inputs=1024&hidden=1024&classes=8&batch=64",
      "--machine=dgx_h100",
      "--nodes=1",
      "--device_memory_gib=0.0004",
      "--cache=false",
      "--out=" + plan_};
  const ProgramResult refused = RunBinary("isomer-optimize", arguments);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("does not fit: weights and their states are"));
  EXPECT_THAT(refused.err, HasSubstr("it takes 2 such nodes at least"));
  // What a configuration would take is said all the same.
  arguments.push_back("--plan=data_parallel");
  const ProgramResult asked = RunBinary("isomer-optimize", arguments);
  EXPECT_EQ(asked.exit_code, 1);
  EXPECT_THAT(asked.err, HasSubstr("does not fit: the smallest plan found needs"));
  EXPECT_THAT(asked.out, HasSubstr("(it does not fit)"));
}

// A training step as most people export it: labels are an input, the loss the only output, whatever
// they are called.
TEST_F(LossFlags, ALossInsideIsTakenAndVerified) {
  for (const char* name : {"loss", "val"}) {
    OnnxFile file;
    file.Input("x", {8, 3}).Input("target", {8}, onnx::TensorProto::INT64);
    std::vector<float> weights;
    for (int i = 0; i < 12; ++i) weights.push_back(0.1f * static_cast<float>(i));
    file.Floats("head.weight", {3, 4}, weights);
    file.Node("MatMul", {"x", "head.weight"}, {"scores"});
    file.Node("SoftmaxCrossEntropyLoss", {"scores", "target"}, {name}).Output(name, {});
    const std::string model = ScratchFile(std::string("inside_") + name + ".onnx");
    ASSERT_TRUE(WriteFileAtomically(model, file.Bytes()).ok());
    for (const char* flag : {"--loss=auto", "--loss=none", "--loss_alone"}) {
      const ProgramResult optimized =
          RunBinary("isomer-optimize", {model, "--machine=laptop_cpu", "--devices_per_node=2",
                                        "--cache=false", "--out=" + plan_, flag});
      EXPECT_EQ(optimized.exit_code, 0) << optimized.err;
      const ProgramResult verified =
          RunBinary("isomer-verify", {"plan", plan_, "--model=" + model});
      EXPECT_EQ(verified.exit_code, 0) << flag << verified.out << verified.err;
    }
  }
}

}  // namespace
}  // namespace isomer
