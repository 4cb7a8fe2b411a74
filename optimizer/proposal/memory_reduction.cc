#include "optimizer/proposal/memory_reduction.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "optimizer/proposal/grid_mapping.h"
#include "optimizer/proposal/recomputation_levels.h"
#include "optimizer/proposal/search_context.h"
#include "optimizer/proposal/update_choice.h"
#include "optimizer/sharding/batch_dims.h"
#include "optimizer/simulator/segments.h"
#include "optimizer/simulator/stored_bytes.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Prices of memory of plans in micro-batches, in us per byte: there is a search for each.
constexpr double kPricesInMicroBatches[] = {1e-5, 1e-2};

class MemoryReduction {
 public:
  MemoryReduction(const CostModel& cost, const MemoryReductionOptions& options,
                  const Deadline& deadline, const FindSmallerPlan& find, Contest* contest)
      : cost_(cost),
        options_(options),
        policy_(contest->policy()),
        deadline_(deadline),
        find_(find),
        contest_(*contest) {}

  absl::Status Run() {
    // Copies: what takes part may replace them.
    const Plan fastest = contest_.fastest();
    const std::string origin = contest_.fastest_origin();
    const bool is_smallest = &contest_.fastest() == &contest_.best().plan;
    std::optional<Plan> smallest;
    if (!is_smallest && !contest_.fits()) smallest = contest_.best().plan;
    const std::string origin_of_smallest = contest_.best().origin;
    ISOMER_RETURN_IF_ERROR(MakeSmaller(fastest, origin));
    if (smallest.has_value()) ISOMER_RETURN_IF_ERROR(MakeSmaller(*smallest, origin_of_smallest));
    smallest.reset();
    // Grids, of which some fit, have micro-batches of their own.
    if (!options_.micro_batches && !contest_.fits()) ISOMER_RETURN_IF_ERROR(TryMicroBatches(0));
    ISOMER_RETURN_IF_ERROR(TryPrices());
    for (double price : kPricesInMicroBatches) {
      if (!IsDone() && !options_.micro_batches) ISOMER_RETURN_IF_ERROR(TryMicroBatches(price));
    }
    return IsDone() ? absl::OkStatus() : MoveStatesToHost(fastest, origin);
  }

