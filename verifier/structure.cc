#include "verifier/structure.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/status_macros.h"
#include "verifier/declaration_facts.h"

namespace isomer {
namespace {

absl::Status No(const std::string& why) { return absl::FailedPreconditionError(why); }

// A side with its declarations.
struct Side {
  const ConcreteSide* side;
  std::vector<Declaration> declarations;

  int num_calls() const { return static_cast<int>(side->calls.size()); }
  const ConcreteCall& call(int n) const { return side->calls[n]; }
  OpKind kind(int n) const { return call(n).op.kind(); }
  // The call that makes `ref`, or null: an input.
  const ConcreteCall* Maker(PatternRef ref) const {
    return ref.node < 0 ? nullptr : &call(ref.node);
  }
  // REQUIRES: `call` is one of this side's.
  const Declaration& DeclarationOf(const ConcreteCall& call) const {
    return declarations[&call - side->calls.data()];
  }
  std::vector<int> CallsOf(OpKind kind) const {
    std::vector<int> result;
    for (int n = 0; n < num_calls(); ++n) {
      if (this->kind(n) == kind) result.push_back(n);
    }
    return result;
  }
};

absl::StatusOr<Side> Declared(const ConcreteSide& side) {
  Side result{&side, {}};
  for (const ConcreteCall& call : side.calls) {
    ISOMER_ASSIGN_OR_RETURN(Declaration d, Declare(call.op, call.operands));
    result.declarations.push_back(std::move(d));
  }
  return result;
}

bool IsInput(PatternRef ref) { return ref.node < 0; }

// The axis of a Concat or Split, from the front.
int AxisOf(const ConcreteCall& call) {
  const int rank = static_cast<int>(call.operands[0].size());
  const int64_t axis = call.op.Int("axis");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::string LinearLemma(OpKind kind, const std::vector<bool>& set) {
  std::vector<int> members;
  for (size_t o = 0; o < set.size(); ++o) {
    if (set[o]) members.push_back(static_cast<int>(o));
  }
  return absl::StrCat(std::string(OpName(kind)), "_is_linear_in_", absl::StrJoin(members, "_"));
}

// One call on one side, the same call on pieces of its operands on the other.
class AlikeOnPieces {
 public:
  AlikeOnPieces(const Side& whole_side, int whole, const Side& pieces_side, std::vector<int> pieces)
      : w_(whole_side), p_(pieces_side), whole_(whole), pieces_(std::move(pieces)) {}

  absl::Status Prove(std::set<std::string>* lemmas) {
    ISOMER_RETURN_IF_ERROR(CutOperands());
    const Declaration& d = w_.declarations[whole_];
    if (!IsUniformIn(d, dim_)) return No("the dim is not uniform");
    for (int piece : pieces_) {
      if (w_.call(whole_).op != p_.call(piece).op ||
          !SameButForSize(d, p_.declarations[piece], dim_)) {
        return No("the call on a piece has another declaration");
      }
    }
    for (size_t t = 0; t < w_.side->outputs.size(); ++t) {
      ISOMER_RETURN_IF_ERROR(CheckOutput(w_.side->outputs[t], p_.side->outputs[t]));
    }
    lemmas->insert(absl::StrCat("pieces_of_", std::string(OpName(w_.kind(whole_)))));
    return absl::OkStatus();
  }

 private:
  PatternRef PieceOperand(size_t p, size_t o) const { return p_.call(pieces_[p]).inputs[o]; }

  // The axis along which operand o is cut; -1: it is not; nullopt: it is something else.
  std::optional<int> CutOf(size_t o) const {
    const PatternRef whole = w_.call(whole_).inputs[o];
    const size_t count = pieces_.size();
    bool uncut = IsInput(whole);
    for (size_t p = 0; p < count; ++p) uncut &= PieceOperand(p, o) == whole;
    if (uncut) return -1;
    if (const ConcreteCall* concat = w_.Maker(whole)) {
      if (concat->op.kind() != OpKind::kConcat || concat->inputs.size() != count) {
        return std::nullopt;
      }
      for (size_t p = 0; p < count; ++p) {
        if (!IsInput(concat->inputs[p]) || concat->inputs[p] != PieceOperand(p, o)) {
          return std::nullopt;
        }
      }
      return AxisOf(*concat);
    }
    const ConcreteCall* split = p_.Maker(PieceOperand(0, o));
    if (split == nullptr || split->op.kind() != OpKind::kSplit || split->inputs[0] != whole ||
        std::get<std::vector<Extent>>(*split->op.Find("sizes")).size() != count) {
      return std::nullopt;
    }
    for (size_t p = 0; p < count; ++p) {
      const ConcreteCall* maker = p_.Maker(PieceOperand(p, o));
      // Equal Splits of one tensor are one.
      if (maker == nullptr || maker->inputs != split->inputs || maker->op != split->op ||
          PieceOperand(p, o).index != static_cast<int>(p)) {
        return std::nullopt;
      }
    }
    return AxisOf(*split);
  }

  // Finds the dim: it leads just the axes that are cut.
  absl::Status CutOperands() {
    const Declaration& d = w_.declarations[whole_];
    std::vector<int> axes;
    for (int o = 0; o < d.num_operands(); ++o) {
      const std::optional<int> axis = CutOf(o);
      if (!axis.has_value()) return No(absl::StrCat("operand ", o, " is no cut"));
      axes.push_back(*axis);
      if (*axis < 0) continue;
      const int lead = d.LeadOfOperandDim(o, *axis);
      if (lead < 0 || (dim_ >= 0 && lead != dim_)) return No("no one dim is cut");
      dim_ = lead;
    }
    if (dim_ < 0) return No("nothing is cut");
    for (int o = 0; o < d.num_operands(); ++o) {
      for (int i = 0; i < static_cast<int>(d.operands[o].size()); ++i) {
        if ((d.LeadOfOperandDim(o, i) == dim_) != (i == axes[o])) {
          return No(absl::StrCat("operand ", o, " is not cut where the dim leads it"));
        }
      }
    }
    return absl::OkStatus();
  }

  // The piece of which output `ref` is, of the call's output *t; -1: none.
  int PieceOf(PatternRef ref, int* t) const {
    const auto at = std::find(pieces_.begin(), pieces_.end(), ref.node);
    if (IsInput(ref) || at == pieces_.end()) return -1;
    *t = ref.index;
    return static_cast<int>(at - pieces_.begin());
  }

  absl::Status CheckOutput(PatternRef whole, PatternRef parts) const {
    const Declaration& d = w_.declarations[whole_];
    const bool sums = d.dims[dim_].kind == DimKind::kSum;
    int t = -1;
    if (whole.node == whole_) {  // itself = concat or sum of the pieces'
      const ConcreteCall* joined = p_.Maker(parts);
      if (joined == nullptr || joined->inputs.size() != pieces_.size() ||
          joined->op.kind() != (sums ? OpKind::kAdd : OpKind::kConcat)) {
        return No("an output is not put together of the pieces'");
      }
      for (size_t p = 0; p < pieces_.size(); ++p) {
        if (PieceOf(joined->inputs[p], &t) != static_cast<int>(p) || t != whole.index) {
          return No("an output is put together of others");
        }
      }
      if (sums) return absl::OkStatus();
      return Leads(t, AxisOf(*joined));
    }
    const ConcreteCall* split = w_.Maker(whole);  // its part = the piece's
    if (sums || split == nullptr || split->op.kind() != OpKind::kSplit ||
        split->inputs[0].node != whole_ ||
        std::get<std::vector<Extent>>(*split->op.Find("sizes")).size() != pieces_.size()) {
      return No("an output is no part of the whole");
    }
    if (PieceOf(parts, &t) != whole.index || t != split->inputs[0].index) {
      return No("an output is another piece's");
    }
    return Leads(t, AxisOf(*split));
  }

  absl::Status Leads(int t, int axis) const {
    if (w_.declarations[whole_].LeadOfOutputDim(t, axis) == dim_) return absl::OkStatus();
    return No("an output is not cut where the dim leads it");
  }

  const Side& w_;
  const Side& p_;
  const int whole_;
  const std::vector<int> pieces_;
  int dim_ = -1;
};

// op(f(x), w) on one side, f(op(x, w)) on the other; f of one or two operands.
class Commutes {
 public:
  Commutes(const Side& inside, int call, const Side& outside, std::vector<int> calls)
      : in_(inside), out_(outside), call_(call), calls_(std::move(calls)) {}

  absl::Status Prove(std::set<std::string>* lemmas) {
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
    }
    return absl::OkStatus();
  }

  absl::Status Moved(const Declaration& d, std::set<std::string>* lemmas) const {
    const Declaration& f = in_.DeclarationOf(*f_);
    const Moves moves = MovesElementsOf(d, applied_);
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
class ScalesSlices {
 public:
  ScalesSlices(const Side& inside, int call, const Side& outside, int other)
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

// op(scale(x; f), w) with a constant c on one side, op(x, w) with c * f on the other.
class TakesFactor {
 public:
  TakesFactor(const Side& inside, int call, const Side& outside, int other)
      : in_(inside), out_(outside), call_(call), other_(other) {}

  absl::Status Prove(std::set<std::string>* lemmas) {
    const ConcreteCall& call = in_.call(call_);
    int operand = -1;
    double factor = 1;
    for (size_t o = 0; o < call.inputs.size(); ++o) {
      if (call.inputs[o] == out_.call(other_).inputs[o] && IsInput(call.inputs[o])) continue;
      const ConcreteCall* scale = in_.Maker(call.inputs[o]);
      if (operand >= 0 || scale == nullptr || scale->op.kind() != OpKind::kScale ||
          !IsInput(scale->inputs[0]) || scale->inputs[0] != out_.call(other_).inputs[o]) {
        return No("not one operand is scaled");
      }
      operand = static_cast<int>(o);
      factor = std::get<double>(*scale->op.Find("factor"));
    }
    if (operand < 0 || in_.side->outputs.size() != 1 ||
        in_.side->outputs[0] != PatternRef::Node(call_) ||
        out_.side->outputs[0] != PatternRef::Node(other_) ||
        !SameButForFactor(in_.declarations[call_], out_.declarations[other_], operand, factor)) {
      return No("the declarations differ in more than a factor");
    }
    lemmas->insert(absl::StrCat(std::string(OpName(call.op.kind())), "_takes_factor_of_", operand));
    return absl::OkStatus();
  }

 private:
  const Side& in_;
  const Side& out_;
  const int call_, other_;
};

// op(x, w) on one side, op(x, pad(w)) on the other, by one zero before and after some dims.
class GrowsKernel {
 public:
  GrowsKernel(const Side& small, int call, const Side& large, int other)
      : s_(small), l_(large), call_(call), other_(other) {}

  absl::Status Prove(std::set<std::string>* lemmas) {
    const ConcreteCall& call = s_.call(call_);
    const ConcreteCall& grown = l_.call(other_);
    int padded = -1;
    for (size_t o = 0; o < call.inputs.size(); ++o) {
      if (!IsInput(call.inputs[o])) return No("an operand is computed");
      if (call.inputs[o] == grown.inputs[o]) continue;
      const ConcreteCall* pad = l_.Maker(grown.inputs[o]);
      if (padded >= 0 || pad == nullptr || pad->op.kind() != OpKind::kPad ||
          pad->inputs[0] != call.inputs[o] || pad->op.Int("mode") != 0 ||
          std::get<double>(*pad->op.Find("value")) != 0) {
        return No("the operands are not padded with zeros");
      }
      padded = static_cast<int>(o);
      const std::vector<int64_t>& margins = pad->op.Ints("padding");
      const size_t rank = call.operands[o].size();
      for (size_t i = 0; i < rank; ++i) {
        const bool grows =
            s_.declarations[call_].operands[o][i] != l_.declarations[other_].operands[o][i];
        if (margins[i] != (grows ? 1 : 0) || margins[rank + i] != margins[i]) {
          return No("the margins are not one zero");
        }
      }
    }
    const bool same_outputs = s_.side->outputs.size() == 1 &&
                              s_.side->outputs[0] == PatternRef::Node(call_) &&
                              l_.side->outputs[0] == PatternRef::Node(other_);
    if (padded < 0 || !same_outputs ||
        !SameButForMargins(s_.declarations[call_], l_.declarations[other_], padded)) {
      return No("the declarations differ in more than margins");
    }
    lemmas->insert(absl::StrCat(std::string(OpName(call.op.kind())), "_skips_zeros"));
    return absl::OkStatus();
  }

 private:
  const Side& s_;
  const Side& l_;
  const int call_, other_;
};

}  // namespace

absl::StatusOr<ConcreteSide> SideAt(const Pattern& pattern, const Binding& binding) {
  ISOMER_ASSIGN_OR_RETURN(const Graph graph, InstantiatePattern(pattern, binding));
  ConcreteSide side;
  const int inputs = static_cast<int>(binding.inputs.size());
  for (size_t n = 0; n < pattern.nodes.size(); ++n) {
    const Node& node = graph.node(inputs + static_cast<int>(n));
    ConcreteCall call{node.op, pattern.nodes[n].inputs, {}};
    for (TensorRef input : node.inputs) call.operands.push_back(graph.type(input).GlobalShape());
    side.calls.push_back(std::move(call));
  }
  side.outputs = pattern.outputs;
  return side;
}

absl::Status EqualByStructure(const ConcreteSide& source, const ConcreteSide& target,
                              std::set<std::string>* lemmas) {
  ISOMER_ASSIGN_OR_RETURN(const Side s, Declared(source));
  ISOMER_ASSIGN_OR_RETURN(const Side t, Declared(target));
  if (source.outputs.size() != target.outputs.size()) return No("other numbers of outputs");
  std::string why = "no theorem speaks of it";
  for (const auto& [one, many] : {std::pair(&s, &t), std::pair(&t, &s)}) {
    for (int n = 0; n < one->num_calls(); ++n) {
      const std::vector<int> others = many->CallsOf(one->kind(n));
      if (others.empty()) continue;
      const int other = others[0];
      const auto shown = [&](const absl::Status& status) {
        if (status.ok()) return true;
        absl::StrAppend(&why, "; ", OpName(one->kind(n)), ": ", std::string(status.message()));
        return false;
      };
      if ((others.size() >= 2 && shown(AlikeOnPieces(*one, n, *many, others).Prove(lemmas))) ||
          (others.size() <= 2 && shown(Commutes(*one, n, *many, others).Prove(lemmas))) ||
          (others.size() == 1 && (shown(ScalesSlices(*one, n, *many, other).Prove(lemmas)) ||
                                  shown(TakesFactor(*one, n, *many, other).Prove(lemmas)) ||
                                  shown(GrowsKernel(*one, n, *many, other).Prove(lemmas))))) {
        return absl::OkStatus();
      }
    }
  }
  return No(why);
}

}  // namespace isomer
