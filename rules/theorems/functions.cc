#include "rules/theorems/theorems.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "rules/theorems/declaration_facts.h"

namespace isomer::structure {
namespace {

// op(f(x), w) on one side, f(op(x, w)) on the other; f of one or two operands.
class CommutesTheorem {
 public:
  CommutesTheorem(const Side& inside, int call, const Side& outside, std::vector<int> calls)
      : in_(inside), out_(outside), call_(call), calls_(std::move(calls)) {}

  absl::Status Prove(std::set<std::string>* lemmas) {
    // It moves elements by its declaration, and linearly, but is not what that says.
    if (in_.kind(call_) == OpKind::kCast) return No("a cast may round");
    ISOMER_RETURN_IF_ERROR(FindOperands());
    const Declaration& d = in_.declarations[call_];
    for (int c : calls_) {
      if (in_.call(call_).op != out_.call(c).op || !SameDeclaration(d, out_.declarations[c])) {
        return No("the calls have other declarations");
      }
    }
    ISOMER_RETURN_IF_ERROR(CheckOutputs());
    const OpKind f = f_->op.kind();
    const bool additive = f == OpKind::kAdd || f == OpKind::kSub || f == OpKind::kScale;
    if (additive && d.IsLinearIn(applied_)) {
      lemmas->insert(LinearLemma(in_.kind(call_), applied_));
      return absl::OkStatus();
    }
    return Moved(d, lemmas);
  }

 private:
  // Operand o of call c outside is input c of f inside.
  absl::Status FindOperands() {
    const ConcreteCall& call = in_.call(call_);
    for (size_t o = 0; o < call.inputs.size(); ++o) {
      bool same = IsInput(call.inputs[o]);
      for (int c : calls_) same &= out_.call(c).inputs[o] == call.inputs[o];
      applied_.push_back(!same);
      if (same) continue;
      const ConcreteCall* f = in_.Maker(call.inputs[o]);
      if (f == nullptr || f->inputs.size() != calls_.size() || (f_ != nullptr && f->op != f_->op)) {
        return No("the operands are not one function's");
      }
      for (size_t c = 0; c < calls_.size(); ++c) {
        if (!IsInput(f->inputs[c]) || f->inputs[c] != out_.call(calls_[c]).inputs[o]) {
          return No("the function takes other operands");
        }
      }
      if (!IsElementwise(in_.DeclarationOf(*f))) return No("the function is not elementwise");
      if (f_ != nullptr && !SameBodies(in_.DeclarationOf(*f_), in_.DeclarationOf(*f))) {
        return No("the function has another body at another shape");
      }
      f_ = f;
    }
    return f_ == nullptr ? No("no function is applied") : absl::OkStatus();
  }

  absl::Status CheckOutputs() const {
    for (size_t t = 0; t < in_.side->outputs.size(); ++t) {
      const PatternRef inside = in_.side->outputs[t];
      const ConcreteCall* f = out_.Maker(out_.side->outputs[t]);
      if (inside.node != call_ || f == nullptr || f->op != f_->op ||
          f->inputs.size() != calls_.size()) {
        return No("an output is not the function's");
      }
      for (size_t c = 0; c < calls_.size(); ++c) {
        if (f->inputs[c] != PatternRef::Node(calls_[c], inside.index)) {
          return No("the function takes other outputs");
        }
      }
      if (!IsElementwise(out_.DeclarationOf(*f))) return No("the function is not elementwise");
      if (!SameBodies(in_.DeclarationOf(*f_), out_.DeclarationOf(*f))) {
        return No("the function has another body at another shape");
      }
    }
    return absl::OkStatus();
  }

  absl::Status Moved(const Declaration& d, std::set<std::string>* lemmas) const {
    const Declaration& f = in_.DeclarationOf(*f_);
    const Moves moves = MovesElementsOf(d, applied_);
    // A cast may round, and integers that are too large become others: it is moved, and no more.
    if (f_->op.kind() == OpKind::kCast && moves != Moves::kElements &&
        moves != Moves::kElementsOrZero) {
      return No("a cast may round");
    }
    switch (moves) {
      case Moves::kElements:
        break;
      case Moves::kElementsOrZero:
        if (!KeepsZero(f)) return No("the function does not keep zero");
        break;
      case Moves::kElementsOrOthers:
        if (f_->op.kind() != OpKind::kMaximum && f_->op.kind() != OpKind::kMinimum) {
          return No("the function of equal values is another value");
        }
        break;
      case Moves::kLargest:
      case Moves::kSmallest: {
        const OpKind joins = moves == Moves::kLargest ? OpKind::kMaximum : OpKind::kMinimum;
        if (f_->op.kind() != joins && (f_->inputs.size() != 1 || !IsNondecreasing(f))) {
          return No("the function may decrease");
        }
        break;
      }
      case Moves::kProduct:
        if (f_->op.kind() != OpKind::kMul && f_->op.kind() != OpKind::kDiv &&
            f_->op.kind() != OpKind::kReciprocal) {
          return No("the function is not multiplicative");
        }
        break;
      case Moves::kNothingKnown:
        return No("the call does not just move elements");
    }
    lemmas->insert(absl::StrCat(std::string(OpName(in_.kind(call_))), "_moves_elements"));
    return absl::OkStatus();
  }

