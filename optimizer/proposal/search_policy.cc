#include "optimizer/proposal/search_policy.h"

#include <cmath>
#include <set>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace isomer {
namespace {

using P = SearchPolicy;

constexpr double kMany = 1e12;

constexpr Threshold kThresholds[] = {
    {"near_best", "times the best step: plans up to it are refined, and their updates tried",
     &P::near_best, 1, kMany},
    {"very_near_best", "times the best step: orders of calls and updates up to it go on",
     &P::very_near_best, 1, kMany},
    {"near_part", "times the best step: parts of the machine up to it get a search of their own",
     &P::near_part, 1, kMany},
    {"about_as_fast", "times the best step: plans up to it are compared by whole nodes at last",
     &P::about_as_fast, 1, kMany},

    {"contenders", "fastest plans whose updates are chosen", &P::contenders, 1, 1000},
    {"small_contenders", "the same of plans of few_tasks, which take no time to simulate",
     &P::small_contenders, 1, 1000},
    {"few_tasks", "tasks of a small plan", &P::few_tasks, 0, kMany},
    {"many_tasks", "tasks above which one plan alone is kept beside the best: each takes memory",
     &P::many_tasks, 0, kMany},
    {"slow_tasks", "tasks above which a simulation takes seconds: only what promises most is tried",
     &P::slow_tasks, 0, kMany},
    {"large_plan_nodes",
     "nodes above which plans are predicted one at a time: each takes gigabytes",
     &P::large_plan_nodes, 0, kMany},

    {"later_search_share", "of the budget, for each search after the first: its algebra is known",
     &P::later_search_share, 0, 1},
    {"two_search_nodes", "operators up to which a second search rewrites for one device first",
     &P::two_search_nodes, 0, kMany},
    {"far_too_large", "times the memory: plans above it must get smaller, not faster",
     &P::far_too_large, 1, kMany},

    {"walk_work", "calls x calls x devices of a walk, which takes hundredths of a second",
     &P::walk_work, 0, kMany},
    {"walks", "walks from one mapping", &P::walks, 0, kMany},
    {"walk_misses", "walks that gain nothing before the last", &P::walk_misses, 0, kMany},
    {"few_devices", "devices up to which a walk takes so little that more may gain nothing",
     &P::few_devices, 0, kMany},
    {"walk_misses_on_few", "as walk_misses, on few_devices", &P::walk_misses_on_few, 0, kMany},
    {"proposals_per_call", "changes of each call that a walk tries at least, if there is time",
     &P::proposals_per_call, 0, kMany},
    {"warm_beta", "inverse temperature of every other walk, which leaves where the others end",
     &P::warm_beta, 0, kMany},
    {"walk_gain", "share of the step that a walk gains to be followed by another", &P::walk_gain, 0,
     1},
    {"pair_devices", "devices above which pairs of calls took a second and gained nothing",
     &P::pair_devices, 0, kMany},

    {"busy_share", "of the step that devices compute: above it degrees cannot gain much",
     &P::busy_share, 0, 1},
    {"mapped_grids", "grids of degrees that are made into plans, by their estimates",
     &P::mapped_grids, 0, kMany},
    {"grids_until_one_fits",
     "the same as long as none fits, of those that should: estimates of memory may be too low",
     &P::grids_until_one_fits, 0, kMany},
    {"grid_calls", "calls x micro-batches simulated of all these but the first: some seconds",
     &P::grid_calls, 0, kMany},
    {"calls_of_one_grid", "the same of any one", &P::calls_of_one_grid, 0, kMany},
    {"grid_time_slack", "times the best step: estimates are that far from the simulator",
     &P::grid_time_slack, 1, kMany},
    {"grid_memory_slack", "times the memory: the same of bytes, and of other updates",
     &P::grid_memory_slack, 1, kMany},
    {"other_grid_slack",
     "times the estimate of the first that fits: from each other they are nearer; and what a split "
     "sequence has to gain",
     &P::other_grid_slack, 1, kMany},
    {"grid_stages", "stages of a pipeline", &P::grid_stages, 1, kMany},
    {"grid_experts", "devices that share out a mixture's experts: all-to-alls reach that far",
     &P::grid_experts, 1, kMany},
    {"grid_context", "devices that share out a sequence where samples are too few for all",
     &P::grid_context, 1, kMany},
    {"grid_micro_batches", "micro-batches of a grid", &P::grid_micro_batches, 1, kMany},
    {"grid_micro_batch_size",
     "samples of a micro-batch on a device: 1, 2, 4 .. are tried, of large batches more",
     &P::grid_micro_batch_size, 1, kMany},
    {"grid_chunks", "chunks of the model on a stage: bubbles shrink with them, messages grow",
     &P::grid_chunks, 1, kMany},
    {"micro_batches_per_stage", "the same for each stage: bubbles of more are below 6 % of a step",
     &P::micro_batches_per_stage, 1, kMany},
    {"exposed_synchronisation", "of the gradients' synchronisation, what no backward pass hides",
     &P::exposed_synchronisation, 0, 1},
    {"bubble_gain",
     "of the step: with less to gain, no backward pass is split for a pipeline's bubbles",
     &P::bubble_gain, 0, 1},

    {"update_calls", "calls above which methods that are hardly ever best are not simulated",
     &P::update_calls, 0, kMany},
    {"update_ways", "ways to update a plan's weights that are tried with other buckets",
     &P::update_ways, 1, 1000},
    {"lossy_gain",
     "times the step with gradients summed in low precision: of auto, what the exact one must take "
     "for that to be worth rounding",
     &P::lossy_gain, 1, kMany},

    {"first_byte_price", "us a kept byte costs in the first search for less memory",
     &P::first_byte_price, 1e-15, kMany},
    {"byte_price_step", "times the price before, as long as nothing fits", &P::byte_price_step,
     1.01, kMany},
    {"last_byte_price", "us a byte: above it memory is all that counts", &P::last_byte_price, 0,
     kMany},
    {"few_micro_batches", "micro-batches up to which whole gradients may outweigh activations",
     &P::few_micro_batches, 1, kMany},
    {"most_micro_batches", "micro-batches without a pipeline", &P::most_micro_batches, 1, kMany},
    {"checkpointing_levels", "steps from no recomputation to all of it; some few are predicted",
     &P::checkpointing_levels, 1, 1000},
    {"full_memory", "with more of the memory taken no less is computed again", &P::full_memory, 0,
     1},
    {"small_bucket_bytes", "gradients that are synchronised together where memory is short",
     &P::small_bucket_bytes, 0, kMany},

    {"close_bound", "of the plan's step: a bound that is nearer says little more, and takes long",
     &P::close_bound, 0, 1},
    {"enough_devices_seconds", "of all searches for how many devices would do",
     &P::enough_devices_seconds, 0, kMany},
};

// Every field has its row.
static_assert(sizeof(SearchPolicy) == sizeof(double) * std::size(kThresholds));

absl::Status SetThreshold(absl::string_view setting, SearchPolicy* policy) {
  const std::vector<absl::string_view> parts = absl::StrSplit(setting, absl::MaxSplits('=', 1));
  std::vector<absl::string_view> names;
  for (const Threshold& threshold : kThresholds) {
    names.push_back(threshold.name);
    if (parts[0] != threshold.name) continue;
    double value = 0;
    const bool is_integer = std::holds_alternative<int64_t P::*>(threshold.field);
    if (parts.size() < 2 || !absl::SimpleAtod(parts[1], &value) ||
        !(value >= threshold.least && value <= threshold.most) ||
        (is_integer && value != std::floor(value))) {
      return absl::InvalidArgumentError(
          absl::StrFormat("'%s': %s is %s from %g to %g", setting, threshold.name,
                          is_integer ? "an integer" : "a number", threshold.least, threshold.most));
    }
    if (is_integer) {
      policy->*std::get<int64_t P::*>(threshold.field) = static_cast<int64_t>(value);
    } else {
      policy->*std::get<double P::*>(threshold.field) = value;
    }
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no threshold '", parts[0], "'; there are ", absl::StrJoin(names, ", ")));
}

}  // namespace

absl::Span<const Threshold> AllThresholds() { return kThresholds; }

double ValueOf(const SearchPolicy& policy, const Threshold& threshold) {
  return std::visit([&](auto field) { return static_cast<double>(policy.*field); },
                    threshold.field);
}

absl::Status SetThresholds(absl::string_view settings, SearchPolicy* policy) {
  std::set<absl::string_view> names;
  for (absl::string_view setting : absl::StrSplit(settings, ',', absl::SkipEmpty())) {
    const absl::Status set = SetThreshold(setting, policy);
    if (!set.ok()) return set;
    const absl::string_view name = setting.substr(0, setting.find('='));
    if (!names.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat("'", name, "' is set twice"));
    }
  }
  return absl::OkStatus();
}

std::string PolicyText(const SearchPolicy& policy) {
  std::string text;
  for (const Threshold& threshold : kThresholds) {
    absl::StrAppendFormat(&text, "%-24s %10g  %s\n", threshold.name, ValueOf(policy, threshold),
                          threshold.reason);
  }
  return text;
}

}  // namespace isomer
