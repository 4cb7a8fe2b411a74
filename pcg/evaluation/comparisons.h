// Whether what a graph computed in floating point tells what it computes over the reals.
#ifndef ISOMER_PCG_EVALUATION_COMPARISONS_H_
#define ISOMER_PCG_EVALUATION_COMPARISONS_H_

#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/graph.h"

namespace isomer {

// True if a call compares what is not finite, which has an outcome in floating point and over the
// reals no value.
bool ComparesWhatIsNotFinite(const Graph& graph, const Values<double>& values);

// True if a call compares elements that differ by so little that rounding may have decided: 2 and
// (2 + sqrt(2)) - sqrt(2), with each other or with the integers at which functions jump.
bool RoundingMayDecide(const Graph& graph, const Values<double>& values);

}  // namespace isomer

#endif  // ISOMER_PCG_EVALUATION_COMPARISONS_H_
