#include "verifier/values/piece_lemmas.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/status_macros.h"
#include "verifier/elements/normal_form.h"
#include "verifier/terms/symbol_renaming.h"
#include "verifier/types/type_form.h"

namespace isomer {
namespace {

// A symbol that no operand shape uses.
Extent PieceSize(int i) { return Extent::Symbol(1000000 + i); }

class CallLemmas {
 public:
  CallLemmas(const Symbol& symbol, const Declaration& d, const std::vector<Shape>& operands)
      : symbol_(symbol), d_(d), operands_(operands) {}

  absl::Status OfDim(int v) const {
    // Whether pieces come first, last or in between makes three statements: sizes are >= 1.
    const bool sums = d_.dims[v].kind == DimKind::kSum;
    const std::vector<Extent> two = {PieceSize(0), PieceSize(1)};
    const std::vector<Extent> three = {PieceSize(0), PieceSize(1), PieceSize(2)};
    if (sums) return SumOfPieces(v, two);
    for (int output = 0; output < static_cast<int>(d_.outputs.size()); ++output) {
      ISOMER_RETURN_IF_ERROR(Piece(v, output, two, 0));
      ISOMER_RETURN_IF_ERROR(Piece(v, output, two, 1));
      ISOMER_RETURN_IF_ERROR(Piece(v, output, three, 1));
    }
    return absl::OkStatus();
  }

  absl::Status Linear(const std::vector<bool>& linear) const {
    for (int output = 0; output < static_cast<int>(d_.outputs.size()); ++output) {
      TermPool pool;
      std::vector<TermId> whole, first, second;
      for (size_t o = 0; o < operands_.size(); ++o) {
        const TermId a = pool.Variable(static_cast<int>(2 * o), operands_[o]);
        const TermId b = pool.Variable(static_cast<int>(2 * o + 1), operands_[o]);
        ISOMER_ASSIGN_OR_RETURN(const TermId sum,
                                pool.Apply({OpKind::kAdd, 0, {}, {}, {}, {}}, {a, b}));
        whole.push_back(linear[o] ? sum : a);
        first.push_back(a);
        second.push_back(linear[o] ? b : a);
      }
      ISOMER_RETURN_IF_ERROR(IsSum(output, whole, first, second, &pool));
    }
    return absl::OkStatus();
  }

 private:
  Symbol Output(int output) const {
    Symbol symbol = symbol_;
    symbol.index = output;
    return symbol;
  }

