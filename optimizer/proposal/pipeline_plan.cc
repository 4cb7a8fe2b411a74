#include "optimizer/proposal/pipeline_plan.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/sharding/compute_graph.h"
#include "optimizer/sharding/stage_cut.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/order/pipeline.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// As many equal devices as a stage has devices times micro-batches.
Machine MachineOfMoments(const Machine& machine, int64_t degree) {
  Machine moments;
  moments.name = machine.name;
  moments.kinds = {machine.kinds[0]};
  Machine::Level level = machine.levels[0];
  level.count = degree;
  moments.levels = {std::move(level)};
  return moments;
}

// Views of stages and micro-batches for a graph of data parallelism.
class StageMapper {
 public:
  StageMapper(const Plan& plan, const CostModel& cost, const PipelineOptions& options, int64_t data)
      : plan_(plan),
        graph_(plan.graph),
        cost_(cost),
        stages_(options.stages),
        chunks_(options.stages * options.chunks),
        data_(data),
        micro_batches_(options.micro_batches) {
    call_.assign(graph_.num_nodes(), -1);
    for (NodeId id : graph_.TopologicalOrder()) {
      const OpKind kind = graph_.node(id).op.kind();
      if (IsLeaf(kind) || IsParallel(kind)) continue;
      call_[id.value] = static_cast<int>(calls_.size());
      calls_.push_back(id);
    }
  }

  absl::StatusOr<std::vector<MachineView>> Run() {
    const int64_t count = static_cast<int64_t>(calls_.size());
    if (chunks_ > count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--stages=", stages_, chunks_ > stages_ ? absl::StrCat("x", chunks_ / stages_) : "",
          ": the model has ", count, " calls"));
    }
    ISOMER_ASSIGN_OR_RETURN(const std::vector<double> us, TimesOfCalls());
    const std::vector<int> chunk_of_call =
        StagesOfCalls(us, MadeByCalls(), static_cast<int>(chunks_));
    chunk_.assign(graph_.num_nodes(), 0);
    for (int64_t i = 0; i < count; ++i) chunk_[calls_[i].value] = chunk_of_call[i];
    PlaceOthers();
    return Views();
  }

 private:
  absl::StatusOr<std::vector<MachineView>> Views() const {
    std::vector<MachineView> views;
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      const TensorType& type = graph_.node(id).outputs[0];
      MachineView view = RowMajorView(type);
      view.start = chunk_.empty() ? 0 : chunk_[id] % stages_ * data_;
      if (type.NumShards() > 1) {
        const auto axis = std::find(view.strides.begin(), view.strides.end(), 1);
        if (type.NumShards() != data_ * micro_batches_ ||
            std::count(view.strides.begin(), view.strides.end(), 0) + 1 !=
                static_cast<int64_t>(view.strides.size())) {
          return absl::InternalError(absl::StrCat(graph_.Label({id}), ": ", type.ToString(),
                                                  " is not split by samples alone"));
        }
        if (micro_batches_ > 1) {
          view.moments.assign(view.strides.size(), 1);
          view.moments[axis - view.strides.begin()] = micro_batches_;
        }
        if (data_ == 1) *axis = 0;
      }
      views.push_back(std::move(view));
    }
    return views;
  }

  // Of each call and its gradient, for all micro-batches, on the first device of a stage.
  absl::StatusOr<std::vector<double>> TimesOfCalls() const {
    ISOMER_ASSIGN_OR_RETURN(const std::vector<MachineView> views, Views());
    ISOMER_ASSIGN_OR_RETURN(const Schedule schedule,
                            LowerGraph(graph_, views,
                                       {.training = plan_.mode == "training",
                                        .num_devices = data_,
                                        .loss = plan_.model.loss}));
    std::vector<double> us(calls_.size(), 0);
    for (const Task& task : schedule.tasks) {
      if (!IsOfKernel(task.kind)) continue;
      if (task.devices[0] != 0) continue;
      us[call_[task.node.value]] += TaskUs(cost_, graph_, schedule, task);
    }
    return us;
  }

  // The tensor that parallel operators make `tensor` from.
  TensorRef Origin(TensorRef tensor) const {
    while (IsParallel(graph_.node(tensor.node).op.kind())) {
      tensor = graph_.node(tensor.node).inputs[0];
    }
    return tensor;
  }

  std::vector<MadeByCall> MadeByCalls() const {
    std::map<TensorRef, int> last_use;  // of what calls make
    for (NodeId id : calls_) {
      for (TensorRef input : graph_.node(id).inputs) {
        const TensorRef origin = Origin(input);
        if (call_[origin.node.value] >= 0) last_use[origin] = call_[id.value];
      }
    }
    std::vector<MadeByCall> made;
    for (const auto& [tensor, last] : last_use) {
      const TensorType& type = graph_.type(tensor);
      made.push_back({static_cast<size_t>(call_[tensor.node.value]), static_cast<size_t>(last),
                      type.NumElements() * BytesPerElement(type.dtype)});
    }
    return made;
  }

  // What is made from calls stays where it was made; leaves are where they are first used.
  void PlaceOthers() {
    const std::vector<NodeId> order = graph_.TopologicalOrder();
    std::vector<bool> placed(graph_.num_nodes(), false);
    for (NodeId id : order) {
      const std::vector<TensorRef>& inputs = graph_.node(id).inputs;
      placed[id.value] = call_[id.value] >= 0;
      if (placed[id.value] || inputs.empty() || !placed[inputs[0].node.value]) continue;
      placed[id.value] = true;
      chunk_[id.value] = chunk_[inputs[0].node.value];
    }
    const std::vector<std::vector<Graph::Use>> users = graph_.Users();
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      if (placed[id->value] || users[id->value].empty()) continue;
      int64_t first = chunks_ - 1;
      for (const Graph::Use& use : users[id->value]) {
        first = std::min(first, chunk_[use.user.value]);
      }
      chunk_[id->value] = first;
    }
  }

  const Plan& plan_;
  const Graph& graph_;
  const CostModel& cost_;
  const int64_t stages_, chunks_, data_, micro_batches_;
  std::vector<NodeId> calls_;   // in topological order
  std::vector<int> call_;       // per node: its place in calls_, or -1
  std::vector<int64_t> chunk_;  // per node; empty: all in the first
};

