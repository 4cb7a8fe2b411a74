#include <algorithm>

#include "pcg/support/status_macros.h"
#include "rules/theorems/declaration_facts.h"
#include "rules/theorems/theorems.h"

namespace isomer::structure {
namespace {

// Slice i of the output along `axis` is a function of the elements of slice i of operand 0 one by
// one, and of element i of each other operand: a BatchNorm's, at inference.
bool IsPointwiseBySlices(const Declaration& d, int axis) {
  if (d.statements.size() != 1 || d.operands[0] != d.outputs[0]) return false;
  const Statement& s = d.statements[0];
  const auto is_place = [](const std::vector<Index>& indices) {
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] != Index(static_cast<int>(i))) return false;
    }
    return true;
  };
  return s.reduction == Reduction::kNone && s.select_dim < 0 && is_place(s.indices) &&
         std::none_of(s.body.begin(), s.body.end(),
                      [](const Instruction& i) { return i.op == ScalarOp::kIndex; }) &&
         std::all_of(d.accesses.begin(), d.accesses.end(), [&](const Access& access) {
           return access.tensor == 0 ? is_place(access.indices)
                                     : access.indices == std::vector<Index>{Index(axis)};
         });
}

// Whether the elements are zeros: multiples by zero, moved or summed.
bool IsZero(const Side& side, PatternRef ref) {
  const ConcreteCall* maker = side.Maker(ref);
  if (maker == nullptr) return false;
  if (maker->op.kind() == OpKind::kScale && maker->op.Number("factor") == 0) return true;
  return (maker->op.kind() == OpKind::kTranspose || maker->op.kind() == OpKind::kReduceSum) &&
         IsZero(side, maker->inputs[0]);
}

bool IsZeroOf(const Side& side, PatternRef ref, PatternRef input) {
  const ConcreteCall* maker = side.Maker(ref);
  return maker != nullptr && maker->op.kind() == OpKind::kScale && IsZero(side, ref) &&
         maker->inputs[0] == input;
}

class AffineTheorem {
 public:
  AffineTheorem(const Side& apart, int f, const Side& folded) : a_(apart), b_(folded), f_(f) {}

  absl::Status Prove(std::set<std::string>* lemmas) {
    ISOMER_RETURN_IF_ERROR(FindCalls());
    ISOMER_RETURN_IF_ERROR(FindFoldedOperand());
    ISOMER_RETURN_IF_ERROR(CheckShift());
    const Declaration &f = a_.declarations[f_], &op = a_.DeclarationOf(*call_);
    std::vector<bool> folded(op.operands.size(), false);
    folded[operand_] = true;
    if (!f.IsLinearIn(affine_) || !op.IsLinearIn(folded) ||
        !GoesBySlices(op, operand_, operand_axis_, channel_)) {
      return No("the calls are not linear, slice by slice");
    }
    lemmas->insert(LinearLemma(a_.kind(f_), affine_));
    lemmas->insert(LinearLemma(call_->op.kind(), folded));
    return absl::OkStatus();
  }

 private:
  // f(op(x, w), p..) alone on one side; a sum of an op and of something on the other.
  absl::Status FindCalls() {
    const ConcreteCall& f = a_.call(f_);
    call_ = f.inputs.empty() ? nullptr : a_.Maker(f.inputs[0]);
    if (a_.num_calls() != 2 || call_ == nullptr || a_.side->outputs.size() != 1 ||
        a_.side->outputs[0] != PatternRef::Node(f_) || f.inputs[0].index != 0 ||
        !std::all_of(f.inputs.begin() + 1, f.inputs.end(), IsInput) ||
        !std::all_of(call_->inputs.begin(), call_->inputs.end(), IsInput)) {
      return No("no function of one call");
    }
    const ConcreteCall* sum = b_.Maker(b_.side->outputs[0]);
    linear_ = sum == nullptr || sum->op.kind() != OpKind::kAdd ? nullptr : b_.Maker(sum->inputs[0]);
    if (linear_ == nullptr || sum->inputs[0].index != 0 || linear_->op != call_->op ||
        !SameDeclaration(a_.DeclarationOf(*call_), b_.DeclarationOf(*linear_))) {
      return No("no sum of the same call");
    }
    shift_ = b_.Maker(sum->inputs[1]);
    return shift_ == nullptr ? No("what is added is an input") : absl::OkStatus();
  }

