// Pictures of a rule: its two sides as graphs of pattern nodes.
#ifndef ISOMER_GENERATOR_INSPECT_DRAWING_H_
#define ISOMER_GENERATOR_INSPECT_DRAWING_H_

#include <string>

#include "rules/language/rule.h"

namespace isomer {

// A pattern node without its operands: "partition(axis=i, degree=d)".
std::string NodeText(const PatternNode& node);
// "x0", "2" or, of a Split, "2.1": what a reference is called in drawings and lists.
std::string RefName(const Pattern& pattern, PatternRef ref);

// One node a line, in order: "0 = matmul(x0, x1)", then "y0 = 0".
std::string NodeLines(const Pattern& pattern);

// For the terminal: from each output down to the inputs, one node a line; a node that occurs twice
// is drawn once.
//   y0
//   `- combine(axis=-2, degree=d)
//      `- matmul
//         |- partition(axis=-2, degree=d)
//         |  `- x0
//         `- replicate(degree=d)
//            `- x1
std::string TreeText(const Pattern& pattern);

// Both sides beside each other, data flowing down; for dot, and as a picture of its own.
std::string RuleToDot(const Rule& rule);
std::string RuleToSvg(const Rule& rule);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_INSPECT_DRAWING_H_
