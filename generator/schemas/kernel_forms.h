// The forms of kernel_families.h as rules of one call.
#ifndef ISOMER_GENERATOR_SCHEMAS_KERNEL_FORMS_H_
#define ISOMER_GENERATOR_SCHEMAS_KERNEL_FORMS_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "generator/assignments/sample_calls.h"
#include "rules/language/rule.h"

namespace isomer {

// A rule in the making, and an assignment of its variables.
struct KernelRule {
  Rule rule;
  Binding binding;
  bool has_inverse = true;  // worth a try
};

// List attributes that a rule names, by the numbers that each repeats; the others are variables.
using ListConstants = std::map<std::string, std::vector<int64_t>>;

// Nullopt, here and below: the call has not the shape that the form speaks of.
//
// op(x, w) -> op(x, pad(w)), one place more on both sides of those of the last dims of w of which
// `grows` has a 1. The list `grown`, which has a number for each of these dims, or several times,
// is larger there by as much: `number` everywhere in the target.
std::optional<KernelRule> GrownKernel(const OperatorCall& call, const std::string& grown,
                                      const std::vector<int64_t>& grows, int64_t number,
                                      ListConstants constants);

// op(.., mul(w, s), ..) -> mul(op(.., w, ..), s); w is an operand with the dim at `axis`, and s is
// transposed in the source if the output has it at another.
std::optional<KernelRule> ScaledKernel(const OperatorCall& call, size_t operand, int64_t axis,
                                       int64_t output_axis);

// op(x, w), op(x, u), .. -> the parts of op(x, concat(w, u, ..)), which are as large but along the
// dim. `joined`: the Concat of the left becomes the whole.
std::optional<KernelRule> MergedKernels(const OperatorCall& call, const SplittableDim& dim,
                                        int parts, bool joined);

// op(f(x), w) -> f(op(x, w)) if the last `ones` dims of w are of size 1.
std::optional<KernelRule> PassedKernel(const OperatorCall& call, const OperatorCall& f, int ones,
                                       const ListConstants& constants);

// The operands z of f(y, u, z) that it is linear in together with y, the fewest. Empty if f is not
// so linear, or in y alone, or has no others.
std::set<size_t> AffineOperands(const OperatorCall& f);

// f(op(.., w, ..), u, z) -> add(op(.., f(w, u, 0 z), ..), f(0 w, u, z)), where z are the operands
// AffineOperands(f) and the last zero is one place for each of w along the dim. w is an operand
// with the dim at `axis`, which f works along at `output_axis`; it is transposed for f if these
// differ.
std::optional<KernelRule> FoldedKernel(const OperatorCall& call, const OperatorCall& f,
                                       size_t operand, int64_t axis, int64_t output_axis);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_SCHEMAS_KERNEL_FORMS_H_
