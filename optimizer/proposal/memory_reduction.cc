#include "optimizer/proposal/memory_reduction.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "optimizer/proposal/grid_mapping.h"
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
    if (!options_.micro_batches) ISOMER_RETURN_IF_ERROR(TryMicroBatches(0));
    const int64_t micro_batches = options_.micro_batches.value_or(1);
    for (double price = policy_.first_byte_price; !IsDone() && price <= policy_.last_byte_price;
         price *= policy_.byte_price_step) {
      ISOMER_RETURN_IF_ERROR(Try({price, micro_batches}).status());
    }
    for (double price : kPricesInMicroBatches) {
      if (!IsDone() && !options_.micro_batches) ISOMER_RETURN_IF_ERROR(TryMicroBatches(price));
    }
    return IsDone() ? absl::OkStatus() : MoveStatesToHost(fastest, origin);
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

  bool IsDone() const { return contest_.fits() || deadline_.Reached().has_value(); }

  // More and more, while that makes a plan fit, smaller, or that fits faster.
  absl::Status TryMicroBatches(double price) {
    if (!options_.training) return absl::OkStatus();
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
      if (moments == 1) add([](UpdateOptions* way) { way->immediate = true; });
    }
    add([this](UpdateOptions* way) {
      way->bucket_bytes = std::min(way->bucket_bytes, policy_.small_bucket_bytes);
      way->bucket_ends.clear();
    });
    return ways;
  }

  // Weights and states alone are not too large.
  bool IsStored(const Plan& plan, const UpdateOptions& way) const {
    return LeastStoredBytes(plan, way) <= cost_.machine().memory_bytes();
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
    levels_.clear();
    if (options_.may_recompute) {
      levels_ = LevelsOfRecomputation(SegmentsToRecompute(plan.graph, *results),
                                      static_cast<int>(policy_.checkpointing_levels));
    }
    const std::vector<NodeId> least =
        options_.may_recompute ? std::vector<NodeId>() : plan.recomputed;
    ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(plan.graph, plan.views));
    // What is kept lies there for one micro-batch after the other, but for those in a pipeline.
    const int64_t kept_at_once = NumGroupsOfDevices(plan) > 1 ? moments : 1;
    effects_.clear();
    for (const std::vector<NodeId>& level : levels_) {
      Effect& effect = effects_.emplace_back();
      for (NodeId id : level) {
        const NodeResults& of_node = (*results)[id.value];
        effect.us += of_node.us * static_cast<double>(moments);
        effect.most_bytes += of_node.kept_bytes * kept_at_once;
      }
    }
    struct Hopeful {
      UpdateOptions way;
      double compute_us;
      int64_t peak_bytes;
    };
    std::vector<Hopeful> hopeful;
    for (const UpdateOptions& way : ways) {
      if (!IsStored(plan, way) && (contest_.fits() || &way != &ways.back())) continue;
      if (deadline_.Reached().has_value()) break;
      const int entry = Enter(plan, way, least, origin);
      ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, contest_.PredictionOf(entry));
      if (contest_.Fits(prediction) || prediction.step_us >= contest_.step_us()) break;
      hopeful.push_back({way, contest_.ComputeUsOf(entry), prediction.peak_bytes});
    }
    for (const auto& [way, compute_us, peak_bytes] : hopeful) {
      if (deadline_.Reached().has_value()) break;
      ISOMER_ASSIGN_OR_RETURN(const bool fits,
                              Recompute(plan, way, compute_us, peak_bytes, origin));
      if (fits) break;
    }
    return absl::OkStatus();
  }

  // The fastest plan and the smallest with the optimizer's states on the host.
  absl::Status MoveStatesToHost(const Plan& fastest, const std::string& origin) {
    const std::vector<DeviceKind>& kinds = cost_.machine().kinds;
    const bool has_way = std::all_of(kinds.begin(), kinds.end(), [](const DeviceKind& kind) {
      return kind.host_bytes_per_us > 0;
    });
    const WeightBytes each =
        BytesOfWeight(fastest.precision, fastest.update.optimizer, /*low_precision_sums=*/false);
    if (!options_.training || !has_way || each.trained == 0) {
      return absl::OkStatus();
    }
    Plan smallest = contest_.best().plan;
    ISOMER_ASSIGN_OR_RETURN(std::vector<UpdateOptions> ways, WaysToUpdate(fastest));
    for (UpdateOptions& way : ways) way.states_on_host = true;
    ISOMER_RETURN_IF_ERROR(MakeSmaller(fastest, ways, origin));
    smallest.update.states_on_host = true;
    return contest_.Consider(std::move(smallest), kFound).status();
  }

  // As little as makes it fit; false if nothing does that is faster than what fits already. Without
  // recomputation the devices compute for `compute_us` and need `peak_bytes`, more than they have.
  absl::StatusOr<bool> Recompute(const Plan& plan, const UpdateOptions& way, double compute_us,
                                 int64_t peak_bytes, const std::string& origin) {
    // What computes for longer than a step that fits is none of these, nor what frees too little.
    size_t most = 0, first = 0;
    while (most < levels_.size() && compute_us + effects_[most].us < contest_.step_us()) ++most;
    const int64_t wanted = peak_bytes - cost_.machine().memory_bytes();
    while (first < most && effects_[first].most_bytes < wanted) ++first;
    // Of `levels_`: the least that is known to be enough, and the first that may be.
    size_t enough = most;
    while (first < enough) {
      // All of it, to begin with.
      const size_t level = enough == most ? enough - 1 : (first + enough) / 2;
      ISOMER_ASSIGN_OR_RETURN(const Prediction prediction,
                              Consider(plan, way, levels_[level], origin));
      if (contest_.Fits(prediction)) {
        enough = level;
      } else if (enough == most) {
        return false;
      } else if (prediction.step_us >= contest_.step_us()) {
        break;  // more takes more time
      } else {
        first = level + 1;
      }
    }
    return enough < most;
  }

  const CostModel& cost_;
  const MemoryReductionOptions& options_;
  const SearchPolicy& policy_;
  const Deadline& deadline_;
  const FindSmallerPlan& find_;
  Contest& contest_;
  std::vector<std::vector<NodeId>> levels_;  // of the plan at hand
  // Of each level on a device, on average: what it computes again in a step, and the most bytes
  // that this can free.
  struct Effect {
    double us = 0;
    int64_t most_bytes = 0;
  };
  std::vector<Effect> effects_;
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

absl::Status ProposeMemoryReduction(SearchContext* context, Submachine* on) {
  const double before_us = context->contest.step_us();
  const MemoryReductionOptions options = {
      .training = context->options.training,
      .choose_update_method = context->options.choose_update_method,
      .may_recompute = !context->step.recompute.has_value(),
      .micro_batches = context->step.micro_batches};
  ISOMER_RETURN_IF_ERROR(ReduceMemory(
      context->cost, options, context->deadline,
      [context](const SmallerPlan& wanted) { return FindSmaller(wanted, context); },
      &context->contest));
  // What is made to fit may be updated otherwise.
  const bool again = context->contest.step_us() != before_us && context->Asks(kUpdates) &&
                     kUpdates.applies(*context, *on);
  if (!again) return absl::OkStatus();
  const Proposing proposing(&context->contest.ledger(), kUpdates.name);
  return kUpdates.propose(context, on);
}

}  // namespace

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

}  // namespace isomer
