#include "models/frameworks/local_attributes.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/frameworks/operator_text.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

bool IsMean(const Operator& op) {
  return op.kind() == OpKind::kReduceMean || IsLoss(op.kind()) ||
         (op.kind() == OpKind::kEmbeddingBag && op.Int("mean") == 1);
}

bool IsAttention(OpKind kind) { return TraitsOf(kind).op_class == OperatorClass::kAttention; }

std::string TextOf(const AttributeValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return PythonNumber(*number);
  if (const auto* integer = std::get_if<int64_t>(&value)) return absl::StrCat(*integer);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) return PythonList(*list);
  std::vector<int64_t> sizes;
  for (const Extent& size : std::get<std::vector<Extent>>(value)) sizes.push_back(size.value());
  return PythonList(sizes);
}

void SetAttribute(const std::string& name, const std::string& text, LocalCall* local) {
  for (auto& [attribute, value] : local->attributes) {
    if (attribute == name) value = text;
  }
}

// The iteration dims that a statement takes the coordinate of.
std::set<int> CoordinateDims(const Declaration& declaration) {
  std::set<int> dims;
  for (const Statement& statement : declaration.statements) {
    for (const Instruction& instruction : statement.body) {
      if (instruction.op == ScalarOp::kIndex) dims.insert(instruction.dim);
    }
  }
  return dims;
}

int DimNamed(const Declaration& declaration, absl::string_view name) {
  for (size_t v = 0; v < declaration.dims.size(); ++v) {
    if (declaration.dims[v].name == name) return static_cast<int>(v);
  }
  return -1;
}

class Localizer {
 public:
  Localizer(const Node& node, const PlacedCall& call, const Mesh& mesh, PlaceText place)
      : node_(node),
        call_(call),
        declaration_(call.sharding.declaration),
        mesh_(mesh),
        place_(place) {}

  absl::Status Localize(LocalCall* local) {
    const OpKind kind = node_.op.kind();
    const std::vector<int64_t> shape = call_.sharding.outputs[0].LocalShape();
    if (kind == OpKind::kReshape || kind == OpKind::kExpand) {
      SetAttribute("shape", PythonList(shape), local);
    }
    if (kind == OpKind::kSlice) SetAttribute("sizes", PythonList(shape), local);
    if (kind == OpKind::kAdaptiveAvgPool) {
      SetAttribute("output", PythonList({shape.begin() + 2, shape.end()}), local);
    }
    const int groups = DimNamed(declaration_, "g");
    if (node_.op.Find("groups") != nullptr && groups >= 0) {
      SetAttribute("groups", absl::StrCat(node_.op.Int("groups") / Degree(groups)), local);
    }
    if (IsMean(node_.op)) {
      for (size_t v = 0; v < declaration_.dims.size(); ++v) {
        const bool selects = SelectDims().contains(static_cast<int>(v));
        if (declaration_.dims[v].kind == DimKind::kSum && !selects) {
          local->divisor *= Degree(static_cast<int>(v));
        }
      }
    }
    ISOMER_RETURN_IF_ERROR(AddWindows(local));
    AddSelection(local);
    return AddCoordinates(local);
  }

 private:
  int64_t Degree(int v) const { return call_.sharding.degrees[v]; }
  int64_t LocalSize(int v) const { return declaration_.dims[v].size.value() / Degree(v); }

  // The first index of the part along dim v: micro-batches are the outermost parts.
  std::string FirstOf(int v) const {
    if (Degree(v) == 1) return "0";
    int64_t moments = 1, devices = 1;
    for (const TaskAxis& axis : call_.axes) {
      if (axis.kind != TaskAxis::Kind::kDim || axis.dim != v) continue;
      moments = axis.moments;
      devices = axis.devices;
    }
    const std::string place = devices == 1 ? "" : place_(call_.DigitsOf(mesh_, v));
    if (moments == 1) return absl::StrCat(place, " * ", LocalSize(v));
    const std::string moment = absl::StrCat("self.index * ", LocalSize(v) * devices);
    return devices == 1 ? moment : absl::StrCat(moment, " + ", place, " * ", LocalSize(v));
  }

  std::set<int> SelectDims() const {
    std::set<int> dims;
    for (const Statement& statement : declaration_.statements) {
      if (statement.select_dim >= 0) dims.insert(statement.select_dim);
    }
    return dims;
  }

  // Look-ups in a part of a table.
  void AddSelection(LocalCall* local) const {
    for (int v : SelectDims()) {
      if (Degree(v) == 1) continue;
      local->attributes.push_back({"first", FirstOf(v)});
    }
  }

