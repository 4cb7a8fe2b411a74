#include "rules/theorems/declaration_facts.h"

#include <algorithm>

#include "pcg/evaluation/evaluator.h"
#include "pcg/evaluation/exact_number.h"

namespace isomer {
namespace {

bool SameBody(const Body& a, const Body& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const Instruction& i, const Instruction& j) {
        return i.op == j.op && i.access == j.access && i.constant == j.constant && i.dim == j.dim;
      });
}

// `v`: of a dim of size 1, the value of which is 0, so that indices are the same without it; or -1.
bool SameIndices(const std::vector<Index>& a, const std::vector<Index>& b, int v) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    Index x = a[i], y = b[i];
    std::erase_if(x.terms, [v](const auto& term) { return term.first == v; });
    std::erase_if(y.terms, [v](const auto& term) { return term.first == v; });
    if (!(x == y)) return false;
  }
  return true;
}

bool SameStatement(const Statement& a, const Statement& b, int v) {
  return a.output == b.output && SameIndices(a.indices, b.indices, v) &&
         a.reduction == b.reduction && a.reduced == b.reduced && a.select_dim == b.select_dim &&
         a.select == b.select && SameBody(a.body, b.body);
}

bool SameAccess(const Access& a, const Access& b, int v) {
  return a.tensor == b.tensor && SameIndices(a.indices, b.indices, v) && a.outside == b.outside;
}

// A statement computes with a value of dim v, or looks one up.
bool UsesCoordinateOf(const Declaration& d, int v) {
  return std::any_of(d.statements.begin(), d.statements.end(), [&](const Statement& s) {
    return s.select_dim == v || std::any_of(s.body.begin(), s.body.end(), [&](const auto& i) {
             return i.op == ScalarOp::kIndex && i.dim == v;
           });
  });
}

}  // namespace

bool SameButForConstants(const Declaration& a, const Declaration& b) {
  auto without = [](Declaration d) {
    for (Statement& s : d.statements) {
      for (Instruction& i : s.body) i.constant = 0;
    }
    return d;
  };
  return SameDeclaration(without(a), without(b));
}

bool SameBodies(const Declaration& a, const Declaration& b) {
  if (a.statements.size() != b.statements.size() || a.num_operands() != b.num_operands()) {
    return false;
  }
  auto same = [&](const Instruction& i, const Instruction& j) {
    if (i.op != j.op || i.constant != j.constant || i.dim != j.dim) return false;
    if (i.access < 0 || j.access < 0) return i.access == j.access;
    const Access &x = a.accesses[i.access], &y = b.accesses[j.access];
    return x.tensor == y.tensor && x.outside == y.outside;
  };
  for (size_t s = 0; s < a.statements.size(); ++s) {
    const Statement &x = a.statements[s], &y = b.statements[s];
    if (x.output != y.output || x.reduction != y.reduction || x.select_dim != y.select_dim ||
        !std::equal(x.body.begin(), x.body.end(), y.body.begin(), y.body.end(), same)) {
      return false;
    }
  }
  return true;
}

