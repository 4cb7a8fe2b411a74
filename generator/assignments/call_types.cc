#include "generator/assignments/call_types.h"

#include <algorithm>

#include "pcg/ir/operator_call.h"
#include "pcg/ir/type_inference.h"

namespace isomer {
namespace {

// Gives a random number that divides `total` back and takes it out of `total`.
int64_t TakeDivisor(int64_t* total, Random* random) {
  int64_t taken = 1;
  for (int64_t p : {2, 3, 5, 7}) {
    while (*total % p == 0 && Chance(random, 50)) {
      *total /= p;
      taken *= p;
    }
  }
  return taken;
}

int64_t DrawFrom(const std::vector<int64_t>& degrees, Random* random) {
  return degrees[Below(random, static_cast<int64_t>(degrees.size()))];
}

bool DrawUnaryParallel(const Operator& op, const std::vector<int64_t>& degrees, Random* random,
                       TensorType* type) {
  for (Dim& dim : type->dims) {
    const int64_t degree = DrawFrom(degrees, random);
    if (dim.size % degree == 0) dim.degree = degree;
  }
  type->copies = DrawFrom(degrees, random);
  type->partials = DrawFrom(degrees, random);
  const int64_t degree = op.Int("degree");
  if (op.kind() == OpKind::kCombine) {
    const absl::StatusOr<int> axis = NormalizeAxis(op.Int("axis"), type->rank());
    if (!axis.ok()) return false;
    Dim& dim = type->dims[*axis];
    dim.degree *= degree;
    if (dim.size % dim.degree != 0) dim.degree = degree;
    return dim.size % dim.degree == 0;
  }
  if (op.kind() == OpKind::kReduce) type->partials *= degree;
  return true;
}

// Degrees of the iteration dims that known operands fix; 0 where nothing does.
std::vector<int64_t> KnownDegrees(const Declaration& d, const std::vector<bool>& known,
                                  const std::vector<TensorType>& operands) {
  std::vector<int64_t> degrees(d.dims.size(), 0);
  for (size_t o = 0; o < operands.size(); ++o) {
    if (!known[o]) continue;
    for (int i = 0; i < operands[o].rank(); ++i) {
      const int lead = d.LeadOfOperandDim(static_cast<int>(o), i);
      if (lead >= 0) degrees[lead] = operands[o].dims[i].degree;
    }
  }
  return degrees;
}

bool Indexes(const Declaration& d, int operand, int dim) {
  for (size_t i = 0; i < d.operands[operand].size(); ++i) {
    if (d.LeadOfOperandDim(operand, static_cast<int>(i)) == dim) return true;
  }
  return false;
}

}  // namespace

const std::vector<int64_t>& UsualDegrees() {
  static const std::vector<int64_t> kDegrees = {1, 1, 1, 1, 2, 2, 2, 3, 3, 4};
  return kDegrees;
}

bool DrawOperandTypes(const Operator& op, const std::vector<bool>& known,
                      const std::vector<int64_t>& choices, Random* random,
                      std::vector<TensorType>* operands) {
  const int count = static_cast<int>(operands->size());
  const int first_known =
      static_cast<int>(std::find(known.begin(), known.end(), true) - known.begin());
  if (IsParallel(op.kind())) {
    if (count == 1) return known[0] || DrawUnaryParallel(op, choices, random, &(*operands)[0]);
    // ConcatPartials: operands of one type.
    if (first_known == count &&
        !DrawUnaryParallel(Operator(OpKind::kReplicate, {{"degree", int64_t{1}}}), choices, random,
                           &(*operands)[0])) {
      return false;
    }
    const TensorType like = (*operands)[first_known == count ? 0 : first_known];
    for (int o = 0; o < count; ++o) {
      if (!known[o]) (*operands)[o] = like;
    }
    return true;
  }
  const absl::StatusOr<Declaration> d = Declare(op, ShapesOf(*operands));
  if (!d.ok()) return false;
  std::vector<int64_t> degrees = KnownDegrees(*d, known, *operands);
  // The copies that a known operand has are the tasks that share its shards.
  int64_t sharers = first_known < count ? (*operands)[first_known].copies : 1;
  int64_t partials = 1;
  for (int o = 0; o < count; ++o) {
    if (known[o]) partials = std::max(partials, (*operands)[o].partials);
  }
  for (size_t v = 0; v < d->dims.size(); ++v) {
    const int dim = static_cast<int>(v);
    if (degrees[v] != 0) {
      if (first_known < count && !Indexes(*d, first_known, dim) && sharers % degrees[v] == 0) {
        sharers /= degrees[v];
      }
      continue;
    }
    degrees[v] = 1;
    if (!d->IsPartitionable(dim)) continue;
    const bool shared = first_known < count && !Indexes(*d, first_known, dim);
    const int64_t degree = shared ? TakeDivisor(&sharers, random) : DrawFrom(choices, random);
    if (d->dims[v].size.value() % degree == 0) {
      degrees[v] = degree;
    } else if (shared) {
      sharers *= degree;
    }
  }
  int64_t new_partials = 1;
  std::vector<bool> linear(count, false);
  const int holder = static_cast<int>(Below(random, count));
  if (partials == 1) {
    // Partials on one free operand, or on all of them (Add).
    const bool all = first_known == count && Chance(random, 50);
    for (int o = 0; o < count; ++o) linear[o] = !known[o] && (all || o == holder);
    if (d->IsLinearIn(linear)) {
      new_partials =
          first_known < count ? TakeDivisor(&sharers, random) : DrawFrom(choices, random);
    }
    if (new_partials == 1) linear.assign(count, false);
  } else {
    for (int o = 0; o < count; ++o) linear[o] = known[o] && (*operands)[o].partials > 1;
    if (!d->IsLinearIn(linear)) {
      for (int o = 0; o < count; ++o) linear[o] = linear[o] || !known[o];
    }
    new_partials = partials;
  }
  const int64_t copies = first_known < count ? sharers : DrawFrom(choices, random);
  const auto types = OperandTypesFor(op, *operands, degrees, copies);
  if (!types.ok()) return false;
  for (int o = 0; o < count; ++o) {
    if (known[o]) continue;
    (*operands)[o] = (*types)[o];
    if (linear[o]) {
      (*operands)[o].partials = new_partials;
    } else {
      (*operands)[o].copies *= new_partials;
    }
  }
  return true;
}

}  // namespace isomer
