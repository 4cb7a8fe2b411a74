// A pipeline as a user makes one: optimised, verified and run beside the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

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

// Rounds of an interleaved pipeline are of as many micro-batches as there are.
TEST(Pipeline, OfChunksTakesAnyNumberOfMicroBatches) {
  const std::string plan = ScratchFile("chunks.plan");
  struct Case {
    const char* batch;
    const char* pipeline;
    const char* says;
  };
  for (const auto& [batch, pipeline, says] :
       {Case{"5", "--pipeline=2x2", "5 micro-batches (1F1B, 2 chunks a stage, rounds of up to 3)"},
        Case{"7", "--pipeline=4x2", "7 micro-batches (1F1B, 2 chunks a stage, rounds of up to 7)"},
        Case{"2", "--pipeline=4x2",
             "2 micro-batches (1F1B, 2 chunks a stage, rounds of up to 2)"}}) {
    SCOPED_TRACE(says);
    const ProgramResult made = RunBinary(
        "isomer-optimize",
        {absl::StrCat("zoo:gpt?layers=8&hidden=16&heads=2&vocabulary=32&seq=4&tied=0&batch=",
                      batch),
         "--machine=laptop_cpu", "--nodes=1",
         absl::StrCat("--devices_per_node=", pipeline[11] - '0'), "--plan=grid", pipeline,
         "--loss_alone", "--out=" + plan});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_THAT(made.out, HasSubstr(says));
    const ProgramResult verdict = RunBinary("isomer-verify", {"plan", plan});
    EXPECT_EQ(verdict.exit_code, 0) << verdict.out << verdict.err;
    const ProgramResult run =
        RunBinary("isomer-run", {plan, "--check", "--check_executions=2", "--steps=2"});
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  }
}

// Gradients of weights in slots of their own: certified, equal to the bit however queues run, and
// the model's.
TEST(ZeroBubble, SchedulesAreCertifiedAndGiveTheModelsGradients) {
  const std::string plan = ScratchFile("zero_bubble.plan");
  const std::string gpt = "zoo:gpt?layers=4&hidden=16&heads=2&vocabulary=32&seq=4&batch=8";
  struct Case {
    const char* model;
    std::vector<std::string> flags;
    const char* says;
  };
  for (const auto& [tied, flags, says] :
       {Case{"&tied=0", {"--schedule=zb_h1"}, "8 micro-batches (ZB-H1); bubble"},
        Case{"&tied=1", {"--schedule=zb_h1"}, "8 micro-batches (ZB-H1); bubble"},
        Case{
            "&tied=0", {"--schedule=zb_h2", "--optimizer=adam"}, "8 micro-batches (ZB-H2); bubble"},
        Case{"&tied=0",
             {"--schedule=zb_h1", "--precision=bfloat16", "--recompute=full"},
             "8 micro-batches (ZB-H1); bubble"},
        Case{"&tied=0", {"--schedule=zb_v"}, "8 micro-batches (ZB-V, 2 chunks a stage); bubble"},
        Case{"&tied=0",
             {"--schedule=zb_h1", "--pipeline=2x2"},
             "8 micro-batches (ZB-H1, 2 chunks a stage); bubble"},
        Case{"&tied=1", {"--schedule=zb_v"}, "8 micro-batches (ZB-V, 2 chunks a stage); bubble"},
        Case{"&tied=0", {"--schedule=auto"}, "8 micro-batches ("}}) {
    SCOPED_TRACE(absl::StrCat(flags[0], tied));
    std::vector<std::string> arguments = {
        gpt + tied,    "--machine=laptop_cpu", "--nodes=1",    "--devices_per_node=2",
        "--plan=grid", "--pipeline=2",         "--loss_alone", "--out=" + plan};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProgramResult made = RunBinary("isomer-optimize", arguments);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_THAT(made.out, HasSubstr(says));
    EXPECT_THAT(made.out, Not(HasSubstr("micro-batches do not take turns")));
    const ProgramResult verdict = RunBinary("isomer-verify", {"plan", plan});
    EXPECT_EQ(verdict.exit_code, 0) << verdict.out << verdict.err;
    const ProgramResult run =
        RunBinary("isomer-run", {plan, "--check", "--check_executions=2", "--steps=2"});
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  }
}

TEST(Pipeline, OfFewerCallsThanStagesIsRefused) {
  const std::string model = "zoo:mlp?layers=1&inputs=8&hidden=8&classes=8&batch=8";
  for (const auto& [devices, exit_code] :
       {std::pair("2", 0), std::pair("3", 0), std::pair("7", 2)}) {
    const ProgramResult made =
        RunBinary("isomer-optimize",
                  {model, "--machine=laptop_cpu", absl::StrCat("--devices_per_node=", devices),
                   "--plan=pipeline", "--loss_alone", "--out=" + ScratchFile("few_calls.plan")});
    EXPECT_EQ(made.exit_code, exit_code) << made.err;
    if (exit_code == 0) continue;
    EXPECT_THAT(made.err, HasSubstr("error: --plan=pipeline: no number of stages from 2 on divides "
                                    "7 devices and is at most the number of the model's calls, 3"));
  }
}

