#include "generator/assignments/attribute_domains.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "pcg/ir/operator_facts.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/ir/type_inference.h"

namespace isomer {
namespace {

using Domain = std::vector<AttributeValue>;

// Sums of them say nothing new, products do: 2 * 3 = 6, 2 * 0.5 = 1, -1 * -1 = 1.
constexpr double kFactors[] = {2, 3, 6, 0.5, -1};

bool IsFlag(const std::string& name) {
  for (const char* flag :
       {"keepdims", "causal", "mean", "interleaved", "exclusive", "reverse", "upper", "largest"}) {
    if (name == flag) return true;
  }
  return false;
}

Domain Axes(int rank) {
  Domain axes;
  for (int64_t axis = -1; axis >= -rank; --axis) axes.emplace_back(axis);
  return axes;
}

Domain Exchanges(int rank) {
  Domain exchanges;
  for (int b = rank - 1; b > 0; --b) {
    for (int a = b - 1; a >= 0; --a) {
      std::vector<int64_t> perm(rank);
      std::iota(perm.begin(), perm.end(), 0);
      std::swap(perm[a], perm[b]);
      exchanges.emplace_back(std::move(perm));
    }
  }
  return exchanges;
}

// Nullopt: the value of the call at hand.
std::optional<Domain> DomainOf(OpKind kind, const std::string& name, int rank) {
  if (name == "axis" && !TraitsOf(kind).axis_is_of_result) return Axes(rank);
  if (name == "axes") {
    Domain lists;
    for (int64_t axis = -1; axis >= -rank; --axis) lists.emplace_back(std::vector<int64_t>{axis});
    return lists;
  }
  if (name == "perm") return Exchanges(rank);
  if (name == "sizes" && kind == OpKind::kSplit) {
    return Domain{std::vector<Extent>{SquareSize(rank), SquareSize(rank)}};
  }
  if (name == "factor" || name == "scale") return Domain(std::begin(kFactors), std::end(kFactors));
  if (name == "activation") {
    Domain activations;
    for (size_t a = 0; a <= std::size(kActivationsOfLinear); ++a) {
      activations.emplace_back(static_cast<int64_t>(a));
    }
    return activations;
  }
  if (IsFlag(name)) return Domain{int64_t{0}, int64_t{1}};
  return std::nullopt;
}

// Attributes that say which dims are meant, and of which parts.
bool IsPlace(const std::string& name) {
  return name == "axis" || name == "axes" || name == "perm" || name == "sizes";
}

// All places, and at each of them one other attribute at a time: all together are too many, and
// what relates two of them is rare.
std::vector<Operator> WithDomains(const Operator& op, int rank) {
  std::vector<Operator> at_places = {op};
  for (const Attribute& attribute : op.attributes()) {
    const std::optional<Domain> domain = DomainOf(op.kind(), attribute.name, rank);
    if (!domain.has_value() || !IsPlace(attribute.name)) continue;
    std::vector<Operator> more;
    for (const Operator& place : at_places) {
      for (const AttributeValue& value : *domain) {
        more.push_back(place);
        more.back().Set(attribute.name, value);
      }
    }
    at_places = std::move(more);
  }
  std::vector<Operator> operators = at_places;
  for (const Operator& place : at_places) {
    for (const Attribute& attribute : op.attributes()) {
      const std::optional<Domain> domain = DomainOf(op.kind(), attribute.name, rank);
      if (!domain.has_value() || IsPlace(attribute.name)) continue;
      for (const AttributeValue& value : *domain) {
        operators.push_back(place);
        operators.back().Set(attribute.name, value);
      }
    }
  }
  return operators;
}

// Dims of size 1 are broadcast, and stay.
std::vector<TensorType> Square(std::vector<TensorType> types) {
  int rank = 0;
  for (const TensorType& type : types) rank = std::max(rank, type.rank());
  for (TensorType& type : types) {
    for (Dim& dim : type.dims) {
      if (dim.size > 1) dim.size = SquareSize(rank);
    }
  }
  return types;
}

// What a Split takes apart is twice as long.
std::vector<TensorType> WithRoomForParts(const Operator& op, std::vector<TensorType> types) {
  if (op.kind() != OpKind::kSplit) return types;
  const int64_t axis = op.Int("axis"), rank = types[0].rank();
  types[0].dims[axis < 0 ? axis + rank : axis].size = 2 * SquareSize(types[0].rank());
  return types;
}

}  // namespace

std::vector<OperatorCall> CallsOverDomains(const OperatorCall& call) {
  std::vector<OperatorCall> calls;
  for (const Operator& op : WithDomains(call.op, call.operands[0].rank())) {
    for (const std::vector<TensorType>& types : {Square(call.operands), call.operands}) {
      const OperatorCall square{op, WithRoomForParts(op, types)};
      if (!InferTypes(square.op, square.operands).ok()) continue;
      if (std::find(calls.begin(), calls.end(), square) == calls.end()) calls.push_back(square);
      break;
    }
  }
  return calls;
}

}  // namespace isomer
