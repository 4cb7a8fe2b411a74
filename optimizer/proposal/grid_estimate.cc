#include "optimizer/proposal/grid_estimate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "optimizer/mapping/choice_pricer.h"
#include "pcg/ir/weight_update.h"

namespace isomer {
namespace {

// What one device of a stage does and holds.
struct StageLoad {
  double us = 0, synchronisation_us = 0;
  int64_t stored_bytes = 0;  // weights and their states, whatever the micro-batch
  int64_t gradient_bytes = 0;
  int64_t kept_bytes = 0;   // of a micro-batch, for its backward pass
  int64_t again_bytes = 0;  // of one micro-batch at a time, computed again
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
  int64_t bytes = of_weight + on_device(each.trained, traits.splits_trained);
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
  load->gradient_bytes += on_device(each.gradient, traits.SplitsGradient(config.micro_batches));
  load->synchronisation_us += moves * call.synchronisation_us;
}

// What a call keeps for its backward pass, and what of it is made again; `segment_bytes`: of the
// segment that it is in, so far.
void AddKept(RecomputeMode mode, bool is_kept, const CallEstimate& call, int64_t* segment_bytes,
             StageLoad* load) {
  const int64_t all = call.kept_bytes + call.gathered_bytes;
  if (mode == RecomputeMode::kNone) {
    load->kept_bytes += all;
    return;
  }
  if (mode != RecomputeMode::kFull) {
    if (is_kept) load->kept_bytes += call.kept_bytes;
    load->again_bytes = std::max(load->again_bytes, all);
    return;
  }
  *segment_bytes += all;
  load->again_bytes = std::max(load->again_bytes, *segment_bytes);
  if (!is_kept) return;
  load->kept_bytes += call.output_bytes;
  *segment_bytes = 0;
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

// At its peak: as much is kept until the stage has no further micro-batch to begin, and gradients
// are of the chunks that backward passes have come to by then; those of all, when little is kept.
int64_t PeakBytes(const PipelineShape& shape, int64_t stage, const StageLoad& load) {
  const int64_t chunks = shape.num_chunks, in_flight = shape.MostInFlight(stage);
  const int64_t begun = shape.num_steps * shape.num_moments * chunks - in_flight;
  const int64_t reached = std::min(chunks, 1 + begun / shape.LargestRound());
  return load.stored_bytes + load.again_bytes +
         std::max(in_flight * load.kept_bytes + reached * load.gradient_bytes,
                  load.kept_bytes + chunks * load.gradient_bytes) /
             chunks;
}

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

// Of the devices that have least, of those of a stage.
int64_t LeastMemory(const ParallelConfig& config, const Machine& machine, int64_t stage) {
  int64_t least = std::numeric_limits<int64_t>::max();
  const int64_t first = config.BlockOfStage(stage) * config.stage_devices();
  for (int64_t d = first; d < first + config.stage_devices(); ++d) {
    least = std::min(least, machine.kind(d).memory_bytes);
  }
  return least;
}

// Chunks of the model: algebra may leave fewer calls than there should be.
int64_t LevelsOf(const ParallelConfig& config, const BlockEstimates& estimates) {
  return std::min(config.num_chunks(), static_cast<int64_t>(estimates.num_calls()));
}

// What each stage's devices hold: of a call, what is stored of it and what is kept for as many
// micro-batches as are in flight there; at most, what their memory leaves beside what is computed
// again at a time, and what estimates may be too low by. A chunk has its share of that.
std::vector<StageRoom> RoomsOf(const ParallelConfig& config, const GridOptions& options,
                               const CostModel& model, const CostOptions& cost,
                               const std::vector<bool>& kept, const BlockEstimates& estimates) {
  const PipelineShape shape = config.Shape();
  std::vector<StageRoom> rooms;
  for (int64_t level = 0; level < LevelsOf(config, estimates); ++level) {
    const int64_t s = shape.StageOfLevel(level);
    const MappedEstimate& estimate = estimates.of(config.BlockOfStage(s));
    const int64_t in_flight = shape.MostInFlight(s);
    StageRoom room;
    int64_t again = 0, segment = 0, received = 0;
    for (size_t i = 0; i < estimate.calls.size(); ++i) {
      const CallEstimate& call = estimate.calls[i];
      StageLoad load;
      AddWeights(config, cost, call, &load);
      AddKept(config.recomputation, kept[i], call, &segment, &load);
      again = std::max(again, load.again_bytes);
      received = std::max(received, call.output_bytes);
      room.bytes.push_back(load.stored_bytes + load.gradient_bytes +
                           in_flight * load.kept_bytes / config.chunks);
    }
    const auto memory =
        static_cast<int64_t>(static_cast<double>(LeastMemory(config, model.machine(), s)) /
                             options.policy.grid_memory_slack) -
        again;
    room.most_bytes = memory / config.chunks - (level > 0 ? in_flight * received : 0);
    rooms.push_back(std::move(room));
  }
  return rooms;
}

}  // namespace

ConfigEstimate EstimateGrid(const ParallelConfig& config, const GridOptions& options,
                            const CostModel& model, const CostOptions& cost,
                            const std::vector<bool>& kept, const BlockEstimates& estimates,
                            absl::Span<const int> chunk_of_call) {
  const PipelineShape shape = config.Shape();
  const Machine& machine = model.machine();
  const auto estimate_of = [&](int64_t stage) -> const MappedEstimate& {
    return estimates.of(config.BlockOfStage(stage));
  };
  std::vector<StageLoad> stages(config.stages);
  std::vector<double> chunk_us(config.num_chunks(), 0);
  int64_t segment_bytes = 0;
  for (size_t i = 0; i < estimates.num_calls(); ++i) {
    const int64_t s = shape.StageOfLevel(chunk_of_call[i]);
    const CallEstimate& call = estimate_of(s).calls[i];
    StageLoad& stage = stages[s];
    const bool is_full = config.recomputation == RecomputeMode::kFull;
    double& us = chunk_us[chunk_of_call[i]];
    us += call.us * (is_full || !kept[i] ? 1 + kForwardShare : 1);
    AddWeights(config, cost, call, &stage);
    if (config.recomputation == RecomputeMode::kSelective) us += call.gather_us;
    AddKept(config.recomputation, kept[i], call, &segment_bytes, &stage);
  }
  if (cost.training) KeepWhatIsReceived(estimate_of(0), chunk_of_call, shape, &stages);
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
  const int64_t v = config.chunks, least = machine.memory_bytes();
  for (int64_t s = 0; s < config.stages; ++s) {
    const StageLoad& stage = stages[s];
    sum += stage.us / n;
    synchronisation = std::max(synchronisation, ExposedUs(config, options, stage));
    const int64_t more = model.uniform() ? 0 : LeastMemory(config, machine, s) - least;
    result.peak_bytes = std::max(result.peak_bytes, PeakBytes(shape, s, stage) - more);
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

std::vector<int> CutIntoChunks(const ParallelConfig& config, const GridOptions& options,
                               const CostModel& model, const CostOptions& cost,
                               const std::vector<bool>& kept, const BlockEstimates& estimates) {
  const PipelineShape shape = config.Shape();
  std::vector<int64_t> blocks;
  for (int64_t level = 0; level < LevelsOf(config, estimates); ++level) {
    blocks.push_back(config.BlockOfStage(shape.StageOfLevel(level)));
  }
  std::vector<int> balanced = StagesOfCalls(estimates, blocks, options.bound_stages);
  if (model.uniform() || config.stages == 1 || balanced.empty()) return balanced;
  const ConfigEstimate estimate =
      EstimateGrid(config, options, model, cost, kept, estimates, balanced);
  if (estimate.peak_bytes <= model.machine().memory_bytes()) return balanced;
  std::vector<int> held = StagesOfCalls(estimates, blocks, options.bound_stages,
                                        RoomsOf(config, options, model, cost, kept, estimates));
  return held.empty() ? balanced : held;
}

std::vector<std::vector<int64_t>> OrdersOfBlocks(const Machine& machine, int64_t stages,
                                                 int64_t stage_devices) {
  std::vector<std::vector<int64_t>> orders = {{}};
  if (stages == 1 || machine.kinds_in_use().size() == 1) return orders;
  std::vector<std::set<int>> kinds(stages);
  for (int64_t d = 0; d < stages * stage_devices; ++d) {
    kinds[d / stage_devices].insert(machine.kind_index(d));
  }
  std::vector<std::set<int>> sorted(kinds);
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  // Of more groups there are too many orders: the first few of them.
  constexpr size_t kMostOrders = 6;
  std::set<std::vector<std::set<int>>> seen = {kinds};
  do {
    std::vector<int64_t> blocks;
    std::vector<std::set<int>> in_order;
    for (const std::set<int>& group : sorted) {
      for (int64_t block = 0; block < stages; ++block) {
        if (kinds[block] != group) continue;
        blocks.push_back(block);
        in_order.push_back(group);
      }
    }
    if (seen.insert(in_order).second) orders.push_back(std::move(blocks));
  } while (orders.size() <= kMostOrders && std::next_permutation(sorted.begin(), sorted.end()));
  return orders;
}

}  // namespace isomer
