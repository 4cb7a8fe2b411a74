// Messages between MPI processes: waiting with a deadline, and an error that reaches everybody.
#ifndef ISOMER_RUNTIME_MPI_MESSAGES_H_
#define ISOMER_RUNTIME_MPI_MESSAGES_H_

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/communicator.h"
#include "runtime/mpi_communicator.h"

namespace isomer {

// Threads have it in the order in which they asked for it, so that one that looks for its messages
// again and again leaves others their turn.
class TicketLock {
 public:
  void lock() {
    const uint32_t ticket = next_.fetch_add(1, std::memory_order_relaxed);
    while (served_.load(std::memory_order_acquire) != ticket) std::this_thread::yield();
  }
  void unlock() { served_.fetch_add(1, std::memory_order_release); }

 private:
  std::atomic<uint32_t> next_ = 0, served_ = 0;
};

// REQUIRES: MPI is initialised. The destructor ends it.
class MpiMessages {
 public:
  explicit MpiMessages(const MpiOptions& options);
  ~MpiMessages();
  MpiMessages(const MpiMessages&) = delete;
  MpiMessages& operator=(const MpiMessages&) = delete;

  int32_t rank() const { return rank_; }
  int32_t num_ranks() const { return num_ranks_; }
  int32_t local_rank() const { return local_rank_; }
  int32_t num_local_ranks() const { return num_local_ranks_; }

  // Sends and receives, and waits for all of them. `call` and `group` must be those of the ranks
  // at the other ends, and so must the channel, below kMostChannels, else they do not meet. From
  // any thread, if MPI serves others than the first; of a channel, from one at a time.
  static constexpr int kMostChannels = 2;
  absl::Status Exchange(int channel, const char* call, absl::Span<const int32_t> group,
                        absl::Span<const Send> sends, absl::Span<const Receive> receives);
  // See Communicator.
  void SetComputes(bool computes) { computes_ = computes; }
  // The first error stays that of this rank, and is sent to the others. From any thread.
  void Abort(const absl::Status& status);
  // See ControlPlane.
  absl::Status Poll();
  // See MpiCommunicator.
  absl::Status Finish(const absl::Status& status);

 private:
  using Expected = std::pair<int32_t, int64_t>;  // from whom, how many bytes

  // What follows is for who has locked mutex_; Wait lets go of it between looks.
  void AbortNow(const absl::Status& status);
  absl::Status Wait(const char* call, absl::Span<const Expected> expected,
                    std::unique_lock<TicketLock>* lock, std::vector<MPI_Request>* requests);
  absl::Status CheckForAbort();
  absl::Status Failed(std::vector<MPI_Request>* requests, const absl::Status& status);
  absl::Status Unmatched(const Expected& expected, const char* call, int size) const;
  absl::Status Refused(const char* call, int code, absl::Span<const Expected> expected,
                       const std::vector<MPI_Status>& statuses) const;
  absl::Status Late(const char* call, absl::Span<const Expected> expected,
                    const std::vector<MPI_Request>& requests) const;

  const MpiOptions options_;
  std::array<MPI_Comm, kMostChannels> data_;  // by channel
  MPI_Comm errors_;
  int rank_ = 0, num_ranks_ = 1, local_rank_ = 0, num_local_ranks_ = 1;
  int largest_tag_ = 32767;  // what the standard promises
  bool is_crowded_ = false;  // threads are more than cores
  std::atomic<bool> computes_ = true;
  TicketLock mutex_;  // guards what follows, and MPI, which serves one thread at a time
  absl::Status error_;
  std::string last_words_;  // the message that Abort sends
  bool finished_ = false;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_MPI_MESSAGES_H_
