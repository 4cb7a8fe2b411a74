#include "verifier/certificate/step_replay.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/evaluation/exact_number.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::Status No(const std::string& why) { return absl::FailedPreconditionError(why); }

class StepReplay {
 public:
  StepReplay(const Rule& rule, const DerivationStep& step, ReplayGraph* graph, SideCheck equal)
      : rule_(rule), step_(step), graph_(graph), equal_(equal), attributes_(step.attributes) {}

  absl::Status Run() {
    ISOMER_RETURN_IF_ERROR(CheckNames());
    ISOMER_RETURN_IF_ERROR(CheckReferences());
    for (size_t n = 0; n < step_.nodes.size(); ++n) ISOMER_RETURN_IF_ERROR(CheckSourceNode(n));
    ISOMER_RETURN_IF_ERROR(CheckVariables());
    const NodeId first_new{graph_->num_nodes()};
    ISOMER_RETURN_IF_ERROR(AddTarget());
    return CheckEqual(first_new);
  }

 private:
  absl::Status CheckReferences() const {
    if (step_.nodes.size() != rule_.source.nodes.size() ||
        static_cast<int>(step_.inputs.size()) != rule_.num_inputs) {
      return No("other numbers of nodes or inputs than the rule's");
    }
    ISOMER_RETURN_IF_ERROR(graph_->CheckReplaceable(step_.nodes));
    for (TensorRef input : step_.inputs) {
      if (!graph_->Contains(input) || !graph_->IsLive(input.node)) {
        return No(absl::StrCat("there is no tensor %", input.node.value));
      }
    }
    return absl::OkStatus();
  }

  TensorRef SourceTensor(PatternRef ref) const {
    if (ref.node < 0) return step_.inputs[ref.index];
    return {step_.nodes[ref.node], ref.index};
  }

  absl::Status CheckSourceNode(size_t n) {
    const PatternNode& pattern = rule_.source.nodes[n];
    const Node& node = graph_->node(step_.nodes[n]);
    if (node.op.kind() != pattern.kind) {
      return No(absl::StrCat(graph_->Label(step_.nodes[n]), " is not ",
                             std::string(OpName(pattern.kind))));
    }
    std::vector<TensorRef> operands;
    for (PatternRef ref : pattern.inputs) operands.push_back(SourceTensor(ref));
    if (IsCommutative(pattern.kind) && operands != node.inputs) std::swap(operands[0], operands[1]);
    if (operands != node.inputs) {
      return No(absl::StrCat(graph_->Label(step_.nodes[n]), " has other operands"));
    }
    for (const AttributePattern& attribute : pattern.attributes) {
      const AttributeValue* actual = node.op.Find(attribute.name);
      if (actual == nullptr) return No(absl::StrCat("no attribute ", attribute.name));
      if (auto* variable = std::get_if<AttributeVariable>(&attribute.value)) {
        attributes_.emplace(variable->name, *actual);
      }
      const int rank = graph_->type(node.inputs[0]).rank();
      ISOMER_ASSIGN_OR_RETURN(const AttributeValue expected, ValueOf(attribute, rank));
      if (FromFront(attribute.name, expected, rank) != FromFront(attribute.name, *actual, rank)) {
        return No(absl::StrCat("attribute ", attribute.name, " of ", graph_->Label(step_.nodes[n]),
                               " is ", AttributeText(*actual), ", not ", AttributeText(expected)));
      }
    }
    return absl::OkStatus();
  }

  // Axes from the front, so that -1 and rank - 1 are equal.
  static AttributeValue FromFront(const std::string& name, const AttributeValue& value, int rank) {
    if (const auto* axes = std::get_if<std::vector<int64_t>>(&value); axes && name == "axes") {
      std::vector<int64_t> from_front = *axes;
      for (int64_t& axis : from_front) axis += axis < 0 ? rank : 0;
      return from_front;
    }
    const int64_t* axis = std::get_if<int64_t>(&value);
    if (name != "axis" || axis == nullptr || *axis >= 0) return value;
    return *axis + rank;
  }

