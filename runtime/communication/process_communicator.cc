#include "runtime/communication/process_communicator.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "pcg/support/check.h"
#include "pcg/support/status_macros.h"
#include "runtime/communication/tcp_messages.h"
#include "runtime/device/elements.h"

namespace isomer {
namespace {

// What one member sums at a time: stays in the cache between its arrival and the sum, and bounds
// the memory that a collective takes.
constexpr int64_t kSegmentBytes = int64_t{256} << 10;
// Buffers up to here are summed by every member in full: one round of messages instead of two.
constexpr int64_t kDirectBytes = int64_t{8} << 10;

class Process : public ProcessCommunicator {
 public:
  Process(std::shared_ptr<ProcessMessages> messages, int channel)
      : channel_(channel), messages_(std::move(messages)) {
    for (int c = 1; channel == 0 && c < kMostChannels; ++c) {
      others_.push_back(std::make_unique<Process>(messages_, c));
    }
  }

  bool serves_other_threads() const override { return messages_->serves_other_threads(); }

  int32_t rank() const override { return messages_->rank(); }
  int32_t num_ranks() const override { return messages_->num_ranks(); }
  int32_t local_rank() const override { return messages_->local_rank(); }
  int32_t num_local_ranks() const override { return messages_->num_local_ranks(); }

  absl::Status AllReduce(absl::Span<const int32_t> group, DataType dtype, void* data,
                         int64_t count) override {
    const int64_t element = BytesPerElement(dtype);
    const int64_t members = static_cast<int64_t>(group.size());
    const int64_t step = kSegmentBytes / element * members;
    for (int64_t begin = 0; begin < count && members > 1; begin += step) {
      char* segment = static_cast<char*>(data) + begin * element;
      const int64_t size = std::min(step, count - begin);
      if (size * element <= kDirectBytes) {
        ISOMER_RETURN_IF_ERROR(SumDirectly(group, dtype, segment, size));
        continue;
      }
      const Shares shares(segment, element, size, group.size());
      ISOMER_RETURN_IF_ERROR(SumOwnShare("all_reduce", group, dtype, shares));
      ISOMER_RETURN_IF_ERROR(CollectShares("all_reduce", group, group, shares, segment));
    }
    return absl::OkStatus();
  }

  absl::Status Reduce(absl::Span<const int32_t> group, int32_t root, DataType dtype,
                      const void* send, void* receive, int64_t count) override {
    const int64_t element = BytesPerElement(dtype);
    const int64_t step = kSegmentBytes / element * static_cast<int64_t>(group.size());
    for (int64_t begin = 0; begin < count; begin += step) {
      char* to = rank() == root ? static_cast<char*>(receive) + begin * element : nullptr;
      const Shares shares(static_cast<const char*>(send) + begin * element, element,
                          std::min(step, count - begin), group.size());
      ISOMER_RETURN_IF_ERROR(SumOwnShare("reduce", group, dtype, shares));
      ISOMER_RETURN_IF_ERROR(CollectShares("reduce", group, {root}, shares, to));
    }
    return absl::OkStatus();
  }

  absl::Status Broadcast(absl::Span<const int32_t> group, int32_t root, void* data,
                         int64_t bytes) override {
    if (rank() != root)
      return messages_->Exchange(channel_, "broadcast", group, {}, {{root, data, bytes}});
    std::vector<Send> sends;
    for (int32_t member : group) {
      if (member != root) sends.push_back({member, data, bytes});
    }
    return messages_->Exchange(channel_, "broadcast", group, sends, {});
  }

  absl::Status ReduceScatter(absl::Span<const int32_t> group, DataType dtype, const void* send,
                             void* receive, int64_t count) override {
    const int64_t element = BytesPerElement(dtype);
    const int64_t step = kSegmentBytes / element;
    for (int64_t begin = 0; begin < count; begin += step) {
      const int64_t size = std::min(step, count - begin);
      const auto piece = [&](size_t m) {
        return static_cast<const char*>(send) + (static_cast<int64_t>(m) * count + begin) * element;
      };
      const auto bytes = [&](size_t) { return size * element; };
      ISOMER_RETURN_IF_ERROR(SumOfPieces("reduce_scatter", group, dtype, piece, bytes, size,
                                         static_cast<char*>(receive) + begin * element));
    }
    return absl::OkStatus();
  }

