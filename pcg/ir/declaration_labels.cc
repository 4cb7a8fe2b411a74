// What of a declaration is read off the structure of its statements: linearity, and whether tasks
// may go over pieces of a dim. Both are one abstract interpretation of the bodies, with labels for
// values; docs/proof.md proves the two theorems that rest on it.
#include <algorithm>

#include "pcg/ir/declaration.h"

namespace isomer {
namespace {

// How a value depends on what is asked about: operands (IsLinearIn), or a dim (PiecesSuffice).
enum class Label {
  kZero,    // it is zero, which is free and linear
  kFree,    // it does not depend on it
  kAlong,   // it depends on one value of the dim, that of the point
  kLinear,  // it is linear in the operands; it is a sum over the dim
  kOther,
};

bool IsFree(Label label) { return label == Label::kZero || label == Label::kFree; }
// Each task has it right, as far as it has it.
bool IsPure(Label label) { return IsFree(label) || label == Label::kAlong; }
Label Pure(Label a, Label b) { return IsFree(a) && IsFree(b) ? Label::kFree : Label::kAlong; }

// Of a sum, or of a choice.
Label Either(Label a, Label b) {
  if (a == Label::kZero || b == Label::kZero) return a == Label::kZero ? b : a;
  if (IsPure(a) && IsPure(b)) return Pure(a, b);
  return a == b ? a : Label::kOther;
}

Label Product(Label a, Label b) {
  if (IsFree(a) || IsFree(b)) return IsFree(a) ? b : a;
  return IsPure(a) && IsPure(b) ? Label::kAlong : Label::kOther;
}

Label Quotient(Label a, Label b) {
  if (IsFree(b)) return a;
  return IsPure(a) && IsPure(b) ? Label::kAlong : Label::kOther;
}

Label Choice(Label condition, Label yes, Label no) {
  if (IsFree(condition)) return Either(yes, no);
  return IsPure(condition) && IsPure(yes) && IsPure(no) ? Label::kAlong : Label::kOther;
}

// The label of a body: load(access), inside(access) and index(dim) say those of its leaves.
template <typename Load, typename Inside, typename IndexLabel>
Label LabelOf(const Body& body, Load load, Inside inside, IndexLabel index) {
  std::vector<Label> stack;
  auto pop = [&] {
    const Label top = stack.back();
    stack.pop_back();
    return top;
  };
  for (const Instruction& instruction : body) {
    switch (instruction.op) {
      case ScalarOp::kLoad:
        stack.push_back(load(instruction.access));
        break;
      case ScalarOp::kInside:
        stack.push_back(inside(instruction.access));
        break;
      case ScalarOp::kConstant:
        stack.push_back(instruction.constant == 0 ? Label::kZero : Label::kFree);
        break;
      case ScalarOp::kIndex:
        stack.push_back(index(instruction.dim));
        break;
      case ScalarOp::kAdd:
      case ScalarOp::kSub: {
        const Label b = pop(), a = pop();
        stack.push_back(Either(a, b));
        break;
      }
      case ScalarOp::kMul: {
        const Label b = pop(), a = pop();
        stack.push_back(Product(a, b));
        break;
      }
      case ScalarOp::kDiv: {
        const Label b = pop(), a = pop();
        stack.push_back(Quotient(a, b));
        break;
      }
      case ScalarOp::kWhere: {
        const Label no = pop(), yes = pop(), condition = pop();
        stack.push_back(Choice(condition, yes, no));
        break;
      }
      default: {
        Label label = Label::kFree;
        for (int i = Arity(instruction.op); i > 0; --i) {
          const Label argument = pop();
          label = IsPure(label) && IsPure(argument) ? Pure(label, argument) : Label::kOther;
        }
        stack.push_back(label);
      }
    }
  }
  return stack.back();
}

// Of what a statement selects by `select` from a body.
Label Selected(Label select, Label body) {
  if (IsFree(select)) return body;
  return IsPure(select) && IsPure(body) ? Label::kAlong : Label::kOther;
}

bool Sums(const Statement& s) {
  return s.reduction == Reduction::kNone || s.reduction == Reduction::kSum;
}

}  // namespace

bool Declaration::ComparesElements() const {
  return std::any_of(statements.begin(), statements.end(), [](const Statement& s) {
    bool loads = false, compares = false;
    for (const Instruction& i : s.body) {
      loads |= i.op == ScalarOp::kLoad;
      compares |= i.op == ScalarOp::kLess || i.op == ScalarOp::kEqual;
    }
    return s.select_dim >= 0 || (loads && compares);
  });
}

bool Declaration::IsLinearIn(const std::vector<bool>& subset) const {
  std::vector<Label> labels;  // of operands, then of statements
  for (bool in : subset) labels.push_back(in ? Label::kLinear : Label::kFree);
  for (const Statement& s : statements) {
    const auto free = [](int) { return Label::kFree; };
    Label label = LabelOf(
        s.body, [&](int access) { return labels[accesses[access].tensor]; }, free, free);
    if (!Sums(s) && !IsFree(label)) label = Label::kOther;
    if (s.select >= 0) label = Selected(labels[accesses[s.select].tensor], label);
    if (s.output >= 0 && label != Label::kLinear && label != Label::kZero) return false;
    labels.push_back(label);
  }
  return true;
}

bool Declaration::PiecesSuffice(int dim) const {
  std::vector<Label> labels(operands.size(), Label::kFree);  // of operands, then of statements
  auto of_access = [&](int a) {
    const Access& access = accesses[a];
    Label label = labels[access.tensor];
    for (size_t i = 0; i < access.indices.size(); ++i) {
      if (access.tensor < num_operands()) {
        if (Mentions(access.indices[i], dim)) label = Label::kAlong;
        continue;
      }
      // A task has an intermediate at the values of the dim that are its own.
      const Statement& made = statements[access.tensor - num_operands()];
      const Extent size = StatementShape(made)[i];
      if (!Mentions(made.indices[i], dim)) {
        if (Mentions(access.indices[i], dim)) label = Either(label, Label::kAlong);
      } else if (LeadOfIndex(dims, made.indices[i], size) != dim ||
                 LeadOfIndex(dims, access.indices[i], size) != dim) {
        return Label::kOther;
      }
    }
    return label;
  };
  auto mentioned = [&](const std::vector<Index>& indices) {
    return std::any_of(indices.begin(), indices.end(),
                       [&](const Index& index) { return Mentions(index, dim); });
  };
  auto of_inside = [&](int a) {
    return mentioned(accesses[a].indices) ? Label::kAlong : Label::kFree;
  };
  const bool sums = dims[dim].kind == DimKind::kSum;
  for (const Statement& s : statements) {
    Label label = LabelOf(s.body, of_access, of_inside,
                          [&](int v) { return v == dim ? Label::kAlong : Label::kFree; });
    if (!Sums(s) && !IsPure(label)) label = Label::kOther;
    if (s.select >= 0) label = Selected(of_access(s.select), label);
    const bool defined_along = mentioned(s.indices);
    if (std::find(s.reduced.begin(), s.reduced.end(), dim) != s.reduced.end()) {
      const bool is_sum = s.reduction == Reduction::kSum && IsPure(label);
      label = is_sum && !defined_along ? Label::kLinear : Label::kOther;
    } else if (defined_along) {
      label = IsPure(label) ? Label::kAlong : Label::kOther;
    } else if (label == Label::kAlong) {
      label = Label::kOther;
    }
    const bool suffices = sums ? label == Label::kLinear || label == Label::kZero : IsPure(label);
    if (s.output >= 0 && !suffices) return false;
    labels.push_back(label);
  }
  return true;
}

}  // namespace isomer
