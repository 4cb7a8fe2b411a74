#include "verifier/certificate/certificate.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/schedule.h"
#include "pcg/schedule/symmetry/device_classes.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "verifier/certificate/fp8_calls.h"
#include "verifier/certificate/stated_step.h"
#include "verifier/certificate/step_replay.h"

namespace isomer {
namespace {

absl::Status Refuse(absl::string_view what, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(what, ": ", why));
}

// Equal sides have equal hashes.
uint64_t HashOf(const ConcreteSide& side) {
  uint64_t hash = side.outputs.size();
  for (const ConcreteCall& call : side.calls) {
    hash = HashCombine(hash, call.op.Hash());
    for (PatternRef ref : call.inputs) {
      hash = HashCombine(hash, static_cast<uint64_t>(ref.node), static_cast<uint64_t>(ref.index));
    }
    for (const Shape& shape : call.operands) {
      for (const Extent& size : shape) {
        hash = HashCombine(hash, static_cast<uint64_t>(size.constant()));
      }
    }
  }
  return hash;
}

// Adds the time since it was made, or since the last lap, to a part.
class Stopwatch {
 public:
  void Lap(double* seconds) {
    const auto now = std::chrono::steady_clock::now();
    *seconds += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

class CertificateCheck {
 public:
  CertificateCheck(const Plan& plan, const RuleSet& rules, const CertificateOptions& options)
      : plan_(plan), rules_(rules), options_(options) {}

  absl::Status Run(CertificateReport* report) {
    Stopwatch watch;
    ISOMER_RETURN_IF_ERROR(CheckOrigin());
    watch.Lap(&report->seal);
    if (absl::Status valid = plan_.graph.Validate(); !valid.ok()) {
      return Refuse("types", valid.message());
    }
    ISOMER_RETURN_IF_ERROR(CheckViews());
    watch.Lap(&report->types);
    ISOMER_RETURN_IF_ERROR(Replay(report));
    watch.Lap(&report->replay);
    if (options_.schedule == ScheduleCheck::kNone) return absl::OkStatus();
    std::optional<DeviceClasses> classes;
    if (options_.schedule == ScheduleCheck::kClasses) classes = ClassesOfDevices(plan_);
    const Plan& looked_at = classes.has_value() ? classes->plan : plan_;
    report->scheduled_devices = looked_at.num_devices;
    const absl::StatusOr<LoweredPlan> lowered = LowerPlan(looked_at);
    watch.Lap(&report->lower);
    if (!lowered.ok()) return Refuse("schedule", lowered.status().message());
    if (absl::Status fp8 = CheckFp8Calls(looked_at, lowered->mapped.graph); !fp8.ok()) {
      return Refuse("precision", fp8.message());
    }
    const absl::Status runs = CheckLowered(looked_at, *lowered);
    watch.Lap(&report->schedule);
    return runs;
  }

 private:
  absl::Status CheckOrigin() const {
    const Graph& graph = plan_.model.graph;
    if (absl::Status valid = graph.Validate(); !valid.ok()) return Refuse("model", valid.message());
    for (int id = 0; id < graph.num_nodes(); ++id) {
      for (const TensorType& type : graph.node(id).outputs) {
        if (type.IsParallel()) return Refuse("model", graph.Label({id}) + " is parallel already");
      }
    }
    if (plan_.seal != SealOf(plan_)) {
      return Refuse("seal", "the plan was changed after it was made");
    }
    if (plan_.rules_digest != rules_.Digest()) {
      return Refuse("rules", absl::StrCat("the plan was made with the rules ",
                                          DigestString(plan_.rules_digest), ", not with ",
                                          DigestString(rules_.Digest())));
    }
    return absl::OkStatus();
  }

  absl::Status CheckViews() const {
    if (static_cast<int>(plan_.views.size()) != plan_.graph.num_nodes()) {
      return Refuse("views",
                    absl::StrCat(plan_.views.size(), " for ", plan_.graph.num_nodes(), " nodes"));
    }
    for (int id = 0; id < plan_.graph.num_nodes(); ++id) {
      const absl::Status valid =
          ValidateView(plan_.views[id], plan_.graph.node(id).outputs[0], plan_.num_devices);
      if (!valid.ok()) return Refuse("view of " + plan_.graph.Label({id}), valid.message());
    }
    return absl::OkStatus();
  }

  // The rule that a step names, if it is what its id says.
  absl::StatusOr<const Rule*> RuleOf(const std::string& id) {
    auto [known, is_new] = used_rules_.try_emplace(id, nullptr);
    if (!is_new) return known->second;
    const std::string what = absl::StrCat("rule ", id);
    const Rule* used = rules_.Find(id);
    const Rule* base = rules_.Find(std::string(absl::StripSuffix(id, "^-1")));
    if (used == nullptr || base == nullptr) return Refuse(what, "not in the rules file");
    Rule named = *base;
    SetId(&named);
    if (named.id != base->id) return Refuse(what, "its id is not that of what it says");
    return known->second = used;
  }

  // Steps of repeated layers have equal sides.
  absl::StatusOr<EqualBy> Decide(const ConcreteSide& source, const ConcreteSide& target,
                                 const InputNumbers& numbers, std::set<std::string>* lemmas) {
    std::vector<Decision>& decisions = decided_[HashCombine(HashOf(source), HashOf(target))];
    for (const Decision& known : decisions) {
      if (known.source == source && known.target == target && known.numbers == numbers) {
        return known.by;
      }
    }
    ISOMER_ASSIGN_OR_RETURN(const EqualBy by, EqualSides(source, target, lemmas, numbers));
    decisions.push_back({source, target, numbers, by});
    return by;
  }

  absl::Status Replay(CertificateReport* report) {
    ReplayGraph graph(plan_.model);
    const auto equal = [&](const ConcreteSide& source, const ConcreteSide& target,
                           const InputNumbers& numbers) -> absl::Status {
      ISOMER_ASSIGN_OR_RETURN(const EqualBy by, Decide(source, target, numbers, &report->lemmas));
      ++report->steps[by];
      return absl::OkStatus();
    };
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const DerivationStep& step = plan_.steps[s];
      if (step.rule.empty()) {
        if (absl::Status replayed = ReplayStatedStep(step, &graph, equal); !replayed.ok()) {
          return Refuse(absl::StrCat("step ", s, " (no rule)"), replayed.message());
        }
        continue;
      }
      if (!step.calls.empty() || !step.replaced.empty()) {
        return Refuse(absl::StrCat("step ", s), "it has a rule and states calls");
      }
      ISOMER_ASSIGN_OR_RETURN(const Rule* rule, RuleOf(step.rule));
      if (absl::Status replayed = ReplayStep(*rule, step, &graph, equal); !replayed.ok()) {
        return Refuse(absl::StrCat("step ", s, " (rule ", step.rule, ")"), replayed.message());
      }
    }
    return graph.CheckSame(plan_.graph);
  }

  struct Decision {
    ConcreteSide source, target;
    InputNumbers numbers;
    EqualBy by;
  };

  const Plan& plan_;
  const RuleSet& rules_;
  const CertificateOptions& options_;
  absl::flat_hash_map<std::string, const Rule*> used_rules_;
  absl::flat_hash_map<uint64_t, std::vector<Decision>> decided_;
};

}  // namespace

absl::Status CheckCertificate(const Plan& plan, const RuleSet& rules,
                              const CertificateOptions& options, CertificateReport* report) {
  CertificateReport unused;
  return CertificateCheck(plan, rules, options).Run(report == nullptr ? &unused : report);
}

}  // namespace isomer
