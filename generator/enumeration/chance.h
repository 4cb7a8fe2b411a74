// Equations that hold where they were found and nowhere else.
//
// Where many operators are taken together, most of what is equal is so by chance: clip(x) is a
// bound for nearly all elements of a prime field, and of one element the softmax, the sum and the
// largest are 1 or itself. Generalising such an equation takes a hundred times longer than seeing
// that it fails: over numbers, or with more elements in place of one.
#ifndef ISOMER_GENERATOR_ENUMERATION_CHANCE_H_
#define ISOMER_GENERATOR_ENUMERATION_CHANCE_H_

#include <optional>
#include <string>

#include "generator/assignments/sampler.h"
#include "generator/assignments/type_oracle.h"
#include "generator/preconditions/generalize.h"

namespace isomer {

// Why an equation is none where sizes are larger, inputs others, or numbers real; nullopt: it
// holds, or cannot be tried there.
std::optional<std::string> FailsElsewhere(const Candidate& candidate, TypeOracle* oracle,
                                          Random* random);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ENUMERATION_CHANCE_H_
