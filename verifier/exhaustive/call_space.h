// Small calls of every operator, all of a kind: dims and kernels of every size up to a bound.
//
// A template is a call with letters for numbers (call_templates.cc):
//   conv1d(stride=[S],padding=[P,Q],dilation=[D],groups=G) [n,Gc,y] [Go,c,r]
// Each letter takes every value of its range; "Gc" is a product, "m+n" a sum, "*" any dims in
// front. A space is the sum of its templates, each the product of its letters' ranges; not every
// point of it type-checks.
#ifndef ISOMER_VERIFIER_EXHAUSTIVE_CALL_SPACE_H_
#define ISOMER_VERIFIER_EXHAUSTIVE_CALL_SPACE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

struct SmallCall {
  Operator op;
  std::vector<TensorType> operands;
  Declaration declaration;
  std::string ToString() const;  // "matmul f32[2,3] f32[3,1]"
};

class CallSpace {
 public:
  explicit CallSpace(OpKind kind);
  int64_t size() const { return size_; }
  // nullopt: that point does not type-check, or is too large.
  std::optional<SmallCall> At(int64_t point) const;

  // The points in an order that a prefix of spreads over the whole space.
  int64_t Spread(int64_t place) const;

 private:
  struct Template {
    std::string op;
    std::vector<std::string> operands;
    std::string letters;
    int64_t size = 1;
  };
  void Add(const std::string& text);
  std::vector<Template> templates_;
  int64_t size_ = 0;
};

// The texts of a kind's templates.
std::vector<std::string> CallTemplates(OpKind kind);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_EXHAUSTIVE_CALL_SPACE_H_
