#include "optimizer/proposal/update_choice.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "optimizer/mapping/arranged_weights.h"
#include "optimizer/mapping/mapping_problem.h"
#include "optimizer/proposal/search_context.h"
#include "optimizer/simulator/bucket_choice.h"
#include "optimizer/simulator/simulator.h"
#include "optimizer/simulator/stored_bytes.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

class UpdateChoice {
 public:
  UpdateChoice(const UpdateChoiceOptions& options, const Deadline& deadline, Contest* contest)
      : options_(options), policy_(contest->policy()), deadline_(deadline), contest_(*contest) {}

  absl::Status Run() {
    if (contest_.empty()) return absl::OkStatus();
    // Copies: what takes part may replace them.
    std::vector<Contender> plans = contest_.contenders();
    if (plans.empty()) plans.push_back({contest_.best().plan, contest_.best().origin});
    const double before_us = contest_.best().step.step_us;
    // A weight that calls arrange is synchronised as a whole where they have copies, and else in
    // part by who arranges it; gradients of a pipeline are ready all at once, and of other plans
    // one after the other. Other methods and times are then best, so that each kind has its
    // fastest.
    std::set<std::pair<bool, bool>> had_fastest;
    for (const Contender& contender : plans) {
      if (deadline_.Reached().has_value()) break;
      ISOMER_ASSIGN_OR_RETURN(const int64_t moments,
                              NumMicroBatches(contender.plan.graph, contender.plan.views));
      const bool is_fastest =
          had_fastest.insert({HasCopiedCalls(contender.plan.graph), moments > 1}).second;
      if (!is_fastest && contest_.fits() && !MayBecomeBest(contender, before_us)) continue;
      // Updates are a small part of a step.
      if (contender.step_us > policy_.near_best * contest_.step_us()) break;
      ISOMER_RETURN_IF_ERROR(Try(contender, moments, is_fastest));
    }
    return absl::OkStatus();
  }

 private:
  struct Way {
    UpdateOptions update;
    int entry = -1;
    double step_us = kImpossibleUs;
  };

  // In every micro-batch what now moves once a step: that makes room, and takes time.
  static bool MovesMore(UpdateMethod method, UpdateMethod now, int64_t moments) {
    const auto times = [moments](UpdateMethod of) {
      const UpdateMethodTraits& traits = TraitsOf(of);
      return UpdateMethodTraits::Count(traits.sums, moments) +
             UpdateMethodTraits::Count(traits.spreads, moments);
    };
    return moments > 1 && times(method) > times(now);
  }

  // Beside plans that fit, what should not is none.
  bool MayFit(const Plan& plan, const UpdateOptions& update) const {
    return !contest_.fits() ||
           static_cast<double>(EstimatedPeakWith(update, plan, &contest_.cost().machine())) <=
               policy_.grid_memory_slack *
                   static_cast<double>(contest_.cost().machine().memory_bytes());
  }

  // A plan may gain what is done behind its gradients, or as much as the fastest, which took
  // `before_us` as it came.
  bool MayBecomeBest(const Contender& contender, double before_us) const {
    const double now_us = contest_.best().step.step_us;
    const double gain_us = std::max(contender.exposed_tail_us, before_us - now_us);
    return contender.step_us - gain_us < now_us;
  }

  absl::Status Try(const Contender& contender, int64_t moments, bool is_fastest) {
    const bool is_large = contender.plan.graph.num_nodes() * moments > policy_.update_calls;
    const bool is_slow = contest_.BestIsSlow();
    std::vector<Way> ways;
    for (UpdateMethod method : Methods(contender.plan, is_fastest && !is_slow, is_large)) {
      if (contest_.fits() && MovesMore(method, contender.plan.update.method, moments)) continue;
      UpdateOptions update = contender.plan.update;
      update.method = method;
      update.bucket_ends.clear();
      if (MayFit(contender.plan, update)) ways.push_back({std::move(update)});
    }
    if (ways.empty()) return absl::OkStatus();
    ISOMER_RETURN_IF_ERROR(Predict(contender, &ways));
    if (!options_.order || !contest_.fits()) return absl::OkStatus();
    // What synchronises best behind the backward pass is not what does so beside it: of the fastest
    // plan, methods are tried at the other time that are not far behind.
    if (is_slow) {
      KeepPromising(&ways, 1);
    } else if (is_fastest) {
      KeepNear(policy_.near_best, &ways);
    } else {
      KeepPromising(&ways, policy_.update_ways);
    }
    // In float16 a step must be able to be skipped when its gradients are known.
    if (moments == 1 && contender.plan.precision != DataType::kFloat16 &&
        !contender.plan.update.all_gradients_first()) {
      std::vector<Way> at_other_times = ways;
      for (Way& way : at_other_times) way.update.immediate = !way.update.immediate;
      ISOMER_RETURN_IF_ERROR(Predict(contender, &at_other_times));
      ways.insert(ways.end(), at_other_times.begin(), at_other_times.end());
    }
    KeepFastestOfMethods(&ways);
    // What a method gains where its buckets end well is more than what it is behind others before.
    if (is_fastest) {
      KeepNear(policy_.near_best, &ways);
    } else {
      KeepPromising(&ways, policy_.update_ways);
    }
    if (is_slow) return absl::OkStatus();
    // Pipelines' gradients are ready all at once, and their plans take longest to predict.
    if (moments > 1 && !is_fastest) return absl::OkStatus();
    if (moments > 1 || !is_fastest) ways.resize(1);
    ISOMER_RETURN_IF_ERROR(EndBuckets(contender, &ways));
    // Nor do sums wait for much there.
    if (ways.empty() || !is_fastest || moments > 1) return absl::OkStatus();
    KeepPromising(&ways, 1);
    ways[0].update.eager_sums = !ways[0].update.eager_sums;
    return Predict(contender, &ways);
  }

