// Messages between MPI processes: waiting with a deadline, and an error that reaches everybody.
#ifndef ISOMER_RUNTIME_COMMUNICATION_MPI_MESSAGES_H_
#define ISOMER_RUNTIME_COMMUNICATION_MPI_MESSAGES_H_

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/communication/liveness.h"
#include "runtime/communication/process_messages.h"

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
class MpiMessages : public ProcessMessages {
 public:
  MpiMessages(const ProcessOptions& options, bool serves_other_threads);
  ~MpiMessages() override;
  MpiMessages(const MpiMessages&) = delete;
  MpiMessages& operator=(const MpiMessages&) = delete;

  int32_t rank() const override { return rank_; }
  int32_t num_ranks() const override { return num_ranks_; }
  int32_t local_rank() const override { return local_rank_; }
  int32_t num_local_ranks() const override { return num_local_ranks_; }
  bool serves_other_threads() const override { return serves_other_threads_; }
  absl::Status Exchange(int channel, const char* call, absl::Span<const int32_t> group,
                        absl::Span<const Send> sends, absl::Span<const Receive> receives) override;
  void SetComputes(bool computes) override {
    computes_ = computes;
    liveness_.SetComputes(computes);
  }
  void Abort(const absl::Status& status) override;
  absl::Status Finish(const absl::Status& status) override;
  absl::Status Poll() override;
  bool speaks() const override;

 private:
  using Expected = std::pair<int32_t, int64_t>;  // from whom, how many bytes

  // What follows is for who has locked mutex_; Wait lets go of it between looks.
  void AbortNow(const absl::Status& status);
  absl::Status Wait(const char* call, absl::Span<const Expected> expected,
                    std::unique_lock<TicketLock>* lock, std::vector<MPI_Request>* requests);
  absl::Status CheckForAbort();
  void SetError(const absl::Status& status);
  // Of liveness_, in its thread.
  void SayThatItLives();
  void HearWhoLives();
  absl::Status Failed(std::vector<MPI_Request>* requests, const absl::Status& status);
  absl::Status Unmatched(const Expected& expected, const char* call, int size) const;
  absl::Status Refused(const char* call, int code, absl::Span<const Expected> expected,
                       const std::vector<MPI_Status>& statuses) const;
  absl::Status Late(const char* call, absl::Span<const Expected> expected,
                    const std::vector<MPI_Request>& requests,
                    std::chrono::milliseconds waited) const;

  const ProcessOptions options_;
  const bool serves_other_threads_;
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
  struct Outgoing {
    Beat beat;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  std::vector<Outgoing> beats_;  // by rank, of those on their way
  Liveness liveness_;            // The last: its thread uses all the others.
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_COMMUNICATION_MPI_MESSAGES_H_
