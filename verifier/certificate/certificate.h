// The certificate of a plan: that its graph computes what the model does, and that it can run.
//
// This library stands alone: it reads plans and rules, and links neither the optimizer, nor the
// generator, nor the matcher of rules/, nor the prover, nor a solver. Each step of the derivation
// is decided by what its own calls say (equal_sides.h), so that a plan rests on no rule's proof.
// Trusted besides: what pcg/ says operators, types and schedules mean, the theorems
// (rules/theorems) and the normal forms (verifier/elements).
#ifndef ISOMER_VERIFIER_CERTIFICATE_CERTIFICATE_H_
#define ISOMER_VERIFIER_CERTIFICATE_CERTIFICATE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "pcg/ir/plan.h"
#include "rules/language/rule.h"
#include "verifier/certificate/equal_sides.h"

namespace isomer {

// Which devices' programs are looked at, in the plan's lowered schedule.
enum class ScheduleCheck {
  kNone,
  kClasses,  // one device for each class that does the same
             // (pcg/schedule/symmetry/device_classes.h)
  kAll,      // in time and memory in proportion to the tasks of all devices
};

struct CertificateOptions {
  ScheduleCheck schedule = ScheduleCheck::kAll;
};

// What it took, in seconds.
struct CertificateReport {
  double seal = 0;    // the model, the seal and the rules' digest
  double types = 0;   // types and views of the plan's graph
  double replay = 0;  // steps, and that their sides are equal
  double lower = 0;   // to a schedule
  double schedule = 0;
  int64_t scheduled_devices = 0;
  // By what each step was decided.
  std::map<EqualBy, int64_t> steps;
  std::set<std::string> lemmas;  // premises of theorems, by name
};

// Ok if
//   - the model's graph is valid and sequential, and the plan is as its maker sealed it;
//   - every step's rule is in `rules` and is the rule that its id says, the plan was made with
//   these
//     rules, and what the step puts in place of what is shown to be equal to it;
//   - replayed step by step the derivation turns the model's graph into the plan's;
//   - types are those that inference gives, and machine views put each task on a device of its own;
//   - the lowered schedule passes CheckSchedule (pcg/schedule/check/check.h).
// The error says in one line what is refused and why. `report` may be null.
absl::Status CheckCertificate(const Plan& plan, const RuleSet& rules,
                              const CertificateOptions& options,
                              CertificateReport* report = nullptr);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_CERTIFICATE_CERTIFICATE_H_
