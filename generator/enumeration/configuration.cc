#include "generator/enumeration/configuration.h"

#include <algorithm>

#include "generator/enumeration/configured_operators.h"
#include "generator/enumeration/wide_configurations.h"
#include "pcg/ir/parallel_operator.h"

namespace isomer {
namespace {

using namespace configured;  // NOLINT: it is made for this

Operator Linear(int64_t activation) {
  return Operator(OpKind::kLinear, {{"activation", activation}});
}
Operator Split(int64_t axis) {
  return Operator(OpKind::kSplit, {{"axis", axis}, {"sizes", std::vector<Extent>{4, 4}}});
}

std::vector<Operator> operator+(std::vector<Operator> a, const std::vector<Operator>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Configuration> All() {
  const std::vector<Operator> contraction = {Of(OpKind::kMatMul)};
  const std::vector<Operator> pointwise = {Of(OpKind::kAdd), Of(OpKind::kMul), Scale(3),
                                           Of(OpKind::kRelu)};
  const std::vector<Operator> layout = {TransposeLast(), Concat(-1), Concat(-2), Split(-1),
                                        Split(-2)};
  const std::vector<Operator> core = contraction + pointwise;
  const std::vector<Operator> spread = {Partition(-1, 2), Partition(-2, 2), Replicate(2)};
  const std::vector<Operator> gather = {Combine(-1, 2), Combine(-2, 2), Reduce(2)};
  const TensorType s = Type("f32[4,4]");
  const std::vector<Operator> concat = {Concat(-1), Concat(-2)};
  std::vector<Configuration> result = {
      {"algebra", {s, s, s}, core + layout},
      {"numbers",
       {s, s},
       {Scale(2), Scale(3), Scale(5), Scale(15), Of(OpKind::kAdd), Of(OpKind::kMul),
        Of(OpKind::kMatMul), TransposeLast()}},
      {"pairs",
       {s, s, s, s},
       {Of(OpKind::kMatMul), Of(OpKind::kAdd), Of(OpKind::kMul), Concat(-1), Concat(-2)}},
      // What one kernel computes: a product, its bias and the activation.
      {"fusions",
       {s, s, Type("f32[4]")},
       {Of(OpKind::kMatMul), Of(OpKind::kAdd), Of(OpKind::kRelu), Of(OpKind::kGelu),
        Of(OpKind::kTanh), Of(OpKind::kSigmoid), Of(OpKind::kSwish), Linear(0), Linear(1),
        Linear(2), Linear(3), Linear(4), Linear(5)},
       kMostWrittenOperators,
       {},
       {},
       /*most_operands=*/3},
      // Chains of parallel operators on one tensor.
      {"chains",
       {Type("f32[16:4,16:4] c4 p4")},
       spread + gather +
           std::vector<Operator>{Partition(-1, 4), Replicate(4), Combine(-1, 4), Reduce(4)}},
      {"spread", {s, s}, core + layout + spread},
      {"partials",
       {s, s},
       {Of(OpKind::kAdd), Scale(3), Of(OpKind::kConcatPartials), Reduce(2), Replicate(2),
        Partition(-1, 2)}},
      {"batches",
       {Type("f32[4,4,4]"), Type("f32[4,4,4]")},
       core + std::vector<Operator>{Partition(-3, 2), Replicate(2)}},
      {"weights",
       {Type("f32[4,4,4]"), s},
       core + std::vector<Operator>{Partition(-3, 2), Replicate(2)}},
  };
  // Tensors that are parallel already: the types at which a MatMul or an elementwise operator of
  // its operands, or of what gathers them, is legal.
  const char* const parallel[][2] = {
      {"f32[4,4:2]", "f32[4:2,4]"},   {"f32[4:2,4]", "f32[4,4] c2"},
      {"f32[4,4] c2", "f32[4,4:2]"},  {"f32[4,4] p2", "f32[4,4] c2"},
      {"f32[4,4] c2", "f32[4,4] p2"}, {"f32[4,4] p2", "f32[4,4] p2"},
      {"f32[4,4] p2", "f32[4,4]"},    {"f32[4,4]", "f32[4,4] p2"},
      {"f32[4:2,4]", "f32[4:2,4]"},   {"f32[4,4:2]", "f32[4,4:2]"},
      {"f32[4,4:2]", "f32[4,4]"},     {"f32[4:2,4]", "f32[4,4]"},
  };
  for (const auto& types : parallel) {
    result.push_back({std::string("parallel ") + types[0] + ", " + types[1],
                      {Type(types[0]), Type(types[1])},
                      core +
                          std::vector<Operator>{TransposeLast(), Replicate(2), Partition(-1, 2)} +
                          concat + gather});
  }
  return result;
}

}  // namespace

std::vector<Configuration> Configurations(const std::set<OpKind>& kinds, int max_operators) {
  std::vector<Configuration> all = All(), result;
  for (Configuration& wide : WideConfigurations()) all.push_back(std::move(wide));
  for (Configuration& configuration : all) {
    std::erase_if(configuration.operators,
                  [&](const Operator& op) { return kinds.count(op.kind()) == 0; });
    configuration.max_operators = std::min(configuration.max_operators, max_operators);
    if (!configuration.operators.empty()) result.push_back(std::move(configuration));
  }
  return result;
}

}  // namespace isomer
