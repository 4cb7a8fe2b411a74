#include "verifier/exhaustive/interpret.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "verifier/exhaustive/elements.h"

namespace isomer {
namespace {

template <typename Elements>
class Interpreter {
 public:
  using Value = typename Elements::Value;
  using Tensor = SparseTensor<Value>;

  Interpreter(const Declaration& declaration, const DimRanges& ranges,
              const std::vector<Tensor>& operands, Elements* elements)
      : d_(declaration), ranges_(ranges), tensors_(operands), e_(*elements) {}

  absl::StatusOr<std::vector<Tensor>> Run() {
    std::vector<Tensor> outputs(d_.outputs.size());
    for (const Statement& s : d_.statements) {
      ISOMER_ASSIGN_OR_RETURN(Tensor made, Make(s));
      if (s.output >= 0) outputs[s.output] = made;
      tensors_.push_back(std::move(made));
    }
    return outputs;
  }

 private:
  absl::StatusOr<Tensor> Make(const Statement& s) {
    Tensor made;
    int64_t size = 1;
    for (const Extent& extent : d_.StatementShape(s)) {
      made.shape.push_back(extent.value());
      size *= extent.value();
    }
    made.elements.resize(size);
    // Dims that the statement is not over stay where they are.
    std::vector<bool> loops(d_.dims.size(), false);
    for (const Index& index : s.indices) {
      for (const auto& [dim, stride] : index.terms) loops[dim] = true;
    }
    absl::Status status;
    ForEachOf(loops, ranges_.begin, [&](const std::vector<int64_t>& point) {
      if (!status.ok()) return;
      std::vector<int64_t> place;
      for (const Index& index : s.indices) place.push_back(*At(index, point));
      absl::StatusOr<Value> value = Reduce(s, point);
      if (!value.ok()) {
        status = value.status();
      } else {
        made.elements[OffsetOf(made.shape, place)] = *value;
      }
    });
    if (!status.ok()) return status;
    return made;
  }

  // Every value of the dims in `loops`, the others as in `from`.
  template <typename Visit>
  void ForEachOf(const std::vector<bool>& loops, const std::vector<int64_t>& from, Visit visit) {
    std::vector<int64_t> begin = from, end = from;
    for (size_t v = 0; v < loops.size(); ++v) {
      if (loops[v]) begin[v] = ranges_.begin[v];
      end[v] = loops[v] ? ranges_.end[v] : from[v] + 1;
    }
    ForEachPoint(begin, end, visit);
  }

  absl::StatusOr<Value> Reduce(const Statement& s, const std::vector<int64_t>& from) {
    if (s.reduction == Reduction::kNone) {
      ISOMER_ASSIGN_OR_RETURN(const std::optional<Value> value, Body(s.body, from));
      return value.value_or(e_.Integer(0));
    }
    std::vector<bool> loops(d_.dims.size(), false);
    for (int dim : s.reduced) loops[dim] = dim != s.select_dim;
    std::vector<Value> values;
    absl::Status status;
    ForEachOf(loops, from, [&](const std::vector<int64_t>& point) {
      if (status.ok()) status = Collect(s, point, &values);
    });
    if (!status.ok()) return status;
    if (values.empty()) return e_.Integer(0);
    if (s.reduction == Reduction::kSum) return e_.Sum(values);
    return s.reduction == Reduction::kMax ? e_.Largest(values) : e_.Product(values);
  }

  // Appends what the point adds to its reduction: nothing, or one value.
  absl::Status Collect(const Statement& s, std::vector<int64_t> point, std::vector<Value>* values) {
    if (s.select_dim >= 0) {
      ISOMER_ASSIGN_OR_RETURN(const std::optional<Value> index, Load(d_.accesses[s.select], point));
      const std::optional<int64_t> selected = index ? e_.AsInteger(*index) : std::nullopt;
      if (!selected) return absl::UnimplementedError("an index that is no integer");
      if (*selected < 0 || *selected >= d_.dims[s.select_dim].size.value()) {
        return absl::OutOfRangeError(absl::StrCat("an index of ", *selected));
      }
      if (*selected < ranges_.begin[s.select_dim] || *selected >= ranges_.end[s.select_dim]) {
        return absl::OkStatus();
      }
      point[s.select_dim] = *selected;
    }
    ISOMER_ASSIGN_OR_RETURN(const std::optional<Value> value, Body(s.body, point));
    if (value) values->push_back(*value);
    return absl::OkStatus();
  }

