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

#include "absl/container/flat_hash_map.h"
#include "pcg/profile/work.h"
#include "pcg/schedule/lowering/builder.h"
#include "pcg/schedule/lowering/late_outputs.h"
#include "pcg/schedule/lowering/loss_seeds.h"
#include "pcg/schedule/lowering/recomputation.h"
#include "pcg/schedule/lowering/split_gradients.h"
#include "pcg/schedule/lowering/update.h"
#include "pcg/support/check.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

class BackwardLowering {
 public:
  BackwardLowering(ScheduleBuilder* builder, UpdateLowering* updates)
      : builder_(*builder),
        updates_(*updates),
        recomputation_(builder),
        late_outputs_(builder, recomputation_),
        num_forward_tasks_(builder->schedule().tasks.size()) {
    FindWanted();
    for (const Schedule::HostTensor& parameter : builder->schedule().parameters) {
      if (parameter.update != UpdateMethod::kShardedGradients) continue;
      by_moment_.insert(parameter.stored.begin(), parameter.stored.end());
    }
  }
  void Run(const std::map<BufferId, double>& seeds);

 private:
  // Of the gradient of a parameter, what one micro-batch has of it, or all together.
  using Share = std::pair<size_t, int32_t>;

  void FindWanted();
  // The forward tasks as they are reversed, each after those that read what it writes: the last
  // first, or micro-batch by micro-batch.
  std::vector<size_t> ReversalOrder() const;
  void Seed(const std::map<BufferId, double>& seeds);
  void Reverse(size_t t);
  // With the gradients of those operands that `of` says, by buffer.
  template <typename Of>
  void ReverseCompute(const Task& task, size_t t, Of of);  // forward task `t`
  // What forward task `t`, or the one that repeats it, saves for its gradient; kNoBuffer: nothing.
  BufferId SavedBy(size_t t);
  void ReverseMove(const Task& task);
  void ReverseWeights(size_t calls);  // of the first that wait
  void ReverseWeightsBefore(const Task& task, bool exchanges_follow);
  // Adds a share to the gradient of `buffer`.
  void Contribute(BufferId buffer, BufferId share, NodeId node);
  // The share of the gradient of `buffer` is the first of its sum, with others to follow at once or
  // from other micro-batches: in float32 where the buffer is made from parameters alone.
  BufferId FirstOfSum(BufferId buffer, BufferId share, NodeId node);
  // Whether a cast is reversed that lowered the precision of something with such a sum: then that
  // is the gradient of what was cast, but for its name.
  bool ReverseCastOfSum(const Task& task);
  // The gradient of a buffer in `dtype`; zeros if nobody contributed to it.
  BufferId GradientIn(DataType dtype, BufferId buffer, NodeId node);
  BufferId GradientIn(DataType dtype, BufferId* gradient, BufferId buffer, int32_t moment,
                      NodeId node);
  // In what the gradients of what the task moves are moved back.
  DataType MovedBackIn(const Task& task) const;
  void Fill(BufferId buffer, double value, NodeId node);
  // Where the gradient of a buffer is summed, of all micro-batches or of one.
  BufferId& GradientOf(BufferId buffer, int32_t moment);
  // Of one micro-batch, or of all together.
  void Synchronise(size_t parameter, int32_t moment);
  void SynchroniseReady();
  void FindLastReaders(absl::Span<const size_t> order);

  ScheduleBuilder& builder_;
  UpdateLowering& updates_;
  Recomputation recomputation_;
  LateOutputs late_outputs_;
  const size_t num_forward_tasks_;
  std::vector<bool> wanted_;         // by forward buffer: it depends on a parameter
  std::vector<bool> of_parameters_;  // by forward buffer: on nothing else, but for constants
  std::vector<BufferId> gradient_;   // by forward buffer, kNoBuffer while nothing is known
  // Of parameters whose gradient each micro-batch scatters for itself: those buffers, and likewise.
  std::set<BufferId> by_moment_;
  std::map<std::pair<BufferId, int32_t>, BufferId> moment_gradient_;
  absl::flat_hash_map<size_t, BufferId> saved_;  // by forward task

  std::vector<std::vector<Share>> read_last_;  // by forward task, and one more for none
  std::vector<Share> ready_;                   // to be synchronised
  // Calls that the gradients of weights are still to be computed of, with their forward tasks.
  struct Pending {
    NodeId call;
    int32_t moment;
    std::vector<size_t> tasks;
  };
  std::vector<Pending> pending_;
  bool exchanges_ = false;  // since the first of them
  std::optional<SplitGradients> split_;
};

