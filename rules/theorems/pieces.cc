#include "rules/theorems/theorems.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "rules/theorems/declaration_facts.h"

namespace isomer::structure {
namespace {

// The axis of a Concat or Split, from the front.
int AxisOf(const ConcreteCall& call) {
  const int rank = static_cast<int>(call.operands[0].size());
  const int64_t axis = call.op.Int("axis");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// One call on one side, the same call on pieces of its operands on the other.
class PiecesTheorem {
 public:
  PiecesTheorem(const Side& whole_side, int whole, const Side& pieces_side, std::vector<int> pieces)
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

}  // namespace

absl::Status AlikeOnPieces(const Side& whole_side, int whole, const Side& pieces_side,
                           const std::vector<int>& pieces, std::set<std::string>* lemmas) {
  return PiecesTheorem(whole_side, whole, pieces_side, pieces).Prove(lemmas);
}

}  // namespace isomer::structure
