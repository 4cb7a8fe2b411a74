// How calls are spread over tasks, found by enumeration.
//
// For one call op(x0, x1, ..) on tensors that are not parallel, every way to hold each operand as
// two pieces along an axis, two copies, two partial sums, or as it is, is tried. Those that
// type-check, and give outputs that are pieces, copies or partial sums of the call's own, are its
// spreads. So the rows, the columns, the contraction, the copies of a MatMul, and the partial sums
// of its operands, are five of them; that there are no others is part of the result.
#ifndef ISOMER_GENERATOR_ASSIGNMENTS_SPREAD_H_
#define ISOMER_GENERATOR_ASSIGNMENTS_SPREAD_H_

#include <string>
#include <vector>

#include "generator/assignments/sample_calls.h"
#include "generator/assignments/statistics.h"
#include "generator/assignments/type_oracle.h"

namespace isomer {

// How a tensor is held by a spread call, where the whole call has it as it is.
struct SpreadShare {
  enum class Kind { kWhole, kPieces, kCopies, kPartials };
  Kind kind = Kind::kWhole;
  int64_t axis = 0;  // kPieces; counted from the end
  char Letter() const { return "-PR+"[static_cast<int>(kind)]; }
  friend bool operator==(const SpreadShare&, const SpreadShare&) = default;
};

struct CallSpread {
  std::vector<SpreadShare> operands, outputs;
  bool Has(SpreadShare::Kind kind) const;
  // Without the axes: "PR>P".
  std::string Form() const;
};

// `type`, held with `degree` times as many pieces, copies or partials.
TensorType Shared(TensorType type, const SpreadShare& share, int64_t degree);

std::vector<CallSpread> FindSpreads(const OperatorCall& call, TypeOracle* oracle,
                                    Statistics* statistics);

// Those spreads of a call that follow its dims, by a degree of 2, without a search: each dim that
// can be split, and those of `others` (which have no axes) that type-check at this call.
std::vector<CallSpread> SpreadsAlongDims(const OperatorCall& call,
                                         const std::vector<CallSpread>& others, TypeOracle* oracle);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ASSIGNMENTS_SPREAD_H_
