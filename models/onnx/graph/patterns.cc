#include "models/onnx/graph/patterns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "models/onnx/graph/attributes.h"

namespace isomer {
namespace {

// A LayerNorm that lacks only weight and bias.
struct Normalized {
  std::string x;
  float epsilon;
  int64_t axis;
};

class Matcher {
 public:
  explicit Matcher(const OnnxGraph& graph) : graph_(graph) {}

  struct LayerNorm {
    Normalized normalized;
    std::string weight, bias;
  };
  std::optional<LayerNorm> MatchLayerNorm(const OnnxNode& add) const {
    for (int side : {0, 1}) {
      const OnnxNode* const mul = Node(add.inputs[side], "Mul", 2);
      if (mul == nullptr) continue;
      for (int mul_side : {0, 1}) {
        const auto normalized = MatchNormalized(mul->inputs[mul_side]);
        if (!normalized) continue;
        return LayerNorm{*normalized, mul->inputs[1 - mul_side], add.inputs[1 - side]};
      }
    }
    return std::nullopt;
  }

  // The x of Swish(x).
  std::optional<std::string> MatchSwish(const OnnxNode& mul) const {
    for (int side : {0, 1}) {
      const OnnxNode* const sigmoid = Node(mul.inputs[side], "Sigmoid", 1);
      if (sigmoid != nullptr && sigmoid->inputs[0] == mul.inputs[1 - side]) {
        return sigmoid->inputs[0];
      }
    }
    return std::nullopt;
  }

  // The x of Gelu(x).
  std::optional<std::string> MatchGelu(const OnnxNode& mul) const {
    for (int side : {0, 1}) {
      const OnnxNode* const inner = Node(mul.inputs[side], "Mul", 2);
      if (inner == nullptr) continue;
      std::array<std::string, 3> factors = {mul.inputs[1 - side], inner->inputs[0],
                                            inner->inputs[1]};
      std::sort(factors.begin(), factors.end());
      do {
        if (IsScalar(factors[0], 0.5) && IsErfPlusOne(factors[1], factors[2])) return factors[2];
      } while (std::next_permutation(factors.begin(), factors.end()));
    }
    return std::nullopt;
  }

 private:
  const OnnxNode* Node(const std::string& tensor, const char* op, size_t num_inputs) const {
    const OnnxNode* const node = graph_.Producer(tensor);
    const bool is_it = node != nullptr && node->op == op && node->domain.empty() &&
                       node->inputs.size() == num_inputs && node->outputs[0] == tensor;
    return is_it ? node : nullptr;
  }

  const OnnxNode* Mean(const std::string& tensor) const {
    const OnnxNode* const by_attribute = Node(tensor, "ReduceMean", 1);
    return by_attribute != nullptr ? by_attribute : Node(tensor, "ReduceMean", 2);
  }

  std::optional<double> Scalar(const std::string& tensor) const {
    const auto found = graph_.constants.find(tensor);
    if (found == graph_.constants.end() || found->second.size() != 1) return std::nullopt;
    return found->second.Number(0);
  }
  bool IsScalar(const std::string& tensor, double value) const {
    const std::optional<double> scalar = Scalar(tensor);
    return scalar && std::abs(*scalar - value) < 1e-6;
  }

  // Add(Erf(x / sqrt(2)), 1)
  bool IsErfPlusOne(const std::string& tensor, const std::string& x) const {
    const OnnxNode* const add = Node(tensor, "Add", 2);
    if (add == nullptr) return false;
    for (int side : {0, 1}) {
      const OnnxNode* const erf = Node(add->inputs[side], "Erf", 1);
      if (erf == nullptr || !IsScalar(add->inputs[1 - side], 1)) continue;
      const OnnxNode* const div = Node(erf->inputs[0], "Div", 2);
      if (div != nullptr && div->inputs[0] == x && IsScalar(div->inputs[1], std::sqrt(2.0))) {
        return true;
      }
      const OnnxNode* const mul = Node(erf->inputs[0], "Mul", 2);
      for (int m : {0, 1}) {
        if (mul != nullptr && mul->inputs[m] == x && IsScalar(mul->inputs[1 - m], std::sqrt(0.5))) {
          return true;
        }
      }
    }
    return false;
  }