  // The coordinate that an index gives; nullopt: a division that leaves a remainder.
  static std::optional<int64_t> At(const Index& index, const std::vector<int64_t>& point) {
    int64_t sum = index.offset.value();
    for (const auto& [dim, stride] : index.terms) sum += stride * point[dim];
    if (index.divide != 1) {
      const int64_t remainder = ((sum % index.divide) + index.divide) % index.divide;
      if (index.exact && remainder != 0) return std::nullopt;
      sum = (sum - remainder) / index.divide;
    }
    if (index.modulo != 0) sum = ((sum % index.modulo) + index.modulo) % index.modulo;
    return sum;
  }

  // Where in its tensor the access is; nullopt: outside.
  std::optional<int64_t> Place(const Access& access, const std::vector<int64_t>& point) const {
    const std::vector<int64_t>& shape = tensors_[access.tensor].shape;
    std::vector<int64_t> at;
    for (size_t i = 0; i < access.indices.size(); ++i) {
      const std::optional<int64_t> coordinate = At(access.indices[i], point);
      if (!coordinate || *coordinate < 0 || *coordinate >= shape[i]) return std::nullopt;
      at.push_back(*coordinate);
    }
    return OffsetOf(shape, at);
  }

  // nullopt: the point takes no part.
  absl::StatusOr<std::optional<Value>> Load(const Access& access,
                                            const std::vector<int64_t>& point) {
    const std::optional<int64_t> place = Place(access, point);
    if (place) {
      const std::optional<Value>& element = tensors_[access.tensor].elements[*place];
      if (element) return element;
      return absl::FailedPreconditionError(
          absl::StrCat("element ", *place, " of tensor ", access.tensor, " is not there"));
    }
    switch (access.outside) {
      case Outside::kNever:
        return absl::FailedPreconditionError(
            absl::StrCat("a load outside of tensor ", access.tensor));
      case Outside::kZero:
        return std::optional<Value>(e_.Integer(0));
      case Outside::kSkip:
        break;
    }
    return std::optional<Value>();
  }

  absl::StatusOr<std::optional<Value>> Body(const isomer::Body& body,
                                            const std::vector<int64_t>& point) {
    std::vector<Value> stack;
    for (const Instruction& instruction : body) {
      switch (instruction.op) {
        case ScalarOp::kLoad: {
          ISOMER_ASSIGN_OR_RETURN(const std::optional<Value> value,
                                  Load(d_.accesses[instruction.access], point));
          if (!value) return value;
          stack.push_back(*value);
          break;
        }
        case ScalarOp::kInside:
          stack.push_back(
              e_.Integer(Place(d_.accesses[instruction.access], point).has_value() ? 1 : 0));
          break;
        case ScalarOp::kConstant:
          stack.push_back(e_.Number(instruction.constant));
          break;
        case ScalarOp::kIndex:
          stack.push_back(e_.Integer(point[instruction.dim]));
          break;
        default: {
          const size_t first = stack.size() - Arity(instruction.op);
          const Value value = e_.Apply(instruction.op, absl::MakeSpan(stack).subspan(first));
          stack.resize(first);
          stack.push_back(value);
        }
      }
    }
    return std::optional<Value>(stack.back());
  }

  const Declaration& d_;
  const DimRanges& ranges_;
  std::vector<Tensor> tensors_;
  Elements& e_;
};

}  // namespace

DimRanges WholeRanges(const Declaration& declaration) {
  DimRanges ranges;
  for (const IterationDim& dim : declaration.dims) {
    ranges.begin.push_back(0);
    ranges.end.push_back(dim.size.value());
  }
  return ranges;
}

int64_t OffsetOf(const std::vector<int64_t>& shape, const std::vector<int64_t>& at) {
  int64_t offset = 0;
  for (size_t i = 0; i < shape.size(); ++i) offset = offset * shape[i] + at[i];
  return offset;
}

template <typename Elements>
absl::StatusOr<std::vector<SparseTensor<typename Elements::Value>>> Interpret(
    const Declaration& declaration, const DimRanges& ranges,
    const std::vector<SparseTensor<typename Elements::Value>>& operands, Elements* elements) {
  return Interpreter<Elements>(declaration, ranges, operands, elements).Run();
}

template absl::StatusOr<std::vector<SparseTensor<SymbolicElements::Value>>> Interpret(
    const Declaration&, const DimRanges&, const std::vector<SparseTensor<SymbolicElements::Value>>&,
    SymbolicElements*);
template absl::StatusOr<std::vector<SparseTensor<NumericElements::Value>>> Interpret(
    const Declaration&, const DimRanges&, const std::vector<SparseTensor<NumericElements::Value>>&,
    NumericElements*);

}  // namespace isomer