  absl::Status AddCoordinates(LocalCall* local) const {
    const OpKind kind = node_.op.kind();
    std::set<int> split;
    for (int v : CoordinateDims(declaration_)) {
      if (Degree(v) > 1) split.insert(v);
    }
    if (split.empty()) return absl::OkStatus();
    const int queries = DimNamed(declaration_, "s");
    if (IsAttention(kind) && split == std::set<int>{queries}) {
      local->attributes.push_back({"first", FirstOf(queries)});
      local->attributes.push_back(
          {"queries", absl::StrCat(declaration_.dims[queries].size.value())});
      return absl::OkStatus();
    }
    const int stripes = DimNamed(declaration_, "p");
    if (IsAttention(kind) && split == std::set<int>{stripes}) {
      const int64_t each = declaration_.dims[queries].size.value();
      local->attributes.push_back({"first", absl::StrCat("(", FirstOf(stripes), ") * ", each)});
      local->attributes.push_back(
          {"queries", absl::StrCat(each * declaration_.dims[stripes].size.value())});
      return absl::OkStatus();
    }
    if (kind == OpKind::kTrilu) {
      const int columns = static_cast<int>(declaration_.dims.size()) - 1;
      local->attributes.push_back(
          {"first", absl::StrCat("(", FirstOf(columns - 1), ", ", FirstOf(columns), ")")});
      return absl::OkStatus();
    }
    if (kind == OpKind::kDropout) {
      std::vector<std::string> firsts;
      std::vector<int64_t> sizes;
      for (size_t v = 0; v < declaration_.dims.size(); ++v) {
        firsts.push_back(FirstOf(static_cast<int>(v)));
        sizes.push_back(declaration_.dims[v].size.value());
      }
      local->attributes.push_back({"first", absl::StrCat("[", absl::StrJoin(firsts, ", "), "]")});
      local->attributes.push_back({"shape", PythonList(sizes)});
      return absl::OkStatus();
    }
    if (kind == OpKind::kTop2Gating && split == std::set<int>{0}) {
      local->attributes.push_back({"first", FirstOf(0)});
      return absl::OkStatus();
    }
    std::vector<std::string> names;
    for (int v : split) names.push_back(declaration_.dims[v].name);
    return absl::UnimplementedError(
        absl::StrCat("its parts differ by their place along ", absl::StrJoin(names, ", ")));
  }

  // Of convolutions and pooling whose windows reach beyond a part: the part is cut out with what
  // they reach, padding included.
  absl::Status AddWindows(LocalCall* local) const {
    if (call_.operands[0].halos.empty()) return absl::OkStatus();
    const OpKind kind = node_.op.kind();
    const bool convolves = TraitsOf(kind).op_class == OperatorClass::kConvolution;
    const bool averages = kind == OpKind::kAvgPool;
    if (!convolves && kind != OpKind::kMaxPool && !averages) {
      return absl::UnimplementedError("windows of it beyond a part");
    }
    std::vector<int64_t> padding = node_.op.Ints("padding");
    const size_t rank = padding.size() / 2;
    if (averages && node_.op.Int("count_include_pad") == 0 &&
        std::any_of(padding.begin(), padding.end(), [](int64_t p) { return p != 0; })) {
      return absl::UnimplementedError("averages of split windows that leave out the padding");
    }
    for (const HaloOf& halo : call_.operands[0].halos) {
      const size_t i = static_cast<size_t>(halo.dim) - 2;
      int64_t span = 0;
      if (convolves) {
        const int64_t kernel = declaration_.operands[1][2 + i].value();
        span = node_.op.Ints("dilation")[i] * (kernel - 1) + 1;
      } else {
        span = node_.op.Ints("kernel")[i];
      }
      const int64_t stride = node_.op.Ints("stride")[i], windows = LocalSize(halo.iteration_dim);
      local->windows.push_back({.dim = halo.dim,
                                .digits = call_.DigitsOf(mesh_, halo.iteration_dim),
                                .stride = stride * windows,
                                .offset = -padding[i],
                                .length = (windows - 1) * stride + span,
                                .outside = kind == OpKind::kMaxPool ? -HUGE_VAL : 0.0});
      padding[i] = padding[rank + i] = 0;
    }
    SetAttribute("padding", PythonList(padding), local);
    return absl::OkStatus();
  }

  const Node& node_;
  const PlacedCall& call_;
  const Declaration& declaration_;
  const Mesh& mesh_;
  const PlaceText place_;
};

}  // namespace

std::string PythonType(DataType dtype, const std::string& prefix) {
  const auto name = [&] {
    switch (dtype) {
      case DataType::kFloat32:
        return "float32";
      case DataType::kInt64:
        return "int64";
      case DataType::kBFloat16:
        return "bfloat16";
      case DataType::kFloat16:
        return "float16";
      case DataType::kInt32:
        return "int32";
      case DataType::kBool:
        return "bool";
    }
    return "";
  };
  const std::string type = name();
  return absl::StrCat(prefix, type == "bool" && prefix == "jnp." ? "bool_" : type);
}

LocalCall WholeCall(const Node& node, const std::string& dtype_prefix) {
  LocalCall local;
  local.function =
      node.op.kind() == OpKind::kNot ? "logical_not" : std::string(OpName(node.op.kind()));
  for (const Attribute& attribute : node.op.attributes()) {
    if (node.op.kind() == OpKind::kCast && attribute.name == "to") {
      const auto to = static_cast<DataType>(node.op.Int("to"));
      local.attributes.push_back(
          {"to", to == DataType::kFloat32 ? "FLOAT" : PythonType(to, dtype_prefix)});
    } else {
      local.attributes.push_back({attribute.name, TextOf(attribute.value)});
    }
  }
  return local;
}

absl::StatusOr<LocalCall> LocalCallOf(const Node& node, const PlacedCall& call, const Mesh& mesh,
                                      PlaceText place, const std::string& dtype_prefix) {
  LocalCall local = WholeCall(node, dtype_prefix);
  ISOMER_RETURN_IF_ERROR(Localizer(node, call, mesh, place).Localize(&local));
  return local;
}

}  // namespace isomer
