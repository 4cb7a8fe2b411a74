// The certificate of a plan: that its graph computes what the model does, and that it can run.
//
// This library stands alone: it reads plans and rules, and links neither the
// optimizer, nor the generator, nor the matcher of rules/, nor the prover. What only a prover can
// answer is asked through ProofSource. Trusted besides: what pcg/ says operators, types and
// schedules mean.
#ifndef ISOMER_VERIFIER_CERTIFICATE_CERTIFICATE_H_
#define ISOMER_VERIFIER_CERTIFICATE_CERTIFICATE_H_

#include "absl/status/status.h"
#include "pcg/plan.h"
#include "rules/rule.h"

namespace isomer {

class ProofSource {
 public:
  virtual ~ProofSource() = default;
  // Ok if the rule is proved: by this source, whatever the rules file says of its proofs. Called
  // once for each rule of a plan.
  virtual absl::Status Prove(const Rule& rule) = 0;
  // Ok if the two sides, without parallel operators, have equal outputs. Called once for equal
  // sides.
  virtual absl::Status CheckPremises(const ConcreteSide& source, const ConcreteSide& target) = 0;
};

// Which devices' programs are looked at, in the plan's lowered schedule.
enum class ScheduleCheck {
  kNone,
  kClasses,  // one device for each class that does the same (pcg/schedule/device_classes.h)
  kAll,      // in time and memory in proportion to the tasks of all devices
};

struct CertificateOptions {
  ScheduleCheck schedule = ScheduleCheck::kAll;
};

// What it took, in seconds.
struct CertificateReport {
  double seal = 0;    // the model, the seal and the rules' digest
  double types = 0;   // types and views of the plan's graph
  double replay = 0;  // steps and their proofs
  double lower = 0;   // to a schedule
  double schedule = 0;
  int64_t scheduled_devices = 0;
};

// Ok if
//   - the model's graph is valid and sequential, and the plan is as its maker sealed it;
//   - every step's rule is in `rules`, is the rule that its id says, and is proved, as `proofs`
//     says, and the plan was made with these rules;
//   - replayed step by step the derivation turns the model's graph into the plan's;
//   - types are those that inference gives, and machine views put each task on a device of its own;
//   - the lowered schedule passes CheckSchedule (pcg/schedule/check.h).
// The error says in one line what is refused and why. `report` may be null.
absl::Status CheckCertificate(const Plan& plan, const RuleSet& rules, ProofSource* proofs,
                              const CertificateOptions& options,
                              CertificateReport* report = nullptr);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_CERTIFICATE_CERTIFICATE_H_
