#include "pcg/schedule/lowering/split_gradients.h"

#include <algorithm>
#include <utility>

#include "pcg/ir/operator_facts.h"
#include "pcg/profile/work.h"

namespace isomer {
namespace {

// Contractions whose gradients of weights wait for those of another one to have an exchange behind.
constexpr int kMostWaiting = 3;

}  // namespace

SplitGradients::SplitGradients(const ScheduleBuilder& builder, const std::vector<bool>& wanted,
                               const std::map<BufferId, double>& seeds,
                               absl::Span<const size_t> order)
    : builder_(builder), wanted_(wanted), split_(builder.graph().num_nodes(), false) {
  FindReached(seeds);
  FindWeights();
  FindSplit(order);
}

bool SplitGradients::Reaches(const Task& task) const {
  return std::any_of(task.writes.begin(), task.writes.end(),
                     [this](BufferId id) { return reached_[id]; });
}

bool SplitGradients::IsContraction(const Task& task) const {
  return task.kind == TaskKind::kCompute &&
         isomer::IsContraction(builder_.graph().node(task.node).op.kind()) && Reaches(task) &&
         std::any_of(task.reads.begin(), task.reads.end(),
                     [this](BufferId id) { return wanted_[id]; });
}

void SplitGradients::FindReached(const std::map<BufferId, double>& seeds) {
  const Schedule& schedule = builder_.schedule();
  reached_.assign(schedule.buffers.size(), false);
  for (const auto& [buffer, value] : seeds) reached_[buffer] = true;
  for (auto task = schedule.tasks.rbegin(); task != schedule.tasks.rend(); ++task) {
    if (!Reaches(*task)) continue;
    for (BufferId id : task->reads) reached_[id] = reached_[id] || wanted_[id];
  }
}

bool SplitGradients::MayWait(const Task& task) const {
  if (isomer::IsContraction(builder_.graph().node(task.node).op.kind())) return true;
  return builder_.options().zero_bubble.splits() &&
         std::count_if(task.reads.begin(), task.reads.end(),
                       [this](BufferId id) { return wanted_[id]; }) == 1;
}

bool SplitGradients::IsOfSecondHalf(const Task& task) const {
  if (!builder_.options().zero_bubble.splits() || task.kind != TaskKind::kCompute) return false;
  bool any = false;
  for (BufferId id : task.reads) {
    if (wanted_[id] && !weight_[id]) return false;
    any |= wanted_[id];
  }
  return any && !IsOfWeight(task);
}

// Of a parameter, all that is kept of it or nothing.
void SplitGradients::FindWeights() {
  const Schedule& schedule = builder_.schedule();
  const size_t none = schedule.parameters.size();
  std::vector<size_t> parameter_of(schedule.buffers.size(), none);
  of_weights_.assign(schedule.buffers.size(), false);
  std::vector<bool> is_weight(none, true);
  for (size_t p = 0; p < none; ++p) {
    is_weight[p] = schedule.parameters[p].trainable;
    for (BufferId id : schedule.parameters[p].stored) {
      parameter_of[id] = p;
      of_weights_[id] = true;
    }
  }
  for (const Task& task : schedule.tasks) {
    const bool computes = task.kind == TaskKind::kCompute;
    const bool casts = computes && builder_.graph().node(task.node).op.kind() == OpKind::kCast;
    if ((casts || !computes) && !task.reads.empty() && of_weights_[task.reads[0]]) {
      for (BufferId id : task.writes) of_weights_[id] = true;
    }
    for (BufferId id : task.reads) {
      const size_t p = parameter_of[id];
      if (p == none) continue;
      if (casts) {
        parameter_of[task.writes[0]] = p;
      } else if (!computes || !MayWait(task)) {
        is_weight[p] = false;
      }
    }
  }
  for (const Graph::NamedOutput& output : builder_.graph().outputs()) {
    for (BufferId id : schedule.shards.at(output.tensor)) {
      if (parameter_of[id] != none) is_weight[parameter_of[id]] = false;
    }
  }
  weight_.assign(schedule.buffers.size(), false);
  for (size_t id = 0; id < weight_.size(); ++id) {
    weight_[id] = parameter_of[id] != none && is_weight[parameter_of[id]] && wanted_[id];
  }
}

bool SplitGradients::CanSplit(const Task& task) const {
  if (!GradientsAreProducts(builder_.graph().node(task.node).op)) return false;
  bool weight = false, data = false;
  for (BufferId id : task.reads) {
    if (!wanted_[id]) continue;
    if (of_weights_[id] && !weight_[id]) return false;
    (weight_[id] ? weight : data) = true;
  }
  return weight && data;
}

void SplitGradients::FindSplit(absl::Span<const size_t> order) {
  const std::vector<Task>& tasks = builder_.schedule().tasks;
  // Between here and the next contraction on the way back; of which micro-batch.
  bool exchanges = false;
  int32_t moment = kNoMoment;
  std::pair<NodeId, int32_t> contraction;
  const bool all = builder_.options().zero_bubble.splits();
  const int most_waiting = builder_.schedule().num_moments > 1 ? kMostWaiting : 0;
  int waiting = most_waiting;  // contractions of the micro-batch before its next exchange
  std::vector<bool> cannot(split_.size(), false);
  exchanges_follow_.assign(order.size(), false);
  for (size_t at = order.size(); at-- > 0;) {
    const Task& task = tasks[order[at]];
    if (IsCommunication(task.kind) && Reaches(task) &&
        std::any_of(task.reads.begin(), task.reads.end(),
                    [this](BufferId id) { return wanted_[id]; })) {
      exchanges = true;
      moment = task.moment;
    }
    const bool contracts = IsContraction(task);
    const bool exchanges_now = exchanges && moment == task.moment;
    exchanges_follow_[at] = exchanges_now && !contracts;
    if (!contracts) continue;
    if (!CanSplit(task)) cannot[task.node.value] = true;
    if (std::pair(task.node, task.moment) == contraction) continue;
    if (task.moment != contraction.second) waiting = most_waiting;
    contraction = {task.node, task.moment};
    waiting = exchanges_now || all ? 0 : waiting + 1;
    if (waiting <= most_waiting && !cannot[task.node.value]) {
      split_[task.node.value] = true;
    } else {
      waiting = most_waiting;
    }
    exchanges = false;
  }
  for (size_t node = 0; node < split_.size(); ++node) split_[node] = split_[node] && !cannot[node];
}

}  // namespace isomer
