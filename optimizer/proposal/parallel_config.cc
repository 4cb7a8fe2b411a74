#include "optimizer/proposal/parallel_config.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "optimizer/mapping/choice_pricer.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/sharding/batch_dims.h"
#include "optimizer/simulator/segments.h"
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
  const int64_t stored = call.weights * each.stored, gradient = call.weights * each.gradient;
  const int64_t trained = call.weights * each.trained;
  const UpdateMethodTraits& traits = TraitsOf(config.update);
  const int64_t of_weight = stored / (traits.splits_weight ? call.copies : 1);
  int64_t bytes = of_weight +
                  gradient / (traits.SplitsGradient(config.micro_batches) ? call.copies : 1) +
                  trained / (traits.splits_trained ? call.copies : 1);
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
  if (traits.spreads == UpdateMethodTraits::Times::kPass && config.tensor_degree > 1) return all_us;
  const bool of_each = traits.sums == UpdateMethodTraits::Times::kMicroBatch;
  const double passes = of_each ? 1 : 1 / static_cast<double>(config.micro_batches);
  return std::max(options.policy.exposed_synchronisation * all_us,
                  all_us - kBackwardShare * stage.us * passes);
}

// All that is worth computing again, as if every result were kept: what borders are depends little
// on it.
std::vector<NodeId> SegmentsOf(const Graph& graph) {
  std::vector<NodeResults> results(graph.num_nodes());
  for (int i = 0; i < graph.num_nodes(); ++i) {
    if (IsLeaf(graph.node({i}).op.kind()) || IsParallel(graph.node({i}).op.kind())) continue;
    NodeResults& made = results[i];
    for (const TensorType& type : graph.node({i}).outputs) made.bytes += type.LocalBytes();
    made.kept_bytes = made.bytes;
    made.us = static_cast<double>(made.bytes);
  }
  const auto levels = LevelsOfRecomputation(SegmentsToRecompute(graph, results), 1);
  return levels.empty() ? std::vector<NodeId>() : levels.back();
}

class Enumerator {
 public:
  Enumerator(const Graph& graph, const GridOptions& options, CostTables* tables)
      : graph_(graph),
        options_(options),
        tables_(*tables),
        base_(tables->options()),
        batch_(BatchSize(graph)) {}

  absl::StatusOr<std::vector<ConfigEstimate>> Run() {
    const bool pipelines =
        !MixesSamples(graph_) && AnalyzeCompute(graph_, base_.training).nodes.size() > 1;
    const int64_t node = std::gcd(tables_.cost().machine().devices_per_node(), options_.devices);
    for (int64_t tensor = 1; tensor <= node; tensor *= 2) {
      if (node % tensor != 0) break;
      for (int64_t stages : StagesToTry()) {
        if (options_.devices % (stages * tensor) != 0) continue;
        if (stages > 1 && !pipelines) break;
        ISOMER_RETURN_IF_ERROR(AddMicroBatches(tensor, stages, pipelines));
      }
    }
    tables_.set_options(base_);
    return std::move(estimates_);
  }

 private:
  // Powers of two, and what is the least for calls that are bound.
  std::set<int64_t> StagesToTry() const {
    int64_t least = 1;
    for (const auto& [call, stage] : options_.bound_stages) least = std::max(least, stage + 1);
    std::set<int64_t> stages = {least};
    for (int64_t s = 1; s <= options_.policy.grid_stages; s *= 2) {
      if (s > least) stages.insert(s);
    }
    return stages;
  }

  // The counts of micro-batches that are worth a look: as few as fill the pipeline, and more.
  absl::Status AddMicroBatches(int64_t tensor, int64_t stages, bool pipelines) {
    const int64_t data = options_.devices / (stages * tensor);
    const int64_t most = std::min(options_.policy.grid_micro_batches,
                                  options_.policy.micro_batches_per_stage * stages);
    const auto fewest = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(stages)));
    for (int64_t n = fewest; n <= most; n *= 2) {
      const bool divides = batch_ % (data * n) == 0;
      // Without micro-batches calls of a smaller batch leave devices idle, which may be best.
      if (!divides && n > 1) break;
      ISOMER_RETURN_IF_ERROR(Add({options_.devices, stages, n, tensor}));
      if (!pipelines) break;
    }
    return absl::OkStatus();
  }

  absl::Status Add(const ParallelConfig& config) {
    tables_.set_options(OptionsOfStage(config, base_, /*by_hand=*/true));
    auto mapped = MapTensorParallel(graph_, config.tensor_degree, &tables_);
    if (absl::IsNotFound(mapped.status())) return absl::OkStatus();
    ISOMER_RETURN_IF_ERROR(mapped.status());
    ISOMER_ASSIGN_OR_RETURN(const MappedEstimate estimate, EstimateMapped(*mapped, &tables_));
    if (config.stages > static_cast<int64_t>(estimate.calls.size())) return absl::OkStatus();
    const std::vector<int> stages = StagesOfCalls(estimate, config.stages, options_.bound_stages);
    if (stages.empty()) return absl::OkStatus();
    if (borders_.empty()) borders_ = BordersOf(graph_, estimate.compute);
    std::vector<UpdateMethod> updates = {options_.update};
    if (options_.choose_update) {
      updates = ZeroMethods(config.micro_batches);
      updates.insert(updates.begin(), UpdateMethod::kAllReduce);
    }
    for (UpdateMethod update : updates) {
      for (bool recomputes : {false, true}) {
        if (recomputes && !options_.may_recompute) continue;
        ParallelConfig variant = config;
        variant.update = update;
        variant.recomputes = recomputes;
        AddEstimate(variant, estimate, stages);
        if (config.stages == 1 || options_.steps_between_flushes == 1) continue;
        variant.steps_between_flushes = options_.steps_between_flushes;
        AddEstimate(variant, estimate, stages);
      }
    }
    return absl::OkStatus();
  }

  void AddEstimate(const ParallelConfig& config, const MappedEstimate& estimate,
                   const std::vector<int>& stages) {
    estimates_.push_back(EstimateGrid(config, options_, base_, borders_, estimate, stages));
  }

  const Graph& graph_;
  const GridOptions& options_;
  CostTables& tables_;
  const CostOptions base_;
  const int64_t batch_;
  std::vector<bool> borders_;
  std::vector<ConfigEstimate> estimates_;
};

}  // namespace

