// What a parallel configuration stores at least, without its schedule: most random configurations
// need more memory than there is for weights and states alone, and need not be simulated.
#ifndef ISOMER_BENCH_PUBLISHED_LEAST_MEMORY_H_
#define ISOMER_BENCH_PUBLISHED_LEAST_MEMORY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/proposal/search_context.h"
#include "optimizer/request/optimize_request.h"
#include "optimizer/sharding/rule_index.h"
#include "pcg/ir/plan.h"

namespace isomer {

class LeastMemory {
 public:
  // `request`: as the options of isomer-optimize, with --plan=grid.
  static absl::StatusOr<std::unique_ptr<LeastMemory>> Make(const std::string& model,
                                                           int64_t batch_size,
                                                           const MachineRequest& machine,
                                                           const OptimizeRequest& request);

  // A lower bound on the memory of the fullest device, in bytes, of a configuration with another
  // tensor, context, expert, pipeline, micro_batch_size, recompute and update than the first
  // request. Absent: isomer-optimize refuses it.
  absl::StatusOr<std::optional<int64_t>> BytesOf(const OptimizeRequest& request);
  int64_t memory_bytes() const { return costs_.model->machine().memory_bytes(); }

 private:
  LeastMemory() = default;

  Model model_;
  MachineCosts costs_;
  RuleSet rules_;
  std::unique_ptr<RuleIndex> index_;
  OptimizeOptions options_;
  SharedMemos shared_;
  std::unique_ptr<SearchContext> context_;
};

}  // namespace isomer

#endif  // ISOMER_BENCH_PUBLISHED_LEAST_MEMORY_H_
