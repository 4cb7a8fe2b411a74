// The size of a dim, known or symbolic.
//
// Operator declarations are written once over Extents. Shape inference and evaluation read them
// with known sizes; the prover reads them with symbols, so that a lemma holds for every size.
// An Extent is a linear form: constant + sum of coefficient * symbol. This is all that shapes and
// offsets of the declared operators need (Concat adds sizes; nothing multiplies two symbols).
#ifndef ISOMER_PCG_IR_EXTENT_H_
#define ISOMER_PCG_IR_EXTENT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace isomer {

class Extent {
 public:
  Extent() = default;
  Extent(int64_t constant) : constant_(constant) {}  // NOLINT: sizes read as numbers
  static Extent Symbol(int id);

  bool known() const { return terms_.empty(); }
  // REQUIRES: known().
  int64_t value() const;
  int64_t constant() const { return constant_; }
  // (symbol, coefficient), sorted by symbol, no zero coefficient.
  const std::vector<std::pair<int, int64_t>>& terms() const { return terms_; }

  Extent& operator+=(const Extent& other);
  Extent& operator-=(const Extent& other) { return *this += other * -1; }
  friend Extent operator+(Extent a, const Extent& b) { return a += b; }
  friend Extent operator-(Extent a, const Extent& b) { return a -= b; }
  Extent operator*(int64_t factor) const;
  friend bool operator==(const Extent& a, const Extent& b) = default;
  friend auto operator<=>(const Extent& a, const Extent& b) = default;

  // "12", "s0 + 2*s1 + 3".
  std::string ToString() const;

 private:
  int64_t constant_ = 0;
  std::vector<std::pair<int, int64_t>> terms_;
};

// A logical shape: one Extent per dim.
using Shape = std::vector<Extent>;

}  // namespace isomer

#endif  // ISOMER_PCG_IR_EXTENT_H_
