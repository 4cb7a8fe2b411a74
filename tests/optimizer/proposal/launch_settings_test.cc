#include "optimizer/proposal/launch_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "optimizer/proposal/launch_text.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing::UnorderedElementsAre;

std::string ErrorOf(const std::string& contents) {
  const auto launch = ParseLaunchSettings(contents, "my.txt");
  EXPECT_FALSE(launch.ok());
  const std::string message(launch.status().message());
  EXPECT_THAT(message, StartsWith("my.txt: "));
  EXPECT_EQ(message.find('\n'), std::string::npos);
  return message;
}

TEST(LaunchSettings, ReadsMegatronsCommandLine) {
  const auto launch = ParseLaunchSettings(R"(#!/bin/bash
# GPT-175B, as in the paper: --tensor-model-parallel-size 1
torchrun --nproc_per_node 8 pretrain_gpt.py \
  --tensor-model-parallel-size 8 --pipeline-model-parallel-size=8 \
  --num-layers 96 --num-layers-per-virtual-pipeline-stage 4 \
  --micro-batch-size 1 --global-batch-size 64 \
  --recompute-granularity selective --sequence-parallel \
  --use-distributed-optimizer --bf16 --lr 6.0e-5 --data-path "my data"
)",
                                          "my.txt");
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->framework, "Megatron-LM");
  EXPECT_EQ(launch->grid.degrees, (GridDegrees{.tensor = 8}));
  EXPECT_EQ(launch->grid.stages, 8);
  EXPECT_EQ(launch->grid.chunks, 3);
  EXPECT_EQ(launch->grid.micro_batch_size, 1);
  EXPECT_EQ(launch->grid.recomputation, RecomputeMode::kSelective);
  EXPECT_EQ(launch->grid.update, UpdateMethod::kSharded);
  EXPECT_FALSE(launch->grid.overlaps_gradients);
  EXPECT_EQ(launch->global_batch_size, 64);
  EXPECT_EQ(launch->precision, DataType::kBFloat16);
  EXPECT_THAT(launch->not_read, ElementsAre("--data-path", "--lr", "--nproc_per_node"));
}

// As scripts have them: words of a shell array.
TEST(LaunchSettings, ReadsArraysOfMegatronsArguments) {
  const auto launch = ParseLaunchSettings(
      "MODEL=(\n  --context-parallel-size 4\n  --expert-model-parallel-size \"2\"\n  --fp16\n"
      "  --overlap-grad-reduce\n)\n",
      "my.txt");
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->grid.degrees, (GridDegrees{.context = 4, .expert = 2, .in_stripes = true}));
  EXPECT_EQ(launch->grid.update, UpdateMethod::kAllReduce);
  EXPECT_TRUE(launch->grid.overlaps_gradients);
  EXPECT_EQ(launch->precision, DataType::kFloat16);
  EXPECT_TRUE(launch->not_read.empty());
}

// A ring moves the keys and values that a gather does.
TEST(LaunchSettings, ReadsWhatAttentionExchanges) {
  for (const auto& [type, by_heads] :
       {std::pair("a2a", true), std::pair("all_gather", false), std::pair("p2p", false)}) {
    const auto launch = ParseLaunchSettings(
        absl::StrCat("--context-parallel-size 4 --cp-comm-type ", type), "my.txt");
    ASSERT_TRUE(launch.ok()) << launch.status();
    EXPECT_EQ(launch->grid.degrees.context_by_heads, by_heads) << type;
    EXPECT_TRUE(launch->not_read.empty());
  }
  EXPECT_THAT(ErrorOf("--context-parallel-size 4 --cp-comm-type a2a+p2p"),
              HasSubstr("--cp-comm-type: 'a2a+p2p': a2a, all_gather and p2p"));
}

// Megatron-LM has sequence parallelism where it is asked for, AutoTP never.
TEST(LaunchSettings, TensorParallelismWithoutASequencesIsSo) {
  const auto megatron = ParseLaunchSettings("--tensor-model-parallel-size 8", "my.txt");
  ASSERT_TRUE(megatron.ok()) << megatron.status();
  EXPECT_FALSE(megatron->grid.degrees.sequence_parallel);
  const auto deepspeed =
      ParseLaunchSettings(R"({"train_batch_size": 8, "tensor_parallel": {"autotp_size": 4}})", "d");
  ASSERT_TRUE(deepspeed.ok()) << deepspeed.status();
  EXPECT_EQ(deepspeed->grid.degrees, (GridDegrees{.tensor = 4, .sequence_parallel = false}));
}

TEST(LaunchSettings, ReadsDeepSpeedsJson) {
  const auto launch = ParseLaunchSettings(R"({
  "train_batch_size": 256, "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 3, "overlap_comm": true},
  "bf16": {"enabled": true}, "fp16": {"enabled": false}
})",
                                          "ds.json");
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->framework, "DeepSpeed");
  EXPECT_EQ(launch->grid.micro_batch_size, 4);
  EXPECT_EQ(launch->grid.update, UpdateMethod::kShardedWeights);
  EXPECT_EQ(launch->global_batch_size, 256);
  EXPECT_EQ(launch->precision, DataType::kBFloat16);
  EXPECT_TRUE(launch->grid.overlaps_gradients);
  EXPECT_TRUE(launch->not_read.empty());
}

