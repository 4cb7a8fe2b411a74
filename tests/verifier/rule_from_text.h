// Rules as tests write them.
#ifndef ISOMER_TESTS_VERIFIER_RULE_FROM_TEXT_H_
#define ISOMER_TESTS_VERIFIER_RULE_FROM_TEXT_H_

#include <string>
#include <vector>

#include "rules/language/rule.h"

namespace isomer {

// "matmul(reduce(x0; degree=d), x1) -> reduce(matmul(x0, replicate(x1; degree=d)); degree=d)".
// Several outputs of a side are separated by " | ". Attributes: axis=-1 or a letter, degree=2, d or
// d*e, factor=2.0, f or f*g (scale, epsilon too), sizes=[n,size(x0,-1)], axes=[-1,i], perm=[1,0],
// min=0.0,
// swap=-2:-1 (Transpose), "name=7" otherwise. Equal calls of a side are one node. Kinds of
// variables follow from where they stand. Aborts on text that is none.
Rule RuleFromText(const std::string& text, std::vector<std::vector<int>> ranks,
                  std::vector<Condition> conditions = {});

Condition Divides(const std::string& degree, int input, int64_t axis);
Condition SameType(int a, int b);
Condition NoPartials(int input);
Condition Unpartitioned(int input, int64_t axis);
Condition ByStructure();
Condition NotEqual(IntExpr left, IntExpr right);
Condition EqualTo(IntExpr left, IntExpr right);

}  // namespace isomer

#endif  // ISOMER_TESTS_VERIFIER_RULE_FROM_TEXT_H_
