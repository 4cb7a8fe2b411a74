#include "pcg/evaluation/leaf_draws.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "pcg/ir/operator_traits.h"
#include "pcg/support/hash.h"

namespace isomer {
namespace {

constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

// How many values the index operand of a call may have.
int64_t IndexLimit(const Graph& graph, const Node& user) {
  const std::vector<Dim>& dims = graph.type(user.inputs[0]).dims;
  switch (TraitsOf(user.op.kind()).index_domain) {
    case IndexDomain::kSeed:
      break;
    case IndexDomain::kRows:
      return dims.front().size;
    case IndexDomain::kMatrices:
      return graph.type(user.inputs[1]).dims.front().size;
    case IndexDomain::kPlaces:
      return dims.end()[-2].size;
    case IndexDomain::kClasses:
      return dims.back().size;
    case IndexDomain::kAxis: {
      const int64_t axis = user.op.Int("axis");
      return dims[axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis].size;
    }
    case IndexDomain::kDepth:
      return user.op.Int("depth");
  }
  return int64_t{1} << 20;
}

bool HasFilters(OpKind kind) {
  const OperatorClass op_class = TraitsOf(kind).op_class;
  return op_class == OperatorClass::kConvolution ||
         op_class == OperatorClass::kTransposedConvolution;
}

}  // namespace

uint64_t Random::StreamOf(uint64_t seed, const std::string& leaf) {
  return HashCombine(HashBytes(leaf), seed);
}

Random::Random(uint64_t stream, int64_t drawn)
    : state_(stream + static_cast<uint64_t>(drawn) * kStep) {}

uint64_t Random::Next() {
  const uint64_t number = HashMix(state_);
  state_ += kStep;
  return number;
}

double Random::Normal() {  // Box and Muller's.
  const double radius = std::sqrt(-2 * std::log(Uniform()));
  return radius * std::cos(2 * 3.14159265358979323846 * Uniform());
}

namespace {

// By what whole number the call multiplies whole numbers, as what makes the place of a row from its
// number and a place in it; 1: by none.
int64_t WholeFactor(const Node& node) {
  if (node.op.kind() != OpKind::kScale || IsFloat(node.outputs[0].dtype)) return 1;
  const double factor = node.op.Number("factor");
  constexpr double kMost = int64_t{1} << 40;
  return factor >= 2 && factor <= kMost && factor == std::floor(factor)
             ? static_cast<int64_t>(factor)
             : 1;
}

// `factor`: of what the leaf has been multiplied with on the way to here; what is added then is a
// place within so many.
LeafRole RoleOf(const Graph& graph, const std::vector<std::vector<Graph::Use>>& users, NodeId id,
                int64_t factor) {
  for (const Graph::Use& use : users[id.value]) {
    const Node& user = graph.node(use.user);
    const OpKind kind = user.op.kind();
    const bool passes = IsParallel(kind) || IsLayout(kind) || kind == OpKind::kCast ||
                        (kind == OpKind::kAdd && factor > 1);
    if (passes) return RoleOf(graph, users, use.user, factor);
    if (const int64_t more = WholeFactor(user); more > 1 && factor == 1) {
      return RoleOf(graph, users, use.user, more);
    }
    LeafRole role{.kind = kind, .operand = use.operand};
    if (IsIndexOperand(kind, use.operand)) {
      role.limit = std::max<int64_t>(1, IndexLimit(graph, user) / factor);
    }
    return role;
  }
  return {};
}

}  // namespace

LeafRole RoleOf(const Graph& graph, const std::vector<std::vector<Graph::Use>>& users, NodeId id) {
  return RoleOf(graph, users, id, /*factor=*/1);
}

bool StartsAtOne(const LeafRole& role) {
  const std::initializer_list<int>& scales = TraitsOf(role.kind).scales;
  return std::find(scales.begin(), scales.end(), role.operand) != scales.end();
}

double Deviation(const LeafRole& role, const std::vector<int64_t>& shape) {
  if (shape.size() < 2 || role.kind == OpKind::kEmbedding) return 0.02;
  int64_t fan_in = shape[shape.size() - 2];
  if (HasFilters(role.kind)) {
    fan_in = 1;
    for (size_t i = 1; i < shape.size(); ++i) fan_in *= shape[i];
  }
  return 1 / std::sqrt(static_cast<double>(fan_in));
}

}  // namespace isomer