  // The one axis of a ReduceMean that keeps its dims.
  std::optional<int64_t> MeanAxis(const OnnxNode& mean) const {
    const auto axes = mean.attributes.find("axes");
    const auto keepdims = mean.attributes.find("keepdims");
    if (keepdims != mean.attributes.end() && keepdims->second.i() != 1) return std::nullopt;
    if (mean.inputs.size() == 2) {  // From opset 18 on.
      const auto constant = graph_.constants.find(mean.inputs[1]);
      if (constant == graph_.constants.end() || constant->second.is_float()) return std::nullopt;
      if (constant->second.ints.size() != 1) return std::nullopt;
      return constant->second.ints[0];
    }
    if (axes == mean.attributes.end() || axes->second.ints_size() != 1) return std::nullopt;
    return axes->second.ints(0);
  }

  bool IsSquareOf(const std::string& tensor, const OnnxNode& centred) const {
    auto is_centred = [&](const std::string& name) {
      const OnnxNode* const sub = Node(name, "Sub", 2);
      return sub != nullptr && sub->inputs == centred.inputs;
    };
    const OnnxNode* const pow = Node(tensor, "Pow", 2);
    if (pow != nullptr) return is_centred(pow->inputs[0]) && IsScalar(pow->inputs[1], 2);
    const OnnxNode* const mul = Node(tensor, "Mul", 2);
    return mul != nullptr && is_centred(mul->inputs[0]) && is_centred(mul->inputs[1]);
  }

  // Div(c, Sqrt(Add(ReduceMean(c^2), epsilon))) with c = Sub(x, ReduceMean(x))
  std::optional<Normalized> MatchNormalized(const std::string& tensor) const {
    const OnnxNode* const div = Node(tensor, "Div", 2);
    const OnnxNode* const centred = div == nullptr ? nullptr : Node(div->inputs[0], "Sub", 2);
    if (centred == nullptr) return std::nullopt;
    const OnnxNode* const mean = Mean(centred->inputs[1]);
    if (mean == nullptr || mean->inputs[0] != centred->inputs[0]) return std::nullopt;
    const OnnxNode* const sqrt = Node(div->inputs[1], "Sqrt", 1);
    const OnnxNode* const add = sqrt == nullptr ? nullptr : Node(sqrt->inputs[0], "Add", 2);
    if (add == nullptr) return std::nullopt;
    for (int side : {0, 1}) {
      const OnnxNode* const variance = Mean(add->inputs[side]);
      const std::optional<double> epsilon = Scalar(add->inputs[1 - side]);
      if (variance == nullptr || !epsilon || !IsSquareOf(variance->inputs[0], *centred)) continue;
      const std::optional<int64_t> axis = MeanAxis(*mean);
      if (!axis || MeanAxis(*variance) != axis) continue;
      return Normalized{mean->inputs[0], static_cast<float>(*epsilon), *axis};
    }
    return std::nullopt;
  }

  const OnnxGraph& graph_;
};

}  // namespace

void RecognizePatterns(OnnxGraph* graph) {
  const Matcher matcher(*graph);
  for (OnnxNode& node : graph->nodes) {
    if (node.inputs.size() != 2 || !node.domain.empty()) continue;
    if (node.op == "Add") {
      const auto norm = matcher.MatchLayerNorm(node);
      if (!norm) continue;
      node.replaced = {OnnxNode(node)};
      node.op = "LayerNormalization";
      node.inputs = {norm->normalized.x, norm->weight, norm->bias};
      node.attributes.clear();
      onnx::AttributeProto& epsilon = node.attributes["epsilon"];
      epsilon.set_type(onnx::AttributeProto::FLOAT);
      epsilon.set_f(norm->normalized.epsilon);
      SetInt("axis", norm->normalized.axis, &node);
    } else if (node.op == "Mul") {
      if (const auto gelu = matcher.MatchGelu(node)) {
        node.op = "Gelu";
        node.inputs = {*gelu};
      } else if (const auto swish = matcher.MatchSwish(node)) {
        node.op = "Swish";
        node.inputs = {*swish};
      }
    }
  }
}

std::vector<bool> LiveNodes(const OnnxGraph& graph) {
  std::vector<bool> live(graph.nodes.size(), false);
  auto visit = [&](const std::string& tensor) {
    const auto producer = graph.producers.find(tensor);
    if (producer != graph.producers.end()) live[producer->second] = true;
  };
  for (const onnx::ValueInfoProto& output : graph.outputs) visit(output.name());
  for (int n = static_cast<int>(graph.nodes.size()) - 1; n >= 0; --n) {
    if (!live[n]) continue;
    for (const std::string& input : graph.nodes[n].inputs) visit(input);
    for (const std::string& name : graph.nodes[n].captures) visit(name);
  }
  return live;
}

}  // namespace isomer