  // Where dynamic programs end buckets; leaves those ways that have any.
  absl::Status EndBuckets(const Contender& contender, std::vector<Way>* ways) {
    std::map<UpdateMethod, BucketEnds> ends_of;
    std::vector<Way> ended;
    for (Way way : *ways) {
      if (deadline_.Reached().has_value()) break;
      const auto [known, added] = ends_of.try_emplace(way.update.method);
      if (added) {
        Plan plan = contender.plan;
        plan.update = way.update;
        ISOMER_ASSIGN_OR_RETURN(known->second, BestBucketEnds(contest_.cost(), plan));
      }
      const BucketEnds& ends = known->second;
      if (ends.behind.empty()) continue;
      // Each by itself is a choice of ends, and leaves what has none apart, too.
      if (way.update.bucket_bytes == 0) {
        way.update.bucket_bytes = UpdateOptions().bucket_bytes;
        way.update.eager_sums = true;
      }
      std::set<std::set<std::string>> choices = ends.behind;
      if (way.update.immediate) choices.insert(ends.beside.begin(), ends.beside.end());
      for (const std::set<std::string>& choice : choices) {
        way.update.bucket_ends = choice;
        ended.push_back(way);
      }
    }
    *ways = std::move(ended);
    return Predict(contender, ways);
  }

  // The fastest comes first.
  static void KeepNear(double times, std::vector<Way>* ways) {
    std::stable_sort(ways->begin(), ways->end(),
                     [](const Way& a, const Way& b) { return a.step_us < b.step_us; });
    const double best_us = ways->front().step_us;
    std::erase_if(*ways, [&](const Way& way) { return way.step_us > times * best_us; });
  }

  // The time of each method that is the faster one: what ends buckets is the method's.
  static void KeepFastestOfMethods(std::vector<Way>* ways) {
    std::map<UpdateMethod, double> fastest_us;
    for (const Way& way : *ways) {
      double& us = fastest_us.try_emplace(way.update.method, way.step_us).first->second;
      us = std::min(us, way.step_us);
    }
    std::erase_if(*ways,
                  [&](const Way& way) { return way.step_us > fastest_us[way.update.method]; });
  }

  void KeepPromising(std::vector<Way>* ways, int64_t most) const {
    KeepNear(policy_.very_near_best, ways);
    if (ways->size() > static_cast<size_t>(most)) ways->resize(most);
  }

  // The plan's own comes first. NCCL reduces to one device and broadcasts from it around the rings
  // that share out what is reduced, with all bytes on each link: owners gain launches of updates,
  // at most, and where there are many they take long to simulate, being unlike each other.
  std::vector<UpdateMethod> Methods(const Plan& plan, bool is_fastest, bool is_large) const {
    std::vector<UpdateMethod> methods = {plan.update.method};
    if (!options_.method) return methods;
    const bool are_many = contest_.cost().machine().nccl && plan.num_devices > kMostOwners;
    for (UpdateMethod method : {UpdateMethod::kAllReduce, UpdateMethod::kSharded,
                                UpdateMethod::kOwner, UpdateMethod::kShardedWeights}) {
      const bool is_common =
          method == UpdateMethod::kSharded || (method == UpdateMethod::kAllReduce && !is_large);
      if (method == UpdateMethod::kOwner && are_many) continue;
      if (method != methods[0] && (is_common || (is_fastest && !is_large))) {
        methods.push_back(method);
      }
    }
    return methods;
  }

  absl::Status Predict(const Contender& contender, std::vector<Way>* ways) {
    for (Way& way : *ways) {
      Plan changed = contender.plan;
      changed.update = way.update;
      way.entry = contest_.Enter(std::move(changed), contender.origin);
    }
    for (Way& way : *ways) {
      ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, contest_.PredictionOf(way.entry));
      const bool counts = !contest_.fits() || contest_.Fits(prediction);
      way.step_us = counts ? prediction.step_us : kImpossibleUs;
    }
    return absl::OkStatus();
  }

  const UpdateChoiceOptions& options_;
  const SearchPolicy& policy_;
  const Deadline& deadline_;
  Contest& contest_;
};

// Of the best plans.
absl::Status ProposeUpdates(SearchContext* context, Submachine*) {
  const OptimizeOptions& options = context->options;
  return ConsiderUpdates({.method = options.choose_update_method, .order = options.choose_buckets},
                         context->deadline, &context->contest);
}

}  // namespace

constinit const Proposer kUpdates = {
    "updates", "ZeRO stages, buckets and times of weight updates for the best plans",
    Proposer::When::kAfterwards,
    [](const SearchContext& context, const Submachine&) { return context.options.training; },
    ProposeUpdates};

absl::Status ConsiderUpdates(const UpdateChoiceOptions& options, const Deadline& deadline,
                             Contest* contest) {
  return UpdateChoice(options, deadline, contest).Run();
}

}  // namespace isomer