int64_t SplitOf(const ShardingChoice& choice) {
  int64_t product = 1;
  for (const Axis& axis : choice.axes) product *= axis.dim == kIdleAxis ? 1 : axis.degree;
  return product;
}

// Calls that cannot be split, between some that are, mix micro-batches. Where little comes before
// them (the embedding of a transformer), that is not split either, and done for all micro-batches
// before the first.
void KeepWholeWhatComesBefore(const Graph& graph, std::map<NodeId, ShardingChoice>* choices) {
  constexpr size_t kLittle = 16;  // a part in so many
  const ComputeGraph compute = AnalyzeCompute(graph);
  const size_t count = compute.nodes.size();
  auto is_split = [&](size_t i) { return choices->contains(compute.nodes[i].id); };
  std::vector<bool> after_split(count, false), before_split(count, false), before_mix(count, false);
  auto for_producers = [&](size_t i, auto visit) {
    for (const ComputeGraph::Operand& operand : compute.nodes[i].operands) {
      if (operand.producer >= 0) visit(static_cast<size_t>(operand.producer));
    }
  };
  for (size_t i = 0; i < count; ++i) {
    for_producers(i, [&](size_t p) {
      if (is_split(p) || after_split[p]) after_split[i] = true;
    });
  }
  for (size_t i = count; i-- > 0;) {
    const bool mixes = !is_split(i) && after_split[i] && before_split[i];
    for_producers(i, [&](size_t p) {
      if (is_split(i) || before_split[i]) before_split[p] = true;
      if (mixes || before_mix[i]) before_mix[p] = true;
    });
  }
  if (std::count(before_mix.begin(), before_mix.end(), true) * kLittle > count) return;
  for (size_t i = 0; i < count; ++i) {
    if (before_mix[i]) choices->erase(compute.nodes[i].id);
  }
}

}  // namespace

