// Plans, as the class Plan of isomer._isomer: found, loaded, priced, verified.
#ifndef ISOMER_PYTHON_BINDINGS_PLANS_H_
#define ISOMER_PYTHON_BINDINGS_PLANS_H_

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "optimizer/report/report.h"
#include "optimizer/request/optimize_request.h"
#include "optimizer/search/optimizer.h"
#include "pcg/ir/plan.h"
#include "rules/language/rule.h"

namespace isomer {

// What a plan was predicted with.
struct CostContext {
  RuleSet rules;
  MachineCosts costs;
};

// A plan with what is predicted of it, if anything is.
struct PyPlan {
  struct Priced {
    std::shared_ptr<const CostContext> context;
    OptimizeResult result;  // with the plan
    Report report;
    std::string misfit;  // why it does not fit; "": it does
  };
  std::optional<Plan> loaded;
  std::optional<Priced> priced;
  std::vector<std::string> notes;  // what the user should see of the search

  const Plan& plan() const { return loaded.has_value() ? *loaded : priced->result.plan; }
};

void BindPlans(pybind11::module_* module);

}  // namespace isomer

#endif  // ISOMER_PYTHON_BINDINGS_PLANS_H_