bool SameButForSize(const Declaration& a, const Declaration& b, int v) {
  if (a.dims.size() != b.dims.size() || a.operands.size() != b.operands.size() ||
      a.outputs.size() != b.outputs.size()) {
    return false;
  }
  for (int u = 0; u < static_cast<int>(a.dims.size()); ++u) {
    if (a.dims[u].kind != b.dims[u].kind || (u != v && a.dims[u].size != b.dims[u].size)) {
      return false;
    }
  }
  // A piece of size 1 may look like something to be broadcast, which is not indexed by the dim.
  const int single = v >= 0 && b.dims[v].size == Extent(1) ? v : -1;
  // Whether loads fall outside depends on the shapes.
  auto same_shapes = [&](const std::vector<Shape>& x, const std::vector<Shape>& y, auto lead) {
    for (size_t t = 0; t < x.size(); ++t) {
      if (x[t].size() != y[t].size()) return false;
      for (size_t i = 0; i < x[t].size(); ++i) {
        if (x[t][i] == y[t][i]) continue;
        const bool one = single >= 0 && a.dims[v].size == x[t][i] && y[t][i] == Extent(1);
        if (v < 0 || lead(a, t, i) != v || (lead(b, t, i) != v && !one)) return false;
      }
    }
    return true;
  };
  auto same_access = [&](const Access& x, const Access& y) { return SameAccess(x, y, single); };
  auto same_statement = [&](const Statement& x, const Statement& y) {
    return SameStatement(x, y, single);
  };
  return std::equal(a.accesses.begin(), a.accesses.end(), b.accesses.begin(), b.accesses.end(),
                    same_access) &&
         std::equal(a.statements.begin(), a.statements.end(), b.statements.begin(),
                    b.statements.end(), same_statement) &&
         same_shapes(a.operands, b.operands,
                     [](const Declaration& d, size_t o, size_t i) {
                       return d.LeadOfOperandDim(static_cast<int>(o), static_cast<int>(i));
                     }) &&
         same_shapes(a.outputs, b.outputs, [](const Declaration& d, size_t t, size_t i) {
           return d.LeadOfOutputDim(static_cast<int>(t), static_cast<int>(i));
         });
}

bool SameButForMargins(const Declaration& a, const Declaration& b, int padded) {
  if (a.dims.size() != b.dims.size() || a.accesses.size() != b.accesses.size() ||
      a.operands.size() != b.operands.size() || a.outputs != b.outputs ||
      a.statements.size() != 1 || b.statements.size() != 1 ||
      !SameStatement(a.statements[0], b.statements[0], -1) ||
      a.statements[0].reduction != Reduction::kSum) {
    return false;
  }
  // The dims that the margins widen are summed over.
  std::vector<bool> wider;
  for (size_t v = 0; v < a.dims.size(); ++v) {
    const std::vector<int>& summed = a.statements[0].reduced;
    wider.push_back(a.dims[v].size != b.dims[v].size);
    if (!wider[v]) continue;
    if (b.dims[v].size != a.dims[v].size + Extent(2) || UsesCoordinateOf(a, static_cast<int>(v)) ||
        std::find(summed.begin(), summed.end(), static_cast<int>(v)) == summed.end()) {
      return false;
    }
  }
  for (size_t k = 0; k < a.accesses.size(); ++k) {
    const Access &x = a.accesses[k], &y = b.accesses[k];
    if (x.tensor != y.tensor || x.indices.size() != y.indices.size()) return false;
    if (x.outside != y.outside && x.outside != Outside::kNever) return false;
    std::vector<bool> indexed(a.dims.size(), false);  // by which wide dims alone
    for (size_t i = 0; i < x.indices.size(); ++i) {
      Index shifted = y.indices[i];  // where a wide dim is one more
      for (const auto& [dim, stride] : y.indices[i].terms) {
        if (!wider[dim]) continue;
        if (x.tensor != padded) shifted.offset += Extent(stride);
        indexed[dim] = y.indices[i] == Index(dim);
      }
      if (!(x.indices[i] == shifted)) return false;
    }
    if (x.tensor == padded && indexed != wider) return false;
  }
  std::vector<bool> factor(a.operands.size(), false);
  factor[padded] = true;
  return a.IsLinearIn(factor);
}

bool IsUniformIn(const Declaration& d, int v) {
  if (!d.IsPartitionable(v)) return false;
  for (int o = 0; o < d.num_operands(); ++o) {
    for (int i = 0; i < static_cast<int>(d.operands[o].size()); ++i) {
      if (d.LeadOfOperandDim(o, i) == v && d.HasHalo(o, i)) return false;
    }
  }
  return !UsesCoordinateOf(d, v);
}