// Numbers are written out, and what a trainer fills in is not stated.
TEST(LaunchSettings, ReadsLargeNumbersAndAuto) {
  const auto launch = ParseLaunchSettings(R"({
  "train_batch_size": 1048576, "train_micro_batch_size_per_gpu": "auto",
  "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": "auto"}
})",
                                          "ds.json");
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->global_batch_size, 1048576);
  EXPECT_EQ(launch->grid.micro_batch_size, 0);
  EXPECT_EQ(launch->grid.update, UpdateMethod::kAllReduce);
  EXPECT_FALSE(launch->precision.has_value());
  EXPECT_THAT(ErrorOf("{\"train_batch_size\": 2097152}"), HasSubstr("'2097152' is no number from"));
  EXPECT_THAT(ErrorOf("{\"train_batch_size\": 2.5}"), HasSubstr("'2.5' is no number from"));
}

TEST(LaunchSettings, ReadsTorchtitansToml) {
  const auto launch = ParseLaunchSettings(R"(
[training]
local_batch_size = 8   # of a rank
seq_len = 8192

[parallelism]
data_parallel_shard_degree = -1
tensor_parallel_degree = 4
pipeline_parallel_degree = 2

[activation_checkpoint]
mode = "full"
)",
                                          "train.toml");
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->framework, "torchtitan");
  EXPECT_EQ(launch->grid.degrees.tensor, 4);
  EXPECT_EQ(launch->grid.stages, 2);
  EXPECT_EQ(launch->grid.micro_batch_size, 1);
  EXPECT_EQ(launch->grid.recomputation, RecomputeMode::kFull);
  EXPECT_EQ(launch->grid.update, UpdateMethod::kShardedGradients);  // the default in a pipeline
  EXPECT_EQ(launch->precision, DataType::kBFloat16);
  EXPECT_THAT(launch->not_read, ElementsAre("training.seq_len"));
}

LaunchSettings Read(const std::string& contents) {
  const auto launch = ParseLaunchSettings(contents, "my.txt");
  EXPECT_TRUE(launch.ok()) << launch.status();
  return launch.ok() ? *launch : LaunchSettings{};
}

// A step depends on more than a plan can say, and what that is is named.
TEST(LaunchSettings, NamesWhatIsNotModelled) {
  const LaunchSettings megatron = Read(
      "--tensor-model-parallel-size 4 --expert-model-parallel-size 2 --expert-tensor-parallel-size "
      "1 "
      "--tp-comm-overlap --fp8-format hybrid --recompute-granularity full --recompute-method block "
      "--recompute-num-layers 4 --optimizer adam --lr 1e-4");
  EXPECT_THAT(megatron.not_modelled,
              UnorderedElementsAre("--tp-comm-overlap", "--fp8-format", "--recompute-num-layers",
                                   "--expert-tensor-parallel-size"));
  EXPECT_THAT(megatron.not_read, ElementsAre("--lr"));
  EXPECT_EQ(megatron.optimizer, OptimizerKind::kAdam);
  const LaunchSettings deepspeed = Read(R"({
  "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-4}},
  "zero_optimization": {"stage": 2, "overlap_comm": false, "zero_quantized_weights": false,
                        "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "none"}}
})");
  EXPECT_FALSE(deepspeed.grid.overlaps_gradients);
  EXPECT_THAT(deepspeed.not_modelled,
              UnorderedElementsAre("optimizer.type", "zero_optimization.offload_optimizer.device"));
  EXPECT_THAT(Read("[parallelism]\nenable_async_tensor_parallel = true\n[optimizer]\n"
                   "name = \"AdamW\"\n[float8]\nenable_fsdp_float8_all_gather = true\n"
                   "precompute_float8_dynamic_scale_for_fsdp = false\n")
                  .not_modelled,
              UnorderedElementsAre("parallelism.enable_async_tensor_parallel",
                                   "activation_checkpoint.selective_ac_option (2, where nothing "
                                   "is said)",
                                   "float8.enable_fsdp_float8_all_gather"));
}

// Every second layer where nothing is said.
TEST(LaunchSettings, TorchtitanComputesAgainByDefault) {
  const std::string section = "[training]\n[activation_checkpoint]\n";
  for (const auto& [settings, mode, is_modelled] :
       {std::tuple("", RecomputeMode::kSelective, false),
        std::tuple("mode = \"selective\"\n", RecomputeMode::kSelective, false),
        std::tuple("selective_ac_option = \"op\"\n", RecomputeMode::kSelective, true),
        std::tuple("mode = \"none\"\n", RecomputeMode::kNone, true),
        std::tuple("mode = \"full\"\n", RecomputeMode::kFull, true)}) {
    const LaunchSettings launch = Read(section + settings);
    EXPECT_EQ(launch.grid.recomputation, mode) << settings;
    EXPECT_EQ(launch.not_modelled.empty(), is_modelled) << settings;
  }
}

