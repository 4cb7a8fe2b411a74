// Foreign rules as rules of ours.
//
// Axes, degrees, kernels and strides stay literal; a fused activation becomes a call of its own.
// What a format derives, it is derived by: TASO's groups are the ratio of the operands' channels,
// its padding "same" is k - 1 at stride 1, its Split divides where a Concat joined. Scalars become
// number variables.
#ifndef ISOMER_VERIFIER_AUDIT_TRANSLATE_H_
#define ISOMER_VERIFIER_AUDIT_TRANSLATE_H_

#include <string>
#include <variant>
#include <vector>

#include "rules/language/rule.h"
#include "verifier/audit/foreign_rule.h"

namespace isomer {

// What the rule leaves open.
struct Reading {
  int rank = 2;        // logical dims of the tensors whose rank nothing in the rule says
  int64_t groups = 1;  // of the convolutions of the source
  // Of Unity: the replica dim is a dim like others, the first, and degrees are no part of the rule
  // (verifier/audit/array_degrees.h): Partition and Combine do nothing, Replicate repeats along its
  // dim, Reduce adds pieces.
  bool arrays = false;
};

struct Translation {
  Rule rule;  // without conditions
  // Sizes that the source's operators state, kernels: part of what the rule says.
  std::vector<Condition> stated;
  // Sizes that the source's operators need equal; ours may broadcast there.
  std::vector<Condition> shapes;
  // Sizes that the target's operators need equal, which those of the source do not.
  std::vector<Condition> needed;
  std::vector<Shape> input_shapes;  // as all of these make them
  bool depends_on_rank = false;     // some rank is that of the reading
  bool has_convolutions = false;    // in the source
  // Our types fit fewer instances than the format: that they do not fit says little.
  bool narrower = false;
};

struct Untranslated {
  enum class Why { kOutside, kSourceIllTyped, kTargetIllTyped, kUnknown };
  Why why = Why::kUnknown;
  std::string reason;  // begins with the operator: "target operator 1 (OP_MATMUL): ..."
  int rank = -1;       // kUnknown: of all inputs, if they have one and both sides have shapes
};

std::variant<Translation, Untranslated> Translate(const ForeignRule& rule, ForeignFormat format,
                                                  const Reading& reading);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_AUDIT_TRANSLATE_H_