bool SameButForFactor(const Declaration& a, const Declaration& b, int operand, double factor) {
  const auto reads = [&](const Statement& s, int tensor) {
    return std::any_of(s.body.begin(), s.body.end(), [&](const Instruction& i) {
      return i.op == ScalarOp::kLoad && a.accesses[i.access].tensor == tensor;
    });
  };
  // The one statement that reads the operand, linear in it.
  int reader = -1;
  for (size_t s = 0; s < a.statements.size(); ++s) {
    if (!reads(a.statements[s], operand)) continue;
    if (reader >= 0) return false;
    reader = static_cast<int>(s);
  }
  if (reader < 0 || a.statements[reader].output >= 0) return false;
  Declaration until = a;
  until.statements.resize(reader + 1);
  for (Statement& s : until.statements) s.output = -1;
  until.statements[reader].output = 0;
  std::vector<bool> linear(a.operands.size(), false);
  linear[operand] = true;
  if (!until.IsLinearIn(linear)) return false;
  // Whoever reads that takes it times the constant.
  const int made = a.num_operands() + reader;
  Declaration changed = a;  // to be `b`
  for (size_t s = reader + 1; s < a.statements.size() && s < b.statements.size(); ++s) {
    const Body &x = a.statements[s].body, &y = b.statements[s].body;
    for (size_t i = 0; i < x.size() && x.size() == y.size(); ++i) {
      if (x[i].op != ScalarOp::kLoad || a.accesses[x[i].access].tensor != made) continue;
      const bool times = i + 2 < x.size() && x[i + 1].op == ScalarOp::kConstant &&
                         x[i + 2].op == ScalarOp::kMul &&
                         ExactProduct({x[i + 1].constant, factor}) == y[i + 1].constant;
      if (!times) return false;
      changed.statements[s].body[i + 1].constant = y[i + 1].constant;
    }
  }
  return SameDeclaration(changed, b);
}

bool GoesBySlices(const Declaration& d, int operand, int axis, int output_axis) {
  if (d.statements.size() != 1 || d.outputs.size() != 1) return false;
  const Index& slice = d.statements[0].indices[output_axis];
  return d.operands[operand][axis] == d.outputs[0][output_axis] &&
         std::all_of(d.accesses.begin(), d.accesses.end(), [&](const Access& access) {
           return access.tensor != operand || access.indices[axis] == slice;
         });
}

bool IsElementwise(const Declaration& d) {
  if (d.outputs.size() != 1) return false;
  for (const Shape& shape : d.operands) {
    if (shape != d.outputs[0]) return false;
  }
  const size_t rank = d.outputs[0].size();
  auto is_place = [&](const std::vector<Index>& indices) {
    if (indices.size() != rank) return false;
    for (size_t i = 0; i < rank; ++i) {
      if (indices[i] != Index(static_cast<int>(i))) return false;
    }
    return true;
  };
  return d.dims.size() == rank &&
         std::all_of(d.accesses.begin(), d.accesses.end(),
                     [&](const Access& a) { return is_place(a.indices); }) &&
         std::all_of(d.statements.begin(), d.statements.end(), [&](const Statement& s) {
           return s.reduction == Reduction::kNone && is_place(s.indices) &&
                  std::none_of(s.body.begin(), s.body.end(),
                               [](const auto& i) { return i.op == ScalarOp::kIndex; });
         });
}

