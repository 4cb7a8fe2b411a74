#include "rules/language/rule_proto.h"

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

proto::IntExpr ToProto(const IntExpr& expr) {
  proto::IntExpr out;
  switch (expr.kind) {
    case IntExpr::Kind::kConstant:
      out.set_constant(expr.constant);
      break;
    case IntExpr::Kind::kVariable:
      out.set_variable(expr.variable);
      break;
    case IntExpr::Kind::kSizeOf:
      out.mutable_size_of()->set_input(expr.input);
      if (expr.variable.empty()) {
        out.mutable_size_of()->set_axis(expr.constant);
      } else {
        out.mutable_size_of()->set_axis_variable(expr.variable);
      }
      break;
    case IntExpr::Kind::kProduct:
      out.mutable_product()->set_a(expr.variable);
      out.mutable_product()->set_b(expr.factor);
      break;
  }
  return out;
}

IntExpr FromProto(const proto::IntExpr& in) {
  switch (in.kind_case()) {
    case proto::IntExpr::kVariable:
      return IntExpr::Variable(in.variable());
    case proto::IntExpr::kSizeOf:
      return in.size_of().along_case() == proto::IntExpr::SizeOf::kAxisVariable
                 ? IntExpr::SizeOf(in.size_of().input(), in.size_of().axis_variable())
                 : IntExpr::SizeOf(in.size_of().input(), in.size_of().axis());
    case proto::IntExpr::kProduct:
      return IntExpr::Product(in.product().a(), in.product().b());
    case proto::IntExpr::kConstant:
    case proto::IntExpr::KIND_NOT_SET:
      break;
  }
  return IntExpr::Constant(in.constant());
}

proto::AttributePattern ToProto(const AttributePattern& attribute) {
  proto::AttributePattern out;
  out.set_name(attribute.name);
  if (auto* expr = std::get_if<IntExpr>(&attribute.value)) {
    *out.mutable_integer() = ToProto(*expr);
  } else if (auto* number = std::get_if<NumberExpr>(&attribute.value)) {
    out.mutable_number()->set_constant(number->constant);
    for (const std::string& name : number->variables) out.mutable_number()->add_variables(name);
  } else if (auto* list = std::get_if<std::vector<IntExpr>>(&attribute.value)) {
    out.mutable_list();
    for (const IntExpr& item : *list) *out.mutable_list()->add_items() = ToProto(item);
  } else if (auto* swap = std::get_if<SwapAxes>(&attribute.value)) {
    out.mutable_swap_axes()->set_a(swap->a);
    out.mutable_swap_axes()->set_b(swap->b);
  } else {
    out.set_attribute_variable(std::get<AttributeVariable>(attribute.value).name);
  }
  return out;
}

absl::StatusOr<AttributePattern> FromProto(const proto::AttributePattern& in) {
  switch (in.value_case()) {
    case proto::AttributePattern::kInteger:
      return AttributePattern{in.name(), FromProto(in.integer())};
    case proto::AttributePattern::kNumber:
      return AttributePattern{
          in.name(), NumberExpr{in.number().constant(),
                                {in.number().variables().begin(), in.number().variables().end()}}};
    case proto::AttributePattern::kList: {
      std::vector<IntExpr> items;
      for (const proto::IntExpr& item : in.list().items()) items.push_back(FromProto(item));
      return AttributePattern{in.name(), items};
    }
    case proto::AttributePattern::kSwapAxes:
      return AttributePattern{in.name(), SwapAxes{in.swap_axes().a(), in.swap_axes().b()}};
    case proto::AttributePattern::kAttributeVariable:
      return AttributePattern{in.name(), AttributeVariable{in.attribute_variable()}};
    case proto::AttributePattern::VALUE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat("attribute '", in.name(), "' has no value"));
}

proto::PatternRef ToProto(PatternRef ref) {
  proto::PatternRef out;
  if (ref.node < 0) {
    out.set_input(ref.index);
  } else {
    out.set_node(ref.node);
    out.set_output(ref.index);
  }
  return out;
}

PatternRef FromProto(const proto::PatternRef& in) {
  // A missing node would read as node 0; a negative index is refused by ValidateRule.
  if (in.of_case() == proto::PatternRef::OF_NOT_SET) return PatternRef::Input(-1);
  if (in.of_case() == proto::PatternRef::kInput) return PatternRef::Input(in.input());
  return in.node() < 0 ? PatternRef::Input(-1) : PatternRef::Node(in.node(), in.output());
}

}  // namespace

proto::Pattern ToProto(const Pattern& pattern) {
  proto::Pattern out;
  for (const PatternNode& node : pattern.nodes) {
    proto::PatternNode* to = out.add_nodes();
    const absl::string_view name = OpName(node.kind);
    to->set_op(std::string(name.data(), name.size()));
    for (const AttributePattern& a : node.attributes) *to->add_attributes() = ToProto(a);
    for (PatternRef ref : node.inputs) *to->add_inputs() = ToProto(ref);
  }
  for (PatternRef ref : pattern.outputs) *out.add_outputs() = ToProto(ref);
  return out;
}

