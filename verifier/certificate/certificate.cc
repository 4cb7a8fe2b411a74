#include "verifier/certificate/certificate.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "pcg/schedule/check.h"
#include "pcg/schedule/device_classes.h"
#include "pcg/schedule/schedule.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "verifier/certificate/step_replay.h"

namespace isomer {
namespace {

absl::Status Refuse(absl::string_view what, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(what, ": ", why));
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
  CertificateCheck(const Plan& plan, const RuleSet& rules, ProofSource* proofs,
                   const CertificateOptions& options)
      : plan_(plan), rules_(rules), proofs_(proofs), options_(options) {}

  absl::Status Run(CertificateReport* report) {
    Stopwatch watch;
    ISOMER_RETURN_IF_ERROR(CheckOrigin());
    watch.Lap(&report->seal);
    if (absl::Status valid = plan_.graph.Validate(); !valid.ok()) {
      return Refuse("types", valid.message());
    }
    ISOMER_RETURN_IF_ERROR(CheckViews());
    watch.Lap(&report->types);
    ISOMER_RETURN_IF_ERROR(Replay());
    watch.Lap(&report->replay);
    if (options_.schedule == ScheduleCheck::kNone) return absl::OkStatus();
    std::optional<DeviceClasses> classes;
    if (options_.schedule == ScheduleCheck::kClasses) classes = ClassesOfDevices(plan_);
    const Plan& looked_at = classes.has_value() ? classes->plan : plan_;
    report->scheduled_devices = looked_at.num_devices;
    const absl::StatusOr<LoweredPlan> lowered = LowerPlan(looked_at);
    watch.Lap(&report->lower);
    if (!lowered.ok()) return Refuse("schedule", lowered.status().message());
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

  // What is known of a rule once the first step that uses it has been looked at.
  struct UsedRule {
    const Rule* rule = nullptr;
    std::vector<std::pair<ConcreteSide, ConcreteSide>> equal;  // premises that were checked
  };

  // The rule that a step names, if it is what its id says and is proved.
  absl::StatusOr<const Rule*> ProvedRule(const std::string& id) const {
    const std::string what = absl::StrCat("rule ", id);
    const Rule* used = rules_.Find(id);
    const Rule* base = rules_.Find(std::string(absl::StripSuffix(id, "^-1")));
    if (used == nullptr || base == nullptr) return Refuse(what, "not in the rules file");
    Rule named = *base;
    SetId(&named);
    if (named.id != base->id) return Refuse(what, "its id is not that of what it says");
    // What the file says of its proof is somebody's word.
    const absl::Status proved = proofs_->Prove(*base);
    if (!proved.ok()) return Refuse(what, absl::StrCat("not proved: ", proved.message()));
    return used;
  }

  absl::Status Replay() {
    ReplayGraph graph(plan_.model.graph);
    absl::flat_hash_map<std::string, UsedRule> used_rules;
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const DerivationStep& step = plan_.steps[s];
      UsedRule& used = used_rules[step.rule];
      if (used.rule == nullptr) {
        ISOMER_ASSIGN_OR_RETURN(used.rule, ProvedRule(step.rule));
      }
      const auto equal = [&](const ConcreteSide& source, const ConcreteSide& target) {
        for (const auto& known : used.equal) {
          if (known.first == source && known.second == target) return absl::OkStatus();
        }
        ISOMER_RETURN_IF_ERROR(proofs_->CheckPremises(source, target));
        used.equal.emplace_back(source, target);
        return absl::OkStatus();
      };
      if (absl::Status replayed = ReplayStep(*used.rule, step, &graph, equal); !replayed.ok()) {
        return Refuse(absl::StrCat("step ", s, " (rule ", step.rule, ")"), replayed.message());
      }
    }
    return graph.CheckSame(plan_.graph);
  }

  const Plan& plan_;
  const RuleSet& rules_;
  ProofSource* const proofs_;
  const CertificateOptions& options_;
};

}  // namespace

absl::Status CheckCertificate(const Plan& plan, const RuleSet& rules, ProofSource* proofs,
                              const CertificateOptions& options, CertificateReport* report) {
  CertificateReport unused;
  return CertificateCheck(plan, rules, proofs, options).Run(report == nullptr ? &unused : report);
}

}  // namespace isomer
