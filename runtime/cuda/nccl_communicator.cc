#include "runtime/cuda/nccl_communicator.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::StatusOr<int> NcclTypeOf(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat32:
      return nccl::kFloat32;
    case DataType::kBFloat16:
      return nccl::kBFloat16;
    case DataType::kFloat16:
      return nccl::kFloat16;
    case DataType::kInt64:
      return nccl::kInt64;
    case DataType::kInt32:
      return nccl::kInt32;
    case DataType::kBool:
      break;
  }
  return absl::UnimplementedError(absl::StrCat("NCCL has no sums of ", DataTypeName(dtype)));
}

int PositionIn(absl::Span<const int32_t> group, int32_t rank) {
  return static_cast<int>(std::lower_bound(group.begin(), group.end(), rank) - group.begin());
}

std::string NameOf(absl::Span<const int32_t> group) {
  constexpr size_t kShown = 16;
  return absl::StrCat(group.size() == 1 ? "device " : "devices ",
                      absl::StrJoin(group.subspan(0, kShown), ","),
                      group.size() > kShown ? absl::StrCat(" .. ", group.back()) : "");
}

}  // namespace

absl::StatusOr<std::unique_ptr<NcclCommunicator>> NcclCommunicator::Make(
    const Nccl& nccl, CudaDevice* device, ControlPlane* control, const CommunicationGroups& groups,
    std::chrono::milliseconds timeout) {
  std::unique_ptr<NcclCommunicator> made(new NcclCommunicator(nccl, device, control, timeout));
  const absl::Status connected = made->Connect(groups);
  if (connected.ok()) return made;
  made->Abort(connected);
  return connected;
}

// Groups in one order everywhere, so that no two ranks wait for each other in two of them. The
// first of a group makes its id.
absl::Status NcclCommunicator::Connect(const CommunicationGroups& groups) {
  ISOMER_RETURN_IF_ERROR(device_.Enter());
  std::set<std::vector<int32_t>> all = groups.of_collectives;
  if (groups.has_messages) {
    std::vector<int32_t> ranks(num_ranks());
    for (int32_t r = 0; r < num_ranks(); ++r) ranks[r] = r;
    all.insert(std::move(ranks));
  }
  std::string own;
  for (const std::vector<int32_t>& group : all) {
    if (group.front() != rank()) continue;
    Nccl::UniqueId id;
    if (const int result = nccl_.unique_id(&id); result != nccl::kSuccess) {
      return Failed(nullptr, result, "start", group);
    }
    own.append(id.bytes, sizeof id.bytes);
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> ids, control_.Gather(own));
  std::vector<size_t> used(ids.size());
  for (const std::vector<int32_t>& group : all) {
    Nccl::UniqueId id;
    const std::string& of_first = ids[group.front()];
    size_t& at = used[group.front()];
    if (of_first.size() < at + sizeof id.bytes) {
      return absl::InternalError(
          absl::StrCat("device ", group.front(), " knows nothing of the group of ", NameOf(group)));
    }
    std::memcpy(id.bytes, of_first.data() + at, sizeof id.bytes);
    at += sizeof id.bytes;
    if (!std::binary_search(group.begin(), group.end(), rank())) continue;
    Nccl::Config config;
    Nccl::Comm& comm = comms_[group];
    const int result =
        nccl_.init(&comm, static_cast<int>(group.size()), id, PositionIn(group, rank()), &config);
    ISOMER_RETURN_IF_ERROR(Settle(comm, result, "connect", group));
  }
  return absl::OkStatus();
}

NcclCommunicator::~NcclCommunicator() {
  if (aborted_ || comms_.empty() || !device_.Enter().ok()) return;
  for (const auto& [group, comm] : comms_) nccl_.destroy(comm);
}

