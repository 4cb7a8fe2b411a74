#include "runtime/communication/thread_communicator.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/check.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// What is summed at a time: stays in the nearest cache.
constexpr int64_t kBlockBytes = 8 << 10;
// Waking a sleeping thread takes some 50 us, often more than what it waited for: while every rank
// has a core to itself, those that wait look again for so long before they sleep.
constexpr std::chrono::microseconds kThreadSpin(1000);

// What a rank brings to a meeting.
struct Offer {
  const char* call = "";
  int64_t size = 0;  // elements or bytes, equal for all; 0 for send_receive
  const void* send = nullptr;
  void* receive = nullptr;
  absl::Span<const Send> sends;
};

// Where the members of a group meet for one call. All arrive with their offers, then work on each
// other's memory between further barriers, and leave.
struct Meeting {
  std::vector<Offer> offers;
  int arrived = 0;
  std::atomic<int64_t> round = 0;  // barriers passed
  size_t leaving = 0;
};

class Hub {
 public:
  Hub(int32_t num_ranks, std::chrono::milliseconds timeout, int32_t threads_per_rank)
      : timeout_(timeout),
        spins_(num_ranks * threads_per_rank <=
               static_cast<int32_t>(std::thread::hardware_concurrency())),
        posted_(num_ranks),
        calls_(num_ranks) {}

  int32_t num_ranks() const { return static_cast<int32_t>(calls_.size()); }

  // Waits for the others of the group. The meeting lives until all members have called Leave.
  absl::StatusOr<Meeting*> Arrive(int32_t rank, int channel, absl::Span<const int32_t> group,
                                  Offer offer) {
    std::unique_lock lock(mutex_);
    std::vector<int32_t> members(group.begin(), group.end());
    const auto position = std::find(members.begin(), members.end(), rank);
    ISOMER_CHECK(position != members.end());
    const int64_t call = calls_[rank][{channel, members}]++;
    Meeting& meeting = meetings_[{channel, members, call}];
    meeting.offers.resize(members.size());
    meeting.offers[position - members.begin()] = offer;
    ISOMER_RETURN_IF_ERROR(Barrier(lock, rank, members, &meeting, offer.call));
    for (size_t m = 0; m < members.size(); ++m) {
      const Offer& other = meeting.offers[m];
      if (std::strcmp(other.call, offer.call) == 0 && other.size == offer.size) continue;
      return AbortLocked(absl::InternalError(
          absl::StrCat("rank ", rank, " calls ", offer.call, " of ", offer.size, ", but rank ",
                       members[m], " calls ", other.call, " of ", other.size)));
    }
    return &meeting;
  }

  absl::Status Barrier(int32_t rank, absl::Span<const int32_t> group, Meeting* meeting,
                       const char* call) {
    std::unique_lock lock(mutex_);
    return Barrier(lock, rank, group, meeting, call);
  }

  // The last barrier: memory of the others must not be touched afterwards.
  absl::Status Leave(int32_t rank, absl::Span<const int32_t> group, Meeting* meeting,
                     const char* call) {
    std::unique_lock lock(mutex_);
    ISOMER_RETURN_IF_ERROR(Barrier(lock, rank, group, meeting, call));
    if (++meeting->leaving == group.size()) {
      for (auto at = meetings_.begin(); at != meetings_.end(); ++at) {
        if (&at->second != meeting) continue;
        meetings_.erase(at);
        break;
      }
    }
    return absl::OkStatus();
  }

  void Abort(const absl::Status& status) {
    std::unique_lock lock(mutex_);
    AbortLocked(status).IgnoreError();
  }

  absl::Status Poll() {
    if (!failed_) return absl::OkStatus();
    std::unique_lock lock(mutex_);
    return error_;
  }
  std::atomic<int64_t>& posted(int32_t rank) { return posted_[rank]; }

 private:
  // The first error wins; returns it.
  absl::Status AbortLocked(const absl::Status& status) {
    if (error_.ok()) error_ = status;
    failed_ = true;
    changed_.notify_all();
    return error_;
  }