void BackwardLowering::FindWanted() {
  const Schedule& schedule = builder_.schedule();
  wanted_.assign(schedule.buffers.size(), false);
  of_parameters_.assign(schedule.buffers.size(), false);
  gradient_.assign(schedule.buffers.size(), kNoBuffer);
  std::set<TensorRef> constants;
  for (const Schedule::HostTensor& parameter : schedule.parameters) {
    if (!parameter.trainable) constants.insert(parameter.tensor);
  }
  for (const Task& task : schedule.tasks) {
    bool wanted = task.kind == TaskKind::kLoad &&
                  !constants.contains(schedule.buffers[task.writes[0]].tensor);
    bool of_parameters = task.kind == TaskKind::kLoad || !task.reads.empty();
    for (BufferId id : task.reads) {
      wanted |= wanted_[id];
      of_parameters &= of_parameters_[id];
    }
    for (BufferId id : task.writes) {
      wanted_[id] = wanted_[id] || (wanted && IsFloat(schedule.buffers[id].dtype));
      of_parameters_[id] = of_parameters;
    }
  }
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

void BackwardLowering::Seed(const std::map<BufferId, double>& seeds) {
  for (const auto& [buffer, value] : seeds) {
    const BufferId seed = builder_.AddGradientBuffer(buffer);
    const NodeId node = builder_.buffer(buffer).tensor.node;
    Fill(seed, value, node);
    Contribute(buffer, seed, node);
  }
}

BufferId& BackwardLowering::GradientOf(BufferId buffer, int32_t moment) {
  if (!by_moment_.contains(buffer)) return gradient_[buffer];
  return moment_gradient_.try_emplace({buffer, moment}, kNoBuffer).first->second;
}

BufferId BackwardLowering::FirstOfSum(BufferId buffer, BufferId share, NodeId node) {
  return of_parameters_[buffer] ? builder_.Converted(share, DataType::kFloat32, node) : share;
}

void BackwardLowering::Contribute(BufferId buffer, BufferId share, NodeId node) {
  const int32_t moment = builder_.buffer(share).moment;
  BufferId& sum = GradientOf(buffer, moment);
  if (sum == kNoBuffer) {
    const bool others_follow = moment != builder_.buffer(buffer).moment &&
                               builder_.schedule().num_moments > 1 && !by_moment_.contains(buffer);
    sum = others_follow ? FirstOfSum(buffer, share, node) : share;
    return;
  }
  sum = FirstOfSum(buffer, sum, node);
  Task& task = builder_.AddTask(TaskKind::kAccumulate, Phase::kBackward, node,
                                builder_.buffer(share).device, {share}, {sum});
  task.moment = moment;
  builder_.ShareBuffer(sum, moment);
  task.flops = static_cast<double>(builder_.buffer(share).box.Volume());
  task.bytes = builder_.buffer(share).bytes() + 2 * builder_.buffer(sum).bytes();
}

BufferId BackwardLowering::GradientIn(DataType dtype, BufferId* gradient, BufferId buffer,
                                      int32_t moment, NodeId node) {
  if (*gradient == kNoBuffer) {
    *gradient = builder_.AddGradientBuffer(buffer, moment);
    builder_.schedule().buffers[*gradient].dtype = dtype;
    Fill(*gradient, 0, node);
  }
  return *gradient = builder_.Converted(*gradient, dtype, node);
}

BufferId BackwardLowering::GradientIn(DataType dtype, BufferId buffer, NodeId node) {
  return GradientIn(dtype, &gradient_[buffer], buffer, kNoMoment, node);
}

DataType BackwardLowering::MovedBackIn(const Task& task) const {
  const DataType dtype = builder_.buffer(task.reads[0]).dtype;
  const bool of_parameters = std::all_of(task.reads.begin(), task.reads.end(),
                                         [this](BufferId id) { return of_parameters_[id]; });
  if (!of_parameters) return dtype;
  if (IsCommunication(task.kind)) return builder_.gradient_sums();
  const bool has_sums = std::any_of(task.writes.begin(), task.writes.end(), [&](BufferId id) {
    return gradient_[id] != kNoBuffer && builder_.buffer(gradient_[id]).dtype != dtype;
  });
  return has_sums ? DataType::kFloat32 : dtype;
}

bool BackwardLowering::ReverseCastOfSum(const Task& task) {
  if (builder_.graph().node(task.node).op.kind() != OpKind::kCast) return false;
  const BufferId from = task.reads[0], sum = gradient_[task.writes[0]];
  if (sum == kNoBuffer || !wanted_[from] ||
      builder_.buffer(sum).dtype == builder_.buffer(task.writes[0]).dtype ||
      builder_.buffer(sum).dtype != builder_.buffer(from).dtype) {
    return false;
  }
  const BufferId share = builder_.AddGradientBuffer(from, task.moment);
  Task& named = builder_.AddTask(TaskKind::kConvert, Phase::kBackward, task.node, task.devices[0],
                                 {sum}, {share});
  named.moment = task.moment;
  named.bytes = 2 * builder_.buffer(sum).bytes();
  Contribute(from, share, task.node);
  return true;
}

BufferId BackwardLowering::SavedBy(size_t t) {
  const NodeId node = builder_.schedule().tasks[t].node;
  const std::optional<SavedForGradient>& saved = builder_.calls().SavedBy(node);
  if (!saved.has_value()) return kNoBuffer;
  const auto [known, added] = saved_.try_emplace(t, kNoBuffer);
  if (!added) return known->second;
  Task& task = builder_.schedule().tasks[recomputation_.LastOf(t)];
  Buffer buffer = builder_.buffer(task.writes[0]);
  buffer.role = BufferRole::kSaved;
  buffer.dtype = saved->dtype;
  buffer.box = {{0}, {saved->elements}};
  known->second = builder_.AddBuffer(std::move(buffer));
  task.writes.push_back(known->second);
  task.bytes += saved->bytes();
  return known->second;
}

template <typename Of>
void BackwardLowering::ReverseCompute(const Task& task, size_t t, Of of) {
  if (ReverseCastOfSum(task)) return;
  std::vector<bool> wanted;
  for (BufferId operand : task.reads) wanted.push_back(wanted_[operand] && of(operand));
  // But for what the task saves.
  const absl::Span<const BufferId> outputs =
      absl::MakeConstSpan(task.writes).first(builder_.graph().node(task.node).outputs.size());
  const bool reached = std::any_of(outputs.begin(), outputs.end(),
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
  for (size_t i = 0; i < outputs.size(); ++i) {
    reads.push_back(needs.outputs[i] ? recomputation_.Available(outputs[i]) : kNoBuffer);
  }
  for (BufferId output : outputs) {
    reads.push_back(GradientIn(builder_.buffer(output).dtype, output, task.node));
  }
  if (const BufferId saved = SavedBy(t); saved != kNoBuffer) reads.push_back(saved);
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
  const bool collective = task.transfers.empty();
  const bool reached = std::any_of(task.writes.begin(), task.writes.end(),
                                   [&](BufferId id) { return gradient_[id] != kNoBuffer; });
  if (!reached) return;
  const DataType dtype = MovedBackIn(task);
  std::map<BufferId, BufferId> shares;  // in order of buffers
  std::vector<Transfer> backward;
  for (const Transfer& t : TransfersOf(task)) {
    // Shares that nobody has are zero: a collective needs them, a resharding leaves them out.
    if (!wanted_[t.from] || (!collective && gradient_[t.to] == kNoBuffer)) continue;
    if (!shares.contains(t.from)) {
      shares[t.from] = builder_.AddGradientBuffer(t.from, task.moment);
      builder_.schedule().buffers[shares[t.from]].dtype = dtype;
    }
    backward.push_back({GradientIn(dtype, t.to, task.node), shares[t.from]});
  }
  builder_.AddTransfers(backward, Phase::kBackward, task.node);
  exchanges_ |= !pending_.empty() && IsCommunication(task.kind) && !backward.empty();
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
    // Parts have been summed, and what has no copies need not be.
    const bool is_summed = parameter.update != UpdateMethod::kShardedWeights &&
                           std::set<BufferId>(piece.begin(), piece.end()).size() > 1;
    std::vector<BufferId> gradients;
    for (BufferId copy : piece) {
      if (!reached) break;
      BufferId& gradient = GradientOf(copy, moment);
      const DataType dtype = is_summed               ? builder_.gradient_sums()
                             : gradient == kNoBuffer ? builder_.buffer(copy).dtype
                                                     : builder_.buffer(gradient).dtype;
      gradients.push_back(GradientIn(dtype, &gradient, copy, moment, node));
    }
    updates_.GradientIsReady(p, first, std::move(gradients), moment);
  }
}

// Those that a task is the last to read when tasks are reversed in `order`.
void BackwardLowering::FindLastReaders(absl::Span<const size_t> order) {
  const Schedule& schedule = builder_.schedule();
  const size_t none = schedule.parameters.size();
  std::vector<size_t> parameter_of(schedule.buffers.size(), none);
  std::map<Share, size_t> last_reader;
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
  read_last_.resize(num_forward_tasks_ + 1);
  for (const auto& [what, t] : last_reader) read_last_[t].push_back(what);
}

void BackwardLowering::SynchroniseReady() {
  for (const auto& [p, moment] : ready_) Synchronise(p, moment);
  ready_.clear();
}

void BackwardLowering::Reverse(size_t t) {
  const Task task = builder_.schedule().tasks[t];  // A copy: tasks are added below.
  const bool computes = task.kind == TaskKind::kCompute;
  const bool waits = split_->IsOfSecondHalf(task);
  if (waits || (computes && split_->IsSplit(task))) {
    if (!waits) ReverseCompute(task, t, [this](BufferId id) { return !split_->IsWeight(id); });
    if (pending_.empty() || pending_.back().call != task.node) {
      pending_.push_back({task.node, task.moment, {}});
    }
    pending_.back().tasks.push_back(t);
    return;
  }
  if (!pending_.empty() && split_->IsOfWeight(task)) return pending_.back().tasks.push_back(t);
  if (computes) {
    ReverseCompute(task, t, [](BufferId) { return true; });
  } else if (task.kind == TaskKind::kLocal || IsCommunication(task.kind)) {
    ReverseMove(task);
  }
  ready_.insert(ready_.end(), read_last_[t].begin(), read_last_[t].end());
}

void BackwardLowering::ReverseWeights(size_t calls) {
  for (size_t c = 0; c < calls; ++c) {
    for (size_t t : pending_[c].tasks) {
      const Task task = builder_.schedule().tasks[t];
      ReverseCompute(task, t, [this](BufferId id) { return split_->IsWeight(id); });
      ready_.insert(ready_.end(), read_last_[t].begin(), read_last_[t].end());
    }
  }
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<int64_t>(calls));
  exchanges_ = false;
}