  // A step names what its rule has, and nothing else.
  absl::Status CheckNames() const {
    auto is_declared = [&](const std::string& name, std::initializer_list<VariableKind> kinds) {
      return std::any_of(rule_.variables.begin(), rule_.variables.end(), [&](const auto& v) {
        return v.name == name && std::find(kinds.begin(), kinds.end(), v.kind) != kinds.end();
      });
    };
    auto unknown = [](const std::string& name) {
      return No(absl::StrCat("the rule has no variable '", name, "' of this kind"));
    };
    for (const auto& [name, value] : step_.variables) {
      if (!is_declared(name, {VariableKind::kAxis, VariableKind::kDegree, VariableKind::kSize})) {
        return unknown(name);
      }
    }
    for (const auto& [name, value] : step_.numbers) {
      if (!is_declared(name, {VariableKind::kNumber})) return unknown(name);
    }
    for (const auto& [name, value] : step_.attributes) {
      if (!is_declared(name, {VariableKind::kAttribute})) return unknown(name);
    }
    return absl::OkStatus();
  }

  absl::Status CheckVariables() const {
    for (const RuleVariable& variable : rule_.variables) {
      switch (variable.kind) {
        case VariableKind::kAxis:
        case VariableKind::kDegree:
        case VariableKind::kSize: {
          auto at = step_.variables.find(variable.name);
          if (at == step_.variables.end()) return No(absl::StrCat(variable.name, " is not bound"));
          const bool is_axis = variable.kind == VariableKind::kAxis;
          if (is_axis ? at->second >= 0 : at->second < 1) {
            return No(absl::StrCat(variable.name, " is ", at->second));
          }
          break;
        }
        case VariableKind::kNumber:
          if (auto at = step_.numbers.find(variable.name); at == step_.numbers.end()) {
            return No(absl::StrCat(variable.name, " is not bound"));
          } else if (!std::isfinite(at->second)) {
            return No(absl::StrCat(variable.name, " is ", at->second));
          }
          break;
        case VariableKind::kAttribute:
          if (!attributes_.contains(variable.name)) {
            return No(absl::StrCat(variable.name, " is not bound"));
          }
          break;
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> Variable(const std::string& name) const {
    auto at = step_.variables.find(name);
    if (at == step_.variables.end()) return No(absl::StrCat(name, " is not bound"));
    return at->second;
  }

  absl::StatusOr<const Dim*> DimOf(int input, int64_t axis) const {
    const TensorType& type = graph_->type(step_.inputs[input]);
    ISOMER_ASSIGN_OR_RETURN(const int i, NormalizeAxis(axis, type.rank()));
    return &type.dims[i];
  }

  absl::StatusOr<int64_t> ValueOf(const IntExpr& expr) const {
    switch (expr.kind) {
      case IntExpr::Kind::kConstant:
        return expr.constant;
      case IntExpr::Kind::kVariable:
        return Variable(expr.variable);
      case IntExpr::Kind::kProduct: {
        ISOMER_ASSIGN_OR_RETURN(const int64_t a, Variable(expr.variable));
        ISOMER_ASSIGN_OR_RETURN(const int64_t b, Variable(expr.factor));
        int64_t product = 0;
        if (__builtin_mul_overflow(a, b, &product)) {
          return No(absl::StrCat(expr.ToString(), " is too large"));
        }
        return product;
      }
      case IntExpr::Kind::kSizeOf:
        break;
    }
    int64_t axis = expr.constant;
    if (!expr.variable.empty()) {
      ISOMER_ASSIGN_OR_RETURN(axis, Variable(expr.variable));
    }
    ISOMER_ASSIGN_OR_RETURN(const Dim* dim, DimOf(expr.input, axis));
    return dim->size;
  }

  absl::StatusOr<AttributeValue> ValueOf(const AttributePattern& attribute, int rank) const {
    if (auto* expr = std::get_if<IntExpr>(&attribute.value)) {
      ISOMER_ASSIGN_OR_RETURN(const int64_t value, ValueOf(*expr));
      return AttributeValue(value);
    }
    if (auto* number = std::get_if<NumberExpr>(&attribute.value)) {
      if (number->variables.empty()) return AttributeValue(number->constant);
      std::vector<double> factors = {number->constant};
      for (const std::string& name : number->variables) {
        auto at = step_.numbers.find(name);
        if (at == step_.numbers.end()) return No(absl::StrCat(name, " is not bound"));
        factors.push_back(at->second);
      }
      const std::optional<double> value = ExactProduct(factors);
      if (!value.has_value()) {
        return No(absl::StrCat(attribute.name, " is ", absl::StrJoin(factors, " * "),
                               ", which would have to be rounded"));
      }
      return AttributeValue(*value);
    }
    if (auto* list = std::get_if<std::vector<IntExpr>>(&attribute.value)) {
      std::vector<int64_t> values;
      for (const IntExpr& expr : *list) {
        ISOMER_ASSIGN_OR_RETURN(const int64_t value, ValueOf(expr));
        values.push_back(value);
      }
      if (attribute.name != "sizes") return AttributeValue(values);
      return AttributeValue(std::vector<Extent>(values.begin(), values.end()));
    }
    if (auto* swap = std::get_if<SwapAxes>(&attribute.value)) {
      std::vector<int64_t> perm(rank);
      std::iota(perm.begin(), perm.end(), 0);
      ISOMER_ASSIGN_OR_RETURN(const int a, NormalizeAxis(swap->a, rank));
      ISOMER_ASSIGN_OR_RETURN(const int b, NormalizeAxis(swap->b, rank));
      std::swap(perm[a], perm[b]);
      return AttributeValue(perm);
    }
    const std::string& name = std::get<AttributeVariable>(attribute.value).name;
    auto at = attributes_.find(name);
    if (at == attributes_.end()) return No(absl::StrCat(name, " is not bound"));
    return at->second;
  }

  absl::Status AddTarget() {
    const NodeId first_new{graph_->num_nodes()};
    auto tensor = [&](PatternRef ref) {
      return ref.node < 0 ? step_.inputs[ref.index]
                          : TensorRef{{first_new.value + ref.node}, ref.index};
    };
    for (const PatternNode& pattern : rule_.target.nodes) {
      std::vector<TensorRef> operands;
      for (PatternRef ref : pattern.inputs) {
        operands.push_back(tensor(ref));
        if (!graph_->Contains(operands.back())) return No("the target uses an absent output");
      }
      Operator op(pattern.kind);
      for (const AttributePattern& attribute : pattern.attributes) {
        const int rank = graph_->type(operands[0]).rank();
        ISOMER_ASSIGN_OR_RETURN(AttributeValue value, ValueOf(attribute, rank));
        op.Set(attribute.name, std::move(value));
      }
      ISOMER_RETURN_IF_ERROR(graph_->Add(std::move(op), std::move(operands)));
    }
    for (size_t o = 0; o < rule_.source.outputs.size(); ++o) {
      const TensorRef from = SourceTensor(rule_.source.outputs[o]);
      const TensorRef to = tensor(rule_.target.outputs[o]);
      if (!graph_->Contains(from) || !graph_->Contains(to)) return No("an output is absent");
      if (graph_->type(from) != graph_->type(to)) {
        return No(absl::StrCat("output ", o, " is ", graph_->type(from).ToString(), " and becomes ",
                               graph_->type(to).ToString()));
      }
      graph_->ReplaceUses(from, to, first_new);
    }
    return absl::OkStatus();
  }

  // What the rule says of where it holds is not asked: these calls are looked at.
  absl::Status CheckEqual(NodeId first_new) const {
    for (NodeId id : step_.nodes) ISOMER_RETURN_IF_ERROR(graph_->CheckNoRounding(id));
    for (int n = 0; n < static_cast<int>(rule_.target.nodes.size()); ++n) {
      ISOMER_RETURN_IF_ERROR(graph_->CheckNoRounding(NodeId{first_new.value + n}));
    }
    auto side_of = [&](const Pattern& pattern, auto node_of) {
      ConcreteSide side;
      side.outputs = pattern.outputs;
      for (size_t n = 0; n < pattern.nodes.size(); ++n) {
        const PatternNode& node = pattern.nodes[n];
        ConcreteCall call{graph_->node(node_of(static_cast<int>(n))).op, node.inputs, {}};
        for (PatternRef ref : node.inputs) {
          const TensorRef tensor =
              ref.node < 0 ? step_.inputs[ref.index] : TensorRef{node_of(ref.node), ref.index};
          call.operands.push_back(graph_->type(tensor).GlobalShape());
        }
        side.calls.push_back(std::move(call));
      }
      return side;
    };
    const ConcreteSide source = side_of(rule_.source, [&](int n) { return step_.nodes[n]; });
    const ConcreteSide target =
        side_of(rule_.target, [&](int n) { return NodeId{first_new.value + n}; });
    const absl::Status equal = equal_(source, target, {});
    if (equal.ok()) return equal;
    return NotShownEqual(equal);
  }

  const Rule& rule_;
  const DerivationStep& step_;
  ReplayGraph* graph_;
  SideCheck equal_;
  std::map<std::string, AttributeValue> attributes_;
};

}  // namespace

absl::Status NotShownEqual(const absl::Status& why) {
  return No(absl::StrCat("it is not shown that these calls compute the same: ", why.message()));
}

absl::Status ReplayStep(const Rule& rule, const DerivationStep& step, ReplayGraph* graph,
                        SideCheck equal) {
  return StepReplay(rule, step, graph, equal).Run();
}

}  // namespace isomer
