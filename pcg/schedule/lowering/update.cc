#include "pcg/schedule/lowering/update.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "pcg/ir/weight_cuts.h"
#include "pcg/schedule/lowering/weight_parts.h"

namespace isomer {
namespace {

// The first bucket of a group is small, so that communication begins early (as in PyTorch).
constexpr int64_t kFirstBucketBytes = int64_t{1} << 20;

// Whether gradients are scattered and updated weights gathered.
bool IsSharded(UpdateMethod method) {
  return method == UpdateMethod::kSharded || method == UpdateMethod::kShardedGradients;
}

// As std::stable_partition, which asks for as much memory as all tasks take.
void MoveLoadsToFront(std::vector<Task>* tasks) {
  std::vector<Task> loads;
  size_t place = tasks->size();
  for (size_t t = tasks->size(); t-- > 0;) {
    Task& task = (*tasks)[t];
    if (task.phase == Phase::kLoad) {
      loads.push_back(std::move(task));
    } else if (--place != t) {
      (*tasks)[place] = std::move(task);
    }
  }
  std::move(loads.rbegin(), loads.rend(), tasks->begin());
}

}  // namespace

void SetUpdateWork(const Schedule& schedule, Task* task) {
  const UpdateOptions& update = schedule.options.update;
  const bool looks_twice = TraitsOf(update.optimizer).needs != UpdateNeeds::kElement;
  task->flops = 0;
  task->bytes = 0;
  for (int32_t i = 0; i < task->segments; ++i) {
    const Buffer& part = schedule.buffers[task->writes[i]];
    const int64_t volume = part.box.Volume();
    task->flops += UpdateFlops(update.optimizer, part.box.shape);
    const auto bytes_of = [&](BufferId id) {
      return volume * BytesPerElement(schedule.buffers[id].dtype);
    };
    for (const BufferList* list : {&task->reads, &task->writes}) {
      for (size_t at = i; at < list->size(); at += task->segments) {
        task->bytes += bytes_of((*list)[at]) * (looks_twice && list == &task->reads ? 2 : 1);
      }
    }
    if (update.clips) task->bytes += bytes_of(task->reads[task->segments + i]);
  }
}

UpdateLowering::UpdateLowering(ScheduleBuilder* builder) : builder_(*builder) {
  const int64_t capacity = builder_.options().update.bucket_bytes;
  std::vector<Schedule::HostTensor>& parameters = builder_.schedule().parameters;
  for (size_t p = 0; p < parameters.size(); ++p) {
    parameters[p].update = MethodOf(p);
    if (parameters[p].update == UpdateMethod::kShardedWeights) continue;  // Nothing is left to sum.
    const size_t copies = builder_.graph().type(parameters[p].tensor).copies;
    for (size_t first = 0; first < parameters[p].gradients.size(); first += copies) {
      const Piece piece = PieceAt(p, first, {});
      if (piece.copies.size() == 1) continue;
      const bool each = parameters[p].update == UpdateMethod::kShardedGradients;
      for (int32_t m = 0; m < (each ? builder_.schedule().num_moments : 1); ++m) {
        Open& open = open_[KeyOf(piece, each ? m : kNoMoment)];
        open.capacity = std::min(capacity, kFirstBucketBytes);
        ++open.pieces_to_come;
      }
    }
  }
}

UpdateMethod UpdateLowering::MethodOf(size_t p) {
  const Schedule::HostTensor& parameter = builder_.schedule().parameters[p];
  if (IsInParts(builder_.schedule(), parameter)) return UpdateMethod::kShardedWeights;
  UpdateMethod method = MethodAskedFor(builder_.graph(), builder_.options().update, parameter);
  if (method == UpdateMethod::kShardedWeights) method = UpdateMethod::kShardedGradients;
  if (method == UpdateMethod::kShardedGradients && !IsReadByMicroBatches(parameter)) {
    method = UpdateMethod::kSharded;
  }
  const std::vector<BufferId> copies = PieceAt(p, 0, {}).copies;
  if (copies.size() == 1) return UpdateMethod::kAllReduce;
  const bool can_be_cut =
      !CutsOf(builder_.buffer(copies[0]).box.shape, static_cast<int64_t>(copies.size())).empty();
  return IsSharded(method) && !can_be_cut ? UpdateMethod::kAllReduce : method;
}

bool UpdateLowering::IsReadByMicroBatches(const Schedule::HostTensor& parameter) {
  const Schedule& schedule = builder_.schedule();
  if (schedule.num_moments == 1) return false;
  if (read_by_all_.empty()) {
    read_by_all_.assign(schedule.buffers.size(), false);
    for (const Task& task : schedule.tasks) {
      if (task.moment != kNoMoment) continue;
      for (BufferId id : task.reads) read_by_all_[id] = true;
    }
  }
  return std::none_of(parameter.stored.begin(), parameter.stored.end(),
                      [this](BufferId id) { return read_by_all_[id]; });
}

UpdateLowering::Piece UpdateLowering::PieceAt(size_t parameter, size_t first,
                                              const std::vector<BufferId>& gradients) const {
  const TensorRef tensor = builder_.schedule().parameters[parameter].tensor;
  const std::vector<BufferId>& shards = builder_.schedule().parameters[parameter].stored;
  std::vector<size_t> order(builder_.graph().type(tensor).copies);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return builder_.buffer(shards[first + a]).device < builder_.buffer(shards[first + b]).device;
  });
  Piece piece{.parameter = parameter, .shards = {}, .copies = {}, .gradients = {}};
  for (size_t copy : order) {
    if (piece.copies.empty() || piece.copies.back() != shards[first + copy]) {
      piece.copies.push_back(shards[first + copy]);
      piece.shards.emplace_back();
      if (!gradients.empty()) piece.gradients.push_back(gradients[copy]);
    }
    piece.shards.back().push_back(first + copy);
  }
  return piece;
}

