#include "optimizer/proposal/walks.h"

#include <algorithm>
#include <utility>

#include "optimizer/proposal/search_context.h"
#include "optimizer/simulator/task_graph.h"
#include "optimizer/walk/guided_walk.h"
#include "optimizer/walk/mcmc.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

const Restrictions* RestrictionsOf(const SearchContext& context) {
  return context.restrictions.empty() ? nullptr : &context.restrictions;
}

// Task graphs synchronise every gradient by itself, with calls in the model's order: so may the
// plan of what was best there, or not.
absl::StatusOr<Prediction> ConsiderWalk(const MappedModel& mapped, double without_buckets_us,
                                        SearchContext* context, Submachine* on) {
  ISOMER_ASSIGN_OR_RETURN(Prediction best, context->ConsiderIfAllowed(mapped, on));
  if (best.step_us >= kImpossibleUs) return best;
  ISOMER_ASSIGN_OR_RETURN(Plan plan, context->PlanOf(mapped, nullptr, CallOrder::kModel));
  const auto consider = [&](Plan other) -> absl::Status {
    ISOMER_ASSIGN_OR_RETURN(const Prediction found,
                            context->contest.Consider(std::move(other), kFound));
    if (context->contest.Rank(best) <= context->contest.Rank(found)) return absl::OkStatus();
    context->Remember(mapped, found, on);
    best = found;
    return absl::OkStatus();
  };
  ISOMER_RETURN_IF_ERROR(consider(plan));
  const OptimizeOptions& options = context->options;
  if (options.choose_buckets && options.training && without_buckets_us < best.step_us) {
    plan.update.bucket_bytes = 0;
    ISOMER_RETURN_IF_ERROR(consider(std::move(plan)));
  }
  return best;
}

absl::Status WalkFrom(const RefinementStart& start, SearchContext* context, Submachine* on) {
  if (!start.mapping.has_value()) return absl::OkStatus();
  context->tables.set_options(context->OptionsOn(*on));
  return ConsiderWalks(context->model, *start.mapping, start.us, context->options.search.seed,
                       context->policy(), context->deadline, RestrictionsOf(*context),
                       &context->tables, &context->moves,
                       [&](const MappedModel& mapped, double without_buckets_us) {
                         return ConsiderWalk(mapped, without_buckets_us, context, on);
                       });
}

// From the fastest; then, if it ended at nothing faster that fits, from the best: task graphs do
// not know memory, and a walk that begins too large may end so.
absl::Status WalkFromBoth(RefinementStart fastest, RefinementStart best, SearchContext* context,
                          Submachine* on) {
  if (best.us == kImpossibleUs) return absl::OkStatus();
  ISOMER_RETURN_IF_ERROR(WalkFrom(fastest, context, on));
  if (fastest.us == best.us || on->best.us < best.us) return absl::OkStatus();
  return WalkFrom(best, context, on);
}

bool HasStarts(const SearchContext& context, const Submachine&) {
  return context.Searches() && !Simulates(context.options.strategy);
}

absl::Status WalkUp(SearchContext* context, Submachine*) {
  const double slow_us = context->policy().near_best * context->contest.step_us();
  const Submachine* carried = nullptr;  // the part before, with all that was found on it
  for (auto& [devices, on] : context->submachines) {
    const RefinementStart fastest = on.fastest, best = on.best, as_it_is = on.as_it_is;
    if (!context->leaves_model_as_it_is && as_it_is.us <= slow_us && as_it_is.us > best.us) {
      ISOMER_RETURN_IF_ERROR(WalkFrom(as_it_is, context, &on));
    }
    if (best.us <= slow_us) ISOMER_RETURN_IF_ERROR(WalkFromBoth(fastest, best, context, &on));
    // Walks end in different places: on fewer devices one may have come further.
    if (carried != nullptr) {
      if (carried->fastest.us < on.fastest.us) on.fastest = carried->fastest;
      if (carried->best.us < on.best.us) {
        on.best = carried->best;
        if (on.best.us <= slow_us) {
          ISOMER_RETURN_IF_ERROR(WalkFromBoth(on.fastest, on.best, context, &on));
        }
      }
    }
    carried = &on;
  }
  return absl::OkStatus();
}

const Submachine* Largest(const SearchContext& context) {
  return context.submachines.empty() ? nullptr : &context.submachines.rbegin()->second;
}

bool HasFastStart(const SearchContext& context, const Submachine& on) {
  const Submachine* largest = Largest(context);
  return HasStarts(context, on) && largest != nullptr && largest->best.mapping.has_value() &&
         context.IsNearBest(largest->best.us) && largest->devices <= context.policy().pair_devices;
}

absl::Status ImprovePairs(SearchContext* context, Submachine*) {
  Submachine& on = context->submachines.rbegin()->second;
  context->tables.set_options(context->OptionsOn(on));
  ISOMER_ASSIGN_OR_RETURN(
      const WalkedModel paired,
      WithBetterPairs(context->model, *on.best.mapping, RestrictionsOf(*context), context->deadline,
                      &context->tables, &context->moves));
  return ConsiderWalk(paired.mapped, MicrosecondsOf(paired.step), context, &on).status();
}

}  // namespace

absl::Status ConsiderWalks(const Model& model, MappedModel mapped, double us, uint64_t seed,
                           const SearchPolicy& policy, const Deadline& deadline,
                           const Restrictions* restrictions, CostTables* tables, MoveMemo* moves,
                           const ConsiderWalked& consider) {
  const auto calls = static_cast<int64_t>(mapped.choices.size());
  const int64_t devices = tables->num_devices();
  if (!policy.IsWorthWalking(calls, devices)) return absl::OkStatus();
  const int64_t most_misses =
      devices <= policy.few_devices ? policy.walk_misses_on_few : policy.walk_misses;
  int64_t misses = 0;
  for (int64_t walk = 0; walk < policy.walks && misses < most_misses; ++walk) {
    if (deadline.Reached().has_value()) break;
    // Anew, as the order of the calls follows from their choices.
    ISOMER_ASSIGN_OR_RETURN(
        const auto graph,
        TaskGraph::Create(model, mapped, tables, restrictions, TaskGraph::Lists::kChoices,
                          TaskGraph::Order::kInterleaved, moves));
    McmcOptions options{.seed = seed + static_cast<uint64_t>(walk),
                        .max_proposals = policy.walk_work / (calls * devices),
                        .proposals_per_node = policy.proposals_per_call,
                        .deadline = deadline};
    if (walk % 2 == 1) options.beta = policy.warm_beta;
    ISOMER_ASSIGN_OR_RETURN(options.propose, GuidedProposer(*graph, restrictions, tables));
    ISOMER_ASSIGN_OR_RETURN(const McmcResult walked, SearchByMcmc(options, graph.get()));
    if (walked.best >= walked.initial) {
      ++misses;
      continue;
    }
    MappedModel next = graph->Mapped();
    ISOMER_ASSIGN_OR_RETURN(const Prediction found, consider(next, MicrosecondsOf(walked.best)));
    if (found.step_us > (1 - policy.walk_gain) * us) ++misses;
    if (found.step_us >= us) continue;
    us = found.step_us;
    mapped = std::move(next);
  }
  return absl::OkStatus();
}

constinit const Proposer kWalks = {"walks",
                                   "simulated annealing from the best mappings, by simulated steps",
                                   Proposer::When::kAfterwards, HasStarts, WalkUp};

constinit const Proposer kPairs = {"pairs", "changes of two neighbouring calls at once",
                                   Proposer::When::kAfterwards, HasFastStart, ImprovePairs};

}  // namespace isomer