std::vector<bool> BordersOf(const Graph& graph, const ComputeGraph& compute) {
  std::vector<bool> between(graph.num_nodes(), false);
  for (NodeId id : SegmentsOf(graph)) between[id.value] = true;
  std::vector<bool> borders;
  for (const auto& node : compute.nodes) borders.push_back(!between[node.id.value]);
  return borders;
}

ConfigEstimate EstimateGrid(const ParallelConfig& config, const GridOptions& options,
                            const CostOptions& cost, const std::vector<bool>& borders,
                            const MappedEstimate& mapped, absl::Span<const int> chunk_of_call) {
  std::vector<StageLoad> stages(config.stages);
  int64_t segment_bytes = 0;
  for (size_t i = 0; i < mapped.calls.size(); ++i) {
    const CallEstimate& call = mapped.calls[i];
    StageLoad& stage = stages[chunk_of_call[i] % config.stages];
    stage.us += call.us * (config.recomputes ? 1 + kForwardShare : 1);
    AddWeights(config, cost, call, &stage);
    if (!config.recomputes) {
      stage.kept_bytes += call.kept_bytes;
      continue;
    }
    segment_bytes += call.kept_bytes;
    stage.again_bytes = std::max(stage.again_bytes, segment_bytes);
    if (!borders[i]) continue;
    stage.kept_bytes += call.output_bytes;
    segment_bytes = 0;
  }
  ConfigEstimate result{config, 0, 0};
  double sum = 0, slowest = 0, synchronisation = 0;
  const auto n = static_cast<double>(config.micro_batches);
  const int64_t v = config.chunks;
  for (int64_t s = 0; s < config.stages; ++s) {
    const StageLoad& stage = stages[s];
    sum += stage.us / n;
    slowest = std::max(slowest, stage.us / n);
    synchronisation = std::max(synchronisation, ExposedUs(config, options, stage));
    // Of chunks.
    const int64_t in_flight = std::min(
        v == 1 ? config.stages - s : 2 * (config.stages - s - 1) + (v - 1) * config.stages + 1,
        config.micro_batches * v);
    const int64_t bytes = stage.stored_bytes + in_flight * stage.kept_bytes / v + stage.again_bytes;
    result.peak_bytes = std::max(result.peak_bytes, bytes);
  }
  result.step_us = n * slowest +
                   (sum - slowest) / static_cast<double>(v * config.steps_between_flushes) +
                   synchronisation;
  return result;
}

bool ParallelConfig::MapsLike(const ParallelConfig& other) const {
  return std::tie(devices, stages, micro_batches, tensor_degree, chunks) ==
         std::tie(other.devices, other.stages, other.micro_batches, other.tensor_degree,
                  other.chunks);
}

void ParallelConfig::SetOptions(Plan* plan) const {
  plan->update.method = update;
  plan->update.steps_between_flushes = steps_between_flushes;
  // Gradients that are not summed over micro-batches make room at once.
  plan->update.immediate |=
      micro_batches == 1 && (recomputes || update != UpdateMethod::kAllReduce);
  if (recomputes) plan->recomputed = SegmentsOf(plan->graph);
}

std::string ParallelConfig::ToString() const {
  std::string text;
  if (tensor_degree > 1) absl::StrAppend(&text, "tensor ", tensor_degree, " x ");
  if (stages > 1) absl::StrAppend(&text, "pipeline ", stages, " x ");
  if (chunks > 1) absl::StrAppend(&text, "chunks ", chunks, " x ");
  absl::StrAppend(&text, "data ", devices / stages / tensor_degree);
  if (micro_batches > 1) absl::StrAppend(&text, ", ", micro_batches, " micro-batches");
  if (update != UpdateMethod::kAllReduce) {
    absl::StrAppend(&text, ", ", UpdateMethodName(update));
  }
  if (recomputes) absl::StrAppend(&text, ", recomputation");
  if (steps_between_flushes > 1) {
    absl::StrAppend(&text, ", drained after ", steps_between_flushes, " steps");
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

absl::StatusOr<std::vector<ConfigEstimate>> EnumerateGrids(const Graph& graph,
                                                           const GridOptions& options,
                                                           int64_t memory_bytes,
                                                           CostTables* tables) {
  ISOMER_ASSIGN_OR_RETURN(std::vector<ConfigEstimate> estimates,
                          Enumerator(graph, options, tables).Run());
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
  MoveToStages(estimate, chunks, config.stages, config.stage_devices(), mapped);
  return absl::OkStatus();
}

}  // namespace isomer