  // Of the best plan, which computes results again and fits: as few as that takes.
  absl::Status RecomputeLess() {
    Plan plan = contest_.best().plan;
    const std::string origin = contest_.best().origin;
    const std::vector<NodeId> all = std::exchange(plan.recomputed, {});
    ISOMER_ASSIGN_OR_RETURN(const std::vector<NodeResults> results, ResultsOfNodes(cost_, plan));
    ISOMER_ASSIGN_OR_RETURN(
        levels_, RecomputationLevels::Of(plan, results, SegmentsOf(all, plan.graph, results),
                                         policy_.checkpointing_levels));
    const int entry = Enter(plan, plan.update, {}, origin);
    ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, contest_.PredictionOf(entry));
    if (contest_.Fits(prediction) || prediction.step_us >= contest_.step_us()) {
      return absl::OkStatus();
    }
    return Recompute(plan, plan.update, contest_.ComputeUsOf(entry), prediction.peak_bytes, origin)
        .status();
  }

 private:
  // Plans may be large: there is one more of them only while it is looked at. The entry.
  int Enter(const Plan& plan, const UpdateOptions& way, const std::vector<NodeId>& recomputed,
            const std::string& origin) {
    Plan changed = plan;
    changed.update = way;
    changed.recomputed = recomputed;
    return contest_.Enter(std::move(changed), origin);
  }
  absl::StatusOr<Prediction> Consider(const Plan& plan, const UpdateOptions& way,
                                      const std::vector<NodeId>& recomputed,
                                      const std::string& origin) {
    return contest_.PredictionOf(Enter(plan, way, recomputed, origin));
  }

  // False: no plan of several micro-batches fits.
  bool SumsMayBeStored() const {
    const Plan& plan = contest_.best().plan;
    const Machine& machine = cost_.machine();
    return LeastStoredOnAll(plan.graph, plan.precision, plan.update, Keeps::kSums, machine) <=
           machine.total_memory_bytes();
  }

  bool IsDone() const { return contest_.fits() || deadline_.Reached().has_value(); }

  // The least price of memory at which a plan fits. Above the last one memory is all that counts:
  // if nothing fits there, nothing does at the prices before it.
  absl::Status TryPrices() {
    std::vector<double> prices;
    for (double price = policy_.first_byte_price; price <= policy_.last_byte_price;
         price *= policy_.byte_price_step) {
      prices.push_back(price);
    }
    const auto try_at = [&](size_t i) {
      return Try({prices[i], options_.micro_batches.value_or(1)}).status();
    };
    if (prices.empty() || IsDone()) return absl::OkStatus();
    size_t over = 0, fits = prices.size() - 1;
    ISOMER_RETURN_IF_ERROR(try_at(over));
    if (fits == over || IsDone()) return absl::OkStatus();
    ISOMER_RETURN_IF_ERROR(try_at(fits));
    while (contest_.fits() && fits > over + 1 && !deadline_.Reached().has_value()) {
      const size_t middle = (over + fits) / 2;
      const double us = contest_.step_us();
      ISOMER_RETURN_IF_ERROR(try_at(middle));
      (contest_.step_us() < us ? fits : over) = middle;
    }
    return absl::OkStatus();
  }

  // More and more, while that makes a plan fit, smaller, or that fits faster.
  absl::Status TryMicroBatches(double price) {
    if (!options_.training || !SumsMayBeStored()) return absl::OkStatus();
    for (int64_t n = 2; n <= policy_.most_micro_batches && !deadline_.Reached().has_value();
         n *= 2) {
      const double us = contest_.step_us();
      const int64_t bytes = contest_.best().step.peak_bytes;
      ISOMER_ASSIGN_OR_RETURN(const std::optional<double> step_us, Try({price, n}));
      const bool is_smaller = contest_.best().step.peak_bytes < bytes;
      if (!step_us.has_value()) break;
      if (contest_.fits() ? *step_us >= us : !is_smaller && n >= policy_.few_micro_batches) break;
    }
    return absl::OkStatus();
  }

  // The step of such a plan as it is found; absent if none is.
  absl::StatusOr<std::optional<double>> Try(const SmallerPlan& wanted) {
    ISOMER_ASSIGN_OR_RETURN(const std::optional<Plan> plan, find_(wanted));
    if (!plan.has_value()) return std::nullopt;
    // Beside one that fits, what cannot is no plan.
    ISOMER_ASSIGN_OR_RETURN(const std::vector<UpdateOptions> ways, WaysToUpdate(*plan));
    if (contest_.fits() &&
        absl::c_none_of(ways, [&](const auto& way) { return IsStored(*plan, way); })) {
      return std::nullopt;
    }
    ISOMER_ASSIGN_OR_RETURN(const Prediction prediction,
                            Consider(*plan, plan->update, plan->recomputed, kFound));
    if (!contest_.Fits(prediction)) ISOMER_RETURN_IF_ERROR(MakeSmaller(*plan, kFound));
    return prediction.step_us;
  }

  // Ways to update weights, each with less on a device and more to do than the one before.
  absl::StatusOr<std::vector<UpdateOptions>> WaysToUpdate(const Plan& plan) const {
    std::vector<UpdateOptions> ways = {plan.update};
    const auto add = [&](auto change) {
      UpdateOptions way = ways.back();
      change(&way);
      if (!(way == ways.back())) ways.push_back(std::move(way));
    };
    ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(plan.graph, plan.views));
    const bool choose = options_.choose_update_method;
    for (UpdateMethod method : ZeroMethods(moments)) {
      if (choose) add([method](UpdateOptions* way) { way->method = method; });
      if (moments == 1) {
        add([](UpdateOptions* way) { way->immediate = !way->all_gradients_first(); });
      }
    }
    add([this](UpdateOptions* way) {
      way->bucket_bytes = std::min(way->bucket_bytes, policy_.small_bucket_bytes);
      way->bucket_ends.clear();
    });
    return ways;
  }

  // Weights and states alone are not too large.
  bool IsStored(const Plan& plan, const UpdateOptions& way) const {
    return LeastStoredBytes(plan, way, &cost_.machine()) <= cost_.machine().memory_bytes();
  }

  // REQUIRES: `plan`, as it is, took part.
  absl::Status MakeSmaller(const Plan& plan, const std::string& origin) {
    if (!options_.training) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(const std::vector<UpdateOptions> ways, WaysToUpdate(plan));
    return MakeSmaller(plan, ways, origin);
  }

  // The first way that fits as it is, and the first before it that does with recomputation: the
  // others take more time. So do all from one on that is slower, as it is, than what fits already;
  // of ways whose weights alone are too large, the smallest is looked at as long as nothing fits.
  absl::Status MakeSmaller(const Plan& plan, absl::Span<const UpdateOptions> ways,
                           const std::string& origin) {
    const absl::StatusOr<std::vector<NodeResults>> results = ResultsOfNodes(cost_, plan);
    // Too few devices are alike to simulate it: it was not when it took part, either.
    if (absl::IsResourceExhausted(results.status())) return absl::OkStatus();
    ISOMER_RETURN_IF_ERROR(results.status());
    std::vector<Segment> segments;
    if (options_.may_recompute) segments = SegmentsToRecompute(plan.graph, *results);
    ISOMER_ASSIGN_OR_RETURN(
        levels_, RecomputationLevels::Of(plan, *results, segments, policy_.checkpointing_levels));
    const std::vector<NodeId> least =
        options_.may_recompute ? std::vector<NodeId>() : plan.recomputed;
    struct Hopeful {
      UpdateOptions way;
      double compute_us;
      int64_t peak_bytes;
    };
    std::vector<Hopeful> hopeful;
    std::optional<double> compute_us;  // however weights are updated
    for (const UpdateOptions& way : ways) {
      const bool is_stored = IsStored(plan, way);
      if (!is_stored && (contest_.fits() || &way != &ways.back())) continue;
      if (compute_us.has_value() && contest_.fits()) {
        const auto least_bytes = static_cast<int64_t>(
            static_cast<double>(EstimatedPeakWith(way, plan, &cost_.machine())) /
            policy_.grid_memory_slack);
        const bool may_fit = least_bytes <= cost_.machine().memory_bytes() ||
                             !WorthATry(*compute_us, least_bytes).empty();
        if (!may_fit) continue;
      }
      if (deadline_.Reached().has_value()) break;
      const int entry = Enter(plan, way, least, origin);
      ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, contest_.PredictionOf(entry));
      if (contest_.Fits(prediction) || prediction.step_us >= contest_.step_us()) break;
      compute_us = contest_.ComputeUsOf(entry);
      if (is_stored) hopeful.push_back({way, *compute_us, prediction.peak_bytes});
    }
    for (const auto& [way, compute_us, peak_bytes] : hopeful) {
      if (deadline_.Reached().has_value()) break;
      ISOMER_ASSIGN_OR_RETURN(const bool fits,
                              Recompute(plan, way, compute_us, peak_bytes, origin));
      if (fits) break;
    }
    return absl::OkStatus();
  }

  // Levels that may make a plan fit that computes for `compute_us` and needs `peak_bytes`: what
  // computes for longer than a step that fits is no better, nor what frees too little.
  RecomputationLevels::Range WorthATry(double compute_us, int64_t peak_bytes) const {
    return levels_.Within(contest_.step_us() - compute_us,
                          peak_bytes - cost_.machine().memory_bytes());
  }

  // The fastest plan and the smallest with the optimizer's states on the host.
  absl::Status MoveStatesToHost(const Plan& fastest, const std::string& origin) {
    const WeightBytes each = BytesOfWeight(fastest.precision, fastest.update.optimizer,
                                           fastest.update.gradient_sums, fastest.update.averages,
                                           fastest.update.clips, fastest.update.state_precision);
    if (!options_.training || !cost_.machine().has_host_memory() || each.trained == 0) {
      return absl::OkStatus();
    }
    Plan smallest = contest_.best().plan;
    ISOMER_ASSIGN_OR_RETURN(std::vector<UpdateOptions> ways, WaysToUpdate(fastest));
    for (UpdateOptions& way : ways) way.states_on_host = true;
    ISOMER_RETURN_IF_ERROR(MakeSmaller(fastest, ways, origin));
    smallest.update.states_on_host = true;
    return contest_.Consider(std::move(smallest), kFound).status();
  }

  // Of `levels_`, with the peak of the step.
  struct Level {
    int64_t index;
    int64_t peak_bytes;
  };

  // Predicts levels between one that does not fit and one that does, not before `first`, until no
  // lower one should fit. Peaks fall about evenly: the next is where a line from one to the other
  // meets the memory, and every third half way, as lines may lead astray.
  absl::Status FindLeastLevel(Level over, Level fits, int64_t first,
                              absl::FunctionRef<absl::StatusOr<Prediction>(int64_t)> predict) {
    const int64_t memory = cost_.machine().memory_bytes();
    const auto enough = static_cast<int64_t>(policy_.full_memory * static_cast<double>(memory));
    for (int tried = 1; fits.peak_bytes < enough && !deadline_.Reached().has_value(); ++tried) {
      const int64_t least = std::max(over.index + 1, first);
      const double share = static_cast<double>(over.peak_bytes - memory) /
                           static_cast<double>(over.peak_bytes - fits.peak_bytes);
      const double levels = share * static_cast<double>(fits.index - over.index);
      int64_t next = std::max(least, over.index + static_cast<int64_t>(std::ceil(levels)));
      if (tried % 3 == 0) next = (least + fits.index) / 2;
      if (next >= fits.index) break;
      ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, predict(next));
      if (contest_.Fits(prediction)) {
        fits = {next, prediction.peak_bytes};
      } else if (prediction.step_us >= contest_.step_us()) {
        break;  // more takes more time
      } else {
        over = {next, prediction.peak_bytes};
      }
    }
    return absl::OkStatus();
  }

  // As little as makes it fit; false if nothing does that is faster than what fits already. Without
  // recomputation the devices compute for `compute_us` and need `peak_bytes`, more than they have.
  absl::StatusOr<bool> Recompute(const Plan& plan, const UpdateOptions& way, double compute_us,
                                 int64_t peak_bytes, const std::string& origin) {
    const RecomputationLevels::Range range = WorthATry(compute_us, peak_bytes);
    if (range.empty()) return false;
    const auto predict = [&](int64_t level) {
      return Consider(plan, way, levels_.nodes(level), origin);
    };
    ISOMER_ASSIGN_OR_RETURN(const Prediction all, predict(range.end - 1));
    if (!contest_.Fits(all)) return false;
    ISOMER_RETURN_IF_ERROR(
        FindLeastLevel({-1, peak_bytes}, {range.end - 1, all.peak_bytes}, range.first, predict));
    return true;
  }

  const CostModel& cost_;
  const MemoryReductionOptions& options_;
  const SearchPolicy& policy_;
  const Deadline& deadline_;
  const FindSmallerPlan& find_;
  Contest& contest_;
  RecomputationLevels levels_;  // of the plan at hand
};

