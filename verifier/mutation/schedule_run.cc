#include "verifier/mutation/schedule_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/evaluation/number.h"
#include "pcg/ir/box.h"
#include "pcg/schedule/memory/additions.h"
#include "pcg/schedule/memory/carries.h"
#include "pcg/schedule/memory/views.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

using FieldArray = Array<PrimeField>;

// Calls f(offset in `box`, its coordinates) for every element.
template <typename Function>
void ForEachElement(const Box& box, Function f) {
  std::vector<int64_t> at = box.origin;
  for (int64_t element = 0; element < box.Volume(); ++element) {
    f(element, at);
    for (size_t i = at.size(); i-- > 0;) {
      if (++at[i] < box.origin[i] + box.shape[i]) break;
      at[i] = box.origin[i];
    }
  }
}

int64_t OffsetIn(const Box& box, const std::vector<int64_t>& at) {
  int64_t offset = 0;
  for (size_t i = 0; i < at.size(); ++i) offset = offset * box.shape[i] + at[i] - box.origin[i];
  return offset;
}

class Run {
 public:
  Run(const Graph& graph, const Schedule& schedule, uint64_t seed)
      : graph_(graph),
        schedule_(schedule),
        seed_(seed),
        values_(schedule.buffers.size()),
        sums_(SumsInPlace(schedule)),
        holders_(HoldersOf(schedule)) {}