  absl::Status Barrier(std::unique_lock<std::mutex>& lock, int32_t rank,
                       absl::Span<const int32_t> group, Meeting* meeting, const char* call) {
    if (!error_.ok()) return error_;
    const int64_t round = meeting->round;
    if (++meeting->arrived == static_cast<int>(group.size())) {
      meeting->arrived = 0;
      ++meeting->round;
      changed_.notify_all();
      return absl::OkStatus();
    }
    if (spins_) {
      lock.unlock();
      const auto end = std::chrono::steady_clock::now() + kThreadSpin;
      while (meeting->round == round && !failed_ && std::chrono::steady_clock::now() < end) {
      }
      lock.lock();
    }
    const bool done =
        changed_.wait_for(lock, timeout_, [&] { return !error_.ok() || meeting->round != round; });
    if (meeting->round != round) return absl::OkStatus();
    if (!error_.ok()) return error_;
    ISOMER_CHECK(!done);
    return AbortLocked(absl::DeadlineExceededError(
        absl::StrCat("rank ", rank, " waited ", timeout_.count(), " ms in ", call,
                     " for the others of ranks ", absl::StrJoin(group, ","))));
  }

  const std::chrono::milliseconds timeout_;
  const bool spins_;
  std::atomic<bool> failed_ = false;  // whether error_ is one
  std::vector<std::atomic<int64_t>> posted_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  absl::Status error_;
  // Calls so far, by rank, channel and group: the n-th calls of a group in a channel meet.
  std::vector<std::map<std::pair<int, std::vector<int32_t>>, int64_t>> calls_;
  std::map<std::tuple<int, std::vector<int32_t>, int64_t>, Meeting> meetings_;
};

class ThreadCommunicator : public HostCommunicator {
 public:
  // Of every kMostChannels-th channel, the next are those of the others.
  ThreadCommunicator(int32_t rank, int channel, const std::shared_ptr<Hub>& hub,
                     DeviceOperations* operations)
      : rank_(rank), channel_(channel), hub_(hub), operations_(*operations) {
    for (int c = 1; channel % kMostChannels == 0 && c < kMostChannels; ++c) {
      others_.push_back(std::make_unique<ThreadCommunicator>(rank, channel + c, hub, operations));
    }
  }
  const std::shared_ptr<Hub>& hub() const { return hub_; }

  int32_t rank() const override { return rank_; }
  int32_t num_ranks() const override { return hub_->num_ranks(); }

  // Each member sums its share of the elements, and writes it to all members. Nobody else touches
  // the share meanwhile.
  absl::Status AllReduce(absl::Span<const int32_t> group, DataType dtype, void* data,
                         int64_t count) override {
    ISOMER_ASSIGN_OR_RETURN(
        Meeting * meeting,
        Arrive(group,
               {.call = "all_reduce", .size = count, .send = data, .receive = data, .sends = {}}));
    const int64_t element = BytesPerElement(dtype);
    const int64_t members = static_cast<int64_t>(group.size());
    const int64_t self = PositionIn(group);
    const int64_t end = count * (self + 1) / members;
    const int64_t begin = count * self / members;
    const int64_t block = operations_.shares_host_memory() ? kBlockBytes / element : end - begin;
    for (int64_t at = begin; at < end; at += block) {
      const int64_t size = std::min(end - at, block);
      char* sums = static_cast<char*>(data) + at * element;
      ISOMER_RETURN_IF_ERROR(Checked(SumPieces(*meeting, dtype, at, size, sums)));
      for (const Offer& offer : meeting->offers) {
        if (offer.receive == data) continue;
        char* to = static_cast<char*>(offer.receive) + at * element;
        ISOMER_RETURN_IF_ERROR(Checked(operations_.Copy(sums, size * element, to)));
      }
    }
    return Leave(group, meeting, data, "all_reduce");
  }

