#include "pcg/ir/operator.h"

#include <algorithm>
#include <cstdlib>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "pcg/ir/declared_operator.h"
#include "pcg/ir/finite_cast.h"
#include "pcg/ir/fp8.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/hash.h"

namespace isomer {
namespace {

struct Spec {
  const char* name;
  int min_operands;
  int max_operands;
  const char* attributes;
};

const Spec& SpecOf(OpKind kind) {
  static constexpr Spec kSpecs[] = {
#define V(kind, name, min, max, attributes, declared_by) {name, min, max, attributes},
      ISOMER_OPERATORS(V)
#undef V
  };
  return kSpecs[static_cast<int>(kind)];
}

// The type an attribute has wherever it occurs, as an index into AttributeValue.
size_t AttributeTypeIndex(absl::string_view name) {
  if (name == "sizes") return 3;
  for (absl::string_view number : {"factor", "epsilon", "alpha", "beta", "min", "max", "rate",
                                   "value", "scale", "cap", "slope", "cubic"}) {
    if (name == number) return 1;
  }
  for (absl::string_view list : {"stride", "padding", "dilation", "output_padding", "kernel",
                                 "output", "axes", "perm", "shape", "starts", "steps"}) {
    if (name == list) return 2;
  }
  return 0;
}

}  // namespace

absl::string_view OpName(OpKind kind) {
  if (IsBuiltIn(kind)) return SpecOf(kind).name;
  return DeclaredOperatorOf(kind).name;
}
int MinOperands(OpKind kind) {
  return IsBuiltIn(kind) ? SpecOf(kind).min_operands : DeclaredOperatorOf(kind).operands;
}
int MaxOperands(OpKind kind) {
  return IsBuiltIn(kind) ? SpecOf(kind).max_operands : DeclaredOperatorOf(kind).operands;
}

std::string AttributeList(OpKind kind) {
  if (IsBuiltIn(kind)) return SpecOf(kind).attributes;
  return absl::StrJoin(DeclaredOperatorOf(kind).attributes, " ",
                       [](std::string* out, const DeclaredAttribute& attribute) {
                         absl::StrAppend(out, attribute.name);
                         if (!attribute.value.has_value()) return;
                         absl::StrAppend(out, "=", AttributeText(attribute.Of(*attribute.value)));
                       });
}

absl::StatusOr<OpKind> ParseOpKind(absl::string_view name) {
  static const auto* const kKinds = [] {
    auto* kinds = new absl::flat_hash_map<absl::string_view, OpKind>();
    for (int k = 0; k < kNumBuiltInOpKinds; ++k) {
      const OpKind kind = static_cast<OpKind>(k);
      kinds->emplace(OpName(kind), kind);
    }
    return kinds;
  }();
  const auto found = kKinds->find(name);
  if (found != kKinds->end()) return found->second;
  for (const OpKind kind : AllOpKinds().subspan(kNumBuiltInOpKinds)) {
    if (OpName(kind) == name) return kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown operator '", name, "'; --operators=FILE declares others"));
}

bool IsNumberAttribute(absl::string_view name) { return AttributeTypeIndex(name) == 1; }
bool IsListAttribute(absl::string_view name) { return AttributeTypeIndex(name) > 1; }

std::string AttributeText(const AttributeValue& value) {
  if (auto* i = std::get_if<int64_t>(&value)) return absl::StrCat(*i);
  if (auto* d = std::get_if<double>(&value)) {
    std::string text = absl::StrCat(*d);
    double read = 0;
    if (!absl::SimpleAtod(text, &read) || read != *d) {
      char buffer[32];
      snprintf(buffer, sizeof buffer, "%.17g", *d);
      text = buffer;
    }
    // A number reads differently from an integer.
    if (!absl::StrContains(text, '.') && !absl::StrContains(text, 'e')) text += ".0";
    return text;
  }
  if (auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    return absl::StrCat("[", absl::StrJoin(*list, ","), "]");
  }
  const auto& extents = std::get<std::vector<Extent>>(value);
  return absl::StrCat(
      "[",
      absl::StrJoin(extents, ",",
                    [](std::string* out, const Extent& extent) { out->append(extent.ToString()); }),
      "]");
}

Operator::Operator(OpKind kind, std::vector<Attribute> attributes) : kind_(kind) {
  for (Attribute& attribute : attributes)
    Set(std::move(attribute.name), std::move(attribute.value));
}

const AttributeValue* Operator::Find(absl::string_view name) const {
  for (const Attribute& attribute : attributes_) {
    if (attribute.name == name) return &attribute.value;
  }
  return nullptr;
}

void Operator::Set(std::string name, AttributeValue value) {
  auto at = std::lower_bound(attributes_.begin(), attributes_.end(), name,
                             [](const Attribute& a, const std::string& b) { return a.name < b; });
  if (at != attributes_.end() && at->name == name) {
    at->value = std::move(value);
  } else {
    attributes_.insert(at, {std::move(name), std::move(value)});
  }
}

namespace {

template <typename T>
const T& Get(const Operator& op, absl::string_view name) {
  const AttributeValue* value = op.Find(name);
  if (value == nullptr || !std::holds_alternative<T>(*value)) std::abort();
  return std::get<T>(*value);
}

}  // namespace

int64_t Operator::Int(absl::string_view name) const { return Get<int64_t>(*this, name); }
double Operator::Number(absl::string_view name) const { return Get<double>(*this, name); }
const std::vector<int64_t>& Operator::Ints(absl::string_view name) const {
  return Get<std::vector<int64_t>>(*this, name);
}
const std::vector<Extent>& Operator::Extents(absl::string_view name) const {
  return Get<std::vector<Extent>>(*this, name);
}

std::string Operator::ToString() const {
  if (attributes_.empty()) return std::string(name());
  return absl::StrCat(name(), "(",
                      absl::StrJoin(attributes_, ",",
                                    [](std::string* out, const Attribute& a) {
                                      absl::StrAppend(out, a.name, "=", AttributeText(a.value));
                                    }),
                      ")");
}

uint64_t Operator::Hash() const {
  uint64_t hash = HashCombine(HashBytes(OpName(kind_)), attributes_.size());
  for (const Attribute& attribute : attributes_) {
    hash = HashCombine(hash, HashBytes(attribute.name));
    hash = HashCombine(hash, attribute.value.index());
    if (auto* i = std::get_if<int64_t>(&attribute.value)) {
      hash = HashCombine(hash, static_cast<uint64_t>(*i));
    } else {
      hash = HashCombine(hash, HashBytes(AttributeText(attribute.value)));
    }
  }
  return hash;
}

absl::Status NormalizeAttributes(Operator* op) {
  if (!IsBuiltIn(op->kind())) return NormalizeDeclaredAttributes(op);
  std::vector<absl::string_view> known;
  for (absl::string_view item :
       absl::StrSplit(SpecOf(op->kind()).attributes, ' ', absl::SkipEmpty())) {
    std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits('=', 1));
    known.push_back(parts.first);
    const AttributeValue* value = op->Find(parts.first);
    if (value == nullptr) {
      int64_t number;
      if (!absl::SimpleAtoi(parts.second, &number)) {
        return absl::InvalidArgumentError(
            absl::StrCat("operator ", op->name(), " needs the attribute '", parts.first, "'"));
      }
      if (AttributeTypeIndex(parts.first) == 1) {
        op->Set(std::string(parts.first), static_cast<double>(number));
      } else {
        op->Set(std::string(parts.first), number);
      }
    } else if (value->index() != AttributeTypeIndex(parts.first)) {
      // An integer list is a fine list of extents, and an integer a fine number.
      if (auto* list = std::get_if<std::vector<int64_t>>(value);
          list && AttributeTypeIndex(parts.first) == 3) {
        op->Set(std::string(parts.first), std::vector<Extent>(list->begin(), list->end()));
      } else if (auto* i = std::get_if<int64_t>(value); i && AttributeTypeIndex(parts.first) == 1) {
        op->Set(std::string(parts.first), static_cast<double>(*i));
      } else {
        return absl::InvalidArgumentError(
            absl::StrCat("operator ", op->name(), ": attribute '", parts.first,
                         "' has the wrong type: ", AttributeText(*value)));
      }
    }
  }
  if (const AttributeValue* fp8 = op->Find(kFp8Attribute); CanBeFp8(op->kind()) && fp8 != nullptr) {
    const auto* scaling = std::get_if<int64_t>(fp8);
    if (scaling == nullptr || *scaling <= static_cast<int64_t>(Fp8Scaling::kNone) ||
        *scaling > static_cast<int64_t>(Fp8Scaling::kBlock)) {
      return absl::InvalidArgumentError(
          absl::StrCat("operator ", op->name(), ": no scaling ", AttributeText(*fp8), " of fp8"));
    }
    known.push_back(kFp8Attribute);
  }
  if (IsFiniteCast(*op)) {
    const auto to = static_cast<DataType>(op->Int("to"));
    const auto* set = std::get_if<int64_t>(op->Find(kFiniteAttribute));
    if (set == nullptr || *set != 1 || !IsFloat(to) || to == DataType::kFloat32) {
      return absl::InvalidArgumentError(
          absl::StrCat("operator ", op->name(), ": ", kFiniteAttribute, "=1 is of low floats"));
    }
    known.push_back(kFiniteAttribute);
  }
  for (const Attribute& attribute : op->attributes()) {
    if (std::find(known.begin(), known.end(), attribute.name) == known.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("operator ", op->name(), " has no attribute '", attribute.name, "'"));
    }
  }
  return absl::OkStatus();
}

bool IsLeaf(OpKind kind) { return kind == OpKind::kInput || IsStored(kind); }
bool IsStored(OpKind kind) { return kind == OpKind::kWeight || kind == OpKind::kConstant; }
bool IsParallel(OpKind kind) { return kind >= OpKind::kPartition && IsBuiltIn(kind); }
bool IsLayout(OpKind kind) { return TraitsOf(kind).op_class == OperatorClass::kLayout; }
bool IsLoss(OpKind kind) { return TraitsOf(kind).op_class == OperatorClass::kLoss; }
bool IsIndexOperand(OpKind kind, int operand) { return TraitsOf(kind).index_operand == operand; }

absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank) {
  const int64_t from_front = axis < 0 ? axis + rank : axis;
  if (from_front < 0 || from_front >= rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis, " is not a dim of a tensor of rank ", rank));
  }
  return static_cast<int>(from_front);
}

}  // namespace isomer
