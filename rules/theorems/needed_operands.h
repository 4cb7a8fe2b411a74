// Of which operands a call needs every element, so that one that is no number shows in what it
// makes.
//
// A source that is finite says of what it applies that it is defined, but only where that is not
// dropped: where(c, log(x), y) is finite wherever c does not choose log(x), relu(log(x)) wherever x
// is below zero, embedding(log(w), i) wherever the rows that are looked up are.
#ifndef ISOMER_RULES_THEOREMS_NEEDED_OPERANDS_H_
#define ISOMER_RULES_THEOREMS_NEEDED_OPERANDS_H_

#include <vector>

#include "pcg/ir/declaration.h"

namespace isomer {

// The statement goes over every element of what the access reads. (It need not use what it reads.)
bool ReadsAll(const Declaration& d, const Statement& s, const Access& access);

// Per operand: if an element of it is no number, then so is an element of the output; and if its
// gradient is not finite for a finite one of the output, that is not dropped either. False if that
// is not seen.
std::vector<bool> NeededOperands(const Declaration& d, int output);

}  // namespace isomer

#endif  // ISOMER_RULES_THEOREMS_NEEDED_OPERANDS_H_
