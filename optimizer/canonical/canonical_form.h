// Canonical form of a model: calls that an exporter decomposed are fused back to their operators.
//
// An RMSNorm is exported as seven calls, and a search that has to map each of them finds less in
// more time than one that has the operator. Wherever some calls on one tensor and other operands
// may be an operator, that is stated as a step (DerivationStep without a rule) if the two are
// proved equal: by the caller's prover, which the certificate will use, too. Candidates are found
// by the calls they must contain, not by a pattern: x * x or x^2, the weight on either side, an
// epsilon in any constant are one to the proof. Only attention has several input tensors to start
// from, and is matched from its end.
#ifndef ISOMER_OPTIMIZER_CANONICAL_CANONICAL_FORM_H_
#define ISOMER_OPTIMIZER_CANONICAL_CANONICAL_FORM_H_

#include <functional>
#include <string>
#include <vector>

#include "optimizer/canonical/stated_rewrite.h"
#include "pcg/ir/plan.h"

namespace isomer {

// A canonical model with its derivation from the original.
struct CanonicalModel {
  // Without weight values, which a search does not need: it copies models.
  Model model;
  std::vector<DerivationStep> steps;
  std::vector<NodeId> ids;  // per node of `model.graph`: its id in the graph that the steps grow
  int num_ids = 0;          // number of nodes of that graph
};

// `equal`: empty keeps all calls. `keeps`: names of operators that must stay (a user constrains
// them). REQUIRES: the model's types are sequential.
CanonicalModel Canonicalize(const Model& model, const AreEqual& equal,
                            const std::function<bool(const std::string& name)>& keeps);

// Converts a plan of `canonical.model` to one of the original model.
Plan OverOriginal(Plan plan, const Model& original, const CanonicalModel& canonical);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_CANONICAL_CANONICAL_FORM_H_
