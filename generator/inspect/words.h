// A rule's conditions and proof, said in words.
#ifndef ISOMER_GENERATOR_INSPECT_WORDS_H_
#define ISOMER_GENERATOR_INSPECT_WORDS_H_

#include <string>

#include "rules/language/rule.h"

namespace isomer {

// "d times the degree of x0 at axis -2 divides the size of x0 there".
std::string ConditionInWords(const Condition& condition, const Rule& rule);

// "degree d, axes i and j": the variables by kind.
std::string VariablesInWords(const Rule& rule);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_INSPECT_WORDS_H_