void UpdateLowering::SetGradient(const Piece& piece, size_t member, BufferId gradient) {
  Schedule::HostTensor& parameter = builder_.schedule().parameters[piece.parameter];
  for (size_t shard : piece.shards[member]) parameter.gradients[shard] = gradient;
}

void UpdateLowering::SetTrained(const Piece& piece, size_t member, BufferId master) {
  Schedule::HostTensor& parameter = builder_.schedule().parameters[piece.parameter];
  for (size_t m = 0; m < piece.shards.size(); ++m) {
    for (size_t shard : piece.shards[m]) {
      BufferId& trained = parameter.trained[shard];
      if (m == member) trained = master;
      // It may have a master of its own.
      if (m != member && trained == parameter.stored[shard]) trained = kNoBuffer;
    }
  }
}

UpdateLowering::Key UpdateLowering::KeyOf(const Piece& piece, int32_t moment) const {
  std::vector<int32_t> devices;
  for (BufferId copy : piece.copies) devices.push_back(builder_.buffer(copy).device);
  return {builder_.schedule().parameters[piece.parameter].update, std::move(devices),
          builder_.buffer(piece.copies[0]).dtype, moment};
}

void UpdateLowering::GradientIsReady(size_t parameter, size_t first,
                                     std::vector<BufferId> gradients, int32_t moment) {
  Piece piece = PieceAt(parameter, first, gradients);
  const std::vector<Schedule::HostTensor>& parameters = builder_.schedule().parameters;
  if (parameters[parameter].update == UpdateMethod::kShardedWeights) {
    return PartsAreReady(piece);
  }
  const Key key = KeyOf(piece, moment);
  const bool reached = !piece.gradients.empty();
  const std::vector<int64_t>& shrink = builder_.options().shrink;
  const NodeId node = parameters[parameter].tensor.node;
  const int64_t bytes = builder_.buffer((reached ? piece.gradients : piece.copies)[0]).bytes() /
                        (shrink.empty() ? 1 : shrink[node.value]);
  if (piece.copies.size() == 1) {
    if (!reached) return;
    Bucket alone;
    alone.devices = std::get<1>(key);
    alone.pieces.push_back(std::move(piece));
    return Close(&alone);
  }
  Open& open = open_.at(key);
  const UpdateOptions& update = builder_.options().update;
  const bool by_size = update.bucket_ends.empty();
  if (reached) {
    // A large one goes as it lies, without being packed beside others.
    if (by_size && bytes >= open.capacity) Close(&open.bucket);
    if (open.bucket.pieces.empty()) {
      open.bucket.method = std::get<0>(key);
      open.bucket.devices = std::get<1>(key);
    }
    open.bucket.pieces.push_back(std::move(piece));
    open.bucket.bytes += bytes;
  }
  const bool ends =
      by_size ? open.bucket.bytes >= open.capacity
              : update.bucket_ends.contains(NameOf(builder_.graph(), parameters[parameter]));
  if (--open.pieces_to_come == 0 || ends) {
    if (!open.bucket.pieces.empty()) open.capacity = update.bucket_bytes;
    Close(&open.bucket);
  }
}