  // Each member sums its share of the elements, straight into the root's memory.
  absl::Status Reduce(absl::Span<const int32_t> group, int32_t root, DataType dtype,
                      const void* send, void* receive, int64_t count) override {
    const int64_t members = static_cast<int64_t>(group.size());
    const int64_t self = PositionIn(group), at_root = PositionOf(group, root);
    const int64_t begin = count * self / members, end = count * (self + 1) / members;
    ISOMER_ASSIGN_OR_RETURN(
        Meeting * meeting,
        Arrive(group,
               {.call = "reduce", .size = count, .send = send, .receive = receive, .sends = {}}));
    char* to =
        static_cast<char*>(meeting->offers[at_root].receive) + begin * BytesPerElement(dtype);
    ISOMER_RETURN_IF_ERROR(Checked(SumPieces(*meeting, dtype, begin, end - begin, to)));
    return Leave(group, meeting, to, "reduce");
  }

  absl::Status Broadcast(absl::Span<const int32_t> group, int32_t root, void* data,
                         int64_t bytes) override {
    ISOMER_ASSIGN_OR_RETURN(
        Meeting * meeting,
        Arrive(group, {.call = "broadcast", .size = bytes, .send = data, .sends = {}}));
    if (rank_ != root) {
      const void* from = meeting->offers[PositionOf(group, root)].send;
      ISOMER_RETURN_IF_ERROR(Checked(operations_.Copy(from, bytes, data)));
    }
    return Leave(group, meeting, data, "broadcast");
  }

  absl::Status ReduceScatter(absl::Span<const int32_t> group, DataType dtype, const void* send,
                             void* receive, int64_t count) override {
    ISOMER_ASSIGN_OR_RETURN(
        Meeting * meeting,
        Arrive(group, {.call = "reduce_scatter", .size = count, .send = send, .sends = {}}));
    const int64_t begin = PositionIn(group) * count;
    ISOMER_RETURN_IF_ERROR(Checked(SumPieces(*meeting, dtype, begin, count, receive)));
    return Leave(group, meeting, receive, "reduce_scatter");
  }

  absl::Status AllGather(absl::Span<const int32_t> group, const void* send, void* receive,
                         int64_t bytes) override {
    ISOMER_ASSIGN_OR_RETURN(
        Meeting * meeting,
        Arrive(group, {.call = "all_gather", .size = bytes, .send = send, .sends = {}}));
    for (size_t m = 0; m < group.size(); ++m) {
      ISOMER_RETURN_IF_ERROR(Checked(operations_.Copy(meeting->offers[m].send, bytes,
                                                      static_cast<char*>(receive) + m * bytes)));
    }
    return Leave(group, meeting, receive, "all_gather");
  }

  absl::Status AllToAll(absl::Span<const int32_t> group, const void* send, void* receive,
                        int64_t bytes) override {
    ISOMER_ASSIGN_OR_RETURN(
        Meeting * meeting,
        Arrive(group, {.call = "all_to_all", .size = bytes, .send = send, .sends = {}}));
    const int64_t self = PositionIn(group);
    for (size_t m = 0; m < group.size(); ++m) {
      const char* from = static_cast<const char*>(meeting->offers[m].send) + self * bytes;
      ISOMER_RETURN_IF_ERROR(
          Checked(operations_.Copy(from, bytes, static_cast<char*>(receive) + m * bytes)));
    }
    return Leave(group, meeting, receive, "all_to_all");
  }

  absl::Status SendReceive(absl::Span<const int32_t> group, absl::Span<const Send> sends,
                           absl::Span<const Receive> receives) override {
    ISOMER_ASSIGN_OR_RETURN(Meeting * meeting,
                            Arrive(group, {.call = "send_receive",
                                           .send = sends.empty() ? nullptr : sends[0].data,
                                           .sends = sends}));
    ISOMER_RETURN_IF_ERROR(Checked(TakeMessages(group, *meeting, receives)));
    const void* received = receives.empty() ? nullptr : receives[0].data;
    return Leave(group, meeting, received, "send_receive");
  }

  void Abort(const absl::Status& status) override { hub_->Abort(status); }
  absl::Status Poll() override { return hub_->Poll(); }
  void Post(int64_t progress) override { hub_->posted(rank_) = progress; }
  int64_t Posted(int32_t rank) const override { return hub_->posted(rank); }
  Communicator& Channel(int channel) override {
    return channel == 0 ? *this : *others_[channel - 1];
  }

