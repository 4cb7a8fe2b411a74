// Matrix products with weights in 8 bits, of a plan that computes in bfloat16.
//
// Of such a product both operands are rounded to 8 bits, each with a scale; sums are float32, and
// the result is bfloat16. In E4M3 are the operands of the forward product, in E5M2 the gradient
// that the two products of the backward pass have as an operand beside one of these (Micikevicius
// et al., "FP8 Formats for Deep Learning", 2022):
//
//   y = Q4(x) Q4(w)    dx = Q5(dy) Q4(w)^T    dw = Q4(x)^T Q5(dy)    Q(a) = s round(a / s)
//
// A scale s is the largest magnitude of what it is of, over the largest number of the format. It is
// found when the product is computed, of what the device has there, so nothing is sent for it.
//
// It is of MatMul and Linear. Convolutions, attention, look-ups and products of two activations
// keep bfloat16, and so do products with weights that a plan lists.
//
// In a lowered graph the calls have an attribute that models, rules and files of graphs do not
// have. No declaration reads it: over the reals it changes nothing.
#ifndef ISOMER_PCG_IR_FP8_H_
#define ISOMER_PCG_IR_FP8_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/graph.h"

namespace isomer {

// What has a scale of its own: an operand; each of its rows, as far as sums go; of each row so many
// neighbours (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 3.3.2, for activations).
enum class Fp8Scaling { kNone = 0, kTensor = 1, kRow = 2, kBlock = 3 };
inline constexpr int64_t kFp8BlockSize = 128;

// "tensor", "row", "block". REQUIRES: not kNone.
absl::string_view Fp8ScalingName(Fp8Scaling scaling);
absl::StatusOr<Fp8Scaling> ParseFp8Scaling(absl::string_view name);

// The products in 8 bits of a plan.
struct Fp8Products {
  Fp8Scaling scaling = Fp8Scaling::kNone;  // none: there are no such products
  // Names of weights whose products keep bfloat16; ascending.
  std::vector<std::string> kept = {};
  // How far these products may take the gradient of the loss by all weights (in inference: all
  // outputs) in a step, of its Euclidean norm; 0: no limit. isomer-run --check measures it.
  double error_budget = 0;

  bool any() const { return scaling != Fp8Scaling::kNone; }
  friend bool operator==(const Fp8Products&, const Fp8Products&) = default;
};
// Errors: weights out of order or twice, no budget, another precision than bfloat16.
absl::Status CheckFp8Products(const Fp8Products& products, DataType precision);

// The attribute, whose value is the scaling.
inline constexpr char kFp8Attribute[] = "fp8";
// Whether calls of the kind may have it.
bool CanBeFp8(OpKind kind);
Fp8Scaling Fp8ScalingOf(const Operator& op);
// With the attribute, or with `kNone` without it.
Operator WithFp8(Operator op, Fp8Scaling scaling);

// The names of the weights that the tensor is nothing but an arrangement of: split, joined,
// transposed, copied, cast; ascending. Empty: it is made from something else, too.
std::vector<std::string> WeightsOf(const Graph& graph, TensorRef tensor);
// The names of the weights of a MatMul or Linear of weights by something else; empty: it is none.
std::vector<std::string> WeightsOfProduct(const Graph& graph, NodeId id);
// In how many bits a call of the float32 graph multiplies: WeightsOfProduct, none of them kept.
Fp8Scaling ScalingOfProduct(const Graph& graph, NodeId id, const Fp8Products& products);

// `graph`, in float32, with the attribute on those calls.
absl::StatusOr<Graph> WithFp8Products(const Graph& graph, const Fp8Products& products);

// The weights of the first and the last products: those that no contraction leads to, and those
// that lead to none. They keep bfloat16 unless it is said otherwise: what goes into a network and
// what comes out of it bears least rounding (Micikevicius et al.; NVIDIA's Transformer Engine).
std::vector<std::string> WeightsOfFirstAndLastProducts(const Graph& graph);
// The weights of all products that can be in 8 bits; ascending.
std::vector<std::string> WeightsOfProducts(const Graph& graph);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_FP8_H_