// Each part of a weight has its own gradient, a sum already.
void UpdateLowering::PartsAreReady(const Piece& piece) {
  for (size_t m = 0; m < piece.gradients.size(); ++m) {
    Bucket alone;
    alone.devices = {builder_.buffer(piece.copies[m]).device};
    alone.pieces.push_back(
        {piece.parameter, {piece.shards[m]}, {piece.copies[m]}, {piece.gradients[m]}});
    Close(&alone);
  }
}

void UpdateLowering::Close(Bucket* bucket) {
  if (bucket->pieces.empty()) return;
  for (const Piece& piece : bucket->pieces) {
    for (size_t m = 0; m < piece.shards.size(); ++m) SetGradient(piece, m, piece.gradients[m]);
  }
  if (bucket->devices.size() > 1) Synchronise(bucket);
  if (bucket->method == UpdateMethod::kShardedGradients) AccumulateParts(bucket);
  const UpdateOptions& update = builder_.options().update;
  const bool immediate =
      update.immediate && !update.all_gradients_first() && builder_.schedule().num_moments == 1;
  if (immediate) {
    CloseImmediate(std::move(*bucket));
  } else if (!bucket->pieces.empty()) {
    closed_.push_back(std::move(*bucket));
  }
  *bucket = Bucket();
}

void UpdateLowering::CloseImmediate(Bucket bucket) {
  if (bucket.devices.size() == 1) return LowerBucket(bucket);
  const auto last = std::find_if(closed_.begin(), closed_.end(), [&](const Bucket& other) {
    return other.devices == bucket.devices;
  });
  if (last == closed_.end()) {
    closed_.push_back(std::move(bucket));
    return;
  }
  LowerBucket(*last);
  *last = std::move(bucket);
}

void UpdateLowering::Synchronise(Bucket* bucket) {
  std::vector<BufferId> gradients;
  for (size_t m = 0; m < bucket->devices.size(); ++m) {
    for (const Piece& piece : bucket->pieces) gradients.push_back(piece.gradients[m]);
  }
  switch (bucket->method) {
    case UpdateMethod::kAllReduce:
      AddCollective(TaskKind::kAllReduce, Phase::kBackward, *bucket, gradients, gradients);
      return;
    case UpdateMethod::kSharded:
    case UpdateMethod::kShardedGradients:
    case UpdateMethod::kShardedWeights:
      return ScatterGradients(bucket);
    case UpdateMethod::kOwner:
      break;
  }
  // The member that owns least so far.
  const auto least =
      std::min_element(bucket->devices.begin(), bucket->devices.end(),
                       [&](int32_t a, int32_t b) { return owned_bytes_[a] < owned_bytes_[b]; });
  bucket->owner = least - bucket->devices.begin();
  owned_bytes_[*least] += bucket->bytes;
  std::vector<BufferId> sums;
  for (Piece& piece : bucket->pieces) {
    sums.push_back(piece.gradients[bucket->owner]);
    for (size_t m = 0; m < piece.shards.size(); ++m) {
      if (m != bucket->owner) SetGradient(piece, m, kNoBuffer);
    }
  }
  AddCollective(TaskKind::kReduce, Phase::kBackward, *bucket, gradients, sums);
}

