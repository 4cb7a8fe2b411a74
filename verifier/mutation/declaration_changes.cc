#include "verifier/mutation/declaration_changes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace isomer {
namespace {

// Whether every load that claims to stay inside of its tensor does.
bool IsInside(const Declaration& d) {
  for (const Access& access : d.accesses) {
    const Shape shape = access.tensor < d.num_operands()
                            ? d.operands[access.tensor]
                            : d.StatementShape(d.statements[access.tensor - d.num_operands()]);
    if (shape.size() != access.indices.size()) return false;
    if (access.outside != Outside::kNever) continue;
    for (size_t i = 0; i < shape.size(); ++i) {
      const Index& index = access.indices[i];
      int64_t low = index.offset.value(), high = low;
      for (const auto& [dim, stride] : index.terms) {
        const int64_t last = (d.dims[dim].size.value() - 1) * stride;
        low += std::min<int64_t>(last, 0);
        high += std::max<int64_t>(last, 0);
      }
      high /= index.divide;
      if (index.modulo != 0) high = std::min(high, index.modulo - 1);
      if (low < 0 || high >= shape[i].value()) return false;
    }
  }
  return true;
}

std::vector<ScalarOp> Siblings(ScalarOp op) {
  switch (op) {
    case ScalarOp::kAdd:
      return {ScalarOp::kSub, ScalarOp::kMax};
    case ScalarOp::kSub:
      return {ScalarOp::kAdd};
    case ScalarOp::kMul:
      return {ScalarOp::kAdd, ScalarOp::kDiv};
    case ScalarOp::kDiv:
      return {ScalarOp::kMul};
    case ScalarOp::kMax:
      return {ScalarOp::kAdd};
    case ScalarOp::kLess:
      return {ScalarOp::kEqual};
    case ScalarOp::kEqual:
      return {ScalarOp::kLess};
    case ScalarOp::kExp:
      return {ScalarOp::kTanh};
    case ScalarOp::kLog:
    case ScalarOp::kSqrt:
      return {ScalarOp::kExp};
    case ScalarOp::kTanh:
    case ScalarOp::kErf:
      return {ScalarOp::kAtan};
    case ScalarOp::kSin:
      return {ScalarOp::kCos};
    case ScalarOp::kCos:
      return {ScalarOp::kSin};
    case ScalarOp::kFloor:
      return {ScalarOp::kRound};
    case ScalarOp::kRound:
      return {ScalarOp::kFloor};
    default:
      return {};
  }
}

class Changes {
 public:
  explicit Changes(const Declaration& d) : d_(d) { seen_.insert(Key(d)); }

  std::vector<ChangedDeclaration> Run() {
    for (size_t v = 0; v < d_.dims.size(); ++v) ChangeKind(v);
    for (size_t a = 0; a < d_.accesses.size(); ++a) ChangeAccess(a);
    for (size_t s = 0; s < d_.statements.size(); ++s) ChangeStatement(s);
    return std::move(found_);
  }

 private:
  static std::string Key(const Declaration& d) {
    std::string key = d.ToString();
    for (const IterationDim& dim : d.dims) absl::StrAppend(&key, " ", DimKindName(dim.kind));
    for (const Access& access : d.accesses) {
      absl::StrAppend(&key, " ", static_cast<int>(access.outside), "/", access.tensor);
    }
    for (const Statement& s : d.statements) absl::StrAppend(&key, " ", s.select_dim);
    return key;
  }

  void Keep(const std::string& change, Declaration changed) {
    if (!IsInside(changed) || !seen_.insert(Key(changed)).second) return;
    found_.push_back({change, std::move(changed)});
  }

  void ChangeKind(size_t v) {
    for (DimKind kind : {DimKind::kParallel, DimKind::kSpatial, DimKind::kSum, DimKind::kWhole}) {
      Declaration changed = d_;
      changed.dims[v].kind = kind;
      if (kind == d_.dims[v].kind) continue;
      Keep(absl::StrCat("dim ", d_.dims[v].name, " is ", DimKindName(kind), ", not ",
                        DimKindName(d_.dims[v].kind)),
           std::move(changed));
    }
  }

