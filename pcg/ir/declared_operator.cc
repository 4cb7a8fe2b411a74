#include "pcg/ir/declared_operator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/check.h"
#include "pcg/support/hash.h"

namespace isomer {
namespace {

struct Registry {
  Registry() {
    operators.reserve(kMostDeclaredOperators);  // so that references stay
    for (int k = 0; k < kNumBuiltInOpKinds; ++k) kinds.push_back(static_cast<OpKind>(k));
  }
  std::vector<DeclaredOperator> operators;
  std::vector<OpKind> kinds;
};

Registry& TheRegistry() {
  static auto* const registry = new Registry;
  return *registry;
}

// What an attribute may be, in words.
std::string DomainText(const DeclaredAttribute& attribute) {
  return absl::StrCat(attribute.least, "..", attribute.most);
}

}  // namespace

AttributeValue DeclaredAttribute::Of(double number) const {
  if (is_number) return number;
  return static_cast<int64_t>(number);
}

absl::Span<const OpKind> AllOpKinds() { return TheRegistry().kinds; }

absl::StatusOr<OpKind> AddDeclaredOperator(DeclaredOperator declared) {
  Registry& registry = TheRegistry();
  if (ParseOpKind(declared.name).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is an operator '", declared.name, "' already"));
  }
  if (registry.operators.size() == kMostDeclaredOperators) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", kMostDeclaredOperators, " operators are declared"));
  }
  const OpKind kind = static_cast<OpKind>(kNumBuiltInOpKinds + registry.operators.size());
  registry.operators.push_back(std::move(declared));
  registry.kinds.push_back(kind);
  return kind;
}

const std::vector<DeclaredOperator>& DeclaredOperators() { return TheRegistry().operators; }

const DeclaredOperator& DeclaredOperatorOf(OpKind kind) {
  const int index = static_cast<int>(kind) - kNumBuiltInOpKinds;
  ISOMER_CHECK(index >= 0 && index < static_cast<int>(DeclaredOperators().size()));
  return DeclaredOperators()[index];
}

const OperatorTraits& internal::TraitsOfDeclared(OpKind kind) {
  return DeclaredOperatorOf(kind).traits;
}

std::optional<OpKind> DeclaredForOnnx(absl::string_view domain, absl::string_view op_type) {
  for (const OpKind kind : AllOpKinds().subspan(kNumBuiltInOpKinds)) {
    const DeclaredOperator& declared = DeclaredOperatorOf(kind);
    if (declared.onnx_name == op_type && declared.onnx_domain == domain) return kind;
  }
  return std::nullopt;
}

uint64_t DeclarationDigest(OpKind kind) {
  return IsBuiltIn(kind) ? 0 : HashBytes(DeclaredOperatorOf(kind).text);
}

uint64_t DeclaredOperatorsDigest() {
  uint64_t digest = 0;
  for (const DeclaredOperator& declared : DeclaredOperators()) digest += HashBytes(declared.text);
  return digest;
}

absl::Status NormalizeDeclaredAttributes(Operator* op) {
  const DeclaredOperator& declared = DeclaredOperatorOf(op->kind());
  const auto error = [&](auto... text) {
    return absl::InvalidArgumentError(absl::StrCat("operator ", op->name(), text...));
  };
  for (const Attribute& given : op->attributes()) {
    if (std::none_of(declared.attributes.begin(), declared.attributes.end(),
                     [&](const DeclaredAttribute& a) { return a.name == given.name; })) {
      return error(" has no attribute '", given.name, "'");
    }
  }
  for (const DeclaredAttribute& attribute : declared.attributes) {
    const AttributeValue* given = op->Find(attribute.name);
    if (given == nullptr && !attribute.value.has_value()) {
      return error(" needs the attribute '", attribute.name, "'");
    }
    double value = 0;
    if (given == nullptr) {
      value = *attribute.value;
    } else if (const auto* integer = std::get_if<int64_t>(given)) {
      value = static_cast<double>(*integer);
    } else if (const auto* number = std::get_if<double>(given); number && attribute.is_number) {
      value = *number;
    } else {
      return error(": attribute '", attribute.name,
                   "' has the wrong type: ", AttributeText(*given));
    }
    if (!(value >= attribute.least && value <= attribute.most)) {
      return error(": attribute '", attribute.name, "' is ", value, ", not in ",
                   DomainText(attribute));
    }
    op->Set(attribute.name, attribute.Of(value));
  }
  return absl::OkStatus();
}

}  // namespace isomer
