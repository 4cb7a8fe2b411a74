#include "runtime/checking/rounding_noise.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "pcg/ir/operator_facts.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/ir/precision.h"
#include "pcg/support/float8.h"

namespace isomer {
namespace {

constexpr DataType kFloat32 = DataType::kFloat32;

bool MovesElements(OpKind kind) {
  return IsLayout(kind) || IsPlacement(kind) || kind == OpKind::kCast;
}

// What is computed in float32 whatever the precision is (pcg/ir/precision.h).
bool IsExact(OpKind kind) { return TraitsOf(kind).needs_float32; }

// Whole numbers, which are exact where the precision has them: noise would make other indices of
// them.
bool GivesWholeNumbers(OpKind kind) {
  return kind == OpKind::kFloor || kind == OpKind::kCeil || kind == OpKind::kRound ||
         kind == OpKind::kSign;
}

// Of a look-up, what it copies.
bool OnlyCopies(const KernelCall& call) { return IsLookUp(call.op.kind()) && !call.gradient; }

// How many values `dims` take together, each counted once; one that a look-up selects takes one.
int64_t PointsOf(const KernelCall& call, const Statement& statement, std::vector<int> dims) {
  std::sort(dims.begin(), dims.end());
  dims.erase(std::unique(dims.begin(), dims.end()), dims.end());
  int64_t points = 1;
  for (int dim : dims) {
    if (dim != statement.select_dim) {
      points *= call.iteration.end[dim] - call.iteration.begin[dim];
    }
  }
  return points;
}

// Of what the statement reads, how many of its points read an element: so many terms the element's
// gradient has. Of a window's dims the first slides over the elements.
int64_t LongestGradientSum(const KernelCall& call, const Statement& statement) {
  std::vector<int> dims = statement.reduced;
  for (const Index& index : statement.indices) {
    for (const auto& [dim, stride] : index.terms) dims.push_back(dim);
  }
  const int64_t points = PointsOf(call, statement, dims);
  int64_t longest = 1;
  for (const Instruction& instruction : statement.body) {
    if (instruction.op != ScalarOp::kLoad) continue;
    std::vector<int> read;
    for (const Index& index : call.declaration.accesses[instruction.access].indices) {
      if (!index.terms.empty()) read.push_back(index.terms[0].first);
    }
    longest = std::max(longest, points / std::max<int64_t>(PointsOf(call, statement, read), 1));
  }
  return longest;
}

// The relative noise of sums in float32.
double NoiseOfSums(const KernelCall& call) {
  return std::sqrt(static_cast<double>(LongestSum(call))) / 2 * UnitRoundoff(kFloat32);
}

}  // namespace

Noise NoiseOfReads(const KernelCall& call, const Rounding& rounding) {
  const OpKind kind = call.op.kind();
  const DataType low = StoredIn(rounding, call.gradient);
  // What is moved may come from the host, and is rounded before.
  if (MovesElements(kind) || OnlyCopies(call)) return {.stored = low};
  return {.relative = NoiseOfSums(call), .stored = IsExact(kind) ? kFloat32 : low};
}

Noise OfOperandInFp8(const KernelCall& call, int operand, Noise read) {
  if (Fp8ScalingOf(call.op) == Fp8Scaling::kNone || operand > 1) return read;
  read.relative = std::hypot(read.relative, Float8UnitRoundoff(Float8Format::kE4M3));
  return read;
}

Noise OfGradientInFp8(const KernelCall& call, Noise read) {
  if (Fp8ScalingOf(call.op) == Fp8Scaling::kNone) return read;
  read.relative = std::hypot(read.relative, Float8UnitRoundoff(Float8Format::kE5M2));
  return read;
}

// The gradients that a loss gives back are stored like all others. A model may have tensors of low
// precision of its own, which over the reals are no others.
Noise NoiseOfWrite(const KernelCall& call, int write, const Rounding& rounding) {
  const OpKind kind = call.op.kind();
  const DataType low = StoredIn(rounding, call.gradient);
  const DataType dtype = call.gradient ? call.dtypes[write] : call.output_dtypes[write];
  if (MovesElements(kind) || (OnlyCopies(call) && low == kFloat32)) {
    const bool rounds = kind == OpKind::kCast && IsFloat(dtype) && dtype != kFloat32;
    return {.relative = rounds ? UnitRoundoff(dtype) : 0, .stored = low};
  }
  if (GivesWholeNumbers(kind)) return {.stored = low};
  const DataType stored = IsExact(kind) && !call.gradient ? kFloat32 : low;
  const double unit = std::max(UnitRoundoff(stored), UnitRoundoff(dtype));
  const double parts =
      static_cast<double>(1 + (call.gradient ? rounding.gradient_parts : rounding.forward_parts));
  constexpr double kShareOfWorst = 0.25;
  const double plain = static_cast<double>(TermsOfPlainSum(call, write));
  const double biased = plain > 1 ? kShareOfWorst * plain * UnitRoundoff(kFloat32) : 0;
  const double sums = OnlyCopies(call) ? 0 : NoiseOfSums(call);
  return {.relative = std::hypot(sums, biased, unit * std::sqrt(parts)),
          .absolute = SmallestPositive(stored) / 2 * std::sqrt(parts),
          .stored = stored};
}

int64_t TermsOfPlainSum(const KernelCall& call, int write) {
  const bool contraction = IsContraction(call.op.kind());
  if (call.gradient) {
    // Of what is broadcast: biases, also those that a product adds.
    const bool bias = !contraction || (call.op.kind() == OpKind::kLinear && write == 2);
    const int64_t volume = std::max<int64_t>(call.operands[write].Volume(), 1);
    return bias ? std::max<int64_t>(call.outputs[0].Volume() / volume, 1) : 1;
  }
  int64_t terms = 1;
  for (const Statement& statement : call.declaration.statements) {
    if (contraction || statement.output != write || statement.reduction != Reduction::kSum) {
      continue;
    }
    terms = PointsOf(call, statement, statement.reduced);
  }
  return terms;
}

int64_t LongestSum(const KernelCall& call) {
  int64_t longest = 1;
  for (const Statement& statement : call.declaration.statements) {
    const bool sums = statement.reduction == Reduction::kSum;
    if (sums) longest = std::max(longest, PointsOf(call, statement, statement.reduced));
    if (call.gradient) longest = std::max(longest, LongestGradientSum(call, statement));
  }
  return longest;
}

}  // namespace isomer