namespace {

// What a value is: of none of the operands asked about; zero; as Moves says; or that, negated.
enum class Label {
  kFree,
  kZero,
  kElement,
  kElementOrZero,
  kElementOrOther,
  kLargest,
  kProduct,
  kNegated,
  kNegatedSmallest,
  kSmallest,
  kOther
};

Label Either(Label a, Label b) {
  if (a == b) return a;
  const bool moved =
      a != Label::kFree && a < Label::kLargest && b != Label::kFree && b < Label::kLargest;
  return moved ? Label::kElementOrZero : Label::kOther;
}

bool IsFree(Label label) { return label == Label::kFree || label == Label::kZero; }

bool IsMinusOne(const Instruction& i) { return i.op == ScalarOp::kConstant && i.constant == -1; }

Label Negated(Label label) {
  if (label == Label::kElement) return Label::kNegated;
  return label == Label::kNegatedSmallest ? Label::kSmallest : Label::kOther;
}

// Of an index over a window: whatever the other dims are, some value of the reduced ones is inside.
bool WindowMeets(const Declaration& d, const Statement& s, const Index& index, const Extent& size) {
  if (index.divide != 1 || index.modulo != 0 || !index.offset.known() || !size.known())
    return false;
  int64_t widest = 0, furthest = 0;  // of the window; of where it begins
  for (const auto& [dim, stride] : index.terms) {
    if (!d.dims[dim].size.known() || stride < 1) return false;
    const bool reduced = std::find(s.reduced.begin(), s.reduced.end(), dim) != s.reduced.end();
    // Steps of more than one may pass over the tensor.
    if (reduced && stride != 1) return false;
    (reduced ? widest : furthest) += stride * (d.dims[dim].size.value() - 1);
  }
  return index.offset.value() + widest >= 0 && index.offset.value() + furthest <= size.value() - 1;
}

// Where loads are skipped outside of the tensor, each reduction still has one inside.
bool NeverEmpty(const Declaration& d, const Statement& s) {
  return std::all_of(s.body.begin(), s.body.end(), [&](const Instruction& i) {
    if (i.op != ScalarOp::kLoad || d.accesses[i.access].outside != Outside::kSkip) return true;
    const Access& access = d.accesses[i.access];
    const Shape shape = access.tensor < d.num_operands()
                            ? d.operands[access.tensor]
                            : d.StatementShape(d.statements[access.tensor - d.num_operands()]);
    for (size_t k = 0; k < access.indices.size(); ++k) {
      if (!WindowMeets(d, s, access.indices[k], shape[k])) return false;
    }
    return true;
  });
}

Label Reduced(Reduction reduction, Label label) {
  if (IsFree(label) || reduction == Reduction::kNone) return label;
  if (reduction == Reduction::kMax && label == Label::kElement) return Label::kLargest;
  if (reduction == Reduction::kMax && label == Label::kNegated) return Label::kNegatedSmallest;
  if (reduction == Reduction::kProduct && label == Label::kElement) return Label::kProduct;
  return Label::kOther;
}

Label LabelOf(const Declaration& d, const Statement& s, const std::vector<Label>& labels) {
  std::vector<Label> stack;
  for (const Instruction& instruction : s.body) {
    switch (instruction.op) {
      case ScalarOp::kLoad: {
        const Access& access = d.accesses[instruction.access];
        Label label = labels[access.tensor];
        // Zero: so are loads of operands that are not asked about, where they are outside.
        if (access.outside == Outside::kZero) label = Either(label, Label::kZero);
        stack.push_back(IsFree(labels[access.tensor]) ? labels[access.tensor] : label);
        break;
      }
      case ScalarOp::kConstant:
        stack.push_back(instruction.constant == 0 ? Label::kZero : Label::kFree);
        break;
      case ScalarOp::kInside:
      case ScalarOp::kIndex:
        stack.push_back(Label::kFree);
        break;
      case ScalarOp::kWhere: {
        const Label no = stack.back();
        stack.pop_back();
        const Label yes = stack.back();
        stack.pop_back();
        const Label condition = stack.back();
        stack.pop_back();
        stack.push_back(IsFree(condition) ? Either(yes, no) : Label::kOther);
        break;
      }
      default: {
        const bool negates = instruction.op == ScalarOp::kMul && &instruction != &s.body.front() &&
                             IsMinusOne(*(&instruction - 1));
        const Label negated = negates ? Negated(stack[stack.size() - 2]) : Label::kOther;
        bool free = true;
        for (int i = Arity(instruction.op); i > 0; --i) {
          free &= IsFree(stack.back());
          stack.pop_back();
        }
        stack.push_back(free ? Label::kFree : negated);
      }
    }
  }
  return stack.back();
}

}  // namespace