TEST(LaunchSettings, WhatIsWrittenForTorchtitanSaysWhatIsComputedAgain) {
  for (const RecomputeMode mode :
       {RecomputeMode::kNone, RecomputeMode::kSelective, RecomputeMode::kFull}) {
    GridRequest grid;
    grid.micro_batch_size = 1;
    grid.update = UpdateMethod::kShardedWeights;
    grid.recomputation = mode;
    const auto text = LaunchTextOf("torchtitan", grid, 8, 64, DataType::kBFloat16);
    ASSERT_TRUE(text.ok()) << text.status();
    const LaunchSettings launch = Read(text->text);
    EXPECT_EQ(launch.grid.recomputation, mode);
    EXPECT_TRUE(launch.not_modelled.empty()) << text->text;
  }
}

TEST(LaunchSettings, ReadsWhatIsSharded) {
  for (const auto& [settings, update] :
       {std::pair("--use-torch-fsdp2", UpdateMethod::kShardedWeights),
        std::pair("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads",
                  UpdateMethod::kShardedGradients),
        std::pair("--data-parallel-sharding-strategy optim_grads", UpdateMethod::kAllReduce)}) {
    EXPECT_EQ(Read(absl::StrCat("--micro-batch-size 1 ", settings)).grid.update, update);
  }
  const std::string titan = "[parallelism]\npipeline_parallel_degree = 2\n";
  for (const auto& [settings, update] :
       {std::pair("", UpdateMethod::kShardedGradients),
        std::pair("fsdp_reshard_after_forward = \"always\"\n", UpdateMethod::kShardedWeights),
        std::pair("data_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 4\n",
                  UpdateMethod::kAllReduce)}) {
    EXPECT_EQ(Read(titan + settings).grid.update, update) << settings;
  }
  EXPECT_EQ(Read("[parallelism]\nfsdp_reshard_after_forward = \"never\"\n").grid.update,
            UpdateMethod::kShardedGradients);
}

TEST(LaunchSettings, RefusesConfigurationsThatNoPlanHas) {
  const std::string titan = "[parallelism]\npipeline_parallel_degree = 2\n";
  EXPECT_EQ(Read(titan + "pipeline_parallel_schedule = \"Interleaved1F1B\"\n").grid.chunks, 2);
  EXPECT_THAT(ErrorOf(titan + "pipeline_parallel_schedule = \"ZBVZeroBubble\"\n"),
              HasSubstr("'ZBVZeroBubble': there are 1F1B and Interleaved1F1B"));
  EXPECT_THAT(ErrorOf(titan + "pipeline_parallel_schedule = \"Interleaved1F1B\"\n"
                              "pipeline_parallel_layers_per_stage = 4\n"),
              HasSubstr("how many layers there are is not said"));
  EXPECT_THAT(ErrorOf("[parallelism]\ndata_parallel_replicate_degree = 2\n"),
              HasSubstr("'2' replicas of weights in shards: no plan is like that"));
  EXPECT_THAT(ErrorOf("[parallelism]\nfsdp_reshard_after_forward = \"no\"\n"),
              HasSubstr("'no': there are default, always and never"));
  EXPECT_THAT(ErrorOf("{\"sequence_parallel_size\": 4}"), HasSubstr("no plan is like that"));
  EXPECT_THAT(ErrorOf("{\"gradient_accumulation_steps\": 4}"),
              HasSubstr("it wants train_batch_size and train_micro_batch_size_per_gpu"));
  EXPECT_THAT(ErrorOf("--micro-batch-size 1 --data-parallel-sharding-strategy all"),
              HasSubstr("'all': there are no_shard, optim"));
}

TEST(LaunchSettings, RefusesInALine) {
  EXPECT_THAT(ErrorOf("hello"), HasSubstr("neither Megatron-LM's command line"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("neither Megatron-LM's"));
  EXPECT_THAT(ErrorOf("{\"train_batch_size\": "), HasSubstr("begins as JSON does"));
  EXPECT_THAT(ErrorOf("{\"zero_optimization\": {\"stage\": 4}}"),
              HasSubstr("'4': there are 0 to 3"));
  EXPECT_THAT(ErrorOf("--tensor-model-parallel-size x"), HasSubstr("'x' is no number from 1"));
  EXPECT_THAT(ErrorOf("--tensor-model-parallel-size -2"), HasSubstr("'-2' is no number from 1"));
  EXPECT_THAT(ErrorOf("--pipeline-model-parallel-size 4 --num-layers 10 "
                      "--num-layers-per-virtual-pipeline-stage 2"),
              HasSubstr("do not divide --num-layers 10"));
  EXPECT_THAT(ErrorOf("--micro-batch-size 1 --recompute-granularity some"),
              HasSubstr("there are none, selective, full"));
  EXPECT_THAT(ErrorOf("[parallelism]\ntensor_parallel_degree = 99999999999999999999\n"),
              HasSubstr("is no number"));
}

}  // namespace
}  // namespace isomer
