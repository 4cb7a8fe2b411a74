#include "bench/search/optimizer_run.h"

#include <stdlib.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"

namespace isomer {

absl::StatusOr<Outcome> OptimizerRunner::Run(const OptimizerJob& job, double limit_s) const {
  const std::string json = absl::StrCat(work_, "/summary.json");
  // What an earlier run has found must not help this one.
  const std::string cache = absl::StrCat(work_, "/cache");
  std::filesystem::remove_all(cache);
  setenv("XDG_CACHE_HOME", cache.c_str(), /*overwrite=*/1);
  std::vector<std::string> command = {absl::StrCat(bin_, "/isomer-optimize"),
                                      job.model,
                                      absl::StrCat("--machine=", job.machine),
                                      absl::StrCat("--nodes=", job.nodes),
                                      absl::StrCat("--devices_per_node=", job.devices_per_node),
                                      absl::StrCat("--batch_size=", job.batch_size),
                                      absl::StrCat("--out=", work_, "/found.plan"),
                                      absl::StrCat("--json=", json)};
  command.insert(command.end(), job.flags.begin(), job.flags.end());
  Outcome outcome;
  ISOMER_ASSIGN_OR_RETURN(outcome.run, RunChild(command, limit_s));
  if (outcome.has_plan()) {
    ISOMER_ASSIGN_OR_RETURN(outcome.summary, Summary::Read(json));
  }
  return outcome;
}

absl::StatusOr<Outcome> OptimizerRunner::RunToPlan(const OptimizerJob& job, double limit_s) const {
  ISOMER_ASSIGN_OR_RETURN(Outcome outcome, Run(job, limit_s));
  if (outcome.found()) return outcome;
  return absl::InternalError(
      absl::StrCat(job.model, " on ", job.devices(), " devices of ", job.machine, ": ",
                   outcome.run.timed_out ? absl::StrCat("not done after ", limit_s, " s")
                                         : outcome.run.complaint));
}

}  // namespace isomer