// In micro-batches, with a price for memory, or both.
absl::StatusOr<std::optional<Plan>> FindSmaller(const SmallerPlan& wanted, SearchContext* context) {
  if (Simulates(context->options.strategy) || context->IsBoundToStages() ||
      context->step.IsPipeline()) {
    return std::nullopt;
  }
  CostOptions options = context->BaseOptions();
  options.us_per_byte = wanted.us_per_byte;
  if (wanted.micro_batches == 1) {
    ISOMER_ASSIGN_OR_RETURN(const std::optional<MappedModel> found, context->Search(options));
    if (!found.has_value()) return std::nullopt;
    return context->PlanOf(*found);
  }
  const Graph& graph = context->model.graph;
  const ParallelConfig config{.devices = context->devices, .micro_batches = wanted.micro_batches};
  const bool searches = context->options.strategy == Strategy::kHierarchical;
  // Fewer samples than devices take calls that are split otherwise, which a mapping by hand has
  // none of, and more time than what fits already.
  const bool few = searches && !context->contest.fits();
  const int64_t parts = few ? config.micro_batches : context->devices * config.micro_batches;
  if (!context->OnPartsToo() || MixesSamples(graph) || BatchSize(graph) % parts != 0) {
    return std::nullopt;
  }
  if (searches) {
    ISOMER_ASSIGN_OR_RETURN(
        const MappedModel found,
        context->searches.Search(Strategy::kHierarchical, OptionsOfStage(config, options)));
    return context->PlanOf(found);
  }
  context->tables.set_options(OptionsOfStage(config, options, /*by_hand=*/true));
  ISOMER_ASSIGN_OR_RETURN(const MappedModel by_hand,
                          MapGrid(graph, config.degrees, &context->tables));
  return context->PlanOf(by_hand);
}