  void ChangeAccess(size_t a) {
    const Access& access = d_.accesses[a];
    const std::string where = absl::StrCat("access ", a);
    auto keep = [&](const std::string& what, const Access& other) {
      Declaration changed = d_;
      changed.accesses[a] = other;
      Keep(absl::StrCat(where, ": ", what), std::move(changed));
    };
    for (Outside outside : {Outside::kZero, Outside::kSkip}) {
      Access other = access;
      other.outside = outside;
      // Where all is inside, there is nothing to change.
      if (access.outside != Outside::kNever) keep("reads something else outside", other);
    }
    for (int tensor = 0; tensor < d_.num_operands(); ++tensor) {
      Access other = access;
      other.tensor = tensor;
      if (access.tensor < d_.num_operands() && tensor != access.tensor) {
        keep(absl::StrCat("of operand ", tensor), other);
      }
    }
    for (size_t i = 0; i + 1 < access.indices.size(); ++i) {
      Access other = access;
      std::swap(other.indices[i], other.indices[i + 1]);
      keep(absl::StrCat("indices ", i, " and ", i + 1, " exchanged"), other);
    }
    for (size_t i = 0; i < access.indices.size(); ++i) {
      const std::string index = absl::StrCat("index ", i);
      for (size_t t = 0; t < access.indices[i].terms.size(); ++t) {
        const auto [dim, stride] = access.indices[i].terms[t];
        for (size_t v = 0; v < d_.dims.size(); ++v) {
          Access other = access;
          other.indices[i].terms[t].first = static_cast<int>(v);
          keep(absl::StrCat(index, " by ", d_.dims[v].name, " for ", d_.dims[dim].name), other);
        }
        Access other = access;  // Backwards.
        other.indices[i].terms[t].second = -stride;
        other.indices[i].offset += (d_.dims[dim].size - 1) * stride;
        keep(index + " runs backwards", other);
        other = access;
        other.indices[i].terms[t].second = stride + 1;
        keep(index + " with a larger stride", other);
        other = access;
        other.indices[i].terms.erase(other.indices[i].terms.begin() + static_cast<int64_t>(t));
        keep(absl::StrCat(index, " without ", d_.dims[dim].name), other);
      }
      for (int64_t shift : {1, -1}) {
        Access other = access;
        other.indices[i].offset += shift;
        keep(absl::StrCat(index, " shifted by ", shift), other);
      }
    }
  }

  void ChangeStatement(size_t s) {
    const Statement& statement = d_.statements[s];
    auto keep = [&](const std::string& what, const Statement& other) {
      Declaration changed = d_;
      changed.statements[s] = other;
      Keep(absl::StrCat("statement ", s, ": ", what), std::move(changed));
    };
    if (statement.reduction != Reduction::kNone) {
      for (Reduction reduction : {Reduction::kSum, Reduction::kMax, Reduction::kProduct}) {
        Statement other = statement;
        other.reduction = reduction;
        if (reduction != statement.reduction) {
          keep(absl::StrCat("reduction ", static_cast<int>(reduction)), other);
        }
      }
    }
    if (statement.select_dim >= 0) {
      Statement other = statement;
      other.select_dim = other.select = -1;
      keep("look-up dropped", other);
    }
    for (size_t i = 0; i < statement.body.size(); ++i) {
      const Instruction& instruction = statement.body[i];
      for (ScalarOp op : Siblings(instruction.op)) {
        Statement other = statement;
        other.body[i].op = op;
        keep(absl::StrCat(ScalarOpName(op), " for ", ScalarOpName(instruction.op)), other);
      }
      if (Arity(instruction.op) == 1) {
        Statement other = statement;
        other.body.erase(other.body.begin() + static_cast<int64_t>(i));
        keep(absl::StrCat(ScalarOpName(instruction.op), " dropped"), other);
      }
      if (instruction.op == ScalarOp::kConstant) {
        for (double constant : {instruction.constant + 1, -instruction.constant}) {
          Statement other = statement;
          other.body[i].constant = constant;
          keep(absl::StrCat("constant ", constant, " for ", instruction.constant), other);
        }
      }
      if (instruction.op == ScalarOp::kLoad) {
        for (size_t a = 0; a < d_.accesses.size(); ++a) {
          Statement other = statement;
          other.body[i].access = static_cast<int>(a);
          // Later statements have not been computed yet.
          const int made = d_.accesses[a].tensor - d_.num_operands();
          if (made < static_cast<int>(s)) keep(absl::StrCat("loads access ", a), other);
        }
      }
      if (instruction.op == ScalarOp::kIndex) {
        for (size_t v = 0; v < d_.dims.size(); ++v) {
          Statement other = statement;
          other.body[i].dim = static_cast<int>(v);
          keep(absl::StrCat("coordinate ", d_.dims[v].name), other);
        }
      }
    }
  }

  const Declaration& d_;
  std::vector<ChangedDeclaration> found_;
  std::set<std::string> seen_;
};

}  // namespace

std::vector<ChangedDeclaration> ChangesOf(const Declaration& d) { return Changes(d).Run(); }

}  // namespace isomer
