// Where the generator looks: types of inputs, and operators to build graphs from.
#ifndef ISOMER_GENERATOR_ENUMERATION_CONFIGURATION_H_
#define ISOMER_GENERATOR_ENUMERATION_CONFIGURATION_H_

#include <set>
#include <string>
#include <vector>

#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// At so many operators a side the largest of those that are written down take a second and 30 MB
// (bench/enumeration_growth.cc).
inline constexpr int kMostWrittenOperators = 4;

struct Configuration {
  std::string name;
  std::vector<TensorType> inputs;
  std::vector<Operator> operators;            // with attributes
  int max_operators = kMostWrittenOperators;  // of one graph
  // If not empty: only equations that contain one of these; what others say is another
  // configuration's to find.
  std::set<OpKind> focus = {};
  // Per input: its elements, if it is a constant and not any tensor. (What is found of it is no
  // rule: a pattern cannot name a constant.)
  std::vector<std::vector<double>> values = {};
  int most_operands = 2;  // of operators that need not take so many, such as Concat
  // Terms that a smaller equation found before reduces are passed over (reducible_terms.h), and
  // equations that are so by chance (chance.h).
  bool skips_instances = false;
  // Also equations neither side of which uses each input once: many, nearly all of which others
  // say.
  bool every_side = false;
};

// The configurations of a run over operators of `kinds` with at most `max_operators` a side.
// Shapes are small and as square as possible, so that whatever can compose does; that a result
// holds for other shapes is settled later.
std::vector<Configuration> Configurations(const std::set<OpKind>& kinds, int max_operators);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ENUMERATION_CONFIGURATION_H_
