// Messages between the ranks of a job: processes that something else started, on any computers.
#ifndef ISOMER_GENERATOR_WORKERS_RANK_LINK_H_
#define ISOMER_GENERATOR_WORKERS_RANK_LINK_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace isomer {

struct RankMessage {
  int from = 0;
  std::string bytes;
};

// Nobody waits: a message to who is gone is lost. May be used from several threads.
class RankLink {
 public:
  virtual ~RankLink() = default;
  virtual int rank() const = 0;
  virtual int num_ranks() const = 0;
  // Messages from one rank to another come in the order in which they are sent.
  virtual void Send(int to, std::string bytes) = 0;
  // The next message that is there.
  virtual std::optional<RankMessage> Receive() = 0;
  // Ends it. `all`: all ranks do, and are waited for; else some are gone.
  virtual void Close(bool all) = 0;
};

// By MPI, which it initialises, once a process. Errors: this build has no MPI; mpirun did not start
// this process.
absl::StatusOr<std::unique_ptr<RankLink>> OpenMpiLink();
// The second of these errors, before there is anything to undo.
absl::Status CanOpenMpiLink();

}  // namespace isomer

#endif  // ISOMER_GENERATOR_WORKERS_RANK_LINK_H_