absl::StatusOr<Plan> PipelinePlan(const Model& model, const RuleIndex& rules, const CostModel& cost,
                                  bool training, const PipelineOptions& options) {
  const int64_t devices = cost.machine().num_devices();
  const auto [stages, micro_batches, chunks] = options;
  if (stages < 1 || devices % stages != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stages=", stages, " does not divide ", devices, " devices"));
  }
  if (micro_batches < 1 || micro_batches > 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat("--micro_batches=", micro_batches, ": there are 1 to 4096"));
  }
  if (chunks < 1 || (chunks > 1 && micro_batches % stages != 0)) {
    return absl::InvalidArgumentError(absl::StrCat("--stages=", stages, "x", chunks,
                                                   ": --micro_batches=", micro_batches,
                                                   " is no multiple of the ", stages, " stages"));
  }
  const int64_t data = devices / stages, degree = data * micro_batches;
  const CostModel moments(MachineOfMoments(cost.machine(), degree));
  CostTables tables(rules, moments, {.training = training, .max_axes = 1, .halves = false});
  ISOMER_ASSIGN_OR_RETURN(MappedModel mapped, MapBaseline(kDataParallel, model.graph, &tables));
  // All or nothing: what cannot be cut into all the pieces runs whole.
  std::erase_if(mapped.choices, [&](const auto& entry) { return SplitOf(entry.second) != degree; });
  KeepWholeWhatComesBefore(mapped.graph, &mapped.choices);
  if (mapped.choices.empty() && degree > 1) {
    return absl::InvalidArgumentError(absl::StrCat("--micro_batches=", micro_batches,
                                                   ": the batch cannot be cut into ", micro_batches,
                                                   " micro-batches on ", data, " devices each"));
  }
  ISOMER_ASSIGN_OR_RETURN(Plan plan, DerivePlan(model, mapped, training, &tables));
  plan.num_devices = devices;
  ISOMER_ASSIGN_OR_RETURN(plan.views, StageMapper(plan, cost, options, data).Run());
  return plan;
}

std::string PipelineSummary::ToString() const {
  std::string text = absl::StrFormat("%d stages, %d micro-batches", stages, micro_batches);
  absl::StrAppend(&text, !ordered     ? " that depend on each other: in no order"
                         : chunks > 1 ? absl::StrFormat(" (1F1B, %d chunks a stage)", chunks)
                                      : " (1F1B)");
  if (steps > 1) {
    absl::StrAppendFormat(&text, ", drained after %d steps (2BW: gradients are a step late)",
                          steps);
  }
  if (ordered) {
    absl::StrAppendFormat(&text, "; bubble of equal stages %.1f %% of the step",
                          100 * bubble_share);
  }
  return text + absl::StrFormat("; devices idle %.1f %% of it, as simulated", 100 * idle_share);
}

std::optional<PipelineSummary> SummaryOfPipeline(const Schedule& schedule,
                                                 const Simulation& simulation) {
  if (schedule.num_moments == 1) return std::nullopt;
  PipelineSummary summary;
  const PipelineStages stages = StagesOf(schedule);
  summary.stages = stages.num_stages;
  summary.chunks = stages.num_chunks;
  summary.steps = schedule.num_steps();
  summary.micro_batches = schedule.num_moments / summary.steps;
  summary.ordered = !MixesMicroBatches(schedule);
  summary.bubble_share =
      static_cast<double>(summary.stages - 1) /
      static_cast<double>(summary.chunks * schedule.num_moments + summary.stages - 1);
  double busy_us = 0;
  for (int32_t t = 0; t < simulation.tasks.size(); ++t) {
    if (IsCommunication(schedule.tasks[t].kind)) continue;
    busy_us += MicrosecondsOf(simulation.tasks.duration(t));
  }
  const double all_us =
      simulation.step_us * static_cast<double>(summary.steps * schedule.num_represented());
  summary.idle_share = all_us > 0 ? 1 - busy_us / all_us : 0;
  return summary;
}

}  // namespace isomer
