// A model with its definitions put together: what an exporter spelled out, as the operator that it
// is.
//
// An RMSNorm comes as seven calls, and a search that has to map each of them finds less in more
// time than one that has the operator. Wherever some calls of one tensor, and of what else they
// take, may be an operator, it is stated as a step (DerivationStep without a rule) if the two are
// shown to be equal: by whoever the caller asks, which is what the certificate will ask, too. Calls
// are looked for by what must be among them, not by a pattern: x * x or x^2, the weight on either
// side, an epsilon in any constant are one to the proof. Attention alone has several tensors from
// which it could be looked for, and is read from its end.
#ifndef ISOMER_OPTIMIZER_CANONICAL_CANONICAL_FORM_H_
#define ISOMER_OPTIMIZER_CANONICAL_CANONICAL_FORM_H_

#include <functional>
#include <string>
#include <vector>

#include "optimizer/canonical/stated_rewrite.h"
#include "pcg/ir/plan.h"

namespace isomer {

// A model, and how it comes from another.
struct CanonicalModel {
  // Without the values of its weights, which a search has no use for: it copies models.
  Model model;
  std::vector<DerivationStep> steps;
  std::vector<NodeId> ids;  // per node of `model.graph`: its id in the graph that the steps grow
  int num_ids = 0;          // nodes of that graph
};

// `equal`: none, if calls are to stay as they are. `keeps`: names of operators that must stay as
// they are (a user says something of them). REQUIRES: the model's types are sequential.
CanonicalModel Canonicalize(const Model& model, const AreEqual& equal,
                            const std::function<bool(const std::string& name)>& keeps);

// A plan of `canonical.model` as one of the model that this comes from.
Plan OverOriginal(Plan plan, const Model& original, const CanonicalModel& canonical);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_CANONICAL_CANONICAL_FORM_H_
