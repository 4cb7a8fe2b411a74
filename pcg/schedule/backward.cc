// Backward lowering: reverse-mode differentiation of the forward tasks, at the level of buffers.
//
// Every forward task is a function from the buffers it reads to those it writes, so walking the
// tasks backwards and summing what each contributes gives the gradient of the loss with respect to
// every buffer, whatever copies and partials the tensors have: a buffer that is one of c copies
// gets its own share of the gradient, a buffer that is a partial gets the whole (tensor_type.h).
// The transfers of a move are reversed and recognised afresh, which makes the collectives dual.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/builder.h"
#include "pcg/schedule/recomputation.h"
#include "pcg/schedule/update.h"
#include "pcg/support/check.h"
#include "pcg/support/status_macros.h"
#include "pcg/work.h"

namespace isomer {
namespace {

class BackwardLowering {
 public:
  BackwardLowering(ScheduleBuilder* builder, UpdateLowering* updates)
      : builder_(*builder), updates_(*updates), recomputation_(builder) {
    FindWanted();
    TakeLateTasks();
    for (const Schedule::HostTensor& parameter : builder->schedule().parameters) {
      if (parameter.update != UpdateMethod::kShardedGradients) continue;
      by_moment_.insert(parameter.stored.begin(), parameter.stored.end());
    }
  }
  absl::Status Run();

 private:
  void FindWanted();
  void TakeLateTasks();
  void AddLateTasks(NodeId node);
  // The forward tasks as they are reversed, each after those that read what it writes: the last
  // first, or micro-batch by micro-batch.
  std::vector<size_t> ReversalOrder() const;
  absl::Status Seed();
  void ReverseCompute(const Task& task);
  void ReverseMove(const Task& task);
  // Adds a share to the gradient of `buffer`.
  void Contribute(BufferId buffer, BufferId share, NodeId node);
  // The gradient of a buffer nobody contributed to: zeros.
  BufferId GradientOrZero(BufferId buffer, NodeId node);
  void Fill(BufferId buffer, double value, NodeId node);
  // Where the gradient of a buffer is summed, of all micro-batches or of one.
  BufferId& GradientOf(BufferId buffer, int32_t moment);
  // Of one micro-batch, or of all together.
  void Synchronise(size_t parameter, int32_t moment);
  std::vector<std::vector<std::pair<size_t, int32_t>>> FindLastReaders(
      const std::vector<size_t>& order) const;

