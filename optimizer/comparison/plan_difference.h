// Where the difference of two plans' steps comes from, in words.
#ifndef ISOMER_OPTIMIZER_COMPARISON_PLAN_DIFFERENCE_H_
#define ISOMER_OPTIMIZER_COMPARISON_PLAN_DIFFERENCE_H_

#include <string>
#include <vector>

#include "optimizer/comparison/plan_summary.h"
#include "pcg/support/json.h"

namespace isomer {

// Two plans of one model, on one machine.
struct PlanDifference {
  struct Part {
    std::string what;   // "computation", "all_reduce of gradients of weights, exposed"
    double us = 0;      // by which `b` takes longer than `a`
    std::string cause;  // what is done otherwise; "" if it is the same
  };
  // What a device does longer in some layers, or for no layer: it waits.
  struct Block {
    std::string name;   // "layer*/attention", or "pipeline bubble"
    double us = 0;      // of all parts
    std::string split;  // how the plans split its calls, if they do otherwise
    std::vector<Part> parts;
  };
  // Of each the longest first, whichever plan has it. They add up to b's step less a's.
  std::vector<Block> blocks;
};

// Both are called by their names in causes.
PlanDifference DifferenceOf(const PlanSummary& a, const PlanSummary& b);

// "2.76 ms a step (17.6 %) faster than B", which is said of A, and below it the blocks and parts of
// at least a hundredth of what differs.
std::string DifferenceText(const PlanSummary& a, const PlanSummary& b);
// The parts of both steps, bytes, memory, and settings that differ.
std::string SideBySideText(const PlanSummary& a, const PlanSummary& b);
// {step_us, blocks: [{name, us, split, parts: [{what, us, cause}]}], plans: [..]}.
Json DifferenceJson(const PlanSummary& a, const PlanSummary& b);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COMPARISON_PLAN_DIFFERENCE_H_
