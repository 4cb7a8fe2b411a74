// In place of mpi_link.cc where there is no MPI.
#include "generator/workers/rank_link.h"

namespace isomer {

absl::Status CanOpenMpiLink() {
  return absl::UnimplementedError(
      "--communicator=mpi: this build has no MPI; install libopenmpi-dev and build again");
}

absl::StatusOr<std::unique_ptr<RankLink>> OpenMpiLink() { return CanOpenMpiLink(); }

}  // namespace isomer
