// From enumerated tensors to pairs of patterns.
#ifndef ISOMER_GENERATOR_ENUMERATION_EQUATION_H_
#define ISOMER_GENERATOR_ENUMERATION_EQUATION_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "generator/enumeration/call_table.h"
#include "generator/preconditions/generalize.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

using TensorList = absl::InlinedVector<int, 3>;

struct EnumeratedNode {
  const EnumeratedCall* call;
  TensorList operands;
};

struct EnumeratedNodes {
  std::vector<EnumeratedNode> nodes;
  // What defines each tensor: a node's output, or an input of the configuration.
  std::vector<PatternRef> tensors;
  // How a term that is none of the nodes is named in what follows.
  int OutputOfTerm(int output) const { return static_cast<int>(tensors.size()) + output; }
  // "relu(x0) = x0"
  std::string Text(const EnumeratedNode& term, const TensorList& source,
                   const TensorList& target) const;
};

// The two axes, counted from the end, that a perm exchanges; the last two if it does not.
SwapAxes ExchangeOf(const std::vector<int64_t>& perm);

// An attribute as it is; axes that a perm exchanges count from the end.
AttributePattern ConstantAttribute(const Attribute& attribute);

// The equation source = target over `nodes` and one more `term`, inputs numbered as the source uses
// them. If the source lacks an input that the target has, the sides are exchanged; nullopt if each
// lacks one of the other's.
std::optional<Candidate> MakeCandidate(const EnumeratedNodes& nodes, const EnumeratedNode& term,
                                       const std::vector<TensorType>& inputs,
                                       const TensorList& source, const TensorList& target);

// Equal for candidates that differ in the names of inputs (of one type) or in operand order of
// commutative operators.
std::string CanonicalName(const Candidate& candidate);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ENUMERATION_EQUATION_H_
