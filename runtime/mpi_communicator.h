// The communicator of MPI processes: one rank a process, under mpirun.
//
// Messages between two ranks say by their tag which call and group they are of; a communicator per
// group would have to be made by a collective of its own, which can hang. All waiting is polling
// with a deadline. Sums are those of the in-process communicator, to the bit.
#ifndef ISOMER_RUNTIME_MPI_COMMUNICATOR_H_
#define ISOMER_RUNTIME_MPI_COMMUNICATOR_H_

#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/communicator.h"

namespace isomer {

struct MpiOptions {
  // A call that waits longer for another rank aborts the job and says for whom it waited.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
  // Larger messages travel in parts: MPI counts bytes in an int.
  int64_t max_message_bytes = int64_t{1} << 30;
  // Of a rank, that may want a core each.
  int32_t threads_per_rank = 1;
};

// To be used, as the one beside it, from one thread at a time (Abort: from any). The destructor
// ends MPI for the process.
class MpiCommunicator : public HostCommunicator {
 public:
  // Whether it may be used from another thread than that which made it.
  virtual bool serves_other_threads() const = 0;
  // The last call of every rank, with what became of its part. Meets the others; returns the first
  // error of any. Until the destructor no process ends, so a rank that has something to say about
  // the error can.
  virtual absl::Status Finish(const absl::Status& status) = 0;
};

// Initialises MPI, once a process. Errors: this build has no MPI; not started by mpirun.
absl::StatusOr<std::unique_ptr<MpiCommunicator>> MakeMpiCommunicator(MpiOptions options = {});

}  // namespace isomer

#endif  // ISOMER_RUNTIME_MPI_COMMUNICATOR_H_