// Before `task`, of another call or micro-batch than the last, is reversed.
void BackwardLowering::ReverseWeightsBefore(const Task& task, bool exchanges_follow) {
  if (pending_.empty() || split_->IsOfWeight(task)) return;
  const bool is_another = task.moment != kNoMoment && task.moment != pending_.back().moment;
  if (builder_.options().zero_bubble.splits()) {
    if (is_another) ReverseWeights(pending_.size());
    return;
  }
  if (exchanges_ && exchanges_follow && !is_another) {
    ReverseWeights((pending_.size() + 1) / 2);  // some for each exchange
  } else if (exchanges_ || is_another || (split_->IsContraction(task) && !split_->IsSplit(task))) {
    ReverseWeights(pending_.size());
  }
}

void BackwardLowering::Run(const std::map<BufferId, double>& seeds) {
  Seed(seeds);
  // A parameter is synchronised as soon as its last reader has been reversed, so that the
  // communication overlaps with what is left of the backward pass. But the gradients that the next
  // calls wait for go first: links are first in, first out. While they are on their way, gradients
  // of weights are computed. What fills a bucket may wait for them, too.
  const bool may_wait = builder_.options().update.sums_wait();
  const std::vector<size_t> order = ReversalOrder();
  split_.emplace(builder_, wanted_, seeds, order);
  FindLastReaders(order);
  // Those that nobody reads are the loss.
  ready_ = read_last_[num_forward_tasks_];
  std::pair<NodeId, int32_t> last;  // call, of which micro-batch
  for (size_t at = 0; at < order.size(); ++at) {
    const Task& task = builder_.schedule().tasks[order[at]];
    const std::pair call(task.node, task.moment);
    if (task.kind == TaskKind::kCompute && call != last) {
      ReverseWeightsBefore(task, split_->ExchangesFollow(at));
      if (!may_wait || !split_->ExchangesFollow(at)) SynchroniseReady();
      late_outputs_.AddBehind(last.first);
      last = call;
    }
    Reverse(order[at]);
  }
  ReverseWeights(pending_.size());
  SynchroniseReady();
  late_outputs_.AddBehind(last.first);
}

}  // namespace

absl::Status LowerBackward(ScheduleBuilder* builder, UpdateLowering* updates) {
  ISOMER_ASSIGN_OR_RETURN(const auto seeds, FindLossSeeds(*builder));
  BackwardLowering(builder, updates).Run(seeds);
  return absl::OkStatus();
}

}  // namespace isomer