// The others first, who may wait for this one. Then all at one time: one may wait for what is
// behind another in the stream.
void NcclCommunicator::Abort(const absl::Status& status) {
  control_.Abort(status);
  if (aborted_.exchange(true)) return;
  std::vector<std::thread> threads;
  for (const auto& [group, comm] : comms_) {
    if (comm == nullptr) continue;
    threads.emplace_back([this, comm = comm] {
      device_.Enter().IgnoreError();
      nccl_.abort(comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

absl::StatusOr<Nccl::Comm> NcclCommunicator::CommOf(absl::Span<const int32_t> group) const {
  const auto comm = comms_.find({group.begin(), group.end()});
  if (comm != comms_.end()) return comm->second;
  return absl::InternalError(absl::StrCat("no communicator of ", NameOf(group)));
}

absl::Status NcclCommunicator::Failed(Nccl::Comm comm, int result, const char* call,
                                      absl::Span<const int32_t> group) const {
  const char* text = nccl_.error_text(result);
  const char* more = nccl_.last_error(comm);
  return absl::InternalError(
      absl::StrCat("NCCL: ", call, " of ", NameOf(group), ": ", text == nullptr ? "error" : text,
                   more == nullptr || *more == '\0' ? "" : ": ", more == nullptr ? "" : more));
}

absl::Status NcclCommunicator::Settle(Nccl::Comm comm, int result, const char* call,
                                      absl::Span<const int32_t> group) {
  const auto start = std::chrono::steady_clock::now();
  for (int asked = 0; result == nccl::kSuccess || result == nccl::kInProgress; ++asked) {
    int state = nccl::kSuccess;
    result = nccl_.async_error(comm, &state);
    if (result != nccl::kSuccess) break;
    if (state == nccl::kSuccess) return absl::OkStatus();
    result = state;
    if (asked % 64 == 63) {
      ISOMER_RETURN_IF_ERROR(control_.Poll());
      if (std::chrono::steady_clock::now() - start > timeout_) {
        return absl::DeadlineExceededError(absl::StrCat("device ", rank(), " waited ",
                                                        timeout_.count(), " ms to ", call,
                                                        " with the others of ", NameOf(group)));
      }
    }
    std::this_thread::yield();
  }
  return Failed(comm, result, call, group);
}

absl::Status NcclCommunicator::AllReduce(absl::Span<const int32_t> group, DataType dtype,
                                         void* data, int64_t count) {
  ISOMER_ASSIGN_OR_RETURN(Nccl::Comm comm, CommOf(group));
  ISOMER_ASSIGN_OR_RETURN(const int type, NcclTypeOf(dtype));
  return Settle(comm,
                nccl_.all_reduce(data, data, static_cast<size_t>(count), type, nccl::kSum, comm,
                                 device_.stream()),
                "all_reduce", group);
}

absl::Status NcclCommunicator::Reduce(absl::Span<const int32_t> group, int32_t root, DataType dtype,
                                      const void* send, void* receive, int64_t count) {
  ISOMER_ASSIGN_OR_RETURN(Nccl::Comm comm, CommOf(group));
  ISOMER_ASSIGN_OR_RETURN(const int type, NcclTypeOf(dtype));
  return Settle(comm,
                nccl_.reduce(send, receive, static_cast<size_t>(count), type, nccl::kSum,
                             PositionIn(group, root), comm, device_.stream()),
                "reduce", group);
}

absl::Status NcclCommunicator::Broadcast(absl::Span<const int32_t> group, int32_t root, void* data,
                                         int64_t bytes) {
  ISOMER_ASSIGN_OR_RETURN(Nccl::Comm comm, CommOf(group));
  return Settle(comm,
                nccl_.broadcast(data, data, static_cast<size_t>(bytes), nccl::kBytes,
                                PositionIn(group, root), comm, device_.stream()),
                "broadcast", group);
}

absl::Status NcclCommunicator::ReduceScatter(absl::Span<const int32_t> group, DataType dtype,
                                             const void* send, void* receive, int64_t count) {
  ISOMER_ASSIGN_OR_RETURN(Nccl::Comm comm, CommOf(group));
  ISOMER_ASSIGN_OR_RETURN(const int type, NcclTypeOf(dtype));
  return Settle(comm,
                nccl_.reduce_scatter(send, receive, static_cast<size_t>(count), type, nccl::kSum,
                                     comm, device_.stream()),
                "reduce_scatter", group);
}

absl::Status NcclCommunicator::AllGather(absl::Span<const int32_t> group, const void* send,
                                         void* receive, int64_t bytes) {
  ISOMER_ASSIGN_OR_RETURN(Nccl::Comm comm, CommOf(group));
  return Settle(comm,
                nccl_.all_gather(send, receive, static_cast<size_t>(bytes), nccl::kBytes, comm,
                                 device_.stream()),
                "all_gather", group);
}

template <typename Messages>
absl::Status NcclCommunicator::Grouped(Nccl::Comm comm, const char* call,
                                       absl::Span<const int32_t> group, Messages messages) {
  int result = nccl_.group_start();
  if (result == nccl::kSuccess) result = messages();
  const int ended = nccl_.group_end();
  if (result == nccl::kSuccess || result == nccl::kInProgress) result = ended;
  return Settle(comm, result, call, group);
}

absl::Status NcclCommunicator::AllToAll(absl::Span<const int32_t> group, const void* send,
                                        void* receive, int64_t bytes) {
  ISOMER_ASSIGN_OR_RETURN(Nccl::Comm comm, CommOf(group));
  return Grouped(comm, "all_to_all", group, [&] {
    for (size_t m = 0; m < group.size(); ++m) {
      const int64_t offset = static_cast<int64_t>(m) * bytes;
      const int peer = static_cast<int>(m);
      for (const int result :
           {nccl_.send(static_cast<const char*>(send) + offset, static_cast<size_t>(bytes),
                       nccl::kBytes, peer, comm, device_.stream()),
            nccl_.receive(static_cast<char*>(receive) + offset, static_cast<size_t>(bytes),
                          nccl::kBytes, peer, comm, device_.stream())}) {
        if (result != nccl::kSuccess && result != nccl::kInProgress) return result;
      }
    }
    return nccl::kSuccess;
  });
}

// By the communicator of all ranks, whose connections are made between those that talk.
absl::Status NcclCommunicator::SendReceive(absl::Span<const int32_t> group,
                                           absl::Span<const Send> sends,
                                           absl::Span<const Receive> receives) {
  if (sends.empty() && receives.empty()) return absl::OkStatus();
  std::vector<int32_t> all(num_ranks());
  for (int32_t r = 0; r < num_ranks(); ++r) all[r] = r;
  ISOMER_ASSIGN_OR_RETURN(Nccl::Comm comm, CommOf(all));
  return Grouped(comm, "send_receive", group, [&] {
    for (const Send& send : sends) {
      const int result = nccl_.send(send.data, static_cast<size_t>(send.bytes), nccl::kBytes,
                                    send.to, comm, device_.stream());
      if (result != nccl::kSuccess && result != nccl::kInProgress) return result;
    }
    for (const Receive& receive : receives) {
      const int result = nccl_.receive(receive.data, static_cast<size_t>(receive.bytes),
                                       nccl::kBytes, receive.from, comm, device_.stream());
      if (result != nccl::kSuccess && result != nccl::kInProgress) return result;
    }
    return nccl::kSuccess;
  });
}

// Threads of one process may wait for each other where each launches a graph with collectives.
bool NcclCommunicator::can_be_recorded() const { return control_.has_own_process(); }

absl::Status NcclCommunicator::CheckProgress(const Progress& progress) {
  ISOMER_RETURN_IF_ERROR(control_.Poll());
  for (const auto& [group, comm] : comms_) {
    int state = nccl::kSuccess;
    if (nccl_.async_error(comm, &state) != nccl::kSuccess) continue;
    if (state != nccl::kSuccess && state != nccl::kInProgress) {
      return Failed(comm, state, "a collective", group);
    }
  }
  const auto now = std::chrono::steady_clock::now();
  if (progress.begun != begun_ || progress.begun == progress.ended) {
    begun_ = progress.begun;
    since_ = now;
    has_posted_ = false;
  }
  if (progress.begun == progress.ended) return absl::OkStatus();
  // Who waits for long says so, before any gives up.
  constexpr int kPostsBefore = 4;
  if (!has_posted_ && now - since_ > timeout_ / kPostsBefore) {
    has_posted_ = true;
    control_.Post(begun_);
  }
  if (now - since_ < timeout_) return absl::OkStatus();
  // Those that have not begun it are what it waits for.
  std::vector<int32_t> behind;
  for (const int32_t member : progress.group) {
    if (member != rank() && control_.Posted(member) < begun_) behind.push_back(member);
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "device ", rank(), " waited ", timeout_.count(), " ms in ", progress.call, " of ",
      NameOf(progress.group), behind.empty() ? "" : ", which did not begin on ",
      behind.empty() ? "" : NameOf(behind)));
}

}  // namespace isomer
