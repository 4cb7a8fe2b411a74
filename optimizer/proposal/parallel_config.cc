#include "optimizer/proposal/parallel_config.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "optimizer/mapping/choice_pricer.h"
#include "optimizer/proposal/expert_calls.h"
#include "optimizer/sharding/batch_dims.h"
#include "optimizer/sharding/choice_axes.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// What one device of a stage does and holds.
struct StageLoad {
  double us = 0, synchronisation_us = 0;
  int64_t stored_bytes = 0;  // weights, their gradients and states, whatever the micro-batch
  int64_t kept_bytes = 0;    // of a micro-batch, for its backward pass
  int64_t again_bytes = 0;   // of one micro-batch at a time, computed again
};

// Of a forward and a backward pass, what each takes.
constexpr double kForwardShare = 1.0 / 3, kBackwardShare = 2.0 / 3;

// Weights with their gradients, masters and states, and of the
// all-reduce of their gradients the time that keeping copies equal takes.
void AddWeights(const ParallelConfig& config, const CostOptions& cost, const CallEstimate& call,
                StageLoad* load) {
  const WeightBytes each = BytesOfWeight(cost, DataType::kFloat32);
  const UpdateMethodTraits& traits = TraitsOf(config.update);
  const auto on_device = [&](int64_t bytes_each, bool splits) {
    const int64_t saved = splits ? call.in_parts - call.in_parts / call.copies : 0;
    return (call.weights - saved) * bytes_each;
  };
  const int64_t of_weight = on_device(each.stored, traits.splits_weight);
  int64_t bytes = of_weight +
                  on_device(each.gradient, traits.SplitsGradient(config.micro_batches)) +
                  on_device(each.trained, traits.splits_trained);
  if (config.steps_between_flushes > 1) bytes += of_weight;
  // In all-reduces, each of which is as much as a scatter and a gather.
  const bool is_whole = traits.sum == UpdateMethodTraits::Sum::kAllReduce;
  double moves = (is_whole ? 1 : 0.5) *
                 static_cast<double>(UpdateMethodTraits::Count(traits.sums, config.micro_batches));
  if (traits.spread != UpdateMethodTraits::Spread::kNothing) {
    moves +=
        0.5 * static_cast<double>(UpdateMethodTraits::Count(traits.spreads, config.micro_batches));
  }
  load->stored_bytes += call.fixed_bytes + bytes;
  load->synchronisation_us += moves * call.synchronisation_us;
}

