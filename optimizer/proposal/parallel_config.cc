#include "optimizer/proposal/parallel_config.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "optimizer/mapping/choice_pricer.h"
#include "optimizer/proposal/expert_calls.h"
#include "optimizer/proposal/grid_estimate.h"
#include "optimizer/proposal/striped_order.h"
#include "optimizer/sharding/batch_dims.h"
#include "optimizer/sharding/choice_axes.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

bool HasAttention(const Graph& graph) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (IsAttention(graph.node({id}).op.kind())) return true;
  }
  return false;
}

// Mappings by hand hardly depend on how many devices share out the batch and on stages: they are
// made for one share of it (that of as many devices as share out experts, or of one), in as many
// micro-batches of a size as that is, and their times shared out afterwards.
class Enumerator {
 public:
  Enumerator(GridGraph* graphs, const GridOptions& options, CostTables* tables)
      : graphs_(*graphs),
        graph_(graphs->model().graph),
        options_(options),
        tables_(*tables),
        base_(tables->options()),
        batch_(BatchSize(graph_)),
        experts_(ExpertCalls(graph_).num_experts()),
        modes_(options.may_recompute ? kNumRecomputeModes : 1),
        has_attention_(HasAttention(graph_)),
        has_causal_attention_(HasCausalAttention(graph_)) {}

  absl::StatusOr<std::vector<ConfigEstimate>> Run() {
    const bool pipelines =
        !MixesSamples(graph_) && AnalyzeCompute(graph_, base_.training).nodes.size() > 1;
    const int64_t node = std::gcd(tables_.cost().machine().devices_per_node(), options_.devices);
    for (int64_t tensor : DivisorsOf(node)) {
      for (int64_t expert : ExpertDegrees(options_.devices / tensor)) {
        for (const GridDegrees& degrees : WithContext({.tensor = tensor, .expert = expert})) {
          if (IsTried(1, 1)) ISOMER_RETURN_IF_ERROR(AddWithoutMicroBatches(degrees));
          if (!pipelines || options_.step.micro_batches == 1) continue;
          for (int64_t size : SizesOfMicroBatches(degrees)) {
            const int64_t samples = size * expert;  // of a micro-batch of one share
            if (batch_ % samples == 0 && batch_ > samples) {
              ISOMER_RETURN_IF_ERROR(AddMicroBatches(degrees, size));
            }
          }
        }
      }
    }
    tables_.set_options(base_);
    return std::move(estimates_);
  }

 private:
  // A mapping, and its cuts into so many chunks.
  struct Mapped {
    BlockEstimates estimates;                              // of blocks as large as it
    const std::vector<std::vector<bool>>* kept = nullptr;  // by RecomputeMode
    std::map<int64_t, std::vector<int>> cuts = {};
  };

  // A user's, or else those that are worth an estimate.
  bool IsTried(int64_t stages, int64_t micro_batches) const {
    const Constraints::OfStep& step = options_.step;
    if (stages < options_.LeastStages() || stages != step.stages.value_or(stages)) return false;
    if (step.micro_batches && micro_batches != *step.micro_batches) return false;
    if (micro_batches == 1) return stages == 1 && !step.HasMicroBatches();
    if (step.stages) return step.micro_batches || IsFew(micro_batches, stages);
    return stages <= options_.policy.grid_stages && micro_batches >= stages &&
           (step.micro_batches || IsFew(micro_batches, stages));
  }

  bool IsFew(int64_t micro_batches, int64_t stages) const {
    return micro_batches <= std::min(options_.policy.grid_micro_batches,
                                     options_.policy.micro_batches_per_stage * stages);
  }