  const Side& in_;
  const Side& out_;
  const int call_;
  const std::vector<int> calls_;
  const ConcreteCall* f_ = nullptr;
  std::vector<bool> applied_;
};

// op(mul(x, s), w) on one side, mul(op(x, w), s') on the other: s has one size above 1, along an
// axis slice i of which makes slice i of the output; s' is s, or one of them is the other's
// Transpose.
class SlicesTheorem {
 public:
  SlicesTheorem(const Side& inside, int call, const Side& outside, int other)
      : in_(inside), out_(outside), call_(call), other_(other) {}

  absl::Status Prove(std::set<std::string>* lemmas) {
    const ConcreteCall& call = in_.call(call_);
    const Declaration& d = in_.declarations[call_];
    if (call.op != out_.call(other_).op || !SameDeclaration(d, out_.declarations[other_])) {
      return No("the calls have other declarations");
    }
    std::vector<bool> scaled;
    const ConcreteCall* inner = nullptr;
    int operand = -1;
    for (size_t o = 0; o < call.inputs.size(); ++o) {
      scaled.push_back(call.inputs[o] != out_.call(other_).inputs[o]);
      if (!scaled[o]) {
        if (!IsInput(call.inputs[o])) return No("an operand is computed");
        continue;
      }
      if (inner != nullptr) return No("two operands are scaled");
      inner = in_.Maker(call.inputs[o]);
      operand = static_cast<int>(o);
    }
    if (inner == nullptr || inner->op.kind() != OpKind::kMul || !IsInput(inner->inputs[0]) ||
        inner->inputs[0] != out_.call(other_).inputs[operand]) {
      return No("no operand is scaled");
    }
    if (in_.side->outputs.size() != 1 || in_.side->outputs[0] != PatternRef::Node(call_)) {
      return No("an output is another");
    }
    const ConcreteCall* outer = out_.Maker(out_.side->outputs[0]);
    if (outer == nullptr || outer->op.kind() != OpKind::kMul ||
        outer->inputs[0] != PatternRef::Node(other_)) {
      return No("the output is not scaled");
    }
    const std::optional<Factors> a = FactorsOf(in_, *inner, d.operands[operand]);
    const std::optional<Factors> b = FactorsOf(out_, *outer, d.outputs[0]);
    if (!a || !b || !(a->input == b->input)) return No("the factors differ");
    if (!GoesBySlices(d, operand, a->axis, b->axis) || !d.IsLinearIn(scaled)) {
      return No("the call is not linear, slice by slice");
    }
    lemmas->insert(LinearLemma(call.op.kind(), scaled));
    return absl::OkStatus();
  }

 private:
  // Operand 1 of a mul scales slice i of operand 0 along `axis` by element i of `input`.
  struct Factors {
    PatternRef input;
    int axis;
  };
  static std::optional<Factors> FactorsOf(const Side& side, const ConcreteCall& mul,
                                          const Shape& scaled) {
    const Shape& factors = mul.operands[1];
    if (factors.size() != scaled.size() || mul.operands[0] != scaled) return std::nullopt;
    // Sizes of 1 everywhere: any axis will do, and the last is one.
    int axis = -1;
    for (int i = 0; i < static_cast<int>(factors.size()); ++i) {
      if (factors[i] == Extent(1)) continue;
      if (axis >= 0 || factors[i] != scaled[i]) return std::nullopt;
      axis = i;
    }
    if (axis < 0) return std::nullopt;
    if (IsInput(mul.inputs[1])) return Factors{mul.inputs[1], axis};
    // A Transpose of such a tensor keeps the order of its elements.
    const ConcreteCall* transpose = side.Maker(mul.inputs[1]);
    if (transpose->op.kind() != OpKind::kTranspose || !IsInput(transpose->inputs[0])) {
      return std::nullopt;
    }
    return Factors{transpose->inputs[0], axis};
  }

  const Side& in_;
  const Side& out_;
  const int call_, other_;
};

}  // namespace

absl::Status Commutes(const Side& inside, int call, const Side& outside,
                      const std::vector<int>& calls, std::set<std::string>* lemmas) {
  return CommutesTheorem(inside, call, outside, calls).Prove(lemmas);
}

absl::Status ScalesSlices(const Side& inside, int call, const Side& outside,
                          const std::vector<int>& calls, std::set<std::string>* lemmas) {
  return SlicesTheorem(inside, call, outside, calls[0]).Prove(lemmas);
}

}  // namespace isomer::structure