  absl::Status AllGather(absl::Span<const int32_t> group, const void* send, void* receive,
                         int64_t bytes) override {
    std::vector<Send> sends;
    std::vector<Receive> receives;
    for (size_t m = 0; m < group.size(); ++m) {
      char* piece = static_cast<char*>(receive) + static_cast<int64_t>(m) * bytes;
      if (group[m] == rank()) {
        std::memcpy(piece, send, bytes);
      } else {
        sends.push_back({group[m], send, bytes});
        receives.push_back({group[m], piece, bytes});
      }
    }
    return messages_->Exchange(channel_, "all_gather", group, sends, receives);
  }

  absl::Status AllToAll(absl::Span<const int32_t> group, const void* send, void* receive,
                        int64_t bytes) override {
    std::vector<Send> sends;
    std::vector<Receive> receives;
    for (size_t m = 0; m < group.size(); ++m) {
      const char* from = static_cast<const char*>(send) + static_cast<int64_t>(m) * bytes;
      char* to = static_cast<char*>(receive) + static_cast<int64_t>(m) * bytes;
      if (group[m] == rank()) {
        std::memcpy(to, from, bytes);
      } else {
        sends.push_back({group[m], from, bytes});
        receives.push_back({group[m], to, bytes});
      }
    }
    return messages_->Exchange(channel_, "all_to_all", group, sends, receives);
  }

  absl::Status SendReceive(absl::Span<const int32_t> group, absl::Span<const Send> sends,
                           absl::Span<const Receive> receives) override {
    return messages_->Exchange(channel_, "send_receive", group, sends, receives);
  }

  void Abort(const absl::Status& status) override { messages_->Abort(status); }
  absl::Status Poll() override { return messages_->Poll(); }
  void Post(int64_t progress) override { messages_->Post(progress); }
  int64_t Posted(int32_t rank) const override { return messages_->Posted(rank); }
  bool has_own_process() const override { return true; }
  bool speaks() const override { return messages_->speaks(); }
  absl::Status Finish(const absl::Status& status) override { return messages_->Finish(status); }
  void SetComputes(bool computes) override { messages_->SetComputes(computes); }
  Communicator& Channel(int channel) override {
    return channel == 0 ? *this : *others_[channel - 1];
  }

 private:
  // Every member gets the buffers of all, and sums.
  absl::Status SumDirectly(absl::Span<const int32_t> group, DataType dtype, char* data,
                           int64_t count) {
    const int64_t bytes = count * BytesPerElement(dtype);
    sum_.resize(bytes);
    ISOMER_RETURN_IF_ERROR(SumOfPieces(
        "all_reduce", group, dtype, [&](size_t) { return data; }, [&](size_t) { return bytes; },
        count, sum_.data()));
    std::memcpy(data, sum_.data(), bytes);
    return absl::OkStatus();
  }

  // The elements of a segment, one share for each member.
  struct Shares {
    Shares(const char* data, int64_t element, int64_t count, size_t members)
        : data(data), element(element), count(count), members(static_cast<int64_t>(members)) {}
    const char* data;
    int64_t element, count, members;

    int64_t Offset(size_t m) const { return count * static_cast<int64_t>(m) / members * element; }
    int64_t Bytes(size_t m) const { return Offset(m + 1) - Offset(m); }
  };

  // sum_ := the sum of this rank's share.
  absl::Status SumOwnShare(const char* call, absl::Span<const int32_t> group, DataType dtype,
                           const Shares& shares) {
    const int64_t own = shares.Bytes(PositionIn(group));
    sum_.resize(own);
    return SumOfPieces(
        call, group, dtype, [&](size_t m) { return shares.data + shares.Offset(m); },
        [&](size_t m) { return shares.Bytes(m); }, own / shares.element, sum_.data());
  }