  // Samples of a micro-batch on a device. Powers of two, or those that a user's micro-batches have.
  // Several samples that are split in their sequence are one each for fewer devices, which exchange
  // less.
  std::vector<int64_t> SizesOfMicroBatches(const GridDegrees& degrees) const {
    const Constraints::OfStep& step = options_.step;
    std::vector<int64_t> sizes;
    if (!step.micro_batches) {
      // As many as are worth it for each stage, however large the batch is; and half as many.
      const int64_t least =
          batch_ * degrees.tensor / (options_.policy.micro_batches_per_stage * options_.devices);
      const int64_t most = degrees.context > 1 ? 1
                           : step.stages
                               ? batch_
                               : std::max(options_.policy.grid_micro_batch_size, 2 * least);
      for (int64_t size = 1; size <= most; size *= 2) sizes.push_back(size);
      return sizes;
    }
    if (batch_ % *step.micro_batches != 0) return sizes;
    const int64_t samples = batch_ / *step.micro_batches;
    for (int64_t data : DivisorsOf(options_.devices / degrees.tensor)) {
      if (samples % data == 0) sizes.push_back(samples / data);
    }
    return sizes;
  }

  // 1, and of a mixture those that share out its experts.
  std::vector<int64_t> ExpertDegrees(int64_t devices) const {
    std::vector<int64_t> degrees = DivisorsOf(experts_ == 0 ? 1 : std::gcd(experts_, devices));
    std::erase_if(degrees, [&](int64_t degree) { return degree > options_.policy.grid_experts; });
    return degrees;
  }

  // As they are; and with the sequence of attention split in each way, where samples are too few:
  // by no more than gives every device a part of one.
  std::vector<GridDegrees> WithContext(const GridDegrees& degrees) const {
    std::vector<GridDegrees> all = {degrees};
    if (!has_attention_) return all;
    const int64_t models = options_.devices / (degrees.tensor * degrees.expert);
    const int64_t samples = batch_ / degrees.expert;
    for (int64_t context = 2; context <= options_.policy.grid_context; context *= 2) {
      if (models % context != 0 || samples * context / 2 >= models) break;
      for (const bool by_heads : {false, true}) {
        all.push_back(degrees);
        all.back().context = context;
        all.back().context_by_heads = by_heads;
        all.back().in_stripes = has_causal_attention_;
      }
    }
    return all;
  }

  // Calls of a smaller batch leave devices idle, which may be best.
  absl::Status AddWithoutMicroBatches(const GridDegrees& degrees) {
    const ParallelConfig config = {.devices = options_.devices, .degrees = degrees};
    std::optional<Mapped> mapped;
    ISOMER_ASSIGN_OR_RETURN(mapped, Map(config));
    if (mapped.has_value()) {
      AddVariants(config, mapped->estimates, &*mapped);
    }
    return absl::OkStatus();
  }

  // Of all stages and chunks, of micro-batches of so many samples on a device.
  absl::Status AddMicroBatches(const GridDegrees& degrees, int64_t size) {
    const int64_t of_share = degrees.tensor * degrees.context * degrees.expert;
    const ParallelConfig one_share = {
        .devices = of_share, .micro_batches = batch_ / size / degrees.expert, .degrees = degrees};
    std::optional<Mapped> mapped;
    const int64_t devices = options_.devices / (degrees.tensor * degrees.context);
    for (int64_t stages : DivisorsOf(devices)) {
      const int64_t data = devices / stages, n = batch_ / size / data;
      if (data % degrees.expert != 0) continue;
      if (batch_ % (size * data) != 0 || n < 2 || !IsTried(stages, n)) continue;
      if (!mapped.has_value()) {
        ISOMER_ASSIGN_OR_RETURN(mapped, Map(one_share));
        if (!mapped.has_value()) return absl::OkStatus();
      }
      const BlockEstimates estimates =
          SharedOut(mapped->estimates, of_share, data / degrees.expert);
      const int64_t most = options_.step.chunks.value_or(options_.policy.grid_chunks);
      for (int64_t chunks = options_.step.chunks.value_or(1); chunks <= most; ++chunks) {
        const bool may_interleave = stages > 1 && options_.bound_stages.empty();
        if (chunks > 1 && !may_interleave) break;
        if (stages > static_cast<int64_t>(estimates.num_calls()) / chunks) break;
        ParallelConfig config = {.devices = options_.devices,
                                 .stages = stages,
                                 .micro_batches = n,
                                 .degrees = degrees,
                                 .chunks = chunks};
        for (std::vector<int64_t>& blocks :
             OrdersOfBlocks(tables_.cost().machine(), stages, config.stage_devices())) {
          config.blocks = std::move(blocks);
          AddVariants(config, estimates, &*mapped);
        }
      }
    }
    return absl::OkStatus();
  }