 private:
  static int64_t PositionOf(absl::Span<const int32_t> group, int32_t rank) {
    const auto at = std::find(group.begin(), group.end(), rank);
    ISOMER_CHECK(at != group.end());
    return at - group.begin();
  }
  int64_t PositionIn(absl::Span<const int32_t> group) const { return PositionOf(group, rank_); }

  // What this rank's device was given to do is done when others look at its memory: before a
  // meeting begins, and before it ends, of what it wrote to others.
  absl::StatusOr<Meeting*> Arrive(absl::Span<const int32_t> group, Offer offer) {
    ISOMER_RETURN_IF_ERROR(Checked(Wait(offer.send)));
    return hub_->Arrive(rank_, channel_, group, offer);
  }
  absl::Status Leave(absl::Span<const int32_t> group, Meeting* meeting, const void* written,
                     const char* call) {
    ISOMER_RETURN_IF_ERROR(Checked(Wait(written)));
    return hub_->Leave(rank_, group, meeting, call);
  }
  absl::Status Wait(const void* memory) {
    return memory == nullptr ? absl::OkStatus() : operations_.Wait(memory);
  }
  // An error ends the job.
  absl::Status Checked(absl::Status status) {
    if (!status.ok()) hub_->Abort(status);
    return status;
  }

  // `count` elements from `begin` on, summed over all members.
  absl::Status SumPieces(const Meeting& meeting, DataType dtype, int64_t begin, int64_t count,
                         void* to) const {
    absl::InlinedVector<const void*, 16> pieces;
    for (const Offer& offer : meeting.offers) {
      pieces.push_back(static_cast<const char*>(offer.send) + begin * BytesPerElement(dtype));
    }
    return operations_.SumTerms(dtype, pieces, count, to);
  }

  absl::Status TakeMessages(absl::Span<const int32_t> group, const Meeting& meeting,
                            absl::Span<const Receive> receives) const {
    std::map<int32_t, size_t> next;  // position in the sends of each rank
    for (const Receive& receive : receives) {
      const auto from = std::find(group.begin(), group.end(), receive.from);
      if (from == group.end()) return Unmatched(receive);
      const absl::Span<const Send> sends = meeting.offers[from - group.begin()].sends;
      size_t& at = next[receive.from];
      while (at < sends.size() && sends[at].to != rank_) ++at;
      if (at == sends.size() || sends[at].bytes != receive.bytes) return Unmatched(receive);
      ISOMER_RETURN_IF_ERROR(operations_.Copy(sends[at].data, receive.bytes, receive.data));
      ++at;
    }
    return absl::OkStatus();
  }

  absl::Status Unmatched(const Receive& receive) const {
    return absl::InternalError(absl::StrCat("rank ", rank_, " expects ", receive.bytes,
                                            " bytes that rank ", receive.from, " does not send"));
  }

  const int32_t rank_;
  const int channel_;
  const std::shared_ptr<Hub> hub_;
  DeviceOperations& operations_;
  std::vector<std::unique_ptr<ThreadCommunicator>> others_;
};

}  // namespace

std::vector<std::unique_ptr<HostCommunicator>> MakeThreadCommunicators(
    int32_t num_ranks, std::chrono::milliseconds timeout, int32_t threads_per_rank) {
  static auto* of_cores = new DeviceOperations();
  auto hub = std::make_shared<Hub>(num_ranks, timeout, threads_per_rank);
  std::vector<std::unique_ptr<HostCommunicator>> communicators;
  for (int32_t r = 0; r < num_ranks; ++r) {
    communicators.push_back(std::make_unique<ThreadCommunicator>(r, /*channel=*/0, hub, of_cores));
  }
  return communicators;
}

std::vector<std::unique_ptr<Communicator>> MakeDeviceCommunicators(
    absl::Span<const std::unique_ptr<HostCommunicator>> ranks, DeviceOperations* operations) {
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (const auto& rank : ranks) {
    const std::shared_ptr<Hub>& hub = static_cast<const ThreadCommunicator&>(*rank).hub();
    communicators.push_back(std::make_unique<ThreadCommunicator>(
        rank->rank(), Communicator::kMostChannels, hub, operations));
  }
  return communicators;
}

}  // namespace isomer