void UpdateLowering::ScatterGradients(Bucket* bucket) {
  const int64_t members = static_cast<int64_t>(bucket->devices.size());
  std::vector<BufferId> whole, parts;
  for (int64_t m = 0; m < members; ++m) {
    for (Piece& piece : bucket->pieces) {
      whole.push_back(piece.gradients[m]);
      Buffer part = builder_.buffer(piece.gradients[m]);
      part.role = BufferRole::kGradientShard;
      part.box = Slice(part.box, m, members);
      part.moment = kNoMoment;
      parts.push_back(builder_.AddBuffer(std::move(part)));
      piece.gradients[m] = parts.back();
      SetGradient(piece, m, parts.back());
    }
  }
  AddCollective(TaskKind::kReduceScatter, Phase::kBackward, *bucket, std::move(whole),
                std::move(parts));
}

void UpdateLowering::AccumulateParts(Bucket* bucket) {
  std::vector<Piece> first;
  for (Piece& piece : bucket->pieces) {
    const auto [sums, is_first] =
        parts_.try_emplace({piece.parameter, piece.shards[0][0]}, piece.gradients);
    if (is_first) {
      for (size_t m = 0; m < piece.gradients.size(); ++m) {
        const NodeId node = builder_.buffer(piece.gradients[m]).tensor.node;
        piece.gradients[m] = builder_.Converted(piece.gradients[m], DataType::kFloat32, node);
        SetGradient(piece, m, piece.gradients[m]);
      }
      sums->second = piece.gradients;
      first.push_back(std::move(piece));
      continue;
    }
    for (size_t m = 0; m < piece.gradients.size(); ++m) {
      const BufferId part = piece.gradients[m], sum = sums->second[m];
      SetGradient(piece, m, sum);
      Task& task = builder_.AddTask(TaskKind::kAccumulate, Phase::kBackward,
                                    builder_.buffer(part).tensor.node, builder_.buffer(part).device,
                                    {part}, {sum});
      task.flops = static_cast<double>(builder_.buffer(part).box.Volume());
      task.bytes = builder_.buffer(part).bytes() + 2 * builder_.buffer(sum).bytes();
    }
  }
  bucket->pieces = std::move(first);
}

Task& UpdateLowering::AddCollective(TaskKind kind, Phase phase, const Bucket& bucket,
                                    std::vector<BufferId> reads, std::vector<BufferId> writes) {
  const TensorRef first = builder_.schedule().parameters[bucket.pieces[0].parameter].tensor;
  Task task{.kind = kind, .phase = phase, .node = first.node, .devices = bucket.devices};
  task.of_weights = true;
  task.segments = static_cast<int32_t>(bucket.pieces.size());
  for (size_t i = 0; i < bucket.pieces.size(); ++i) {
    task.bytes += builder_.buffer((kind == TaskKind::kAllGather ? writes : reads)[i]).bytes();
  }
  task.reads = std::move(reads);
  task.writes = std::move(writes);
  builder_.schedule().tasks.push_back(std::move(task));
  return builder_.schedule().tasks.back();
}

void UpdateLowering::LowerUpdates() {
  // In the order of their gradients, so that the first are updated while the last are summed; those
  // that have communications to follow before the others, and those that wait for none next.
  for (const Bucket& bucket : closed_) {
    if (bucket.method != UpdateMethod::kAllReduce) LowerBucket(bucket);
  }
  if (builder_.options().update.bucket_bytes > 0) JoinUnsynchronised();
  for (const Bucket& bucket : closed_) {
    if (bucket.method == UpdateMethod::kAllReduce) LowerBucket(bucket);
  }
  // States are filled before the first step, like parameters.
  MoveLoadsToFront(&builder_.schedule().tasks);
}