  // Absent: the model has no such mapping.
  absl::StatusOr<std::optional<Mapped>> Map(const ParallelConfig& config) {
    tables_.set_options(OptionsOfStage(config, base_, /*by_hand=*/true));
    auto mapped = graphs_.Map(config.degrees, &tables_);
    if (absl::IsNotFound(mapped.status())) return std::nullopt;
    ISOMER_RETURN_IF_ERROR(mapped.status());
    ISOMER_ASSIGN_OR_RETURN(
        BlockEstimates estimates,
        BlockEstimates::Of(*mapped, config.devices, options_.devices / config.devices, &tables_));
    Mapped result{std::move(estimates)};
    const Graph& graph = graphs_.Of(config.degrees);
    std::vector<std::vector<bool>>& kept = kept_[&graph];
    for (size_t mode = kept.size(); mode < modes_; ++mode) {
      kept.push_back(
          KeptCalls(static_cast<RecomputeMode>(mode), graph, result.estimates.compute()));
    }
    result.kept = &kept;
    return result;
  }

  // `one`: of one share of the batch, which has all of it, on so many devices; for `data` of them.
  BlockEstimates SharedOut(const BlockEstimates& one, int64_t of_share, int64_t data) const {
    BlockEstimates estimates = one.Joined(data);
    // Of sums of gradients, by their rate in large buckets.
    constexpr int64_t kBucketBytes = int64_t{25} << 20;
    const double us_per_byte = tables_.cost().CollectiveUs(Collective::kAllReduce, kBucketBytes,
                                                           DeviceGroup{0, of_share, data}) /
                               static_cast<double>(kBucketBytes);
    const int64_t gradient = BytesOfWeight(base_, DataType::kFloat32).gradient;
    const auto shares = static_cast<double>(data);
    for (MappedEstimate& estimate : estimates.distinct()) {
      for (CallEstimate& call : estimate.calls) {
        call.us /= shares;
        call.gather_us /= shares;
        call.SetCopies(call.copies * data);
        call.synchronisation_us += us_per_byte * static_cast<double>(call.weights * gradient);
      }
    }
    return estimates;
  }

  // Empty: bound calls do not suit. Where all devices are of one kind, times alone decide: how many
  // share out the batch does not matter, nor what is kept.
  std::vector<int> CutOf(const ParallelConfig& config, const std::vector<bool>& kept,
                         const BlockEstimates& estimates, Mapped* mapped) const {
    const CostModel& cost = tables_.cost();
    if (!cost.uniform()) return CutIntoChunks(config, options_, cost, base_, kept, estimates);
    const auto [cut, added] = mapped->cuts.try_emplace(config.num_chunks());
    if (added) {
      cut->second = CutIntoChunks(config, options_, cost, base_, kept, mapped->estimates);
    }
    return cut->second;
  }

