// In place of mpi_communicator.cc and mpi_messages.cc where there is no MPI.
#include "runtime/mpi_communicator.h"

namespace isomer {

absl::StatusOr<std::unique_ptr<MpiCommunicator>> MakeMpiCommunicator(MpiOptions) {
  return absl::UnimplementedError(
      "--communicator=mpi: this build has no MPI; install libopenmpi-dev and build again");
}

}  // namespace isomer
