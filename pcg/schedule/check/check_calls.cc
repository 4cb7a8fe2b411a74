#include "pcg/schedule/check/check_calls.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/states.h"
#include "pcg/profile/work.h"
#include "pcg/schedule/check/buffer_meaning.h"
#include "pcg/schedule/check/check_host.h"
#include "pcg/schedule/check/check_updates.h"
#include "pcg/schedule/check/forward_buffers.h"
#include "pcg/schedule/lowering/call_table.h"
#include "pcg/schedule/memory/carries.h"
#include "pcg/schedule/task_error.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

using BufferPair = std::pair<BufferId, BufferId>;

constexpr double kRounding = 1e-9;
constexpr char kOtherSums[] = "sums gradients of weights in another type than the plan says";

class CallChecker {
 public:
  CallChecker(const Graph& graph, const Schedule& schedule)
      : graph_(graph), schedule_(schedule), meanings_(graph, schedule), calls_(graph.num_nodes()) {}

  absl::Status Run() {
    for (const auto* tensors : {&schedule_.parameters, &schedule_.inputs}) {
      for (const Schedule::HostTensor& host : *tensors) hosts_[host.tensor] = &host;
    }
    for (const State& state : StatesOf(graph_)) states_.emplace(state.input, state.next);
    ISOMER_RETURN_IF_ERROR(Index());
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      task_ = static_cast<int32_t>(t);
      ISOMER_RETURN_IF_ERROR(CheckTask(schedule_.tasks[t]));
    }
    ISOMER_RETURN_IF_ERROR(CheckNothingIsLeftOut());
    return CheckUnloads(graph_, schedule_);
  }

 private:
  const Buffer& buffer(BufferId id) const { return schedule_.buffers[id]; }
  // Holds a value of the forward pass.
  bool IsForward(BufferId id) const { return id != kNoBuffer && HoldsValue(buffer(id)); }
  // A call that is spread over tasks: no leaf, and nothing that only moves.
  bool IsCall(NodeId node) const {
    const OpKind kind = graph_.node(node).op.kind();
    return !IsLeaf(kind) && !IsParallel(kind);
  }
  // How it is spread, inferred here: what the lowering says of it is not read.
  absl::Status KnowCall(NodeId node) {
    return calls_.Contains(node) ? absl::OkStatus() : calls_.Add(graph_, node);
  }
  // Done in the forward pass, and for the backward pass again.
  static bool IsRepeat(const Task& task) { return task.phase == Phase::kBackward; }
  // Whether `id` is forward buffer `original`, or stands for it.
  bool Holds(BufferId id, BufferId original) const {
    return id == original || (IsForward(id) && forward_of_[id] == original);
  }
  bool IsGradient(BufferId id) const {
    return id != kNoBuffer && buffer(id).role == BufferRole::kGradient;
  }

  // The gradient of a forward buffer, in its data type: what calls read.
  bool IsGradientIn(BufferId id, BufferId forward) const {
    return IsGradient(id) && forward_of_[id] == forward &&
           buffer(id).dtype == buffer(forward).dtype;
  }

  // What calls make, or add to, which may be of higher precision.
  bool IsGradientMadeIn(BufferId id, BufferId forward) const {
    return IsGradient(id) && forward_of_[id] == forward && IsFloat(buffer(id).dtype) &&
           BytesPerElement(buffer(id).dtype) >= BytesPerElement(buffer(forward).dtype);
  }

  absl::Status Error(absl::string_view what) const { return ErrorAt(task_, what); }
  absl::Status ErrorAt(int32_t t, absl::string_view what) const {
    return TaskError(graph_, schedule_, t, what);
  }

  static std::vector<BufferPair> PairsOf(const Task& task) {
    std::vector<BufferPair> pairs;
    if (task.kind == TaskKind::kLocal || task.kind == TaskKind::kSendReceive) {
      for (const auto& [from, to] : task.transfers) {
        pairs.emplace_back(task.reads[from], task.writes[to]);
      }
      return pairs;
    }
    for (BufferId from : task.reads) {
      for (BufferId to : task.writes) pairs.emplace_back(from, to);
    }
    return pairs;
  }

  // Moves of values and gradients; CheckUpdates looks at those of parameters.
  bool IsMove(const Task& task) const {
    return (task.kind == TaskKind::kLocal || IsCommunication(task.kind)) &&
           !IsOfUpdate(schedule_, task);
  }
  bool IsBackwardMove(const Task& task) const {
    return IsMove(task) && !task.writes.empty() && IsGradient(task.writes[0]);
  }

  // Which forward buffer a gradient's is the gradient of, which task computes what, and which
  // transfers there are to reverse.
  absl::Status Index() {
    ISOMER_ASSIGN_OR_RETURN(forward_of_, FindForwardBuffers(graph_, schedule_));
    const BufferId count = static_cast<BufferId>(schedule_.buffers.size());
    has_gradient_.assign(count, false);
    of_loads_.assign(count, false);
    for (BufferId id = 0; id < count; ++id) {
      // Integers have none: where a call reads such, they are zeros.
      const bool flows = IsGradient(id) && IsFloat(buffer(forward_of_[id]).dtype);
      if (flows) has_gradient_[forward_of_[id]] = true;
    }
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      const auto is_of_loads = [&](BufferId id) { return id != kNoBuffer && of_loads_[id]; };
      const bool loads = task.reads.empty()
                             ? task.kind == TaskKind::kLoad
                             : std::all_of(task.reads.begin(), task.reads.end(), is_of_loads);
      for (BufferId id : task.writes) {
        if (id != kNoBuffer && task.phase <= Phase::kForward) of_loads_[id] = loads;
      }
      if (task.kind == TaskKind::kCompute && !IsRepeat(task)) {
        computes_[{task.node, task.shard}] = static_cast<int32_t>(t);
      }
      if (schedule_.options.training && IsMove(task) && !IsRepeat(task)) {
        for (const BufferPair& pair : PairsOf(task)) {
          // Only what has gradients at both ends is reversed.
          if (has_gradient_[pair.first] && has_gradient_[pair.second]) to_reverse_[pair] = t;
        }
      }
    }
    for (BufferId id = 0; id < count; ++id) {
      if (!IsGradient(id) || of_loads_[forward_of_[id]]) continue;
      if (buffer(id).bytes() >= buffer(forward_of_[id]).bytes()) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "schedule: gradient buffer ", id, " is in lower precision, and not of a parameter"));
    }
    readers_.assign(count, 0);
    for (const Graph::NamedOutput& output : graph_.outputs()) {
      if (!schedule_.options.training || output.name != schedule_.options.loss) continue;
      for (int64_t p = 0; p < graph_.type(output.tensor).partials; ++p) {
        for (const BufferMeanings::Atom& part : meanings_.OfPartial(output.tensor, p)) {
          seeds_[part].first += schedule_.options.seed;
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckTask(const Task& task) {
    if (IsOfUpdate(schedule_, task)) return absl::OkStatus();
    switch (task.kind) {
      case TaskKind::kLoad:
      case TaskKind::kFeed:
        if (IsRepeat(task)) return Error("has the host set a tensor again");
        return CheckHost(task);
      case TaskKind::kCompute:
        return CheckCompute(task);
      case TaskKind::kComputeGradient:
        return CheckGradient(task);
      case TaskKind::kFill:
        return CheckFill(task);
      case TaskKind::kAccumulate:
        return CheckAccumulate(task);
      case TaskKind::kConvert:
        return CheckConvert(task);
      case TaskKind::kUpdate:
      case TaskKind::kUnload:
        return absl::OkStatus();
      case TaskKind::kOffload:
        return CheckOffload(task);
      case TaskKind::kFetch:
        return CheckFetch(task);
      default:
        if (task.segments != 1) return Error("moves several tensors");
        if (IsCarry(schedule_, task)) return CheckCarry(task);
        return IsBackwardMove(task) ? CheckBackwardMove(task) : CheckForwardMove(task);
    }
  }

  // The host sets shards, or what is stored of them.
  absl::Status CheckHost(const Task& task) const {
    if (task.writes.size() != 1) return Error("writes too little");
    const Buffer& b = buffer(task.writes[0]);
    const auto host = hosts_.find(b.tensor);
    const bool is_master = b.role == BufferRole::kMaster && task.kind == TaskKind::kLoad;
    if (host == hosts_.end() || !(is_master || IsForward(task.writes[0]))) {
      return Error("writes a buffer for something else");
    }
    const TensorType& type = graph_.type(b.tensor);
    const std::vector<BufferId>& homes = is_master ? host->second->trained
                                         : host->second->stored.empty()
                                             ? schedule_.shards.at(b.tensor)
                                             : host->second->stored;
    if (homes[b.shard] != task.writes[0] ||
        b.dtype != (is_master ? DataType::kFloat32 : type.dtype) ||
        !Covers(ShardBox(type, CoordinatesOfShard(type, b.shard).dims), b.box)) {
      return Error("writes a buffer that is not its shard's");
    }
    return absl::OkStatus();
  }

  // What a call makes: shard `shard` of the tensor.
  absl::Status CheckShard(const Task& task, TensorRef tensor, size_t w, int64_t shard) const {
    if (w >= task.writes.size() || task.writes[w] == kNoBuffer) return Error("writes too little");
    const Buffer& b = buffer(task.writes[w]);
    if (b.tensor != tensor || b.shard != shard || !IsForward(task.writes[w])) {
      return Error("writes a buffer for something else");
    }
    const TensorType& type = graph_.type(b.tensor);
    const auto shards = schedule_.shards.find(b.tensor);
    if (shards == schedule_.shards.end() || !Holds(task.writes[w], shards->second[b.shard]) ||
        b.box != ShardBox(type, CoordinatesOfShard(type, b.shard).dims) || b.dtype != type.dtype) {
      return Error("writes a buffer that is not its shard's");
    }
    return absl::OkStatus();
  }

  // What a task writes behind its outputs, and its gradient reads, is what its call saves.
  bool IsSavedOf(const Task& task, BufferId id) const {
    const std::optional<SavedForGradient>& saved = calls_.SavedBy(task.node);
    if (!saved.has_value() || id == kNoBuffer) return false;
    const Buffer& b = buffer(id);
    return b.role == BufferRole::kSaved && b.tensor == TensorRef{task.node, 0} &&
           b.shard == task.shard && b.dtype == saved->dtype && b.layout == Layout::kRowMajor &&
           b.box == Box{{0}, {saved->elements}};
  }

  absl::Status CheckCompute(const Task& task) {
    const Node& node = graph_.node(task.node);
    if (!IsCall(task.node) || task.shard < 0 || task.shard >= node.outputs[0].NumShards()) {
      return Error("is no task of its node");
    }
    ISOMER_RETURN_IF_ERROR(KnowCall(task.node));
    const Sharding& sharding = calls_.ShardingOf(task.node);
    const size_t outputs = node.outputs.size(), saved = task.writes.size() > outputs ? 1 : 0;
    if (task.reads.size() != node.inputs.size() || task.writes.size() != outputs + saved) {
      return Error("has another number of operands or outputs than its node");
    }
    if (saved > 0 && !IsSavedOf(task, task.writes.back())) {
      return Error("saves something else for its gradient than its call does");
    }
    for (size_t t = 0; t < outputs; ++t) {
      const TensorRef output{task.node, static_cast<int32_t>(t)};
      ISOMER_RETURN_IF_ERROR(CheckShard(task, output, t, task.shard));
    }
    const ShardCoordinates at = CoordinatesOfShard(node.outputs[0], task.shard);
    const Sharding::Task call = sharding.TaskOfOutputShard(at.dims, at.partial);
    for (size_t o = 0; o < task.reads.size(); ++o) {
      const int operand = static_cast<int>(o);
      const BufferId id = task.reads[o];
      if (!IsForward(id) || !Covers(buffer(id).box, sharding.OperandBox(call, operand)) ||
          meanings_.Of(id) !=
              meanings_.OfPartial(node.inputs[o], sharding.OperandPartial(call, operand))) {
        return Error(absl::StrCat("operand ", o, " is not what buffer ", id, " holds"));
      }
    }
    return absl::OkStatus();
  }

  // Two buffers of a device that are to hold the same, of the micro-batch that the task is of.
  absl::Status CheckHostCopy(const Task& task) const {
    if (task.reads.size() != 1 || task.writes.size() != 1) return Error("copies no one buffer");
    const Buffer &from = buffer(task.reads[0]), &to = buffer(task.writes[0]);
    Buffer same = to;
    same.role = from.role;
    if (!(from == same)) return Error("copies to a buffer for something else");
    if (task.moment != from.moment) return Error("is of another micro-batch than what it copies");
    return absl::OkStatus();
  }

  absl::Status CheckOffload(const Task& task) {
    ISOMER_RETURN_IF_ERROR(CheckHostCopy(task));
    const bool is_kept = buffer(task.reads[0]).role == BufferRole::kSaved ||
                         buffer(task.reads[0]).role == BufferRole::kActivation ||
                         buffer(task.reads[0]).role == BufferRole::kReceived;
    if (task.phase != Phase::kForward || !is_kept ||
        buffer(task.writes[0]).role != BufferRole::kOffloaded) {
      return Error("offloads what is no value of the forward pass, or not to the host");
    }
    offloaded_from_[task.writes[0]] = task.reads[0];
    return absl::OkStatus();
  }

  // What is fetched is what it was before it was offloaded.
  absl::Status CheckFetch(const Task& task) {
    ISOMER_RETURN_IF_ERROR(CheckHostCopy(task));
    const auto from = offloaded_from_.find(task.reads[0]);
    if (task.phase != Phase::kBackward || from == offloaded_from_.end() ||
        buffer(task.writes[0]).role != buffer(from->second).role) {
      return Error("fetches what was not offloaded, or as something else");
    }
    return absl::OkStatus();
  }

  absl::Status CheckSum(BufferId to, const std::vector<BufferId>& sources) {
    const std::string wrong = meanings_.WhyNotSum(to, sources);
    return wrong.empty() ? absl::OkStatus() : Error(wrong);
  }

  // What goes to a state's input is what the step says that the state is next.
  absl::Status CheckCarry(const Task& task) {
    std::map<BufferId, std::vector<BufferId>> sources;
    for (const auto& [from, to] : PairsOf(task)) sources[to].push_back(from);
    for (BufferId to : task.writes) {
      const auto host = hosts_.find(buffer(to).tensor);
      const auto state =
          host == hosts_.end() ? states_.end() : states_.find(host->second->leaves[0]);
      if (state == states_.end()) return Error("writes an input that is no state");
      const std::string wrong =
          meanings_.WhyNotSum(to, meanings_.OfPartial(state->second, 0), sources[to]);
      if (!wrong.empty()) return Error(wrong);
    }
    return absl::OkStatus();
  }

  absl::Status CheckForwardMove(const Task& task) {
    for (const BufferList* list : {&task.reads, &task.writes}) {
      for (BufferId id : *list) {
        if (!IsForward(id)) return Error("moves what is no value of the forward pass");
      }
    }
    if (task.kind == TaskKind::kAllReduce || task.kind == TaskKind::kReduceScatter ||
        task.kind == TaskKind::kAllGather) {
      // All operands reach each result in the same way: one stands for all.
      for (BufferId to : task.writes) {
        if (&meanings_.Of(to) != &meanings_.Of(task.writes[0])) {
          return Error("its results are of different tensors or partials");
        }
      }
      return CheckSum(task.writes[0], task.reads);
    }
    std::map<BufferId, std::vector<BufferId>> sources;
    for (BufferId to : task.writes) sources[to];
    for (const auto& [from, to] : PairsOf(task)) sources[to].push_back(from);
    for (const auto& [to, from] : sources) ISOMER_RETURN_IF_ERROR(CheckSum(to, from));
    return absl::OkStatus();
  }

  // Each share of a gradient goes into one sum, or one gradient of something earlier.
  absl::Status Use(BufferId id) {
    if (++readers_[id] == 1) return absl::OkStatus();
    return Error(absl::StrCat("uses gradient buffer ", id, " a second time"));
  }

  absl::Status CheckAccumulate(const Task& task) {
    const BufferId share = task.reads[0], sum = task.writes[0];
    if (!IsGradient(share) || !IsGradient(sum)) return Error("adds up what are no gradients");
    if (forward_of_[share] != forward_of_[sum])
      return Error("adds up gradients of different buffers");
    if (BytesPerElement(buffer(share).dtype) > BytesPerElement(buffer(sum).dtype)) {
      return Error("adds to a gradient in lower precision");
    }
    if (of_loads_[forward_of_[sum]] && HasMaster(buffer(sum).dtype)) {
      return Error("adds up gradients of what depends on parameters alone, and not in float32");
    }
    return Use(share);
  }

  // Of one buffer to another type; or that of what a cast made, which is in the type of what was
  // cast, to that of what was cast.
  absl::Status CheckConvert(const Task& task) {
    if (task.reads.size() != 1 || task.writes.size() != 1 || !IsGradient(task.reads[0]) ||
        !IsGradient(task.writes[0])) {
      return Error("converts what is no gradient");
    }
    const BufferId from = task.reads[0], to = task.writes[0];
    if (forward_of_[from] == forward_of_[to]) return Use(from);
    const Buffer& made = buffer(forward_of_[from]);
    const auto at = computes_.find({made.tensor.node, made.shard});
    if (at == computes_.end() || graph_.node(made.tensor.node).op.kind() != OpKind::kCast ||
        schedule_.tasks[at->second].writes[0] != forward_of_[from] ||
        schedule_.tasks[at->second].reads[0] != forward_of_[to]) {
      return Error("converts a gradient to that of another buffer");
    }
    if (!shares_.insert({at->second, 0}).second)
      return Error("is a gradient that is there already");
    return Use(from);
  }

  absl::Status CheckGradient(const Task& task) {
    const auto at = computes_.find({task.node, task.shard});
    if (at == computes_.end()) return Error("is the gradient of no task");
    const Task& forward = schedule_.tasks[at->second];
    const size_t operands = forward.reads.size();
    const size_t outputs = graph_.node(task.node).outputs.size();
    ISOMER_RETURN_IF_ERROR(KnowCall(task.node));
    const size_t saved = calls_.SavedBy(task.node).has_value() ? 1 : 0;
    if (task.reads.size() != operands + 2 * outputs + saved || task.writes.size() != operands) {
      return Error("has other operands than the task that it reverses");
    }
    if (saved > 0 && !IsSavedOf(task, task.reads.back())) {
      return Error("does not read what the task that it reverses saved");
    }
    const GradientNeeds& needs = calls_.NeedsOf(task.node);
    for (size_t o = 0; o < operands; ++o) {
      const bool read = task.reads[o] != kNoBuffer;
      if (read ? !Holds(task.reads[o], forward.reads[o]) : needs.operands[o]) {
        return Error(absl::StrCat("does not read operand ", o, " of the task that it reverses"));
      }
      const BufferId share = task.writes[o];
      if (share == kNoBuffer) continue;
      if (!IsGradientMadeIn(share, forward.reads[o])) {
        return Error(absl::StrCat("does not write the gradient of operand ", o));
      }
      if (!shares_.insert({at->second, static_cast<int32_t>(o)}).second) {
        return Error("is a gradient that is there already");
      }
    }
    // Of two tasks for the gradients of two operands, both read those of the outputs.
    const auto [part, is_first] = reversed_by_.try_emplace(at->second, task_);
    const Task& first = schedule_.tasks[part->second];
    for (size_t t = 0; t < outputs; ++t) {
      const BufferId output = task.reads[operands + t];
      if (output == kNoBuffer ? needs.outputs[t] : !Holds(output, forward.writes[t])) {
        return Error(absl::StrCat("does not read output ", t, " of the task that it reverses"));
      }
      const BufferId gradient = task.reads[operands + outputs + t];
      if (!IsGradientIn(gradient, forward.writes[t])) {
        return Error(absl::StrCat("does not read the gradient of output ", t));
      }
      if (is_first) {
        ISOMER_RETURN_IF_ERROR(Use(gradient));
      } else if (first.reads[operands + outputs + t] != gradient) {
        return Error(absl::StrCat("reads another gradient of output ", t, " than task ",
                                  part->second, " of the same call"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckBackwardMove(const Task& task) {
    const bool sums = IsCommunication(task.kind) && task.kind != TaskKind::kSendReceive;
    for (const auto& [from, to] : PairsOf(task)) {
      if (!IsGradient(from) || !IsGradient(to)) return Error("mixes gradients and values");
      const bool as_told = buffer(from).dtype == schedule_.options.update.gradient_sums;
      if (sums && of_loads_[forward_of_[to]] && !as_told) return Error(kOtherSums);
      if (to_reverse_.erase({forward_of_[to], forward_of_[from]}) == 0) {
        return Error(absl::StrCat("buffer ", from, " to ", to,
                                  " reverses no transfer, or one that is reversed already"));
      }
    }
    // A move forward may be reversed in several parts, one for each micro-batch.
    for (BufferId from : task.reads) {
      if (moved_.insert(from).second) ISOMER_RETURN_IF_ERROR(Use(from));
    }
    return absl::OkStatus();
  }

  // What is filled in for the parts of the loss, wherever they are, makes up the seed for each.
  absl::Status CheckFill(const Task& task) {
    if (task.writes.size() != 1 || !IsGradient(task.writes[0])) return Error("fills no gradient");
    if (task.value == 0) return absl::OkStatus();
    for (const BufferMeanings::Atom& part : meanings_.Of(forward_of_[task.writes[0]])) {
      const auto seed = seeds_.find(part);
      if (seed == seeds_.end()) return Error("gives a gradient to what is not the loss");
      seed->second = {seed->second.first - task.value, task_};
    }
    return absl::OkStatus();
  }

  absl::Status CheckNothingIsLeftOut() const {
    if (!schedule_.options.training) return absl::OkStatus();
    if (!to_reverse_.empty()) {
      const auto& [pair, t] = *to_reverse_.begin();
      return ErrorAt(static_cast<int32_t>(t),
                     absl::StrCat("its transfer of buffer ", pair.first, " to ", pair.second,
                                  " has no gradient"));
    }
    for (const auto& [call, t] : computes_) {
      const Task& task = schedule_.tasks[t];
      if (std::none_of(task.writes.begin(), task.writes.end(),
                       [&](BufferId id) { return has_gradient_[id]; })) {
        continue;
      }
      for (size_t o = 0; o < task.reads.size(); ++o) {
        if (has_gradient_[task.reads[o]] && !shares_.contains({t, static_cast<int32_t>(o)})) {
          return ErrorAt(t, absl::StrCat("the gradient of operand ", o, " lacks its share"));
        }
      }
    }
    for (const auto& [part, seed] : seeds_) {
      const auto& [missing, t] = seed;
      if (std::abs(missing) <= kRounding * std::abs(schedule_.options.seed)) continue;
      return ErrorAt(t, absl::StrCat("of the gradient of the loss, ", schedule_.options.seed, ", ",
                                     missing, " is missing"));
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const Schedule& schedule_;
  int32_t task_ = 0;  // being checked
  std::map<TensorRef, const Schedule::HostTensor*> hosts_;
  std::map<NodeId, TensorRef> states_;  // by input
  BufferMeanings meanings_;
  // Of gradient buffers, and of those that the backward pass fills again: what they stand for.
  std::vector<BufferId> forward_of_;
  std::vector<bool> has_gradient_;  // of forward buffers
  std::vector<bool> of_loads_;      // likewise: depends on parameters and constants alone
  std::vector<int> readers_;        // of gradient buffers; all moves of one are one
  absl::flat_hash_set<BufferId> moved_;
  absl::flat_hash_map<BufferId, BufferId> offloaded_from_;  // by what the host has
  absl::flat_hash_map<std::pair<NodeId, int32_t>, int32_t> computes_;
  absl::flat_hash_map<BufferPair, size_t> to_reverse_;       // forward transfers -> their tasks
  absl::flat_hash_map<int32_t, int32_t> reversed_by_;        // compute tasks -> the first that does
  absl::flat_hash_set<std::pair<int32_t, int32_t>> shares_;  // of compute tasks and operands
  // Of parts of the loss: what of the gradient is missing, and the last task that gives some.
  std::map<BufferMeanings::Atom, std::pair<double, int32_t>> seeds_;
  CallTable calls_;
};

}  // namespace

absl::Status CheckCalls(const Graph& graph, const Schedule& schedule) {
  return CallChecker(graph, schedule).Run();
}

}  // namespace isomer