  // One operand of the call is the function's of what it was, with other operands that may be zero.
  absl::Status FindFoldedOperand() {
    for (size_t o = 0; o < call_->inputs.size(); ++o) {
      if (linear_->inputs[o] == call_->inputs[o]) continue;
      if (operand_ >= 0) return No("two operands are others");
      operand_ = static_cast<int>(o);
    }
    if (operand_ < 0) return No("no operand is another");
    // [transpose] f [transpose], the one undoing the other.
    const ConcreteCall* inner = b_.Maker(linear_->inputs[operand_]);
    const ConcreteCall* after = nullptr;
    if (inner != nullptr && inner->op.kind() == OpKind::kTranspose) {
      after = inner;
      inner = b_.Maker(inner->inputs[0]);
    }
    const ConcreteCall& f = a_.call(f_);
    if (inner == nullptr || inner->op != f.op || inner->inputs.size() != f.inputs.size()) {
      return No("the operand is not the function's");
    }
    const ConcreteCall* before = b_.Maker(inner->inputs[0]);
    const PatternRef weight = before == nullptr ? inner->inputs[0] : before->inputs[0];
    if (weight != call_->inputs[operand_] || (before == nullptr) != (after == nullptr) ||
        (before != nullptr && before->op.kind() != OpKind::kTranspose)) {
      return No("the function is of another operand");
    }
    for (channel_ = 0;; ++channel_) {
      if (channel_ == static_cast<int>(a_.declarations[f_].outputs[0].size())) {
        return No("the function does not go by slices");
      }
      if (IsPointwiseBySlices(a_.declarations[f_], channel_)) break;
    }
    if (!IsPointwiseBySlices(b_.DeclarationOf(*inner), channel_) ||
        !SameBodies(a_.declarations[f_], b_.DeclarationOf(*inner))) {
      return No("by other slices");
    }
    operand_axis_ = channel_;
    if (before != nullptr) {
      const std::vector<int64_t>&there = before->op.Ints("perm"), &back = after->op.Ints("perm");
      for (size_t i = 0; i < there.size(); ++i) {
        if (there[back[i]] != static_cast<int64_t>(i)) return No("the transposes differ");
      }
      operand_axis_ = static_cast<int>(there[channel_]);
    }
    affine_ = {true};
    for (size_t k = 1; k < f.inputs.size(); ++k) {
      affine_.push_back(inner->inputs[k] != f.inputs[k]);
      if (affine_[k] && !IsZeroOf(b_, inner->inputs[k], f.inputs[k])) {
        return No("the function takes other operands");
      }
    }
    return absl::OkStatus();
  }

  // The function of zeros, one element for each slice.
  absl::Status CheckShift() const {
    const ConcreteCall& f = a_.call(f_);
    const Declaration& d = b_.DeclarationOf(*shift_);
    if (shift_->op != f.op || !IsZero(b_, shift_->inputs[0]) ||
        !std::equal(f.inputs.begin() + 1, f.inputs.end(), shift_->inputs.begin() + 1,
                    shift_->inputs.end()) ||
        !IsPointwiseBySlices(d, channel_) || !SameBodies(a_.declarations[f_], d)) {
      return No("what is added is not the function of zeros");
    }
    const Shape &whole = a_.declarations[f_].outputs[0], &slices = d.outputs[0];
    for (size_t i = 0; i < whole.size(); ++i) {
      const bool fits =
          slices[i] == whole[i] || (static_cast<int>(i) != channel_ && slices[i] == Extent(1));
      if (slices.size() != whole.size() || !fits) return No("what is added has another shape");
    }
    return absl::OkStatus();
  }

  const Side& a_;
  const Side& b_;
  const int f_;
  const ConcreteCall* call_ = nullptr;    // op(x, w)
  const ConcreteCall* linear_ = nullptr;  // op(x, f(w, p.., 0..))
  const ConcreteCall* shift_ = nullptr;   // f(0, p..)
  int operand_ = -1, operand_axis_ = -1, channel_ = -1;
  std::vector<bool> affine_;  // operands of f in which it is linear together, as the rule uses it
};

}  // namespace

absl::Status FoldsAffine(const Side& apart, int f, const Side& folded,
                         const std::vector<int>& /*calls*/, std::set<std::string>* lemmas) {
  return AffineTheorem(apart, f, folded).Prove(lemmas);
}

}  // namespace isomer::structure