// What of a stage's synchronisation does not hide: it is done behind the last micro-batch, or
// behind each. Weights that are gathered for every use stand in one queue with what tensor
// parallelism waits for.
double ExposedUs(const ParallelConfig& config, const GridOptions& options, const StageLoad& stage) {
  const double all_us = stage.synchronisation_us;
  const UpdateMethodTraits& traits = TraitsOf(config.update);
  if (traits.spreads == UpdateMethodTraits::Times::kPass && config.degrees.tensor > 1)
    return all_us;
  const bool of_each = traits.sums == UpdateMethodTraits::Times::kMicroBatch;
  const double passes = of_each ? 1 : 1 / static_cast<double>(config.micro_batches);
  return std::max(options.policy.exposed_synchronisation * all_us,
                  all_us - kBackwardShare * stage.us * passes);
}

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
        has_attention_(HasAttention(graph_)) {}

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
    MappedEstimate estimate;
    const std::vector<std::vector<bool>>* kept = nullptr;  // by RecomputeMode
    std::map<int64_t, std::vector<int>> cuts;
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
      const int64_t most = degrees.context > 1 ? 1
                           : step.stages       ? batch_
                                               : options_.policy.grid_micro_batch_size;
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
      AddVariants(config, *mapped->kept, mapped->estimate, CutInto(1, &*mapped));
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
      const MappedEstimate estimate = SharedOut(mapped->estimate, of_share, data / degrees.expert);
      const int64_t most = options_.step.chunks.value_or(options_.policy.grid_chunks);
      for (int64_t chunks = options_.step.chunks.value_or(1); chunks <= most; ++chunks) {
        const bool may_interleave = stages > 1 && options_.bound_stages.empty();
        if (chunks > 1 && !may_interleave) break;
        if (stages > static_cast<int64_t>(estimate.calls.size()) / chunks) break;
        const ParallelConfig config = {.devices = options_.devices,
                                       .stages = stages,
                                       .micro_batches = n,
                                       .degrees = degrees,
                                       .chunks = chunks};
        const std::vector<int>& cut = CutInto(stages * chunks, &*mapped);
        if (chunks == 1 || LeadsThroughChunks(estimate, cut)) {
          AddVariants(config, *mapped->kept, estimate, cut);
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
    Mapped result;
    ISOMER_ASSIGN_OR_RETURN(result.estimate, EstimateMapped(*mapped, &tables_));
    const Graph& graph = graphs_.Of(config.degrees);
    std::vector<std::vector<bool>>& kept = kept_[&graph];
    for (size_t mode = kept.size(); mode < modes_; ++mode) {
      kept.push_back(KeptCalls(static_cast<RecomputeMode>(mode), graph, result.estimate.compute));
    }
    result.kept = &kept;
    return result;
  }

  // `one`: of one share of the batch, which has all of it, on so many devices; for `data` of them.
  MappedEstimate SharedOut(const MappedEstimate& one, int64_t of_share, int64_t data) const {
    MappedEstimate estimate = one;
    // Of sums of gradients, by their rate in large buckets.
    constexpr int64_t kBucketBytes = int64_t{25} << 20;
    const double us_per_byte = tables_.cost().CollectiveUs(Collective::kAllReduce, kBucketBytes,
                                                           DeviceGroup{0, of_share, data}) /
                               static_cast<double>(kBucketBytes);
    const int64_t gradient = BytesOfWeight(base_, DataType::kFloat32).gradient;
    const auto shares = static_cast<double>(data);
    for (CallEstimate& call : estimate.calls) {
      call.us /= shares;
      call.gather_us /= shares;
      call.SetCopies(call.copies * data);
      call.synchronisation_us += us_per_byte * static_cast<double>(call.weights * gradient);
    }
    return estimate;
  }

  // Empty: bound calls do not suit.
  const std::vector<int>& CutInto(int64_t chunks, Mapped* mapped) const {
    const auto [cut, added] = mapped->cuts.try_emplace(chunks);
    if (added) cut->second = StagesOfCalls(mapped->estimate, chunks, options_.bound_stages);
    return cut->second;
  }

  void AddVariants(const ParallelConfig& config, const std::vector<std::vector<bool>>& kept,
                   const MappedEstimate& estimate, const std::vector<int>& cut) {
    if (cut.empty()) return;
    std::vector<UpdateMethod> updates = {options_.update};
    if (options_.choose_update && config.data_degree() > 1) {
      updates = ZeroMethods(config.micro_batches);
      updates.insert(updates.begin(), UpdateMethod::kAllReduce);
    }
    for (UpdateMethod update : updates) {
      for (size_t mode = 0; mode < kept.size(); ++mode) {
        ParallelConfig variant = config;
        variant.update = update;
        variant.recomputation = static_cast<RecomputeMode>(mode);
        if (variant.recomputation != options_.step.recompute.value_or(variant.recomputation)) {
          continue;
        }
        AddEstimate(variant, kept[mode], estimate, cut);
        if (config.stages == 1 || options_.steps_between_flushes == 1) continue;
        variant.steps_between_flushes = options_.steps_between_flushes;
        AddEstimate(variant, kept[mode], estimate, cut);
      }
    }
  }

  void AddEstimate(const ParallelConfig& config, const std::vector<bool>& kept,
                   const MappedEstimate& estimate, const std::vector<int>& cut) {
    // 1F1B of two versions of weights has no more than a step's micro-batches under way.
    const int64_t of_step = config.micro_batches * config.chunks;
    if (config.steps_between_flushes > 1 && config.Shape().MostInFlight(0) > of_step) return;
    estimates_.push_back(
        EstimateGrid(config, options_, tables_.cost(), base_, kept, estimate, cut));
  }

  GridGraph& graphs_;
  const Graph& graph_;  // the model's own
  const GridOptions& options_;
  CostTables& tables_;
  const CostOptions base_;
  const int64_t batch_, experts_;  // 0 experts: it is no mixture
  const size_t modes_;             // of recomputation
  const bool has_attention_;
  std::map<const Graph*, std::vector<std::vector<bool>>> kept_;  // by RecomputeMode
  std::vector<ConfigEstimate> estimates_;
};

// What chunks get from others is kept where they are, for their backward passes: each tensor once
// in a chunk.
void KeepWhatIsReceived(const MappedEstimate& mapped, absl::Span<const int> chunk_of_call,
                        const PipelineShape& shape, std::vector<StageLoad>* stages) {
  std::vector<int> last_chunk(chunk_of_call.begin(), chunk_of_call.end());  // that got the output
  for (size_t i = 0; i < mapped.calls.size(); ++i) {
    const int chunk = chunk_of_call[i];
    for (const auto& operand : mapped.compute.nodes[i].operands) {
      if (operand.producer < 0 || chunk_of_call[operand.producer] == chunk) continue;
      if (std::exchange(last_chunk[operand.producer], chunk) == chunk) continue;
      (*stages)[shape.StageOfLevel(chunk)].kept_bytes +=
          mapped.calls[operand.producer].output_bytes;
    }
  }
}

}  // namespace

