#include "optimizer/proposal/launch_text.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "optimizer/proposal/launch_settings.h"
#include "optimizer/sharding/recompute_mode.h"
#include "pcg/ir/precision.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// The samples of a micro-batch on a device of data parallelism.
int64_t MicroBatchOf(const GridRequest& grid, int64_t devices, int64_t batch) {
  if (grid.micro_batch_size > 0) return grid.micro_batch_size;
  if (grid.stages > 1) return 1;
  const int64_t data = devices / (grid.degrees.tensor * grid.degrees.context);
  return std::max<int64_t>(1, batch / data);
}

std::string UpdateText(UpdateMethod method) {
  const UpdateMethodTraits& traits = TraitsOf(method);
  return traits.zero_stage > 0
             ? absl::StrCat("ZeRO ", traits.zero_stage, " (--update=", traits.name, ")")
             : absl::StrCat("--update=", traits.name);
}

LaunchText MegatronText(const GridRequest& grid, int64_t devices, int64_t batch,
                        DataType precision) {
  LaunchText launch;
  const auto add = [&](const std::string& line) { absl::StrAppend(&launch.text, line, "\n"); };
  const GridDegrees& degrees = grid.degrees;
  add(absl::StrCat("--tensor-model-parallel-size ", degrees.tensor));
  add(absl::StrCat("--pipeline-model-parallel-size ", grid.stages));
  if (grid.chunks > 1) add(absl::StrCat("--num-virtual-stages-per-pipeline-rank ", grid.chunks));
  if (degrees.context > 1) {
    add(absl::StrCat("--context-parallel-size ", degrees.context));
    add(absl::StrCat("--cp-comm-type ", degrees.context_by_heads ? "a2a" : "all_gather"));
  }
  if (degrees.expert > 1) add(absl::StrCat("--expert-model-parallel-size ", degrees.expert));
  if (degrees.tensor > 1 && degrees.sequence_parallel) add("--sequence-parallel");
  add(absl::StrCat("--micro-batch-size ", MicroBatchOf(grid, devices, batch)));
  add(absl::StrCat("--global-batch-size ", batch));
  if (grid.recomputation != RecomputeMode::kNone) {
    add(absl::StrCat("--recompute-granularity ", RecomputeModeName(grid.recomputation)));
  }
  if (grid.update == UpdateMethod::kSharded) add("--use-distributed-optimizer");
  if (grid.overlaps_gradients) add("--overlap-grad-reduce");
  if (precision == DataType::kBFloat16) add("--bf16");
  if (precision == DataType::kFloat16) add("--fp16");
  if (grid.update != UpdateMethod::kSharded && grid.update != UpdateMethod::kAllReduce) {
    launch.unsaid.push_back(UpdateText(*grid.update));
  }
  return launch;
}

LaunchText DeepSpeedText(const GridRequest& grid, int64_t devices, int64_t batch,
                         DataType precision) {
  LaunchText launch;
  int stage = TraitsOf(*grid.update).zero_stage;
  if (grid.update == UpdateMethod::kOwner) launch.unsaid.push_back(UpdateText(*grid.update));
  launch.text =
      absl::StrCat("{\n  \"train_batch_size\": ", batch,
                   ",\n  \"train_micro_batch_size_per_gpu\": ", MicroBatchOf(grid, devices, batch),
                   ",\n  \"zero_optimization\": {\"stage\": ", stage, "}");
  const GridDegrees& degrees = grid.degrees;
  if (degrees.tensor > 1) {
    absl::StrAppend(&launch.text, ",\n  \"tensor_parallel\": {\"autotp_size\": ", degrees.tensor,
                    "}");
  }
  if (precision == DataType::kBFloat16) {
    absl::StrAppend(&launch.text, ",\n  \"bf16\": {\"enabled\": true}");
  }
  if (precision == DataType::kFloat16) {
    absl::StrAppend(&launch.text, ",\n  \"fp16\": {\"enabled\": true}");
  }
  absl::StrAppend(&launch.text, "\n}\n");
  if (degrees.tensor > 1 && degrees.sequence_parallel) {
    launch.unsaid.push_back("sequence parallelism between tensor parallel products");
  }
  if (grid.stages > 1) {
    launch.unsaid.push_back(absl::StrCat("a pipeline of ", grid.stages,
                                         " stages (PipelineModule says it in the program)"));
  }
  if (degrees.context > 1) launch.unsaid.push_back("context parallelism");
  if (degrees.expert > 1) launch.unsaid.push_back("expert parallelism");
  if (grid.recomputation != RecomputeMode::kNone) {
    launch.unsaid.push_back(absl::StrCat(RecomputeModeName(grid.recomputation), " recomputation"));
  }
  if (!grid.overlaps_gradients)
    launch.unsaid.push_back("gradients summed behind the backward pass");
  return launch;
}

