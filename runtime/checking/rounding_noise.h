// What rounding may do to a kernel, as noise in its floats.
//
// Rounding makes of a call what exact arithmetic makes of operands that are a little different, and
// rounds what it stores (backward error: Higham, "Accuracy and Stability of Numerical Algorithms",
// 2002, chapter 3). So a kernel's floats are multiplied by 1 + a xi, xi uniform in [-1, 1] and
// drawn for each element anew:
//
//   operands (and gradients of outputs)    a^2 = n v^2 / 4
//   results (and gradients of operands)    a^2 = n v^2 / 4 + (m v / 4)^2 + s^2 (1 + p)
//
// v: the unit roundoff of float32, in which all kernels sum; s: that of the plan's precision, in
// which it stores, or of what it sums gradients in, for those.
// n: the terms of the longest sum of the call, or of its gradient. The roundings of a sum, term by
// term, of independent terms deviate by 0.3 n v times the terms' deviation, which is what both
// operands' noise makes of them with a = 0.37 sqrt(n) v; of terms of one sign by 0.25 sqrt(n) v
// times the result, as its noise with a = 0.43 sqrt(n) v (section 2.8: sqrt(n) for n). Kernels that
// sum in blocks do better.
// m: the terms of a result that is a plain sum. These may be alike, as the terms of a bias's
// gradient are where a network knows nothing yet, and then all roundings go one way: n additions of
// equal numbers err by up to 0.7 n v, 5 times the deviation of a = n v / 4. p: how often a result
// is rounded to a low precision besides, before the plan has added up its parts: partial sums,
// micro-batches' gradients. (In float32 parts are another order of the terms.)
//
// Of a product in 8 bits the kernel itself rounds the operands; their noise has a^2 larger by the
// square of the unit roundoff of their format (Float8UnitRoundoff).
//
// Zeros, infinities and what stands for these (StandsForInfinity) have no noise. Results in float16
// get a multiple of half the smallest subnormal besides. In low precision
// operands and results are rounded to it, too: then numbers become equal, and small ones vanish.
#ifndef ISOMER_RUNTIME_CHECKING_ROUNDING_NOISE_H_
#define ISOMER_RUNTIME_CHECKING_ROUNDING_NOISE_H_

#include <cstdint>

#include "runtime/checking/rounding.h"
#include "runtime/device/backend.h"

namespace isomer {

// A float is multiplied by 1 + relative xi, shifted by absolute xi, and rounded to `stored`.
struct Noise {
  double relative = 0, absolute = 0;
  DataType stored = DataType::kFloat32;

  bool any() const { return relative > 0 || stored != DataType::kFloat32; }
};

// Of what the call's kernel reads; and of its write `write`, an output or the gradient of an
// operand.
Noise NoiseOfReads(const KernelCall& call, const Rounding& rounding);
Noise NoiseOfWrite(const KernelCall& call, int write, const Rounding& rounding);

// That, of a product in 8 bits (pcg/ir/fp8.h), whose kernel rounds besides: of an operand, and of
// the gradient of its result.
Noise OfOperandInFp8(const KernelCall& call, int operand, Noise read);
Noise OfGradientInFp8(const KernelCall& call, Noise read);

// The longest sum that the kernel of the call makes, in terms: of a gradient, those by operands and
// by intermediates as well. 1 without sums.
int64_t LongestSum(const KernelCall& call);

// How many terms the write is the plain sum of, which may be alike: 1 if it is none, or of
// products.
int64_t TermsOfPlainSum(const KernelCall& call, int write);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECKING_ROUNDING_NOISE_H_
