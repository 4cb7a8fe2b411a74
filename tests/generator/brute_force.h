// All terms over a few operators, and which of them are equal: by comparing every two of them, with
// nothing that the generator does (no fingerprints, no classes, no canonical forms).
#ifndef ISOMER_TESTS_GENERATOR_BRUTE_FORCE_H_
#define ISOMER_TESTS_GENERATOR_BRUTE_FORCE_H_

#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/graph.h"

namespace isomer {

// Shapes at which terms are built. What is equal at the first and not at the second holds for the
// sizes of the first only.
inline constexpr int kWorlds = 2;
// Random inputs of each world.
inline constexpr int kInputSets = 2;

struct Subset {
  std::string name;
  std::array<std::vector<std::string>, kWorlds> inputs;  // types
  std::array<std::vector<Operator>, kWorlds> operators;  // the same, with attributes that fit
  int max_operators = 2;                                 // of a term, shared ones counted once
};

class Terms {
 public:
  explicit Terms(const Subset& subset);

  int size() const { return static_cast<int>(terms_.size()); }
  // Pairs (a, b), a < b, of equal types and values in all worlds, over the field and in double.
  std::vector<std::pair<int, int>> EqualPairs() const;
  // Pairs that are equal in double, and differ over the field.
  std::vector<std::pair<int, int>> EqualInDoubleOnly() const;
  // The term as a graph of the first world on inputs x0, x1, ...
  Graph GraphOf(int term) const;
  std::string Text(int term) const;
  int OperatorsOf(int term) const { return static_cast<int>(terms_[term].calls.size()); }

 private:
  struct Call {
    int op;
    std::vector<int> operands;  // terms
  };
  struct EnumeratedTerm {
    int call = -1;        // an input: -1
    int output = 0;       // an input: which
    std::set<int> calls;  // all that it needs
    std::array<std::array<Value<PrimeField>, kInputSets>, kWorlds> field;
    std::array<std::array<Value<double>, kInputSets>, kWorlds> real;
    std::array<std::array<std::vector<PrimeField>, kInputSets>, kWorlds> field_meaning;
    std::array<std::array<std::vector<double>, kInputSets>, kWorlds> real_meaning;
  };
  void AddInputs();
  void Apply(int op, int size);
  void TryCall(int op, const std::vector<int>& operands, int size);
  template <typename T>
  bool RunCall(const Operator& op, const std::vector<const Value<T>*>& operands,
               std::vector<Value<T>>* outputs) const;
  bool SameTypes(const EnumeratedTerm& a, const EnumeratedTerm& b) const;
  static bool SameInField(const EnumeratedTerm& a, const EnumeratedTerm& b);
  static bool SameInDouble(const EnumeratedTerm& a, const EnumeratedTerm& b);
  static void Finish(EnumeratedTerm* term);
  TensorRef Build(int term, const std::vector<TensorRef>& inputs, std::map<int, NodeId>* built,
                  Graph* graph) const;

  const Subset& subset_;
  std::vector<Call> calls_;
  std::vector<EnumeratedTerm> terms_;
  std::vector<std::vector<int>> by_size_;
};

}  // namespace isomer

#endif  // ISOMER_TESTS_GENERATOR_BRUTE_FORCE_H_