absl::StatusOr<Pattern> FromProto(const proto::Pattern& in) {
  Pattern pattern;
  pattern.nodes.reserve(in.nodes_size());
  for (const proto::PatternNode& from : in.nodes()) {
    PatternNode node;
    node.attributes.reserve(from.attributes_size());
    node.inputs.reserve(from.inputs_size());
    ISOMER_ASSIGN_OR_RETURN(node.kind, ParseOpKind(from.op()));
    for (const proto::AttributePattern& a : from.attributes()) {
      ISOMER_ASSIGN_OR_RETURN(AttributePattern attribute, FromProto(a));
      node.attributes.push_back(std::move(attribute));
    }
    for (const proto::PatternRef& ref : from.inputs()) node.inputs.push_back(FromProto(ref));
    pattern.nodes.push_back(std::move(node));
  }
  for (const proto::PatternRef& ref : in.outputs()) pattern.outputs.push_back(FromProto(ref));
  return pattern;
}

namespace {

proto::Condition ToProto(const Condition& condition) {
  proto::Condition out;
  out.set_kind(static_cast<proto::Condition::Kind>(condition.kind));
  *out.mutable_left() = ToProto(condition.left);
  *out.mutable_right() = ToProto(condition.right);
  out.set_input(condition.input);
  out.set_input_b(condition.input_b);
  out.set_node(condition.node);
  for (const auto& axis : condition.operand_axes) {
    proto::Condition::Axis* to = out.add_operand_axes();
    if (axis.has_value()) *to->mutable_axis() = ToProto(*axis);
  }
  for (const auto& axis : condition.output_axes) {
    proto::Condition::Axis* to = out.add_output_axes();
    if (axis.has_value()) *to->mutable_axis() = ToProto(*axis);
  }
  return out;
}

absl::StatusOr<Condition> FromProto(const proto::Condition& in) {
  if (!proto::Condition::Kind_IsValid(in.kind())) {
    return absl::InvalidArgumentError(absl::StrCat("unknown kind ", in.kind(), " of condition"));
  }
  Condition condition;
  condition.kind = static_cast<Condition::Kind>(in.kind());
  condition.left = FromProto(in.left());
  condition.right = FromProto(in.right());
  condition.input = in.input();
  condition.input_b = in.input_b();
  condition.node = in.node();
  auto axis = [](const proto::Condition::Axis& from) {
    return from.has_axis() ? std::optional(FromProto(from.axis())) : std::nullopt;
  };
  for (const auto& from : in.operand_axes()) condition.operand_axes.push_back(axis(from));
  for (const auto& from : in.output_axes()) condition.output_axes.push_back(axis(from));
  return condition;
}

}  // namespace

proto::Proof ToProto(const ProofRecord& record) {
  proto::Proof out;
  out.set_verdict(static_cast<proto::Proof::Verdict>(record.verdict));
  for (const std::string& lemma : record.lemmas) out.add_lemmas(lemma);
  out.set_solver(record.solver);
  out.set_seconds(record.seconds);
  out.set_note(record.note);
  return out;
}

absl::StatusOr<ProofRecord> FromProto(const proto::Proof& in) {
  if (!proto::Proof::Verdict_IsValid(in.verdict())) {
    return absl::InvalidArgumentError("unknown verdict");
  }
  return ProofRecord{.verdict = static_cast<ProofRecord::Verdict>(in.verdict()),
                     .lemmas = {in.lemmas().begin(), in.lemmas().end()},
                     .solver = in.solver(),
                     .seconds = in.seconds(),
                     .note = in.note()};
}

proto::Rule ToProto(const Rule& rule, bool with_text) {
  proto::Rule out;
  out.set_id(rule.id);
  if (with_text) out.set_text(rule.ToString());
  out.set_num_inputs(rule.num_inputs);
  for (const RuleVariable& variable : rule.variables) {
    proto::Variable* to = out.add_variables();
    to->set_name(variable.name);
    to->set_kind(static_cast<proto::VariableKind>(variable.kind));
  }
  for (const std::vector<int>& vector : rule.ranks) {
    proto::RankVector* to = out.add_ranks();
    for (int rank : vector) to->add_ranks(rank);
  }
  for (const Condition& c : rule.conditions) *out.add_conditions() = ToProto(c);
  *out.mutable_source() = ToProto(rule.source);
  *out.mutable_target() = ToProto(rule.target);
  out.set_reversible(rule.reversible);
  out.set_origin(rule.origin);
  *out.mutable_proof() = ToProto(rule.proof);
  return out;
}

absl::StatusOr<Rule> FromProto(const proto::Rule& in) {
  Rule rule;
  rule.id = in.id();
  rule.num_inputs = in.num_inputs();
  rule.variables.reserve(in.variables_size());
  for (const proto::Variable& variable : in.variables()) {
    if (!proto::VariableKind_IsValid(variable.kind())) {
      return absl::InvalidArgumentError(
          absl::StrCat("variable '", variable.name(), "' has an unknown kind"));
    }
    rule.variables.push_back({variable.name(), static_cast<VariableKind>(variable.kind())});
  }
  rule.ranks.reserve(in.ranks_size());
  for (const proto::RankVector& vector : in.ranks()) {
    rule.ranks.emplace_back(vector.ranks().begin(), vector.ranks().end());
  }
  rule.conditions.reserve(in.conditions_size());
  for (const proto::Condition& c : in.conditions()) {
    ISOMER_ASSIGN_OR_RETURN(Condition condition, FromProto(c));
    rule.conditions.push_back(std::move(condition));
  }
  ISOMER_ASSIGN_OR_RETURN(rule.source, FromProto(in.source()));
  ISOMER_ASSIGN_OR_RETURN(rule.target, FromProto(in.target()));
  rule.reversible = in.reversible();
  rule.origin = in.origin();
  ISOMER_ASSIGN_OR_RETURN(rule.proof, FromProto(in.proof()));
  ISOMER_RETURN_IF_ERROR(ValidateRule(rule));
  return rule;
}

}  // namespace isomer
