// The communicator of processes: one rank a process, started by mpirun (MPI carries its messages),
// or by torchrun, srun or anything that sets the same variables (TCP does).
//
// Messages between two ranks say which call and group they are of; a communicator of MPI's per
// group would have to be made by a collective of its own, which can hang. All waiting has a
// deadline. Sums are those of the in-process communicator, to the bit.
#ifndef ISOMER_RUNTIME_COMMUNICATION_PROCESS_COMMUNICATOR_H_
#define ISOMER_RUNTIME_COMMUNICATION_PROCESS_COMMUNICATOR_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/communication/process_messages.h"
#include "runtime/device/communicator.h"

namespace isomer {

// To be used, as the one beside it, from one thread at a time (Abort: from any). The destructor
// ends what carries its messages, for the process.
class ProcessCommunicator : public HostCommunicator {
 public:
  // Whether it may be used from another thread than that which made it.
  virtual bool serves_other_threads() const = 0;
  // The last call of every rank, with what became of its part. Meets the others; returns the first
  // error of any. Until the destructor no process ends, so a rank that has something to say about
  // the error can.
  virtual absl::Status Finish(const absl::Status& status) = 0;
  // After that: whether this rank says what went wrong, as the first that is left.
  virtual bool speaks() const = 0;
};

// Initialises MPI, once a process. Errors: this build has no MPI; not started by mpirun.
absl::StatusOr<std::unique_ptr<ProcessCommunicator>> MakeMpiCommunicator(
    const ProcessOptions& options = {});

// Connects with the other processes, as the environment names them (tcp_messages.h). Errors: it
// names none; they do not come in time; aborted: one of them was lost.
absl::StatusOr<std::unique_ptr<ProcessCommunicator>> MakeTcpCommunicator(
    const ProcessOptions& options = {});

std::unique_ptr<ProcessCommunicator> MakeProcessCommunicator(
    std::unique_ptr<ProcessMessages> messages);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_COMMUNICATION_PROCESS_COMMUNICATOR_H_
