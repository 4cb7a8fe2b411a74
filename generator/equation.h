// From enumerated tensors to pairs of patterns.
#ifndef ISOMER_GENERATOR_EQUATION_H_
#define ISOMER_GENERATOR_EQUATION_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "generator/generalize.h"
#include "pcg/operator.h"
#include "pcg/tensor_type.h"

namespace isomer {

struct EnumeratedNode {
  Operator op;
  std::vector<int> operands;  // tensors
  std::vector<int> outputs;   // tensors
};

struct EnumeratedTensor {
  PatternRef definition;  // a node's output, or an input of the configuration
  std::set<int> nodes;    // that it needs
  TensorType type;
};

struct EnumeratedNodes {
  std::vector<EnumeratedNode> nodes;
  std::vector<EnumeratedTensor> tensors;
  // The tensors that the nodes of a tensor's graph define.
  std::vector<int> PartsOf(int tensor) const;
  // "relu(x0) = x0"
  std::string Text(const std::vector<int>& source, const std::vector<int>& target) const;
};

// A perm of the last two axes, at another rank; other operators as they are.
Operator FitToRank(const Operator& op, int rank);

// The equation source = target, inputs numbered as the source uses them. If the source lacks an
// input that the target has, the sides are exchanged; nullopt if each lacks one of the other's.
std::optional<Candidate> MakeCandidate(const EnumeratedNodes& nodes,
                                       const std::vector<TensorType>& inputs,
                                       const std::vector<int>& source,
                                       const std::vector<int>& target);

// Equal for candidates that differ in the names of inputs (of one type) or in operand order of
// commutative operators.
std::string CanonicalName(const Candidate& candidate);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_EQUATION_H_
