#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/box.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "verifier/mutation/declaration_changes.h"
#include "verifier/mutation/known_answers.h"
#include "verifier/mutation/mutants.h"

namespace isomer {
namespace {

using FieldArray = Array<PrimeField>;

absl::StatusOr<std::vector<FieldArray>> Whole(const Declaration& d,
                                              const std::vector<FieldArray>& operands,
                                              const IterationBox& box) {
  std::vector<const FieldArray*> pointers;
  for (const FieldArray& operand : operands) pointers.push_back(&operand);
  return Evaluate<PrimeField>(d, box, pointers);
}

// Calls f(offset in the whole, offset in the piece) for every element of the box.
template <typename Function>
void ForEachElement(const Box& box, const std::vector<int64_t>& whole, Function f) {
  for (int64_t element = 0; element < box.Volume(); ++element) {
    int64_t rest = element, offset = 0, stride = 1;
    for (size_t i = whole.size(); i-- > 0;) {
      offset += (box.origin[i] + rest % box.shape[i]) * stride;
      rest /= box.shape[i];
      stride *= whole[i];
    }
    f(offset, element);
  }
}

// What the task of `box` holds of an operand: its piece of the dims that `v` leads, and halos.
FieldArray PieceFor(const Declaration& d, int v, int64_t degree, int64_t coordinate,
                    const IterationBox& box, int operand, const FieldArray& whole) {
  Box piece{std::vector<int64_t>(whole.shape.size(), 0), whole.shape};
  for (int i = 0; i < static_cast<int>(whole.shape.size()); ++i) {
    if (d.LeadOfOperandDim(operand, i) != v) continue;
    piece.shape[i] = whole.shape[i] / degree;
    piece.origin[i] = coordinate * piece.shape[i];
    if (!d.HasHalo(operand, i)) continue;
    const auto [begin, end] = d.RangeOfOperandDim(operand, i, box.begin, box.end);
    if (begin >= end) continue;
    piece.origin[i] = begin;
    piece.shape[i] = end - begin;
  }
  FieldArray array(piece.shape);
  array.origin = piece.origin;
  ForEachElement(piece, whole.shape,
                 [&](int64_t from, int64_t to) { array.data[to] = whole.data[from]; });
  return array;
}

// Whether the pieces hold all that the box's tasks read. Intermediates are computed over the box.
bool HoldsWhatItReads(const Declaration& d, const IterationBox& box,
                      const std::vector<FieldArray>& pieces) {
  auto range = [&](const Index& index) {
    int64_t low = index.offset.value(), high = low;
    for (const auto& [dim, stride] : index.terms) {
      low += std::min(box.begin[dim] * stride, (box.end[dim] - 1) * stride);
      high += std::max(box.begin[dim] * stride, (box.end[dim] - 1) * stride);
    }
    return std::pair(low, high);
  };
  for (const Access& access : d.accesses) {
    const bool is_operand = access.tensor < d.num_operands();
    for (size_t i = 0; i < access.indices.size(); ++i) {
      const Index& index = access.indices[i];
      int64_t size, first, last;  // of the tensor; what is held of it
      if (is_operand) {
        size = d.operands[access.tensor][i].value();
        first = pieces[access.tensor].origin[i];
        last = first + pieces[access.tensor].shape[i] - 1;
      } else {
        const Statement& made = d.statements[access.tensor - d.num_operands()];
        size = d.StatementShape(made)[i].value();
        std::tie(first, last) = range(made.indices[i]);
      }
      auto [low, high] = range(index);
      if (index.modulo != 0) low = 0, high = size * index.divide - 1;
      if (index.exact && low > 0) low += index.divide - 1;  // Remainders are outside.
      low = low / index.divide;
      high = high / index.divide;
      if (access.outside != Outside::kNever) {  // Outside of the tensor, nothing is read.
        low = std::max<int64_t>(low, 0);
        high = std::min(high, size - 1);
        if (low > high) continue;
      }
      if (low < first || high > last) return false;
    }
  }
  return true;
}

// The smallest number of pieces into which `v` and the operand dims that it leads can be cut; 1:
// none.
int64_t DegreeOf(const Declaration& d, int v, const std::vector<FieldArray>& operands) {
  for (int64_t degree : {2, 3, 5}) {
    bool divides = d.dims[v].size.value() % degree == 0;
    for (int o = 0; o < d.num_operands(); ++o) {
      for (int i = 0; i < static_cast<int>(operands[o].shape.size()); ++i) {
        if (d.LeadOfOperandDim(o, i) == v) divides &= operands[o].shape[i] % degree == 0;
      }
    }
    if (divides) return degree;
  }
  return 1;
}

// Whether the tasks of a partitioned dim make, together, what the whole call makes.
absl::Status CheckPieces(const Declaration& d, int v, const std::vector<FieldArray>& operands,
                         const std::vector<FieldArray>& whole) {
  std::vector<FieldArray> assembled;
  for (const FieldArray& output : whole) assembled.emplace_back(output.shape);
  std::vector<int64_t> degrees(d.dims.size(), 1), coordinates(d.dims.size(), 0);
  degrees[v] = DegreeOf(d, v, operands);
  for (coordinates[v] = 0; coordinates[v] < degrees[v]; ++coordinates[v]) {
    const IterationBox box = TaskBox(d, degrees, coordinates);
    std::vector<FieldArray> pieces;
    for (int o = 0; o < d.num_operands(); ++o) {
      pieces.push_back(PieceFor(d, v, degrees[v], coordinates[v], box, o, operands[o]));
    }
    if (!HoldsWhatItReads(d, box, pieces)) {
      return absl::FailedPreconditionError(
          absl::StrCat("dim ", d.dims[v].name,
                       " may be partitioned, but a task reads what other "
                       "tasks make or hold"));
    }
    ISOMER_ASSIGN_OR_RETURN(const std::vector<FieldArray> outputs, Whole(d, pieces, box));
    for (size_t t = 0; t < outputs.size(); ++t) {
      ForEachElement({outputs[t].origin, outputs[t].shape}, assembled[t].shape,
                     [&](int64_t to, int64_t from) {
                       assembled[t].data[to] = assembled[t].data[to] + outputs[t].data[from];
                     });
    }
  }
  for (size_t t = 0; t < whole.size(); ++t) {
    if (whole[t].data != assembled[t].data) {
      return absl::FailedPreconditionError(
          absl::StrCat("dim ", d.dims[v].name, " may be partitioned, but the pieces of output ", t,
                       " are not those of the whole"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLinear(const Declaration& d, int o, const std::vector<FieldArray>& operands,
                         const std::vector<FieldArray>& other,
                         const std::vector<FieldArray>& whole) {
  std::vector<FieldArray> second = operands, sum = operands;
  second[o] = other[o];
  for (int64_t i = 0; i < sum[o].size(); ++i) {
    sum[o].data[i] = operands[o].data[i] + other[o].data[i];
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<FieldArray> b, Whole(d, second, FullBox(d)));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<FieldArray> ab, Whole(d, sum, FullBox(d)));
  for (size_t t = 0; t < whole.size(); ++t) {
    for (int64_t i = 0; i < whole[t].size(); ++i) {
      if (whole[t].data[i] + b[t].data[i] == ab[t].data[i]) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("is said to be linear in operand ", o, ", but is not"));
    }
  }
  return absl::OkStatus();
}

// What is derived from a declaration holds of what it computes, whatever that is.
absl::Status CheckDerived(const ExampleCall& call, const Declaration& d) {
  const std::vector<FieldArray> operands = DrawOperands<PrimeField>(call, 21);
  const std::vector<FieldArray> other = DrawOperands<PrimeField>(call, 22);
  ISOMER_ASSIGN_OR_RETURN(const std::vector<FieldArray> whole, Whole(d, operands, FullBox(d)));
  for (int v = 0; v < static_cast<int>(d.dims.size()); ++v) {
    if (!d.IsPartitionable(v) || DegreeOf(d, v, operands) == 1) continue;
    ISOMER_RETURN_IF_ERROR(CheckPieces(d, v, operands, whole));
  }
  for (int o = 0; o < d.num_operands(); ++o) {
    std::vector<bool> subset(d.num_operands(), false);
    subset[o] = true;
    if (!d.IsLinearIn(subset) || IsIndexOperand(call.op.kind(), o)) continue;
    ISOMER_RETURN_IF_ERROR(CheckLinear(d, o, operands, other, whole));
  }
  return absl::OkStatus();
}

// Whether the two compute the same from further operands.
bool EvaluateAlike(const ExampleCall& call, const Declaration& a, const Declaration& b) {
  for (uint64_t seed = 31; seed < 37; ++seed) {
    const std::vector<FieldArray> operands = DrawOperands<PrimeField>(call, seed);
    const auto x = Whole(a, operands, FullBox(a)), y = Whole(b, operands, FullBox(b));
    if (x.ok() != y.ok()) return false;
    for (size_t t = 0; x.ok() && t < x->size(); ++t) {
      if ((*x)[t].data != (*y)[t].data) return false;
    }
  }
  return true;
}

// Why a change that no draw sees changes nothing: draws are random elements of a field of 2^61
// numbers, so what agrees at all of them is the same function of the operands' elements, of these
// sizes.
const char* WhyEqual(const std::string& change) {
  auto has = [&](const char* text) { return absl::StrContains(change, text); };
  if (has("runs backwards")) {
    return "a reduction may take its elements in another order, or there is one only";
  }
  if (has("outside")) return "what is skipped in a sum adds nothing, as zeros do";
  if (has("constant -0")) return "-0 is 0";
  if (has("/ for *")) return "-1 is its own inverse";
  if (has("without") || has(" for ")) return "the same function at these sizes, at all draws";
  return "the same function of its operands, at all draws";
}

MutantVerdict JudgeDeclaration(const ExampleCall& call, const std::string& known,
                               const Declaration& original, const Declaration& changed,
                               const std::string& change) {
  const absl::StatusOr<std::string> answer = AnswerOf(call, changed);
  if (!answer.ok()) return Caught("cannot be evaluated", std::string(answer.status().message()));
  if (const absl::Status derived = CheckDerived(call, changed); !derived.ok()) {
    return Missed("what is derived from it is false", std::string(derived.message()));
  }
  const bool alike = EvaluateAlike(call, original, changed);
  if (*answer != known) {
    return Caught(alike ? "known types (which dims and operands may be spread)" : "known answers");
  }
  if (!alike) return Missed("known answers do not see it");
  if (absl::StartsWith(change, "dim ")) {
    return Equal("same values, and the dim is partitionable neither way",
                 "the kind of a dim says how it may be partitioned, and this one may not");
  }
  return Equal(WhyEqual(change),
               absl::StrCat(original.ToString(), " / ", changed.ToString(), " alike at 14 draws"));
}

}  // namespace

absl::StatusOr<std::vector<Mutant>> DeclarationMutants(uint64_t seed) {
  constexpr size_t kMutantsOfACall = 6;
  ISOMER_ASSIGN_OR_RETURN(const auto answers, LoadKnownAnswers());
  std::vector<Mutant> mutants;
  for (const ExampleCall& call : Examples()) {
    ISOMER_ASSIGN_OR_RETURN(const Declaration d, DeclarationOf(call));
    const auto known = answers.find(call.name);
    if (known == answers.end()) {
      return absl::NotFoundError(
          absl::StrCat("verifier/mutation/known_answers.txt has no line for ", call.name));
    }
    std::vector<ChangedDeclaration> changes = ChangesOf(d);
    std::sort(changes.begin(), changes.end(), [&](const auto& a, const auto& b) {
      return HashBytes(call.name + a.change, seed) < HashBytes(call.name + b.change, seed);
    });
    if (changes.size() > kMutantsOfACall) changes.resize(kMutantsOfACall);
    const auto original = std::make_shared<Declaration>(d);
    for (ChangedDeclaration& change : changes) {
      mutants.push_back({MutantKind::kDeclaration, call.name, change.change,
                         [&call, answer = known->second, original,
                          changed = std::move(change.declaration), what = change.change](Prover*) {
                           return JudgeDeclaration(call, answer, *original, changed, what);
                         }});
    }
  }
  return mutants;
}

}  // namespace isomer