LaunchText TorchtitanText(const GridRequest& grid, int64_t devices, int64_t batch,
                          DataType precision) {
  LaunchText launch;
  const GridDegrees& degrees = grid.degrees;
  const int64_t micro_batch = MicroBatchOf(grid, devices, batch);
  const int64_t data = devices / (degrees.tensor * degrees.context * grid.stages);
  const bool shards = grid.update == UpdateMethod::kShardedWeights;
  absl::StrAppend(&launch.text, "[training]\nglobal_batch_size = ", batch,
                  "\nlocal_batch_size = ", grid.stages > 1 ? batch / data : micro_batch,
                  "\nmixed_precision_param = \"", PrecisionName(precision), "\"\n\n[parallelism]\n",
                  "data_parallel_replicate_degree = ", shards ? 1 : data,
                  "\ndata_parallel_shard_degree = ", shards ? -1 : 1,
                  "\ntensor_parallel_degree = ", degrees.tensor,
                  "\ncontext_parallel_degree = ", degrees.context,
                  "\npipeline_parallel_degree = ", grid.stages, "\n");
  if (grid.stages > 1) {
    absl::StrAppend(&launch.text, "pipeline_parallel_schedule = \"1F1B\"\n",
                    "pipeline_parallel_microbatch_size = ", micro_batch, "\n");
    if (shards) absl::StrAppend(&launch.text, "fsdp_reshard_after_forward = \"always\"\n");
  }
  if (degrees.expert > 1) {
    absl::StrAppend(&launch.text, "expert_parallel_degree = ", degrees.expert, "\n");
  }
  absl::StrAppend(&launch.text, "\n[activation_checkpoint]\nmode = \"",
                  RecomputeModeName(grid.recomputation), "\"\n");
  // Else it is every second layer.
  if (grid.recomputation == RecomputeMode::kSelective) {
    absl::StrAppend(&launch.text, "selective_ac_option = \"op\"\n");
  }
  if (!shards && grid.update != UpdateMethod::kAllReduce) {
    launch.unsaid.push_back(UpdateText(*grid.update));
  }
  if (grid.chunks > 1) launch.unsaid.push_back(absl::StrCat(grid.chunks, " chunks of each stage"));
  if (degrees.tensor > 1 && !degrees.sequence_parallel) {
    launch.unsaid.push_back("tensor parallelism without sequence parallelism");
  }
  if (degrees.context_by_heads) {
    launch.unsaid.push_back("attention that exchanges the sequence for heads");
  }
  if (precision == DataType::kFloat16) launch.unsaid.push_back("float16");
  if (!grid.overlaps_gradients)
    launch.unsaid.push_back("gradients summed behind the backward pass");
  return launch;
}

}  // namespace

absl::StatusOr<LaunchText> LaunchTextOf(absl::string_view framework, const GridRequest& grid,
                                        int64_t devices, int64_t batch, DataType precision) {
  LaunchText launch = framework == "megatron"    ? MegatronText(grid, devices, batch, precision)
                      : framework == "deepspeed" ? DeepSpeedText(grid, devices, batch, precision)
                                                 : TorchtitanText(grid, devices, batch, precision);
  if (grid.schedule != PipelineSchedule::k1F1B) {
    launch.unsaid.push_back("backward passes in two halves (--schedule)");
  }
  if (!launch.unsaid.empty()) return launch;
  ISOMER_ASSIGN_OR_RETURN(const LaunchSettings read,
                          ParseLaunchSettings(launch.text, std::string(framework)));
  GridDegrees degrees = grid.degrees;
  degrees.in_stripes = read.grid.degrees.in_stripes;  // No setting: frameworks always balance.
  const bool same = read.grid.degrees == degrees && read.grid.stages == grid.stages &&
                    read.grid.chunks == grid.chunks && read.grid.update == grid.update &&
                    read.grid.recomputation == grid.recomputation &&
                    read.grid.overlaps_gradients == grid.overlaps_gradients &&
                    MicroBatchOf(read.grid, devices, batch) == MicroBatchOf(grid, devices, batch) &&
                    read.global_batch_size == batch;
  if (!same) return absl::InternalError("the settings read back as another configuration");
  return launch;
}

}  // namespace isomer
