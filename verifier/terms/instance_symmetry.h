// Instances of a rule that differ in the order of dims alone: they are one theorem.
#ifndef ISOMER_VERIFIER_TERMS_INSTANCE_SYMMETRY_H_
#define ISOMER_VERIFIER_TERMS_INSTANCE_SYMMETRY_H_

#include <vector>

#include "pcg/ir/declaration.h"
#include "verifier/terms/rule_instance.h"

namespace isomer {

// Each element of the output is made of the elements at its place, operands broadcast as in NumPy:
// read off the declaration of a call.
bool TreatsDimsAlike(const Declaration& d);

// Leaves one of each set of instances that an order of the dims makes the same.
//
// Operators tell dims apart only by the axes that the rule names (-2 and -1 count as named where
// there is a MatMul); to all others each does the same, or the rule is left alone. So an instance
// is determined by what the inputs have at each axis that is named, and by what they have at the
// others in any order: nothing, 1, or sizes that occur at no other axis.
void DropSymmetric(const Rule& rule, std::vector<RuleInstance>* instances);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_TERMS_INSTANCE_SYMMETRY_H_