MemoryReductionOptions MemoryOptionsOf(const SearchContext& context) {
  return {.training = context.options.training,
          .choose_update_method = context.options.choose_update_method,
          .may_recompute = !context.step.recompute.has_value(),
          .micro_batches = context.step.micro_batches};
}

absl::Status ProposeMemoryReduction(SearchContext* context, Submachine* on) {
  const double before_us = context->contest.step_us();
  ISOMER_RETURN_IF_ERROR(ReduceMemory(
      context->cost, MemoryOptionsOf(*context), context->deadline,
      [context](const SmallerPlan& wanted) { return FindSmaller(wanted, context); },
      &context->contest));
  // What is made to fit may be updated otherwise.
  const bool again = context->contest.step_us() != before_us && context->Asks(kUpdates) &&
                     kUpdates.applies(*context, *on);
  if (!again) return absl::OkStatus();
  const Proposing proposing(&context->contest.ledger(), kUpdates.name);
  return kUpdates.propose(context, on);
}

absl::Status ProposeLeastRecomputation(SearchContext* context, Submachine*) {
  return RecomputeLess(context->cost, MemoryOptionsOf(*context), context->deadline,
                       &context->contest);
}

}  // namespace

constinit const Proposer kLeastRecomputation = {
    "least_recomputation", "the best plan with no more computed again than memory wants",
    Proposer::When::kAfterwards,
    [](const SearchContext& context, const Submachine&) {
      return context.options.plan.empty() && context.options.training &&
             !context.step.recompute.has_value();
    },
    ProposeLeastRecomputation};

constinit const Proposer kMemory = {
    "memory", "ZeRO, checkpointing, micro-batches, states on the host, where nothing fits",
    Proposer::When::kAfterwards,
    [](const SearchContext& context, const Submachine&) { return context.options.plan.empty(); },
    ProposeMemoryReduction};

absl::Status ReduceMemory(const CostModel& cost, const MemoryReductionOptions& options,
                          const Deadline& deadline, const FindSmallerPlan& find, Contest* contest) {
  if (contest->fits() && &contest->fastest() == &contest->best().plan) return absl::OkStatus();
  return MemoryReduction(cost, options, deadline, find, contest).Run();
}

absl::Status RecomputeLess(const CostModel& cost, const MemoryReductionOptions& options,
                           const Deadline& deadline, Contest* contest) {
  if (contest->empty() || !contest->fits() || contest->best().plan.recomputed.empty()) {
    return absl::OkStatus();
  }
  const FindSmallerPlan finds_nothing = [](const SmallerPlan&) { return std::nullopt; };
  return MemoryReduction(cost, options, deadline, finds_nothing, contest).RecomputeLess();
}

}  // namespace isomer