Moves MovesElementsOf(const Declaration& d, const std::vector<bool>& subset) {
  std::vector<Label> labels;
  for (bool in : subset) labels.push_back(in ? Label::kElement : Label::kFree);
  Label outputs = Label::kElement;
  for (const Statement& s : d.statements) {
    Label label = LabelOf(d, s, labels);
    const bool looks_up = s.select_dim >= 0 && s.reduced == std::vector<int>{s.select_dim};
    if (looks_up) {
      // The one value selected; but which must not depend on the operands.
      if (!IsFree(labels[d.accesses[s.select].tensor])) label = Label::kOther;
    } else {
      label = NeverEmpty(d, s) ? Reduced(s.reduction, label) : Label::kOther;
    }
    labels.push_back(label);
    if (s.output < 0) continue;
    if (IsFree(label) && label != Label::kZero) return Moves::kNothingKnown;
    outputs = s.output == 0 ? label : Either(outputs, label);
  }
  switch (outputs) {
    case Label::kElement:
      return Moves::kElements;
    case Label::kElementOrZero:
    case Label::kZero:
      return Moves::kElementsOrZero;
    case Label::kElementOrOther:
      return Moves::kElementsOrOthers;
    case Label::kLargest:
      return Moves::kLargest;
    case Label::kSmallest:
      return Moves::kSmallest;
    case Label::kProduct:
      return Moves::kProduct;
    default:
      return Moves::kNothingKnown;
  }
}

bool KeepsZero(const Declaration& d) {
  // One element of it, in doubles: products with zero and sums of zeros are exact.
  Declaration one = d;
  for (IterationDim& dim : one.dims) dim.size = 1;
  for (Shape& shape : one.operands) shape.assign(shape.size(), 1);
  for (Shape& shape : one.outputs) shape.assign(shape.size(), 1);
  std::vector<Array<double>> zeros(d.operands.size(),
                                   Array<double>(std::vector<int64_t>(d.outputs[0].size(), 1)));
  std::vector<const Array<double>*> operands;
  for (const Array<double>& zero : zeros) operands.push_back(&zero);
  const auto outputs = Evaluate<double>(one, FullBox(one), operands);
  return outputs.ok() && (*outputs)[0].data[0] == 0;
}

bool IsNondecreasing(const Declaration& d) {
  enum class Slope { kFlat, kUp, kDown, kAny };
  auto reversed = [](Slope a) {
    return a == Slope::kUp ? Slope::kDown : a == Slope::kDown ? Slope::kUp : a;
  };
  auto both = [](Slope a, Slope b) {
    if (a == Slope::kFlat || b == Slope::kFlat) return a == Slope::kFlat ? b : a;
    return a == b ? a : Slope::kAny;
  };
  std::vector<Slope> slopes(d.operands.size(), Slope::kUp);
  for (const Statement& s : d.statements) {
    std::vector<Slope> stack;
    auto pop = [&] {
      const Slope top = stack.back();
      stack.pop_back();
      return top;
    };
    for (const Instruction& instruction : s.body) {
      switch (instruction.op) {
        case ScalarOp::kLoad:
          stack.push_back(slopes[d.accesses[instruction.access].tensor]);
          break;
        case ScalarOp::kAdd:
        case ScalarOp::kMax: {
          const Slope b = pop(), a = pop();
          stack.push_back(both(a, b));
          break;
        }
        case ScalarOp::kSub: {
          const Slope b = pop(), a = pop();
          stack.push_back(both(a, reversed(b)));
          break;
        }
        case ScalarOp::kLess: {  // a < b does not decrease where b grows.
          const Slope b = pop(), a = pop();
          stack.push_back(both(reversed(a), b));
          break;
        }
        default: {
          Slope slope = Slope::kFlat;
          for (int i = Arity(instruction.op); i > 0; --i) {
            if (pop() != Slope::kFlat) slope = Slope::kAny;
          }
          stack.push_back(slope);
        }
      }
    }
    slopes.push_back(stack.back());
  }
  return slopes.back() == Slope::kUp || slopes.back() == Slope::kFlat;
}

}  // namespace isomer
