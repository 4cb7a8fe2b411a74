// Declarations as people read them.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/ir/declaration.h"

namespace isomer {
namespace {

std::string IndexText(const Declaration& d, const Index& index) {
  std::string text;
  auto add = [&text](absl::string_view term) {
    const bool first = text.empty(), negative = absl::StartsWith(term, "-");
    absl::StrAppend(&text, first || negative ? "" : "+", term);
  };
  for (const auto& [dim, stride] : index.terms) {
    const std::string& name = d.dims[dim].name;
    add(stride == 1    ? name
        : stride == -1 ? absl::StrCat("-", name)
                       : absl::StrCat(name, "*", stride));
  }
  if (text.empty()) return index.offset.ToString();
  if (index.offset != Extent(0)) add(index.offset.ToString());
  if (index.divide != 1) text = absl::StrCat("(", text, ")/", index.divide);
  if (index.modulo != 0) text = absl::StrCat("(", text, ")%", index.modulo);
  return text;
}

std::string IndicesText(const Declaration& d, const std::vector<Index>& indices) {
  return absl::StrCat("[",
                      absl::StrJoin(indices, ",",
                                    [&](std::string* out, const Index& index) {
                                      absl::StrAppend(out, IndexText(d, index));
                                    }),
                      "]");
}

std::string AccessText(const Declaration& d, const Access& access) {
  const int n = d.num_operands();
  const std::string name =
      access.tensor < n ? absl::StrCat("X", access.tensor) : d.statements[access.tensor - n].name;
  return absl::StrCat(name, IndicesText(d, access.indices));
}

std::string BodyText(const Declaration& d, const Body& body) {
  std::vector<std::string> stack;
  auto infix = [&](const char* symbol) {
    std::string right = stack.back();
    stack.pop_back();
    stack.back() = absl::StrCat("(", stack.back(), " ", symbol, " ", right, ")");
  };
  auto call = [&](const char* name, int arity) {
    const auto first = stack.end() - arity;
    std::string text = absl::StrCat(name, "(", absl::StrJoin(first, stack.end(), ", "), ")");
    stack.erase(first, stack.end());
    stack.push_back(std::move(text));
  };
  for (const Instruction& instruction : body) {
    switch (instruction.op) {
      case ScalarOp::kLoad:
        stack.push_back(AccessText(d, d.accesses[instruction.access]));
        break;
      case ScalarOp::kInside:
        stack.push_back(absl::StrCat("inside ", AccessText(d, d.accesses[instruction.access])));
        break;
      case ScalarOp::kConstant:
        stack.push_back(absl::StrCat(instruction.constant));
        break;
      case ScalarOp::kIndex:
        stack.push_back(d.dims[instruction.dim].name);
        break;
      case ScalarOp::kAdd:
      case ScalarOp::kSub:
      case ScalarOp::kMul:
      case ScalarOp::kDiv:
      case ScalarOp::kMax:
      case ScalarOp::kPow:
      case ScalarOp::kLess:
      case ScalarOp::kEqual:
        infix(ScalarOpName(instruction.op));
        break;
      default:
        call(ScalarOpName(instruction.op), Arity(instruction.op));
    }
  }
  return stack.empty() ? "" : stack.back();
}

const char* ReductionName(Reduction reduction) {
  return reduction == Reduction::kSum ? "sum" : reduction == Reduction::kMax ? "max" : "product";
}

}  // namespace

const char* ScalarOpName(ScalarOp op) {
  switch (op) {
    case ScalarOp::kLoad:
      return "load";
    case ScalarOp::kInside:
      return "inside";
    case ScalarOp::kConstant:
      return "constant";
    case ScalarOp::kIndex:
      return "index";
    case ScalarOp::kAdd:
      return "+";
    case ScalarOp::kSub:
      return "-";
    case ScalarOp::kMul:
      return "*";
    case ScalarOp::kDiv:
      return "/";
    case ScalarOp::kMax:
      return "max";
    case ScalarOp::kPow:
      return "^";
    case ScalarOp::kLess:
      return "<";
    case ScalarOp::kEqual:
      return "==";
    case ScalarOp::kRandom:
      return "random";
    case ScalarOp::kExp:
      return "exp";
    case ScalarOp::kLog:
      return "log";
    case ScalarOp::kSqrt:
      return "sqrt";
    case ScalarOp::kTanh:
      return "tanh";
    case ScalarOp::kErf:
      return "erf";
    case ScalarOp::kSin:
      return "sin";
    case ScalarOp::kCos:
      return "cos";
    case ScalarOp::kAtan:
      return "atan";
    case ScalarOp::kFloor:
      return "floor";
    case ScalarOp::kRound:
      return "round";
    case ScalarOp::kWhere:
      return "where";
  }
  return "?";
}
const char* DimKindName(DimKind kind) {
  switch (kind) {
    case DimKind::kParallel:
      return "parallel";
    case DimKind::kSpatial:
      return "spatial";
    case DimKind::kSum:
      return "sum";
    case DimKind::kWhole:
      return "whole";
  }
  return "?";
}

std::string Declaration::ToString() const {
  std::string text;
  for (const Statement& s : statements) {
    const std::string name = s.output < 0 ? s.name : absl::StrCat("Y", s.output);
    absl::StrAppend(&text, name, IndicesText(*this, s.indices), " = ");
    if (s.reduction != Reduction::kNone) {
      absl::StrAppend(
          &text, ReductionName(s.reduction), " over ",
          absl::StrJoin(s.reduced, ",",
                        [&](std::string* out, int dim) { absl::StrAppend(out, dims[dim].name); }),
          ": ");
    }
    if (s.select >= 0) {
      absl::StrAppend(&text, "[", dims[s.select_dim].name,
                      " == ", AccessText(*this, accesses[s.select]), "] ");
    }
    absl::StrAppend(&text, BodyText(*this, s.body), "\n");
  }
  return text;
}

}  // namespace isomer
