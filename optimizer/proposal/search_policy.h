// Every threshold of the policy layer, with the reason for its value: what is worth trying, how
// often, and how far from the best a plan may be to be looked at again.
//
// None of them changes what a plan means, or whether it is right: they trade search time for the
// step. They are set by `isomer-optimize --policy=NAME=VALUE,..` and by tests, and `--json` has
// them. The values were found on the networks of bench/gap at 16 and 64 devices
// (`bench/search proposers`).
#ifndef ISOMER_OPTIMIZER_PROPOSAL_SEARCH_POLICY_H_
#define ISOMER_OPTIMIZER_PROPOSAL_SEARCH_POLICY_H_

#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace isomer {

// The reasons are in AllThresholds (search_policy.cc).
struct SearchPolicy {
  // Which plans are near the best.
  double near_best = 1.2;
  double very_near_best = 1.03;
  double near_part = 1.1;
  double about_as_fast = 1.005;

  // The contest.
  int64_t contenders = 4;
  int64_t small_contenders = 8;
  int64_t few_tasks = 4000;
  int64_t many_tasks = 60000;
  int64_t slow_tasks = 200000;
  int64_t large_plan_nodes = 60000;

  // The joint search and what refines it.
  double later_search_share = 0.125;
  int64_t two_search_nodes = 1800;
  double far_too_large = 2;

  // Walks.
  int64_t walk_work = 375'000;
  int64_t walks = 20;
  int64_t walk_misses = 3;
  int64_t few_devices = 32;
  int64_t walk_misses_on_few = 5;
  int64_t proposals_per_call = 50;
  double warm_beta = 100;
  double walk_gain = 0.00125;
  int64_t pair_devices = 64;

  // Grids of degrees.
  double busy_share = 0.9;
  int64_t mapped_grids = 6;
  int64_t grids_until_one_fits = 16;
  int64_t grid_calls = 200000;
  int64_t calls_of_one_grid = 1500000;
  double grid_time_slack = 1.5;
  double grid_memory_slack = 1.25;
  double other_grid_slack = 1.15;
  int64_t grid_stages = 64;
  int64_t grid_experts = 64;
  int64_t grid_context = 64;
  int64_t grid_micro_batches = 512;
  int64_t grid_micro_batch_size = 8;
  int64_t grid_chunks = 16;
  int64_t micro_batches_per_stage = 16;
  double exposed_synchronisation = 0.25;
  double bubble_gain = 0.01;

  // Updates of weights.
  int64_t update_calls = 60000;
  int64_t update_ways = 2;
  double lossy_gain = 1.01;

  // Memory reduction.
  double first_byte_price = 1e-7;
  double byte_price_step = 8;
  double last_byte_price = 1;
  int64_t few_micro_batches = 8;
  int64_t most_micro_batches = 64;
  int64_t checkpointing_levels = 64;
  double full_memory = 0.97;
  int64_t small_bucket_bytes = int64_t{1} << 20;

  // After the search.
  double close_bound = 0.97;
  double enough_devices_seconds = 20;

  // A graph of so many calls is small enough for walks.
  bool IsWorthWalking(int64_t calls, int64_t num_devices) const {
    return calls > 0 && calls * calls * num_devices <= walk_work;
  }
};

// One field of it.
struct Threshold {
  const char* name;
  const char* reason;  // one line: what it decides, and why the value is what it is
  std::variant<int64_t SearchPolicy::*, double SearchPolicy::*> field;
  double least, most;  // that make sense
};
// All of them, in their order.
absl::Span<const Threshold> AllThresholds();

double ValueOf(const SearchPolicy& policy, const Threshold& threshold);

// "near_best=1.3,walks=0". Errors: InvalidArgument, with the names that there are or the range.
absl::Status SetThresholds(absl::string_view settings, SearchPolicy* policy);

// The table for people to read: name, value, reason.
std::string PolicyText(const SearchPolicy& policy);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_SEARCH_POLICY_H_
