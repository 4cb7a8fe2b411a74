// Facts about declarations that are read off their statements (structure.h says what for).
#ifndef ISOMER_RULES_THEOREMS_DECLARATION_FACTS_H_
#define ISOMER_RULES_THEOREMS_DECLARATION_FACTS_H_

#include <vector>

#include "pcg/ir/declaration.h"

namespace isomer {

// The declarations are the same but for the size of dim v, and the sizes of what it leads.
bool SameButForSize(const Declaration& a, const Declaration& b, int v);
inline bool SameDeclaration(const Declaration& a, const Declaration& b) {
  return SameButForSize(a, b, -1);
}

// The declarations are the same but for the constants in their bodies.
bool SameButForConstants(const Declaration& a, const Declaration& b);

// What the declarations do at one place is the same: bodies, and which operands they load; not the
// places and shapes. An operator may have another body at another shape.
bool SameBodies(const Declaration& a, const Declaration& b);

// The declarations are the same but for a sum dim r of each of `shifted`, which in `b` begins one
// before and ends one after where it does in `a`; operand `padded` is indexed by them alone, and
// every summand has it as a factor. If that operand holds zeros there, both make the same. No
// coordinate of such a dim is used, and none is looked up: these are other numbers in `b`.
bool SameButForMargins(const Declaration& a, const Declaration& b, int padded);

// Dim v is partitionable, has no halo, and no statement uses its coordinates.
bool IsUniformIn(const Declaration& d, int v);

// One statement alone reads `operand`, is linear in it, and is read only times a constant: c in
// `a`, c * factor in `b`, which are the same otherwise.
bool SameButForFactor(const Declaration& a, const Declaration& b, int operand, double factor);

// Slice i of the output along `output_axis` reads of the operand its slice i along `axis` only.
bool GoesBySlices(const Declaration& d, int operand, int axis, int output_axis);

// All operands and the output have one shape, and each element depends on those at its place only.
bool IsElementwise(const Declaration& d);

// What every element of the outputs is, whatever elements the operands in `subset` hold.
enum class Moves {
  kElements,          // an element of one of those operands
  kElementsOrZero,    // or zero
  kElementsOrOthers,  // or what does not depend on them
  kLargest,           // the largest of some such elements
  kSmallest,          // the smallest
  kProduct,           // their product
  kNothingKnown,
};
Moves MovesElementsOf(const Declaration& d, const std::vector<bool>& subset);

// Of an elementwise declaration: at places where all operands are zero, so is the output.
bool KeepsZero(const Declaration& d);
// Of an elementwise declaration of constants and operands: it does not decrease in any of them.
bool IsNondecreasing(const Declaration& d);

}  // namespace isomer

#endif  // ISOMER_RULES_THEOREMS_DECLARATION_FACTS_H_
