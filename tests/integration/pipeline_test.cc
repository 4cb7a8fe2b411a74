// A pipeline as a user makes one: optimised, verified and run beside the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::HasSubstr;

std::vector<std::string> Pipeline(const std::string& model, int devices, int stages,
                                  int micro_batch_size, const std::string& plan) {
  return {SourceFile(model),
          "--machine=laptop_cpu",
          "--nodes=1",
          absl::StrCat("--devices_per_node=", devices),
          "--plan=grid",
          absl::StrCat("--pipeline=", stages),
          absl::StrCat("--micro_batch_size=", micro_batch_size),
          "--out=" + plan};
}

TEST(Pipeline, PlanIsCertifiedAndGivesTheModelsGradients) {
  const std::string plan = ScratchFile("pipeline.plan");
  const ProgramResult made =
      RunBinary("isomer-optimize", Pipeline("models/data/bert_tiny.onnx", 4, 2, 1, plan));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out,
              HasSubstr("2 stages, 4 micro-batches (1F1B); bubble of equal stages 20.0 %"));
  const ProgramResult verdict = RunBinary("isomer-verify", {"plan", plan});
  EXPECT_EQ(verdict.exit_code, 0) << verdict.out << verdict.err;
  const ProgramResult run = RunBinary("isomer-run", {plan, "--check", "--steps=2"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
}

TEST(Pipeline, BatchThatCannotBeCutIsRefused) {
  const ProgramResult made =
      RunBinary("isomer-optimize",
                Pipeline("models/data/bert_tiny.onnx", 2, 2, 3, ScratchFile("pipeline.plan")));
  EXPECT_EQ(made.exit_code, 2);
  EXPECT_THAT(
      made.err,
      HasSubstr(
          "--micro_batch_size=3 on 1 data-parallel devices: 3 does not divide the batch of 8"));
}

}  // namespace
}  // namespace isomer