  void AddVariants(const ParallelConfig& config, const BlockEstimates& estimates, Mapped* mapped) {
    std::vector<UpdateMethod> updates = {options_.update};
    if (options_.choose_update && config.data_degree() > 1) {
      updates = ZeroMethods(config.micro_batches);
      updates.insert(updates.begin(), UpdateMethod::kAllReduce);
    }
    for (UpdateMethod update : updates) {
      for (size_t mode = 0; mode < mapped->kept->size(); ++mode) {
        ParallelConfig variant = config;
        variant.update = update;
        variant.recomputation = static_cast<RecomputeMode>(mode);
        if (variant.recomputation != options_.step.recompute.value_or(variant.recomputation)) {
          continue;
        }
        const std::vector<bool>& kept = (*mapped->kept)[mode];
        const std::vector<int> cut = CutOf(variant, kept, estimates, mapped);
        const bool interleaves = config.chunks > 1;
        if (cut.empty() || (interleaves && !LeadsThroughChunks(estimates.compute(), cut))) continue;
        AddEstimate(variant, kept, estimates, cut);
        if (config.stages == 1 || options_.steps_between_flushes == 1) continue;
        variant.steps_between_flushes = options_.steps_between_flushes;
        AddEstimate(variant, kept, estimates, cut);
      }
    }
  }

  void AddEstimate(const ParallelConfig& config, const std::vector<bool>& kept,
                   const BlockEstimates& estimates, const std::vector<int>& cut) {
    // 1F1B of two versions of weights has no more than a step's micro-batches under way.
    const int64_t of_step = config.micro_batches * config.chunks;
    if (config.steps_between_flushes > 1 && config.Shape().MostInFlight(0) > of_step) return;
    estimates_.push_back(
        EstimateGrid(config, options_, tables_.cost(), base_, kept, estimates, cut));
  }

  GridGraph& graphs_;
  const Graph& graph_;  // the model's own
  const GridOptions& options_;
  CostTables& tables_;
  const CostOptions base_;
  const int64_t batch_, experts_;  // 0 experts: it is no mixture
  const size_t modes_;             // of recomputation
  const bool has_attention_, has_causal_attention_;
  std::map<const Graph*, std::vector<std::vector<bool>>> kept_;  // by RecomputeMode
  std::vector<ConfigEstimate> estimates_;
};

}  // namespace

PipelineShape ParallelConfig::Shape() const {
  PipelineShape shape{.num_stages = stages,
                      .num_moments = micro_batches,
                      .num_chunks = chunks,
                      .num_steps = steps_between_flushes,
                      .folds = schedule == PipelineSchedule::kZbV};
  shape.zero_bubble = ZeroBubbleOf(schedule, shape);
  return shape;
}

int64_t GridOptions::LeastStages() const {
  int64_t least = 1;
  for (const auto& [call, stage] : bound_stages) least = std::max(least, stage + 1);
  return least;
}

bool ParallelConfig::MapsLike(const ParallelConfig& other) const {
  const bool folds = Shape().folds, other_folds = other.Shape().folds;
  return std::tie(devices, stages, micro_batches, degrees, chunks, folds, blocks) ==
         std::tie(other.devices, other.stages, other.micro_batches, other.degrees, other.chunks,
                  other_folds, other.blocks);
}

void ParallelConfig::SetOptions(Plan* plan) const {
  plan->update.method = update;
  plan->update.steps_between_flushes = steps_between_flushes;
  plan->zero_bubble = Shape().zero_bubble;
  // Gradients that are not summed over micro-batches make room at once.
  plan->update.immediate |=
      micro_batches == 1 && !plan->update.all_gradients_first() &&
      (recomputation != RecomputeMode::kNone || update != UpdateMethod::kAllReduce);
  plan->recomputed = RecomputedNodes(recomputation, plan->graph);
}

