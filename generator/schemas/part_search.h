// The search of definition_families.h at one call.
#ifndef ISOMER_GENERATOR_SCHEMAS_PART_SEARCH_H_
#define ISOMER_GENERATOR_SCHEMAS_PART_SEARCH_H_

#include <optional>
#include <vector>

#include "generator/assignments/sample_calls.h"
#include "generator/preconditions/generalize.h"

namespace isomer {

// A graph of the fewest operators found that gives the output of `call`, as source -> target, with
// constants for attributes. Nullopt: none was found, or the declaration names nothing on the way.
std::optional<Candidate> FindParts(const OperatorCall& call, Random* random);

// Operators that such graphs may have: of one operand, or of two and one statement, whose
// attributes are numbers, axes, or exchanges of axes.
std::vector<OpKind> PartOperators();

}  // namespace isomer

#endif  // ISOMER_GENERATOR_SCHEMAS_PART_SEARCH_H_