  // The summed shares of all members, into `to` of those that are in `receivers`.
  absl::Status CollectShares(const char* call, absl::Span<const int32_t> group,
                             absl::Span<const int32_t> receivers, const Shares& shares, char* to) {
    const size_t self = PositionIn(group);
    if (to != nullptr) std::memcpy(to + shares.Offset(self), sum_.data(), shares.Bytes(self));
    std::vector<Send> sends;
    std::vector<Receive> receives;
    for (int32_t receiver : receivers) {
      if (receiver != rank()) sends.push_back({receiver, sum_.data(), shares.Bytes(self)});
    }
    for (size_t m = 0; m < group.size() && to != nullptr; ++m) {
      if (m != self) receives.push_back({group[m], to + shares.Offset(m), shares.Bytes(m)});
    }
    return messages_->Exchange(channel_, call, group, sends, receives);
  }

  // to := the sum, in the order of the group, of what the members have for this rank. Member m
  // gets the `bytes(m)` bytes at piece(m).
  absl::Status SumOfPieces(const char* call, absl::Span<const int32_t> group, DataType dtype,
                           const std::function<const char*(size_t)>& piece,
                           const std::function<int64_t(size_t)>& bytes, int64_t count, void* to) {
    const size_t self = PositionIn(group);
    const int64_t own = count * BytesPerElement(dtype);
    arrived_.resize(own * static_cast<int64_t>(group.size() - 1));
    std::vector<Send> sends;
    std::vector<Receive> receives;
    std::vector<const void*> terms;
    for (size_t m = 0; m < group.size(); ++m) {
      if (m == self) {
        terms.push_back(piece(m));
        continue;
      }
      char* place = arrived_.data() + static_cast<int64_t>(receives.size()) * own;
      sends.push_back({group[m], piece(m), bytes(m)});
      receives.push_back({group[m], place, own});
      terms.push_back(place);
    }
    ISOMER_RETURN_IF_ERROR(messages_->Exchange(channel_, call, group, sends, receives));
    SumElements(dtype, terms, count, to);
    return absl::OkStatus();
  }

  size_t PositionIn(absl::Span<const int32_t> group) const {
    const auto at = std::find(group.begin(), group.end(), rank());
    ISOMER_CHECK(at != group.end());
    return at - group.begin();
  }

  const int channel_;
  const std::shared_ptr<ProcessMessages> messages_;  // of all channels
  std::vector<std::unique_ptr<Process>> others_;     // of channel 0
  std::vector<char> arrived_, sum_;
};

}  // namespace

std::unique_ptr<ProcessCommunicator> MakeProcessCommunicator(
    std::unique_ptr<ProcessMessages> messages) {
  return std::make_unique<Process>(std::move(messages), /*channel=*/0);
}

absl::StatusOr<std::unique_ptr<ProcessCommunicator>> MakeTcpCommunicator(
    const ProcessOptions& options) {
  ISOMER_ASSIGN_OR_RETURN(const RankOfJob rank, RankFromEnvironment());
  ISOMER_ASSIGN_OR_RETURN(std::unique_ptr<ProcessMessages> messages, ConnectByTcp(rank, options));
  return MakeProcessCommunicator(std::move(messages));
}

absl::Status ProcessMessages::MeetToFinish() {
  char word = 0;
  std::vector<Send> to_all;
  std::vector<Receive> from_all;
  std::vector<char> words(num_ranks());
  for (int32_t r = 1; r < num_ranks() && rank() == 0; ++r) {
    from_all.push_back({r, &words[r], 1});
    to_all.push_back({r, &word, 1});
  }
  if (rank() == 0) {
    ISOMER_RETURN_IF_ERROR(Exchange(0, "finish", {}, {}, from_all));
    return Exchange(0, "finish", {}, to_all, {});
  }
  ISOMER_RETURN_IF_ERROR(Exchange(0, "finish", {}, {{0, &word, 1}}, {}));
  return Exchange(0, "finish", {}, {}, {{0, &word, 1}});
}

}  // namespace isomer
