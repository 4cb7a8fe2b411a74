// Random assignments under which a rule's source type-checks.
//
// Shapes: the sizes that a pattern admits are the solutions of linear equations (dims are equal, or
// add up in a Concat). From one solution, the base, the sampler finds moves by probing: smallest
// sets of dims that may grow together. Random sums of moves are then new solutions, in which dims
// that need not be equal are not.
// Degrees, copies and partials: node by node, a random degree for every iteration dim gives the
// operand types that the call needs (OperandTypesFor); operands that are computed already fix what
// they lead. What remains over-determined is drawn again.
#ifndef ISOMER_GENERATOR_ASSIGNMENTS_SAMPLER_H_
#define ISOMER_GENERATOR_ASSIGNMENTS_SAMPLER_H_

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "generator/assignments/type_oracle.h"
#include "rules/language/rule.h"

namespace isomer {

using Random = std::mt19937_64;

// A value in [0, bound).
inline int64_t Below(Random* random, int64_t bound) {
  return static_cast<int64_t>((*random)() % static_cast<uint64_t>(bound));
}
inline bool Chance(Random* random, int percent) { return Below(random, 100) < percent; }

// Draws degrees, copies and partials, all from `degrees`, for the inputs of a pattern, whose sizes
// and variables `binding` has. Returns false if what was drawn first cannot be met later.
bool DrawInputTypes(const Pattern& pattern, const std::vector<int64_t>& degrees, TypeOracle* oracle,
                    Random* random, Binding* binding);

struct SampleOptions {
  bool small = false;  // sizes that are cheap to evaluate
  // Above 0: degrees are 1 or this, and sizes grow by this. A base of such sizes gives assignments
  // unlike those that rules are found with.
  int64_t unit = 0;
};

class Sampler {
 public:
  // The source of `rule` at one rank vector; `base` binds inputs of those ranks, not parallel, and
  // size and attribute variables, such that the source type-checks when all degrees are 1.
  Sampler(const Rule& rule, const Binding& base, TypeOracle* oracle);

  // False if the source does not type-check at the base.
  bool usable() const { return usable_; }

  // Nullopt if `attempts` draws gave nothing that type-checks. Conditions are not looked at.
  std::optional<Binding> Draw(const SampleOptions& options, int attempts, Random* random);

 private:
  struct Slot {  // a size that may move
    int input = -1, dim = -1;
    std::string variable;
  };
  bool SourceChecks(const Binding& binding) const;
  void FindMoves();
  bool TryMove(const std::vector<int>& slots, bool opposite = false);
  bool SearchMove(std::vector<int>* chosen, size_t from, size_t count);
  static void Grow(const Slot& slot, int64_t by, Binding* binding);
  Binding DrawShapes(const SampleOptions& options, Random* random) const;
  bool DrawSplit(Binding* binding, Random* random) const;
  void DrawVariables(const SampleOptions& options, Binding* binding, Random* random) const;

  const Rule& rule_;
  const Binding base_;
  TypeOracle* const oracle_;
  bool usable_ = false;
  bool fixed_shapes_ = false;
  std::vector<Slot> slots_;
  struct Move {
    std::vector<int> slots;
    bool opposite = false;  // the second slot shrinks as the first grows
  };
  static void Apply(const Move& move, int64_t by, const std::vector<Slot>& slots, Binding* binding);
  std::vector<Move> moves_;
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ASSIGNMENTS_SAMPLER_H_