std::string ParallelConfig::ToString() const {
  std::string text;
  if (degrees.tensor > 1) {
    absl::StrAppend(&text, "tensor ", degrees.tensor,
                    degrees.sequence_parallel ? " x " : " without sequence parallelism x ");
  }
  if (degrees.context > 1) {
    absl::StrAppend(&text, "context ", degrees.context, degrees.context_by_heads ? " by heads" : "",
                    degrees.in_stripes ? " in stripes x " : " x ");
  }
  if (stages > 1) absl::StrAppend(&text, "pipeline ", stages, " x ");
  if (chunks > 1) absl::StrAppend(&text, "chunks ", chunks, " x ");
  absl::StrAppend(&text, "data ", data_degree());
  if (degrees.expert > 1) absl::StrAppend(&text, " (expert ", degrees.expert, ")");
  if (micro_batches > 1) absl::StrAppend(&text, ", ", micro_batches, " micro-batches");
  if (update != UpdateMethod::kAllReduce) {
    absl::StrAppend(&text, ", ", UpdateMethodName(update));
  }
  if (recomputation != RecomputeMode::kNone) {
    absl::StrAppend(&text, ", ", RecomputeModeName(recomputation), " recomputation");
  }
  if (steps_between_flushes > 1) {
    absl::StrAppend(&text, ", drained after ", steps_between_flushes, " steps");
  }
  if (schedule != PipelineSchedule::k1F1B) {
    absl::StrAppend(&text, ", ", PipelineScheduleName(schedule));
  }
  if (!blocks.empty()) {
    absl::StrAppend(&text, ", stages from device ",
                    absl::StrJoin(blocks, ", ", [this](std::string* out, int64_t block) {
                      absl::StrAppend(out, block * stage_devices());
                    }));
  }
  return text;
}

CostOptions OptionsOfStage(const ParallelConfig& config, CostOptions options, bool by_hand) {
  options.num_devices = config.stage_devices();
  options.moments = config.micro_batches;
  // Branches beside each other are for machines without micro-batches to fill them.
  options.halves = options.halves && config.micro_batches == 1 && !by_hand;
  if (by_hand) options.max_axes = 1;
  return options;
}

absl::StatusOr<std::vector<ConfigEstimate>> EnumerateGrids(GridGraph* graphs,
                                                           const GridOptions& options,
                                                           int64_t memory_bytes,
                                                           CostTables* tables) {
  ISOMER_ASSIGN_OR_RETURN(std::vector<ConfigEstimate> estimates,
                          Enumerator(graphs, options, tables).Run());
  const auto worse = [&](const ConfigEstimate& e) {
    const bool fits = e.peak_bytes <= memory_bytes;
    return std::pair(!fits, fits ? e.step_us : static_cast<double>(e.peak_bytes));
  };
  std::stable_sort(estimates.begin(), estimates.end(),
                   [&](const auto& a, const auto& b) { return worse(a) < worse(b); });
  return estimates;
}

absl::Status SpreadOverStages(const ParallelConfig& config, const BoundStages& bound,
                              CostTables* tables, MappedModel* mapped) {
  if (config.stages == 1) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(
      const BlockEstimates estimates,
      BlockEstimates::Of(*mapped, config.stage_devices(), config.stages, tables));
  const ComputeGraph& compute = estimates.compute();
  const std::vector<bool> kept = KeptCalls(config.recomputation, mapped->graph, compute);
  const std::vector<int> chunks = CutIntoChunks(config, {.bound_stages = bound}, tables->cost(),
                                                tables->options(), kept, estimates);
  if (chunks.empty()) {
    return absl::NotFoundError("no cut into so many stages keeps bound calls in theirs");
  }
  if (config.chunks > 1 && !LeadsThroughChunks(compute, chunks)) {
    return absl::NotFoundError(absl::StrCat(
        "--pipeline=", config.stages, "x", config.chunks, ": cut into ", config.num_chunks(),
        " chunks, results of one pass over the next, and chunks "
        "cannot take turns"));
  }
  std::vector<int64_t> blocks;
  const PipelineShape shape = config.Shape();
  for (int chunk : chunks) blocks.push_back(config.BlockOfStage(shape.StageOfLevel(chunk)));
  MoveToBlocks(compute, blocks, config.stage_devices(), mapped);
  return absl::OkStatus();
}

}  // namespace isomer
