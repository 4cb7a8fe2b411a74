// In place of mpi_messages.cc where there is no MPI.
#include "runtime/communication/process_communicator.h"

namespace isomer {

absl::StatusOr<std::unique_ptr<ProcessCommunicator>> MakeMpiCommunicator(const ProcessOptions&) {
  return absl::UnimplementedError(
      "--communicator=mpi: this build has no MPI; install libopenmpi-dev and build again");
}

}  // namespace isomer
