// isomer-optimize as its user runs it, with what it took and what it found.
#ifndef ISOMER_BENCH_SEARCH_OPTIMIZER_RUN_H_
#define ISOMER_BENCH_SEARCH_OPTIMIZER_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/child_process.h"
#include "bench/summary.h"

namespace isomer {

struct OptimizerJob {
  std::string model;  // "zoo:NAME?key=value"
  std::string machine;
  int64_t nodes = 1, devices_per_node = 1;
  int64_t batch_size = 0;               // of the whole machine; 0: as the model has it
  std::vector<std::string> flags = {};  // others
  int64_t devices() const { return nodes * devices_per_node; }
};

struct Outcome {
  ChildRun run;
  Summary summary;  // empty unless a plan was found
  // The program ended by itself and found a plan that fits; a plan, whether it fits or not.
  bool found() const { return run.exit_code == 0; }
  bool has_plan() const { return run.exit_code == 0 || run.exit_code == 1; }
};

class OptimizerRunner {
 public:
  // `bin`: the folder of the programs; `work`: one for what they write.
  OptimizerRunner(std::string bin, std::string work)
      : bin_(std::move(bin)), work_(std::move(work)) {}

  // Errors: the program cannot be started, or writes a summary that is none.
  absl::StatusOr<Outcome> Run(const OptimizerJob& job, double limit_s = 0) const;
  // As Run; that no plan is found is an error that says why.
  absl::StatusOr<Outcome> RunToPlan(const OptimizerJob& job, double limit_s = 0) const;

 private:
  std::string bin_, work_;
};

}  // namespace isomer

#endif  // ISOMER_BENCH_SEARCH_OPTIMIZER_RUN_H_
