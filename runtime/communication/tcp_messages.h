// Messages between processes by TCP, for jobs that torchrun, srun or a script starts.
#ifndef ISOMER_RUNTIME_COMMUNICATION_TCP_MESSAGES_H_
#define ISOMER_RUNTIME_COMMUNICATION_TCP_MESSAGES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/communication/process_messages.h"

namespace isomer {

struct RankOfJob {
  int32_t rank = 0, num_ranks = 1;
  // Where rank 0 can be reached: name or address, and a port that is free there.
  std::string host;
  int32_t port = 0;
  // Jobs that share the port by mistake have others.
  std::string job;
};

// What the environment says of this process:
//   torchrun and its like   RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT (the next one, where
//                           torchrun's own store has that: TORCHELASTIC_USE_AGENT_STORE)
//   srun                    SLURM_PROCID, SLURM_NTASKS, the first node of SLURM_STEP_NODELIST or
//                           SLURM_JOB_NODELIST, and a port that follows from SLURM_JOB_ID
// ISOMER_PORT says another port. Errors: what is missing or is no number.
absl::StatusOr<RankOfJob> RankFromEnvironment();

// The first name of SLURM's short form: "node[03-07,9],other" is node03.
std::string FirstOfNodeList(absl::string_view nodes);

// Meets the other ranks at rank 0, and connects with each of them. Errors: who did not come in
// time.
absl::StatusOr<std::unique_ptr<ProcessMessages>> ConnectByTcp(const RankOfJob& rank,
                                                              const ProcessOptions& options);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_COMMUNICATION_TCP_MESSAGES_H_