ConfigEstimate EstimateGrid(const ParallelConfig& config, const GridOptions& options,
                            const CostModel& model, const CostOptions& cost,
                            const std::vector<bool>& kept, const MappedEstimate& mapped,
                            absl::Span<const int> chunk_of_call) {
  const PipelineShape shape = config.Shape();
  std::vector<StageLoad> stages(config.stages);
  std::vector<double> chunk_us(config.num_chunks(), 0);
  int64_t segment_bytes = 0;
  for (size_t i = 0; i < mapped.calls.size(); ++i) {
    const CallEstimate& call = mapped.calls[i];
    StageLoad& stage = stages[shape.StageOfLevel(chunk_of_call[i])];
    const bool is_full = config.recomputation == RecomputeMode::kFull;
    double& us = chunk_us[chunk_of_call[i]];
    us += call.us * (is_full || !kept[i] ? 1 + kForwardShare : 1);
    AddWeights(config, cost, call, &stage);
    if (config.recomputation == RecomputeMode::kNone) {
      stage.kept_bytes += call.kept_bytes + call.gathered_bytes;
      continue;
    }
    if (!is_full) {
      us += call.gather_us;
      if (kept[i]) stage.kept_bytes += call.kept_bytes;
      stage.again_bytes = std::max(stage.again_bytes, call.kept_bytes + call.gathered_bytes);
      continue;
    }
    segment_bytes += call.kept_bytes + call.gathered_bytes;
    stage.again_bytes = std::max(stage.again_bytes, segment_bytes);
    if (!kept[i]) continue;
    stage.kept_bytes += call.output_bytes;
    segment_bytes = 0;
  }
  if (cost.training) KeepWhatIsReceived(mapped, chunk_of_call, shape, &stages);
  ConfigEstimate result{config, 0, 0};
  double sum = 0, slowest = 0, synchronisation = 0;
  const auto n = static_cast<double>(config.micro_batches);
  // Of each stage's chunks the first are on the way at one time, then the second: a stage does not
  // make up for a long one with a short one.
  for (int64_t c = 0; c < config.chunks; ++c) {
    const auto first = chunk_us.begin() + c * config.stages;
    slowest += *std::max_element(first, first + config.stages);
    for (int64_t s = 0; s < config.stages; ++s) {
      stages[shape.StageOfLevel(c * config.stages + s)].us += first[s];
    }
  }
  slowest /= n;
  const int64_t v = config.chunks;
  for (int64_t s = 0; s < config.stages; ++s) {
    const StageLoad& stage = stages[s];
    sum += stage.us / n;
    synchronisation = std::max(synchronisation, ExposedUs(config, options, stage));
    // Of chunks.
    const int64_t in_flight = shape.MostInFlight(s);
    const int64_t bytes = stage.stored_bytes + in_flight * stage.kept_bytes / v + stage.again_bytes;
    result.peak_bytes = std::max(result.peak_bytes, bytes);
  }
  if (config.stages > 1) {
    // A small message, there and back, on each border of chunks; on a device beside what it
    // computes.
    const double message_us = model.SendUs(1, 0, static_cast<int32_t>(config.devices / 2));
    const double of_borders = 2 * message_us * static_cast<double>(config.num_chunks());
    slowest = std::max(slowest, of_borders / static_cast<double>(config.stages));
    synchronisation += of_borders;
  }
  const double filling = std::max(0.0, sum - slowest);
  const auto steps = static_cast<double>(config.steps_between_flushes), all = n * steps;
  // The slowest stage works on all, or waits for the first, which are on their way through all.
  const double one_by_one = all * slowest + filling / static_cast<double>(v);
  const double through = slowest + filling + (all - 1) * slowest / static_cast<double>(v);
  result.step_us = std::max(one_by_one, through) / steps + synchronisation;
  return result;
}

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
  return std::tie(devices, stages, micro_batches, degrees, chunks, folds) ==
         std::tie(other.devices, other.stages, other.micro_batches, other.degrees, other.chunks,
                  other_folds);
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
    absl::StrAppend(&text, "context ", degrees.context,
                    degrees.context_by_heads ? " by heads x " : " x ");
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
  ISOMER_ASSIGN_OR_RETURN(const MappedEstimate estimate, EstimateMapped(*mapped, tables));
  // Algebra may leave fewer calls than there are stages.
  const auto calls = static_cast<int64_t>(estimate.calls.size());
  const std::vector<int> chunks =
      StagesOfCalls(estimate, std::min(config.num_chunks(), calls), bound);
  if (chunks.empty()) {
    return absl::NotFoundError("no cut into so many stages keeps bound calls in theirs");
  }
  if (config.chunks > 1 && !LeadsThroughChunks(estimate, chunks)) {
    return absl::NotFoundError(absl::StrCat(
        "--pipeline=", config.stages, "x", config.chunks, ": cut into ", config.num_chunks(),
        " chunks, results of one pass over the next, and chunks "
        "cannot take turns"));
  }
  std::vector<int64_t> stages;
  const PipelineShape shape = config.Shape();
  for (int chunk : chunks) stages.push_back(shape.StageOfLevel(chunk));
  MoveToStages(estimate, stages, config.stage_devices(), mapped);
  return absl::OkStatus();
}

}  // namespace isomer
