// Messages between MPI processes: waiting with a deadline, and an error that reaches everybody.
#ifndef ISOMER_RUNTIME_MPI_MESSAGES_H_
#define ISOMER_RUNTIME_MPI_MESSAGES_H_

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/communicator.h"
#include "runtime/mpi_communicator.h"

namespace isomer {

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
  // at the other ends, else they do not meet.
  absl::Status Exchange(const char* call, absl::Span<const int32_t> group,
                        absl::Span<const Send> sends, absl::Span<const Receive> receives);
  // The first error stays that of this rank, and is sent to the others. From any thread: while
  // another is in an exchange, that one sends it, for MPI serves one thread at a time.
  void Abort(const absl::Status& status);
  // See MpiCommunicator.
  absl::Status Finish(const absl::Status& status);

 private:
  using Expected = std::pair<int32_t, int64_t>;  // from whom, how many bytes

  absl::Status ExchangeNow(const char* call, absl::Span<const int32_t> group,
                           absl::Span<const Send> sends, absl::Span<const Receive> receives);
  void AbortNow(const absl::Status& status);
  absl::Status Wait(const char* call, absl::Span<const Expected> expected,
                    std::vector<MPI_Request>* requests);
  absl::Status CheckForAbort();
  absl::Status Failed(std::vector<MPI_Request>* requests, const absl::Status& status);
  absl::Status Unmatched(const Expected& expected, const char* call, int size) const;
  absl::Status Refused(const char* call, int code, absl::Span<const Expected> expected,
                       const std::vector<MPI_Status>& statuses) const;
  absl::Status Late(const char* call, absl::Span<const Expected> expected,
                    const std::vector<MPI_Request>& requests) const;

  const MpiOptions options_;
  MPI_Comm data_, errors_;
  int rank_ = 0, num_ranks_ = 1, local_rank_ = 0, num_local_ranks_ = 1;
  int largest_tag_ = 32767;   // what the standard promises
  std::mutex mutex_;          // guards the next two
  bool in_exchange_ = false;  // a thread is
  absl::Status abort_;        // what another asked for meanwhile
  std::atomic<bool> wants_abort_ = false;
  absl::Status error_;
  std::string last_words_;  // the message that Abort sends
  bool finished_ = false;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_MPI_MESSAGES_H_