  absl::StatusOr<std::map<BufferId, std::vector<PrimeField>>> All() {
    std::vector<size_t> at(schedule_.programs.size(), 0);
    auto head = [&](size_t d) {
      return at[d] < schedule_.programs[d].size() ? schedule_.programs[d][at[d]] : -1;
    };
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t d = 0; d < at.size(); ++d) {
        while (head(d) >= 0) {
          const int32_t t = head(d);
          const auto& group = schedule_.tasks[t].devices;
          if (!std::all_of(group.begin(), group.end(), [&](int32_t g) { return head(g) == t; })) {
            break;
          }
          ISOMER_RETURN_IF_ERROR(Execute(schedule_.tasks[t]));
          for (int32_t g : group) ++at[g];
          progress = true;
        }
      }
    }
    for (size_t d = 0; d < at.size(); ++d) {
      if (head(d) >= 0) return absl::FailedPreconditionError(absl::StrCat("deadlock at ", head(d)));
    }
    // What the next step finds.
    for (size_t id = 0; id < schedule_.buffers.size(); ++id) {
      if (schedule_.buffers[id].role != BufferRole::kInput) continue;
      ISOMER_ASSIGN_OR_RETURN(const FieldArray value, Read(static_cast<BufferId>(id)));
      results_[static_cast<BufferId>(id)] = value.data;
    }
    return std::move(results_);
  }

 private:
  absl::StatusOr<FieldArray> Read(BufferId id) const {
    if (id == kNoBuffer || !values_[id]) {
      return absl::FailedPreconditionError(absl::StrCat("buffer ", id, " is not written"));
    }
    return *values_[id];
  }

  // What the host puts there: the same number wherever an element of a tensor is.
  FieldArray Drawn(const Buffer& buffer) const {
    FieldArray array(buffer.box.shape);
    array.origin = buffer.box.origin;
    const bool integers = !IsFloat(buffer.dtype);
    ForEachElement(buffer.box, [&](int64_t element, const std::vector<int64_t>& at) {
      uint64_t bits = HashCombine(seed_, static_cast<uint64_t>(buffer.tensor.node.value));
      for (int64_t coordinate : at) bits = HashCombine(bits, static_cast<uint64_t>(coordinate));
      array.data[element] = PrimeField::FromRaw(integers ? bits % 4 : bits % PrimeField::kPrime);
    });
    return array;
  }

  FieldArray Zero(const Box& box) const {
    FieldArray array(box.shape);
    array.origin = box.origin;
    return array;
  }

  // Adds the part of `from` that both hold.
  static void AddShared(const FieldArray& from, FieldArray* to) {
    const Box a{from.origin, from.shape}, b{to->origin, to->shape};
    const Box shared = Intersection(a, b);
    ForEachElement(shared, [&](int64_t, const std::vector<int64_t>& at) {
      PrimeField& sum = to->data[OffsetIn(b, at)];
      sum = sum + from.data[OffsetIn(a, at)];
    });
  }

  struct CallOf {
    const Sharding* sharding;
    Sharding::Task task;
    IterationBox box;
  };
  absl::StatusOr<CallOf> Call(const Task& task) const {
    const std::optional<Sharding>& sharding = schedule_.shardings[task.node.value];
    if (!sharding || task.shard < 0 || task.shard >= sharding->outputs[0].NumShards()) {
      return absl::FailedPreconditionError("no such call");
    }
    const ShardCoordinates at = CoordinatesOfShard(sharding->outputs[0], task.shard);
    CallOf call{&*sharding, sharding->TaskOfOutputShard(at.dims, at.partial), {}};
    call.box = TaskBox(sharding->declaration, sharding->degrees, call.task.dims);
    return call;
  }

  // The operands of a call; one that is not needed is zero.
  absl::StatusOr<std::vector<FieldArray>> Operands(const CallOf& call, const Task& task) const {
    std::vector<FieldArray> operands;
    for (int o = 0; o < call.sharding->declaration.num_operands(); ++o) {
      const Box box = call.sharding->OperandBox(call.task, o);
      if (static_cast<size_t>(o) >= task.reads.size()) {
        return absl::FailedPreconditionError("an operand is missing");
      }
      if (task.reads[o] == kNoBuffer && task.kind == TaskKind::kComputeGradient) {
        operands.push_back(Zero(box));
        continue;
      }
      ISOMER_ASSIGN_OR_RETURN(FieldArray value, Read(task.reads[o]));
      if (!Covers({value.origin, value.shape}, box)) {
        return absl::FailedPreconditionError(absl::StrCat("operand ", o, " is elsewhere"));
      }
      operands.push_back(std::move(value));
    }
    return operands;
  }

  static std::vector<const FieldArray*> Pointers(const std::vector<FieldArray>& arrays) {
    std::vector<const FieldArray*> pointers;
    for (const FieldArray& array : arrays) pointers.push_back(&array);
    return pointers;
  }

  absl::Status Write(BufferId id, FieldArray value) {
    const Box& box = schedule_.buffers[id].box;
    if (value.shape != box.shape || value.origin != box.origin) {
      return absl::FailedPreconditionError(absl::StrCat("buffer ", id, " is for another piece"));
    }
    values_[id] = std::move(value);
    return absl::OkStatus();
  }

  // What is written is what is read, in another shape.
  absl::Status View(const Task& task) {
    const bool gradient = task.kind == TaskKind::kComputeGradient;
    if (task.reads.empty() || task.writes.size() != 1 || task.writes[0] == kNoBuffer) {
      return absl::FailedPreconditionError("a view of several buffers");
    }
    ISOMER_ASSIGN_OR_RETURN(FieldArray value, Read(gradient ? task.reads.back() : task.reads[0]));
    const Box& box = schedule_.buffers[task.writes[0]].box;
    if (value.size() != box.Volume()) {
      return absl::FailedPreconditionError("a view of another number of elements");
    }
    value.origin = box.origin;
    value.shape = box.shape;
    return Write(task.writes[0], std::move(value));
  }

  absl::Status Compute(const Task& task) {
    ISOMER_ASSIGN_OR_RETURN(const CallOf call, Call(task));
    ISOMER_ASSIGN_OR_RETURN(const std::vector<FieldArray> operands, Operands(call, task));
    ISOMER_ASSIGN_OR_RETURN(
        std::vector<FieldArray> outputs,
        Evaluate<PrimeField>(call.sharding->declaration, call.box, Pointers(operands)));
    // What is saved stands for all that the task reads and writes.
    if (task.writes.size() > outputs.size()) {
      FieldArray saved = Zero(schedule_.buffers[task.writes.back()].box);
      std::fill(saved.data.begin(), saved.data.end(), Digest(operands, task.shard));
      ISOMER_RETURN_IF_ERROR(Write(task.writes.back(), std::move(saved)));
    }
    for (size_t t = 0; t < outputs.size() && t < task.writes.size(); ++t) {
      ISOMER_RETURN_IF_ERROR(Write(task.writes[t], std::move(outputs[t])));
    }
    return absl::OkStatus();
  }

  // A number that other operands, or another task, hardly have.
  static PrimeField Digest(const std::vector<FieldArray>& operands, int32_t shard) {
    const PrimeField base = PrimeField::FromRaw(1000003);
    PrimeField digest = PrimeField::FromRaw(static_cast<uint64_t>(shard) + 1);
    for (const FieldArray& operand : operands) {
      for (const PrimeField& element : operand.data) digest = digest * base + element;
    }
    return digest;
  }

  absl::Status ComputeGradient(const Task& task) {
    ISOMER_ASSIGN_OR_RETURN(const CallOf call, Call(task));
    ISOMER_ASSIGN_OR_RETURN(const std::vector<FieldArray> operands, Operands(call, task));
    ISOMER_ASSIGN_OR_RETURN(
        const std::vector<FieldArray> outputs,
        Evaluate<PrimeField>(call.sharding->declaration, call.box, Pointers(operands)));
    const size_t first = operands.size() + outputs.size(), saved = first + outputs.size();
    if (task.reads.size() < saved || task.reads.size() > saved + 1 ||
        task.writes.size() != operands.size()) {
      return absl::FailedPreconditionError("reads and writes of a gradient do not fit its call");
    }
    if (task.reads.size() > saved) {
      ISOMER_ASSIGN_OR_RETURN(const FieldArray found, Read(task.reads[saved]));
      if (found.size() == 0 || found.data[0] != Digest(operands, task.shard)) {
        return absl::FailedPreconditionError("what was saved is of another task");
      }
    }
    std::vector<FieldArray> seeds;
    for (size_t t = 0; t < outputs.size(); ++t) {
      ISOMER_ASSIGN_OR_RETURN(FieldArray seed, Read(task.reads[first + t]));
      if (seed.shape != outputs[t].shape || seed.origin != outputs[t].origin) {
        return absl::FailedPreconditionError("the gradient of another piece");
      }
      seeds.push_back(std::move(seed));
    }
    std::vector<FieldArray> gradients;
    for (const FieldArray& operand : operands) {
      gradients.push_back(Zero({operand.origin, operand.shape}));
    }
    std::vector<FieldArray*> wanted;
    for (size_t o = 0; o < operands.size(); ++o) {
      wanted.push_back(task.writes[o] == kNoBuffer ? nullptr : &gradients[o]);
    }
    ISOMER_RETURN_IF_ERROR(EvaluateGradient<PrimeField>(call.sharding->declaration, call.box,
                                                        Pointers(operands), Pointers(seeds),
                                                        absl::MakeSpan(wanted)));
    for (size_t o = 0; o < operands.size(); ++o) {
      if (wanted[o] == nullptr) continue;
      if (Adds(task, o)) {
        ISOMER_ASSIGN_OR_RETURN(const FieldArray sum, Read(sums_[task.writes[o]]));
        AddShared(sum, &gradients[o]);
      }
      ISOMER_RETURN_IF_ERROR(Write(task.writes[o], std::move(gradients[o])));
    }
    return absl::OkStatus();
  }

  absl::Status Move(const Task& task) {
    std::vector<FieldArray> sources, sums;
    for (BufferId id : task.reads) {
      ISOMER_ASSIGN_OR_RETURN(FieldArray value, Read(id));
      sources.push_back(std::move(value));
    }
    for (BufferId id : task.writes) sums.push_back(Zero(schedule_.buffers[id].box));
    std::vector<std::pair<int32_t, int32_t>> transfers = task.transfers;
    if (task.kind != TaskKind::kLocal && task.kind != TaskKind::kSendReceive) {
      transfers.clear();
      const size_t segments = static_cast<size_t>(std::max(task.segments, 1));
      for (size_t from = 0; from < sources.size(); ++from) {
        for (size_t to = from % segments; to < sums.size(); to += segments) {
          transfers.emplace_back(from, to);
        }
      }
    }
    for (const auto& [from, to] : transfers) AddShared(sources[from], &sums[to]);
    for (size_t w = 0; w < sums.size(); ++w) {
      ISOMER_RETURN_IF_ERROR(Write(task.writes[w], std::move(sums[w])));
    }
    return absl::OkStatus();
  }

  // A step of some optimizer: state i becomes (i + 2) times itself plus the gradient, the parameter
  // becomes itself plus the gradient and the states.
  absl::Status Update(const Task& task) {
    const size_t segments = task.segments;
    if (task.reads.size() < 2 * segments || task.writes.size() < segments) {
      return absl::FailedPreconditionError("an update without its operands");
    }
    for (size_t s = 0; s < segments; ++s) ISOMER_RETURN_IF_ERROR(UpdateWeight(task, s));
    return absl::OkStatus();
  }

  absl::Status UpdateWeight(const Task& task, size_t segment) {
    const size_t segments = task.segments;
    ISOMER_ASSIGN_OR_RETURN(const FieldArray parameter, Read(task.reads[segment]));
    ISOMER_ASSIGN_OR_RETURN(const FieldArray gradient, Read(task.reads[segments + segment]));
    FieldArray updated = Zero(schedule_.buffers[task.writes[segment]].box);
    AddShared(parameter, &updated);
    AddShared(gradient, &updated);
    for (size_t i = 1, at = segments + segment;
         at < task.writes.size() && at + segments < task.reads.size(); ++i, at += segments) {
      ISOMER_ASSIGN_OR_RETURN(const FieldArray before, Read(task.reads[at + segments]));
      FieldArray state = gradient;
      for (size_t times = 0; times < i + 1; ++times) AddShared(before, &state);
      AddShared(state, &updated);
      ISOMER_RETURN_IF_ERROR(Write(task.writes[at], std::move(state)));
    }
    // Of low precision the master becomes the same.
    if (task.writes.size() == task.reads.size()) {
      ISOMER_RETURN_IF_ERROR(Write(task.writes[task.writes.size() - segments + segment], updated));
    }
    return Write(task.writes[segment], std::move(updated));
  }

  // What moves or adds bytes takes one layout, and the host row-major tensors.
  absl::Status ExpectOneLayout(const Task& task) const {
    const bool is_call = IsOfKernel(task.kind);
    if (is_call && !task.is_view) return absl::OkStatus();
    const bool is_of_host = task.kind == TaskKind::kLoad || task.kind == TaskKind::kFeed ||
                            task.kind == TaskKind::kUnload || task.kind == TaskKind::kUpdate;
    std::optional<Layout> layout;
    if (is_of_host || (is_call && task.is_view)) layout = Layout::kRowMajor;
    for (const BufferList* list : {&task.reads, &task.writes}) {
      for (BufferId id : *list) {
        if (id == kNoBuffer) continue;
        if (!layout) layout = schedule_.buffers[id].layout;
        if (*layout != schedule_.buffers[id].layout) {
          return absl::FailedPreconditionError(
              absl::StrCat("buffer ", id, " is in another layout"));
        }
      }
    }
    return absl::OkStatus();
  }

  // What lies in the place of an input, the next value of a state, is written over it: the value
  // as it was is gone, and who reads it at that time must be able to write over it.
  absl::Status WriteOverInputs(const Task& task) {
    if (task.is_view || IsCarry(schedule_, task)) return absl::OkStatus();
    for (BufferId id : task.writes) {
      if (id == kNoBuffer || holders_[id] == id ||
          schedule_.buffers[holders_[id]].role != BufferRole::kInput) {
        continue;
      }
      const int in_place =
          task.kind == TaskKind::kCompute ? OperandInPlace(graph_.node(task.node).op) : -1;
      for (size_t o = 0; o < task.reads.size(); ++o) {
        if (task.reads[o] != kNoBuffer && holders_[task.reads[o]] == holders_[id] &&
            static_cast<int>(o) != in_place) {
          return absl::FailedPreconditionError(
              absl::StrCat("buffer ", task.reads[o], " is written over while it is read"));
        }
      }
      for (size_t other = 0; other < values_.size(); ++other) {
        if (holders_[other] == holders_[id] && static_cast<BufferId>(other) != id) {
          values_[other].reset();
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status Execute(const Task& task) {
    ISOMER_RETURN_IF_ERROR(ExpectOneLayout(task));
    ISOMER_RETURN_IF_ERROR(Perform(task));
    return WriteOverInputs(task);
  }

  absl::Status Perform(const Task& task) {
    switch (task.kind) {
      case TaskKind::kLoad:
      case TaskKind::kFeed:
        for (BufferId id : task.writes) values_[id] = Drawn(schedule_.buffers[id]);
        return absl::OkStatus();
      case TaskKind::kCompute:
        return task.is_view ? View(task) : Compute(task);
      case TaskKind::kComputeGradient:
        return task.is_view ? View(task) : ComputeGradient(task);
      case TaskKind::kFill: {
        FieldArray value = Zero(schedule_.buffers[task.writes[0]].box);
        // Values are shares of 1, which the field has exactly; 1/n is not a small integer there.
        const PrimeField inverse = PrimeField::FromDouble(task.value == 0 ? 1 : 1 / task.value);
        const PrimeField filled =
            task.value == 0 ? PrimeField() : PrimeField::FromDouble(1) / inverse;
        std::fill(value.data.begin(), value.data.end(), filled);
        return Write(task.writes[0], std::move(value));
      }
      case TaskKind::kAccumulate: {
        ISOMER_ASSIGN_OR_RETURN(FieldArray sum, Read(task.writes[0]));
        ISOMER_ASSIGN_OR_RETURN(const FieldArray share, Read(task.reads.back()));
        // The share of a view lies where the sum does.
        if (task.is_view) return Write(task.writes[0], share);
        AddShared(share, &sum);
        values_[task.writes[0]] = std::move(sum);
        return absl::OkStatus();
      }
      case TaskKind::kConvert:
      case TaskKind::kOffload:
      case TaskKind::kFetch: {
        ISOMER_ASSIGN_OR_RETURN(FieldArray value, Read(task.reads.back()));
        return Write(task.writes[0], std::move(value));
      }
      case TaskKind::kUpdate:
        return Update(task);
      case TaskKind::kUnload:
        for (BufferId id : task.reads) {
          ISOMER_ASSIGN_OR_RETURN(const FieldArray value, Read(id));
          results_[id] = value.data;
        }
        return absl::OkStatus();
      default:
        return Move(task);
    }
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const uint64_t seed_;
  std::vector<std::optional<FieldArray>> values_;
  const std::vector<BufferId> sums_, holders_;
  std::map<BufferId, std::vector<PrimeField>> results_;
};

}  // namespace

absl::StatusOr<std::map<BufferId, std::vector<PrimeField>>> RunSchedule(const Graph& graph,
                                                                        const Schedule& schedule,
                                                                        uint64_t seed) {
  return Run(graph, schedule, seed).All();
}

}  // namespace isomer
