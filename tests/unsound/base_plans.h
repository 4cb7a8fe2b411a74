// Plans that are true, and that forgeries begin with.
#ifndef ISOMER_TESTS_UNSOUND_BASE_PLANS_H_
#define ISOMER_TESTS_UNSOUND_BASE_PLANS_H_

#include <string>
#include <vector>

#include "tests/unsound/plan_claims.h"

namespace isomer {

// Made once, by the optimizer from the shipped rules, of which each keeps those that it uses:
//
//   data           a perceptron, data parallel over 4 devices, Adam
//   tensor         the same, its products divided by columns and rows over 2 devices
//   spatial        two convolutions of images of which 2 devices have the upper and lower half
//   pipeline       2 stages of 2 devices, 4 micro-batches
//   two_versions   the same, drained every 4 steps (2BW)
//   embedding      a look-up whose row 0 is filling, and multiplied by zero
//   dropout        with its seed as an input
//   tied           a table that is looked up and gives the logits, too
//   sharded        data parallel, ZeRO by method and by name
//   recomputed     data parallel; activations are computed again
//   low            data parallel, in bfloat16
//   inference      the perceptron, of which nothing is trained
const std::vector<std::string>& BasePlans();
const PlanClaim& BasePlan(const std::string& name);

}  // namespace isomer

#endif  // ISOMER_TESTS_UNSOUND_BASE_PLANS_H_