void UpdateLowering::JoinUnsynchronised() {
  std::vector<Bucket> buckets;
  std::map<std::pair<int32_t, DataType>, size_t> of_device;
  std::erase_if(closed_, [&](Bucket& bucket) {
    if (bucket.devices.size() > 1) return false;
    const DataType dtype = builder_.buffer(bucket.pieces[0].copies[0]).dtype;
    const auto [at, added] = of_device.try_emplace({bucket.devices[0], dtype}, buckets.size());
    if (added) {
      buckets.push_back(std::move(bucket));
    } else {
      std::vector<Piece>& pieces = buckets[at->second].pieces;
      std::move(bucket.pieces.begin(), bucket.pieces.end(), std::back_inserter(pieces));
    }
    return true;
  });
  closed_.insert(closed_.begin(), buckets.begin(), buckets.end());
}

void UpdateLowering::LowerBucket(const Bucket& bucket) {
  const auto receives = [&](size_t m) {
    return IsSharded(bucket.method) || (bucket.method == UpdateMethod::kOwner && m != bucket.owner);
  };
  std::vector<BufferId> reads, writes;
  for (size_t m = 0; m < bucket.devices.size(); ++m) {
    if (bucket.method != UpdateMethod::kOwner || m == bucket.owner) {
      const std::vector<BufferId> updated = AddUpdate(bucket, m);
      reads.insert(reads.end(), updated.begin(), updated.end());
    }
    if (!receives(m)) continue;
    for (const Piece& piece : bucket.pieces) writes.push_back(piece.copies[m]);
  }
  if (bucket.method == UpdateMethod::kAllReduce) return;
  AddCollective(IsSharded(bucket.method) ? TaskKind::kAllGather : TaskKind::kBroadcast,
                Phase::kUpdate, bucket, std::move(reads), std::move(writes));
}

std::vector<BufferId> UpdateLowering::AddUpdate(const Bucket& bucket, size_t member) {
  std::vector<BufferId> updated, trained, gradients;
  for (const Piece& piece : bucket.pieces) {
    const BufferId parameter = piece.copies[member];
    gradients.push_back(piece.gradients[member]);
    Buffer part = builder_.buffer(parameter);
    const bool whole = part.box == builder_.buffer(gradients.back()).box;
    part.role = BufferRole::kParameterShard;
    part.moment = kNoMoment;
    part.box = builder_.buffer(gradients.back()).box;
    updated.push_back(whole ? parameter : builder_.AddBuffer(std::move(part)));
    trained.push_back(parameter);
    if (!HasMaster(builder_.buffer(parameter).dtype)) continue;
    trained.back() = AddKept(BufferRole::kMaster, updated.back());
    SetTrained(piece, member, trained.back());
  }
  std::vector<BufferId> reads = trained, writes = updated;
  reads.insert(reads.end(), gradients.begin(), gradients.end());
  const UpdateOptions& update = builder_.options().update;
  for (int i = 0; i < update.num_states(); ++i) {
    for (BufferId id : updated) {
      writes.push_back(AddKept(BufferRole::kState, id, update.TypeOfState(i)));
      reads.push_back(writes.back());
    }
  }
  if (HasMaster(builder_.buffer(updated[0]).dtype)) {
    writes.insert(writes.end(), trained.begin(), trained.end());
  }
  Task& task =
      builder_.AddTask(TaskKind::kUpdate, Phase::kUpdate, builder_.buffer(updated[0]).tensor.node,
                       builder_.buffer(updated[0]).device, std::move(reads), std::move(writes));
  task.segments = static_cast<int32_t>(updated.size());
  SetUpdateWork(builder_.schedule(), &task);
  return updated;
}

BufferId UpdateLowering::AddKept(BufferRole role, BufferId updated, DataType dtype) {
  Buffer buffer = builder_.buffer(updated);
  buffer.role = role;
  buffer.dtype = dtype;
  buffer.moment = kNoMoment;
  const BufferId kept = builder_.AddBuffer(std::move(buffer));
  builder_.AddTask(role == BufferRole::kMaster ? TaskKind::kLoad : TaskKind::kFill, Phase::kLoad,
                   builder_.buffer(updated).tensor.node, builder_.buffer(updated).device, {},
                   {kept});
  return kept;
}

}  // namespace isomer