  ScheduleBuilder& builder_;
  UpdateLowering& updates_;
  Recomputation recomputation_;
  size_t num_forward_tasks_ = 0;
  // Of the forward pass, in order: what brings outputs of the graph where they are wanted, by the
  // node that made them, behind whose gradient it comes.
  std::map<NodeId, std::vector<Task>> late_tasks_;
  std::vector<bool> wanted_;        // by forward buffer: it depends on a parameter
  std::vector<BufferId> gradient_;  // by forward buffer, kNoBuffer while nothing is known
  // Of parameters whose gradient each micro-batch scatters for itself: those buffers, and likewise.
  std::set<BufferId> by_moment_;
  std::map<std::pair<BufferId, int32_t>, BufferId> moment_gradient_;
};

void BackwardLowering::FindWanted() {
  const Schedule& schedule = builder_.schedule();
  wanted_.assign(schedule.buffers.size(), false);
  gradient_.assign(schedule.buffers.size(), kNoBuffer);
  std::set<TensorRef> constants;
  for (const Schedule::HostTensor& parameter : schedule.parameters) {
    if (!parameter.trainable) constants.insert(parameter.tensor);
  }
  for (const Task& task : schedule.tasks) {
    bool wanted = task.kind == TaskKind::kLoad &&
                  !constants.contains(schedule.buffers[task.writes[0]].tensor);
    for (BufferId id : task.reads) wanted |= wanted_[id];
    for (BufferId id : task.writes) {
      wanted_[id] = wanted_[id] || (wanted && IsFloat(schedule.buffers[id].dtype));
    }
  }
}

// Nothing waits for what only brings an output of the graph to where it is wanted, but links are
// first in, first out: so it goes when the gradients that calls wait for are under way. Only the
// last tasks of the forward pass are looked at (forward.cc).
void BackwardLowering::TakeLateTasks() {
  Schedule& schedule = builder_.schedule();
  std::vector<Task>& tasks = schedule.tasks;
  num_forward_tasks_ = tasks.size();
  if (schedule.num_moments > 1) return;
  std::vector<int> readers(schedule.buffers.size(), 0);
  for (const Graph::NamedOutput& output : builder_.graph().outputs()) {
    if (output.name != builder_.options().loss) continue;
    for (BufferId id : schedule.shards.at(output.tensor)) ++readers[id];  // for its gradient
  }
  std::vector<NodeId> maker(schedule.buffers.size());
  for (const Task& task : tasks) {
    for (BufferId id : task.reads) ++readers[id];
    for (BufferId id : task.writes) {
      maker[id] = task.kind == TaskKind::kCompute ? task.node : NodeId();
      if (task.kind == TaskKind::kCompute || task.reads.empty()) continue;
      for (BufferId from : task.reads) maker[id] = std::max(maker[id], maker[from]);
    }
  }
  size_t first = tasks.size();
  for (; first > 0; --first) {
    const Task& task = tasks[first - 1];
    const bool is_late =
        (IsCommunication(task.kind) || task.kind == TaskKind::kLocal) &&
        std::all_of(task.writes.begin(), task.writes.end(),
                    [&](BufferId id) { return readers[id] == 0 && maker[id] != NodeId(); }) &&
        std::none_of(task.reads.begin(), task.reads.end(),
                     [&](BufferId id) { return recomputation_.IsDropped(id); });
    if (!is_late) break;
    for (BufferId id : task.reads) --readers[id];
  }
  for (size_t t = first; t < tasks.size(); ++t) {
    late_tasks_[maker[tasks[t].writes[0]]].push_back(std::move(tasks[t]));
  }
  tasks.resize(first);
  num_forward_tasks_ = first;
}

void BackwardLowering::AddLateTasks(NodeId node) {
  const auto late = late_tasks_.find(node);
  if (late == late_tasks_.end()) return;
  for (Task& task : late->second) builder_.schedule().tasks.push_back(std::move(task));
  late_tasks_.erase(late);
}

std::vector<size_t> BackwardLowering::ReversalOrder() const {
  const std::vector<Task>& tasks = builder_.schedule().tasks;
  std::vector<size_t> order;
  if (builder_.schedule().num_moments == 1) {
    for (size_t t = num_forward_tasks_; t-- > 0;) order.push_back(t);
    return order;
  }
  std::vector<size_t> writer(builder_.schedule().buffers.size(), num_forward_tasks_);
  std::vector<int> users(num_forward_tasks_, 0);
  for (size_t t = 0; t < num_forward_tasks_; ++t) {
    for (BufferId id : tasks[t].writes) writer[id] = t;
    for (BufferId id : tasks[t].reads) ++users[writer[id]];
  }
  // Those of no micro-batch as soon as they can be; the least comes first.
  std::set<std::pair<int32_t, int64_t>> ready;
  auto enter = [&](size_t t) { ready.emplace(tasks[t].moment, -static_cast<int64_t>(t)); };
  for (size_t t = 0; t < num_forward_tasks_; ++t) {
    if (users[t] == 0) enter(t);
  }
  while (!ready.empty()) {
    const size_t t = static_cast<size_t>(-ready.begin()->second);
    ready.erase(ready.begin());
    order.push_back(t);
    for (BufferId id : tasks[t].reads) {
      if (--users[writer[id]] == 0) enter(writer[id]);
    }
  }
  return order;
}

void BackwardLowering::Fill(BufferId buffer, double value, NodeId node) {
  Task& task = builder_.AddTask(TaskKind::kFill, Phase::kBackward, node,
                                builder_.buffer(buffer).device, {}, {buffer});
  task.value = value;
  task.moment = builder_.buffer(buffer).moment;
}

absl::Status BackwardLowering::Seed() {
  const ScheduleOptions& options = builder_.options();
  for (const Graph::NamedOutput& output : builder_.graph().outputs()) {
    if (output.name != options.loss) continue;
    const TensorType& type = builder_.graph().type(output.tensor);
    if (type.NumElements() != 1 || !IsFloat(type.dtype)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the loss '", options.loss, "' is ", type.ToString(), ", not one number"));
    }
    // The gradients of c copies are shares of one sum; a buffer may be several of them.
    const std::vector<BufferId> shards = builder_.schedule().shards.at(output.tensor);
    std::set<BufferId> seen;
    for (BufferId shard : shards) {
      if (!seen.insert(shard).second) continue;
      const BufferId seed = builder_.AddGradientBuffer(shard);
      const auto count = static_cast<double>(std::count(shards.begin(), shards.end(), shard));
      Fill(seed, options.seed * count / static_cast<double>(type.copies), output.tensor.node);
      Contribute(shard, seed, output.tensor.node);
    }
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      options.loss.empty() ? "the model has no loss to train on"
                           : absl::StrCat("the model has no output '", options.loss, "'"));
}

BufferId& BackwardLowering::GradientOf(BufferId buffer, int32_t moment) {
  if (!by_moment_.contains(buffer)) return gradient_[buffer];
  return moment_gradient_.try_emplace({buffer, moment}, kNoBuffer).first->second;
}

void BackwardLowering::Contribute(BufferId buffer, BufferId share, NodeId node) {
  BufferId& gradient = GradientOf(buffer, builder_.buffer(share).moment);
  if (gradient == kNoBuffer) {
    gradient = share;
    return;
  }
  Task& task = builder_.AddTask(TaskKind::kAccumulate, Phase::kBackward, node,
                                builder_.buffer(share).device, {share}, {gradient});
  task.moment = builder_.buffer(share).moment;
  builder_.ShareBuffer(gradient, task.moment);
  task.flops = static_cast<double>(builder_.buffer(share).box.Volume());
  task.bytes = 3 * builder_.buffer(share).bytes();
}

BufferId BackwardLowering::GradientOrZero(BufferId buffer, NodeId node) {
  if (gradient_[buffer] == kNoBuffer) {
    gradient_[buffer] = builder_.AddGradientBuffer(buffer);
    Fill(gradient_[buffer], 0, node);
  }
  return gradient_[buffer];
}

void BackwardLowering::ReverseCompute(const Task& task) {
  std::vector<bool> wanted;
  for (BufferId operand : task.reads) wanted.push_back(wanted_[operand]);
  const bool reached = std::any_of(task.writes.begin(), task.writes.end(),
                                   [&](BufferId id) { return gradient_[id] != kNoBuffer; });
  if (!reached || std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return;

  CallTable& calls = builder_.calls();
  const GradientNeeds& needs = calls.NeedsOf(task.node);
  std::vector<BufferId> reads, writes;
  for (size_t o = 0; o < task.reads.size(); ++o) {
    reads.push_back(needs.operands[o] ? recomputation_.Available(task.reads[o]) : kNoBuffer);
    writes.push_back(wanted[o] ? builder_.AddGradientBuffer(task.reads[o], task.moment)
                               : kNoBuffer);
  }
  for (BufferId output : task.writes) {
    reads.push_back(needs.outputs ? recomputation_.Available(output) : kNoBuffer);
  }
  for (BufferId output : task.writes) reads.push_back(GradientOrZero(output, task.node));
  Task& gradient = builder_.AddTask(TaskKind::kComputeGradient, Phase::kBackward, task.node,
                                    task.devices[0], std::move(reads), writes);
  gradient.shard = task.shard;
  gradient.moment = task.moment;
  const Work& work = calls.GradientWorkOf(task.node, wanted);
  gradient.flops = work.flops;
  gradient.bytes = work.bytes;
  for (size_t o = 0; o < task.reads.size(); ++o) {
    if (writes[o] != kNoBuffer) Contribute(task.reads[o], writes[o], task.node);
  }
}

void BackwardLowering::ReverseMove(const Task& task) {
  std::vector<Transfer> forward;
  for (const auto& [from, to] : task.transfers) {
    forward.push_back({task.reads[from], task.writes[to]});
  }
  const bool collective = task.transfers.empty();
  if (collective) {
    for (BufferId from : task.reads) {
      for (BufferId to : task.writes) forward.push_back({from, to});
    }
  }
  const bool reached = std::any_of(task.writes.begin(), task.writes.end(),
                                   [&](BufferId id) { return gradient_[id] != kNoBuffer; });
  if (!reached) return;
  std::map<BufferId, BufferId> shares;  // in order of buffers
  std::vector<Transfer> backward;
  for (const Transfer& t : forward) {
    // Shares that nobody has are zero: a collective needs them, a resharding leaves them out.
    if (!wanted_[t.from] || (!collective && gradient_[t.to] == kNoBuffer)) continue;
    if (!shares.contains(t.from)) {
      shares[t.from] = builder_.AddGradientBuffer(t.from, task.moment);
    }
    backward.push_back({GradientOrZero(t.to, task.node), shares[t.from]});
  }
  builder_.AddTransfers(backward, Phase::kBackward, task.node);
  for (const auto& [buffer, share] : shares) Contribute(buffer, share, task.node);
}

// The shares that equal copies of a parameter have of its gradient become the sum.
void BackwardLowering::Synchronise(size_t p, int32_t moment) {
  const Schedule::HostTensor& parameter = builder_.schedule().parameters[p];
  const std::vector<BufferId> shards = parameter.stored;
  const NodeId node = parameter.tensor.node;
  const size_t copies = builder_.graph().type(parameter.tensor).copies;
  for (size_t first = 0; first < shards.size(); first += copies) {
    const auto piece = absl::MakeConstSpan(shards).subspan(first, copies);
    const bool reached = std::any_of(piece.begin(), piece.end(), [&](BufferId id) {
      return GradientOf(id, moment) != kNoBuffer;
    });
    std::vector<BufferId> gradients;
    for (BufferId copy : piece) {
      if (!reached) break;
      BufferId& gradient = GradientOf(copy, moment);
      if (gradient == kNoBuffer) {
        gradient = builder_.AddGradientBuffer(copy, moment);
        Fill(gradient, 0, node);
      }
      gradients.push_back(gradient);
    }
    updates_.GradientIsReady(p, first, std::move(gradients), moment);
  }
}

// By forward task, and one more for none: the parameters, and of which micro-batch, that it is the
// last to read when tasks are reversed in `order`.
std::vector<std::vector<std::pair<size_t, int32_t>>> BackwardLowering::FindLastReaders(
    const std::vector<size_t>& order) const {
  const Schedule& schedule = builder_.schedule();
  const size_t none = schedule.parameters.size();
  std::vector<size_t> parameter_of(schedule.buffers.size(), none);
  std::map<std::pair<size_t, int32_t>, size_t> last_reader;
  for (size_t i = 0; i < schedule.parameters.size(); ++i) {
    const Schedule::HostTensor& parameter = schedule.parameters[i];
    for (BufferId id : parameter.stored) parameter_of[id] = i;
    if (parameter.update != UpdateMethod::kShardedGradients) {
      last_reader[{i, kNoMoment}] = num_forward_tasks_;
      continue;
    }
    for (int32_t m = 0; m < schedule.num_moments; ++m) last_reader[{i, m}] = num_forward_tasks_;
  }
  for (size_t t : order) {
    const Task& task = schedule.tasks[t];
    for (BufferId id : task.reads) {
      const size_t p = parameter_of[id];
      if (p == none) continue;
      last_reader[{p, by_moment_.contains(id) ? task.moment : kNoMoment}] = t;
    }
  }
  std::vector<std::vector<std::pair<size_t, int32_t>>> read_last(num_forward_tasks_ + 1);
  for (const auto& [what, t] : last_reader) read_last[t].push_back(what);
  return read_last;
}

absl::Status BackwardLowering::Run() {
  ISOMER_RETURN_IF_ERROR(Seed());
  // A parameter is synchronised as soon as its last reader has been reversed, so that the
  // communication overlaps with what is left of the backward pass. But the gradients that the next
  // calls wait for go first: links are first in, first out.
  const std::vector<size_t> order = ReversalOrder();
  const auto read_last = FindLastReaders(order);
  // Those that nobody reads are the loss.
  auto ready = read_last[num_forward_tasks_];
  const auto synchronise = [&] {
    for (const auto& [p, moment] : ready) Synchronise(p, moment);
    ready.clear();
  };
  NodeId last_reader, last_call;
  for (size_t t : order) {
    const Task task = builder_.schedule().tasks[t];  // A copy: tasks are added below.
    if (task.kind == TaskKind::kCompute && task.node != last_reader) synchronise();
    if (task.kind == TaskKind::kCompute && task.node != last_call) {
      AddLateTasks(last_call);
      last_call = task.node;
    }
    if (task.kind == TaskKind::kCompute) {
      ReverseCompute(task);
    } else if (task.kind == TaskKind::kLocal || IsCommunication(task.kind)) {
      ReverseMove(task);
    }
    if (!read_last[t].empty()) last_reader = task.node;
    ready.insert(ready.end(), read_last[t].begin(), read_last[t].end());
  }
  synchronise();
  AddLateTasks(last_call);
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerBackward(ScheduleBuilder* builder, UpdateLowering* updates) {
  return BackwardLowering(builder, updates).Run();
}

}  // namespace isomer