  // The operands with dim v cut into `sizes`: whole, and piece `part` of those that v leads.
  absl::Status Cut(int v, const std::vector<Extent>& sizes, TermPool* pool,
                   std::vector<TermId>* whole, std::vector<std::vector<TermId>>* parts) const {
    Extent total;
    for (const Extent& size : sizes) total += size;
    parts->resize(sizes.size());
    for (int o = 0; o < d_.num_operands(); ++o) {
      Shape shape = operands_[o];
      const int rank = static_cast<int>(shape.size());
      int axis = 0;
      for (int i = 0; i < rank; ++i) {
        if (d_.LeadOfOperandDim(o, i) != v) continue;
        if (d_.dims[v].size != shape[i]) return absl::UnimplementedError("a merged dim");
        shape[i] = total;
        axis = i - rank;
      }
      whole->push_back(pool->Variable(o, shape));
      for (size_t p = 0; p < sizes.size(); ++p) {
        TermId part = whole->back();
        if (axis < 0) {
          const Symbol split{OpKind::kSplit, static_cast<int>(p), {axis}, sizes, {}, {}};
          ISOMER_ASSIGN_OR_RETURN(part, pool->Apply(split, {part}));
        }
        (*parts)[p].push_back(part);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Piece(int v, int output, const std::vector<Extent>& sizes, int part) const {
    TermPool pool;
    std::vector<TermId> whole;
    std::vector<std::vector<TermId>> parts;
    ISOMER_RETURN_IF_ERROR(Cut(v, sizes, &pool, &whole, &parts));
    ISOMER_ASSIGN_OR_RETURN(const TermId result, pool.Apply(Output(output), whole));
    const int rank = static_cast<int>(d_.outputs[output].size());
    int64_t axis = 0;
    for (int i = 0; i < rank; ++i) {
      if (d_.LeadOfOutputDim(output, i) == v) axis = i - rank;
    }
    const Symbol split{OpKind::kSplit, part, {axis}, sizes, {}, {}};
    ISOMER_ASSIGN_OR_RETURN(const TermId left, pool.Apply(split, {result}));
    ISOMER_ASSIGN_OR_RETURN(const TermId right, pool.Apply(Output(output), parts[part]));
    return Equal(pool, left, right);
  }

  // Whether all that depends on v is one sum of [v == index] * body: a task with a piece of v adds
  // up the terms of its piece, whose coordinates are those of the whole, so that the sum over
  // pieces is the sum. (An operator on a piece alone would count v from 0: not the same as the
  // piece.)
  bool IsLookedUp(int v) const {
    int sums = 0;
    for (const Statement& s : d_.statements) {
      const bool reduces = std::find(s.reduced.begin(), s.reduced.end(), v) != s.reduced.end();
      if (reduces && (s.select_dim != v || s.reduction != Reduction::kSum || s.output < 0)) {
        return false;
      }
      sums += reduces ? 1 : 0;
      for (const Instruction& i : s.body) {
        if (i.op == ScalarOp::kIndex && i.dim == v) return false;
      }
    }
    return sums == 1;
  }

  // Operands that v leads are Concats of two pieces, the others are whole.
  absl::Status SumOfPieces(int v, const std::vector<Extent>& sizes) const {
    if (IsLookedUp(v)) return absl::OkStatus();
    for (int output = 0; output < static_cast<int>(d_.outputs.size()); ++output) {
      TermPool pool;
      std::vector<TermId> whole;
      std::vector<std::vector<TermId>> pieces(2);
      for (int o = 0; o < d_.num_operands(); ++o) {
        const int rank = static_cast<int>(operands_[o].size());
        int axis = 0;
        for (int i = 0; i < rank; ++i) {
          if (d_.LeadOfOperandDim(o, i) != v) continue;
          if (d_.dims[v].size != operands_[o][i]) return absl::UnimplementedError("a merged dim");
          axis = i - rank;
        }
        for (int p = 0; p < 2; ++p) {
          Shape shape = operands_[o];
          if (axis < 0) shape[rank + axis] = sizes[p];
          pieces[p].push_back(pool.Variable(axis < 0 ? 2 * o + p : 2 * o, shape));
        }
        whole.push_back(pieces[0].back());
        if (axis == 0) continue;
        const Symbol concat{OpKind::kConcat, 0, {axis}, {}, {}, {}};
        ISOMER_ASSIGN_OR_RETURN(whole.back(),
                                pool.Apply(concat, {pieces[0].back(), pieces[1].back()}));
      }
      ISOMER_RETURN_IF_ERROR(IsSum(output, whole, pieces[0], pieces[1], &pool));
    }
    return absl::OkStatus();
  }

  absl::Status IsSum(int output, const std::vector<TermId>& whole, const std::vector<TermId>& first,
                     const std::vector<TermId>& second, TermPool* pool) const {
    ISOMER_ASSIGN_OR_RETURN(const TermId left, pool->Apply(Output(output), whole));
    ISOMER_ASSIGN_OR_RETURN(const TermId a, pool->Apply(Output(output), first));
    ISOMER_ASSIGN_OR_RETURN(const TermId b, pool->Apply(Output(output), second));
    ISOMER_ASSIGN_OR_RETURN(const TermId right,
                            pool->Apply({OpKind::kAdd, 0, {}, {}, {}, {}}, {a, b}));
    return Equal(*pool, left, right);
  }

  static absl::Status Equal(const TermPool& pool, TermId left, TermId right) {
    ISOMER_ASSIGN_OR_RETURN(const bool equal, ProvablyEqual(pool, left, right, Divisors::kAny));
    if (equal) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(pool.ToString(left), " = ", pool.ToString(right)));
  }

  const Symbol& symbol_;
  const Declaration& d_;
  const std::vector<Shape>& operands_;
};

// Calls visit(id of the lemma, the dim or -1, the linear set if no dim) for every lemma.
template <typename Visit>
void ForEachLemma(const Call& call, const Declaration& d, Visit visit) {
  const std::string name(OpName(call.symbol.kind));
  for (int v = 0; v < static_cast<int>(d.dims.size()); ++v) {
    // A dim of size 1 has one piece.
    if (d.dims[v].size == Extent(1) || !d.IsPartitionable(v)) continue;
    const bool sums = d.dims[v].kind == DimKind::kSum;
    visit(absl::StrCat(sums ? "sum_of_pieces_of_" : "pieces_of_", name, "_", d.dims[v].name), v,
          std::vector<bool>());
  }
  for (const std::vector<bool>& linear : LinearSets(call)) {
    std::vector<int> set;
    for (size_t o = 0; o < linear.size(); ++o) {
      if (linear[o]) set.push_back(static_cast<int>(o));
    }
    if (set.empty()) continue;
    visit(absl::StrCat(name, "_is_linear_in_", absl::StrJoin(set, "_")), -1, linear);
  }
}

}  // namespace

void PieceLemmas::Add(const Call& call, std::set<std::string>* lemmas) {
  // Only whether sizes are 1 matters, and which are equal.
  SymbolRenaming rename;
  std::string key;
  for (const Shape& shape : call.declaration->operands) {
    for (const Extent& size : rename(shape)) absl::StrAppend(&key, size.ToString(), ",");
    absl::StrAppend(&key, ";");
  }
  Symbol symbol = call.symbol;
  for (Extent& size : symbol.sizes) size = rename(size);
  absl::StrAppend(&key, symbol.ToString());
  auto [at, is_new] = known_.emplace(std::move(key), std::set<std::string>());
  if (is_new) {
    ForEachLemma(
        call, *call.declaration,
        [&](const std::string& id, int, const std::vector<bool>&) { at->second.insert(id); });
  }
  lemmas->insert(at->second.begin(), at->second.end());
}

absl::Status ProveByNormalForms(const Call& call) {
  SymbolRenaming rename;
  std::vector<Shape> operands;
  for (const Shape& shape : call.declaration->operands) operands.push_back(rename(shape));
  Symbol symbol = call.symbol;
  for (Extent& size : symbol.sizes) size = rename(size);
  if (symbol.kind == OpKind::kScale) symbol.factor = {1, {"f"}};
  ISOMER_ASSIGN_OR_RETURN(const Operator op, OperatorOf(symbol, operands));
  ISOMER_ASSIGN_OR_RETURN(const Declaration d, Declare(op, operands));
  const CallLemmas prover(symbol, d, operands);
  absl::Status status;
  ForEachLemma(call, d, [&](const std::string& id, int v, const std::vector<bool>& linear) {
    const absl::Status proved = v >= 0 ? prover.OfDim(v) : prover.Linear(linear);
    if (proved.ok() || !status.ok()) return;
    status = absl::UnimplementedError(
        absl::StrCat("not proved: ", id, ": ", std::string(proved.message())));
  });
  return status;
}

}  // namespace isomer