TEST(ZeroBubble, FlagsThatDoNotApplyAreRefused) {
  const auto refused = [](std::vector<std::string> flags) {
    std::vector<std::string> arguments = {
        "zoo:gpt?layers=2&hidden=16&heads=2&vocabulary=32&seq=4&tied=0&batch=8",
        "--machine=laptop_cpu", "--nodes=1", "--devices_per_node=4",
        "--out=" + ScratchFile("refused.plan")};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProgramResult made = RunBinary("isomer-optimize", arguments);
    EXPECT_EQ(made.exit_code, 2) << made.err;
    return made.err;
  };
  EXPECT_THAT(refused({"--schedule=zb_h1"}), HasSubstr("--schedule is for --plan=grid"));
  EXPECT_THAT(refused({"--plan=grid", "--schedule=zb_h1"}),
              HasSubstr("--schedule=zb_h1 is for --pipeline of 2 stages or more"));
  EXPECT_THAT(refused({"--plan=grid", "--pipeline=2x3", "--schedule=zb_v"}),
              HasSubstr("--schedule=zb_v is for --pipeline=2 or 2x2, and 2x3 has 3 chunks"));
  EXPECT_THAT(refused({"--plan=grid", "--pipeline=2", "--schedule=gpipe"}),
              HasSubstr("--schedule='gpipe': there are 1f1b, zb_h1, zb_h2, zb_v and auto"));
  EXPECT_THAT(
      refused({"--plan=grid", "--pipeline=2", "--schedule=zb_h1", "--steps_between_flushes=2"}),
      HasSubstr("--schedule=zb_h1 does not go with --steps_between_flushes=2"));
  EXPECT_THAT(refused({"--plan=grid", "--pipeline=2", "--mode=inference", "--schedule=zb_h1"}),
              HasSubstr("--schedule is for --mode=training"));
}

// Without sequence parallelism norms and residual sums are computed by every device of tensor
// parallelism: each call once, by all of them, with one all-reduce where a product's sums end.
TEST(TensorParallelism, WithoutASequencesIsCertifiedAndGivesTheModelsGradients) {
  const std::string plan = ScratchFile("copies.plan");
  const std::string gpt = "zoo:gpt?layers=2&hidden=32&heads=4&vocabulary=64&seq=8&tied=0&batch=8";
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{}, {"--recompute=full"}, {"--pipeline=2"}}) {
    std::vector<std::string> arguments = {gpt,
                                          "--machine=laptop_cpu",
                                          "--nodes=1",
                                          "--devices_per_node=4",
                                          "--plan=grid",
                                          "--tensor=2",
                                          "--nosequence_parallel",
                                          "--loss_alone",
                                          "--out=" + plan};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult made = RunBinary("isomer-optimize", arguments);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_THAT(made.out, ContainsRegex("\n +2  layer\\*/attention/norm layer_norm .*by each of 2 "
                                        "devices of a node\n"));
    EXPECT_THAT(made.out, ContainsRegex("all_reduce forward, 2 devices"));
    EXPECT_THAT(made.out, Not(HasSubstr("all_gather forward")));
    const ProgramResult verdict = RunBinary("isomer-verify", {"plan", plan});
    EXPECT_EQ(verdict.exit_code, 0) << verdict.out << verdict.err;
    const ProgramResult run = RunBinary("isomer-run", {plan, "--check", "--steps=2"});
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  }
}

// Heads of keys that fewer than all devices share, or one: the sequence is split, too.
TEST(TensorParallelism, OfFewKeyHeadsIsCertifiedAndGivesTheModelsGradients) {
  const std::string plan = ScratchFile("key_heads.plan");
  for (const std::string key_heads : {"1", "2"}) {
    for (const std::string more : {"--pipeline=1", "--pipeline=2", "--nosequence_parallel"}) {
      const ProgramResult made =
          RunBinary("isomer-optimize",
                    {absl::StrCat("zoo:llama?layers=2&hidden=32&heads=8&key_heads=", key_heads,
                                  "&intermediate=32&vocabulary=64&seq=8&batch=8"),
                     "--machine=laptop_cpu", "--nodes=1", "--devices_per_node=8", "--plan=grid",
                     "--tensor=4", more, "--loss_alone", "--out=" + plan});
      ASSERT_EQ(made.exit_code, 0) << made.err;
      EXPECT_THAT(made.err, HasSubstr(" in its sequence, with exchanges among those "));
      const ProgramResult verdict = RunBinary("isomer-verify", {"plan", plan});
      EXPECT_EQ(verdict.exit_code, 0) << verdict.out << verdict.err;
      const ProgramResult run = RunBinary("isomer-run", {plan, "--check", "--steps=1"});
      EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    }
  }
}

// With it, what has no sequence dim of its own (rows of logits) is computed by all, not by one.
TEST(TensorParallelism, KeepsAllDevicesBusy) {
  const std::string plan = ScratchFile("rows.plan");
  const ProgramResult made =
      RunBinary("isomer-optimize",
                {"zoo:gpt?layers=2&hidden=32&heads=4&vocabulary=64&seq=8&tied=0&batch=8",
                 "--machine=laptop_cpu", "--nodes=1", "--devices_per_node=4", "--plan=grid",
                 "--tensor=2", "--micro_batch_size=1", "--loss_alone", "--out=" + plan});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("all_gather forward, 2 devices"));
  EXPECT_THAT(made.out, Not(HasSubstr("send_receive backward")));
  const ProgramResult verdict = RunBinary("isomer-verify", {"plan", plan});
  EXPECT_EQ(verdict.exit_code, 0) << verdict.out << verdict.err;
}

// The output, which is whole, is computed beside the copies; rules exchange operands of its sums.
TEST(TensorParallelism, WithoutASequencesHoldsForAModelWithAnOutput) {
  const std::string plan = ScratchFile("copies_of_bert.plan");
  const ProgramResult made = RunBinary(
      "isomer-optimize", {SourceFile("models/data/bert_tiny.onnx"), "--machine=laptop_cpu",
                          "--nodes=1", "--devices_per_node=4", "--plan=grid", "--tensor=2",
                          "--nosequence_parallel", "--out=" + plan});
  ASSERT_EQ(made.exit_code, 0) << made.err;
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
