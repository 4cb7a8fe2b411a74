// A statement of a declaration, made ready to run over a box: loops, strides, straight-line code.
// Part of the evaluator (evaluator.cc); nothing else includes it.
#ifndef ISOMER_PCG_EVALUATION_LOOP_NEST_H_
#define ISOMER_PCG_EVALUATION_LOOP_NEST_H_

#include <algorithm>
#include <cstdint>
#include <numbers>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/evaluation/number.h"
#include "pcg/ir/declaration.h"
#include "pcg/support/check.h"

namespace isomer {

// One access of a statement, bound to the piece of the tensor that it reads.
struct BoundAccess {
  const Access* access;
  int64_t base = 0;              // offset of coordinate zero in the piece
  std::vector<int64_t> strides;  // of the piece, per tensor dim
  std::vector<int64_t> origin, shape, sizes;
  std::vector<int64_t> offsets;     // of the indices
  bool affine;                      // never outside, no division: a running offset does
  std::vector<int64_t> dim_stride;  // affine: change of offset per iteration dim
  int64_t offset = 0;               // affine: at the current point
};

// A statement over a box: loops, strides, and straight-line code for the body.
template <typename T>
class LoopNest {
 public:
  LoopNest(const Declaration& declaration, const Statement& statement, const IterationBox& box,
           const std::vector<const Array<T>*>& tensors)
      : declaration_(declaration), statement_(statement), box_(box), at_(box.begin) {
    Compile(tensors);
    std::vector<bool> reduced(declaration.dims.size(), false);
    for (int dim : statement.reduced) {
      reduced[dim] = true;
      if (dim != statement.select_dim) reduced_loops_.push_back(dim);
    }
    for (const Index& index : statement.indices) {
      for (const auto& [dim, stride] : index.terms) index_loops_.push_back(dim);
    }
    // A dim that the statement neither indexes nor reduces but reads (never declared so) would be
    // read at its begin only.
    if (statement.select >= 0) select_ = Bind(declaration.accesses[statement.select], tensors);
    BindResult();
  }

  Array<T> MakeResult() const { return Array<T>(result_); }
  const Array<T>& result_form() const { return result_; }

  // Calls visit(offset in the result) for every value of the index dims.
  template <typename Visit>
  void ForEachIndex(Visit visit) {
    Walk(index_loops_, 0, [&] { visit(result_offset()); });
  }
  // Inside of visit: calls point() for every value of the reduced dims.
  template <typename Point>
  void ForEachReduced(Point point) {
    Walk(reduced_loops_, 0, [&] {
      if (select_ < 0) {
        point();
      } else {
        AtSelected(point);
      }
    });
  }

  // Evaluates the body at the current point. False: the point takes no part (Outside::kSkip).
  bool Run() {
    for (size_t i = 0; i < code_.size(); ++i) {
      Line& line = code_[i];
      const T a = line.a >= 0 ? values_[line.a] : T();
      const T b = line.b >= 0 ? values_[line.b] : T();
      switch (line.op) {
        case ScalarOp::kIndex:
          values_[i] = Number<T>::FromDouble(static_cast<double>(at_[line.dim]));
          break;
        case ScalarOp::kLoad:
        case ScalarOp::kInside: {
          const BoundAccess& access = accesses_[line.access];
          line.offset = OffsetOf(access);
          if (line.op == ScalarOp::kInside) {
            values_[i] = Number<T>::FromDouble(line.offset >= 0 ? 1 : 0);
          } else if (line.offset >= 0) {
            values_[i] = line.data[line.offset];
          } else if (access.access->outside == Outside::kSkip) {
            return false;
          } else {
            values_[i] = T();
          }
          break;
        }
        case ScalarOp::kConstant:
          values_[i] = line.constant;
          break;
        case ScalarOp::kAdd:
          values_[i] = a + b;
          break;
        case ScalarOp::kSub:
          values_[i] = a - b;
          break;
        case ScalarOp::kMul:
          values_[i] = a * b;
          break;
        case ScalarOp::kDiv:
          values_[i] = a / b;
          break;
        case ScalarOp::kMax:
          values_[i] = Number<T>::Max(a, b);
          break;
        case ScalarOp::kPow:
          values_[i] = Number<T>::Pow(a, b);
          break;
        case ScalarOp::kLess:
          values_[i] = Number<T>::FromDouble(Number<T>::Less(a, b) ? 1 : 0);
          break;
        case ScalarOp::kEqual:
          values_[i] = Number<T>::FromDouble(a == b ? 1 : 0);
          break;
        case ScalarOp::kRandom:
          values_[i] = Number<T>::Random(a, b);
          break;
        case ScalarOp::kWhere:
          values_[i] = a == T() ? values_[line.c] : b;
          break;
        case ScalarOp::kSin:
          values_[i] = Number<T>::Sin(a);
          break;
        case ScalarOp::kCos:
          values_[i] = Number<T>::Cos(a);
          break;
        case ScalarOp::kAtan:
          values_[i] = Number<T>::Atan(a);
          break;
        case ScalarOp::kFloor:
          values_[i] = Number<T>::Floor(a);
          break;
        case ScalarOp::kRound:
          values_[i] = Number<T>::Round(a);
          break;
        case ScalarOp::kExp:
          values_[i] = Number<T>::Exp(a);
          break;
        case ScalarOp::kLog:
          values_[i] = Number<T>::Log(a);
          break;
        case ScalarOp::kSqrt:
          values_[i] = Number<T>::Sqrt(a);
          break;
        case ScalarOp::kTanh:
          values_[i] = Number<T>::Tanh(a);
          break;
        case ScalarOp::kErf:
          values_[i] = Number<T>::Erf(a);
          break;
      }
    }
    return true;
  }
  T value() const { return values_.back(); }

  // Propagates the gradient of the value that Run() found, and adds the shares of what it loaded
  // to gradients[tensor] (null: not wanted). A gradient of zero is propagated like others: where a
  // derivative is not finite, kernels make NaN of it. What a Where or a maximum does not choose has
  // none.
  void RunBackward(T seed, const std::vector<Array<T>*>& gradients) {
    const T one = Number<T>::FromDouble(1), two = Number<T>::FromDouble(2);
    std::fill(adjoints_.begin(), adjoints_.end(), T());
    std::fill(reached_.begin(), reached_.end(), false);
    adjoints_.back() = seed;
    reached_.back() = true;
    for (int i = static_cast<int>(code_.size()) - 1; i >= 0; --i) {
      const Line& line = code_[i];
      const T g = adjoints_[i];
      if (!reached_[i]) continue;
      const T a = line.a >= 0 ? values_[line.a] : T(), b = line.b >= 0 ? values_[line.b] : T();
      const T y = values_[i];
      auto add = [&](int operand, T share) {
        adjoints_[operand] = adjoints_[operand] + share;
        reached_[operand] = true;
      };
      switch (line.op) {
        case ScalarOp::kLoad: {
          Array<T>* gradient = gradients[accesses_[line.access].access->tensor];
          if (gradient != nullptr && line.offset >= 0) {
            gradient->data[line.offset] = gradient->data[line.offset] + g;
          }
          break;
        }
        case ScalarOp::kInside:
        case ScalarOp::kConstant:
        case ScalarOp::kIndex:
        case ScalarOp::kLess:
        case ScalarOp::kEqual:
        case ScalarOp::kRandom:
        case ScalarOp::kFloor:
        case ScalarOp::kRound:
          break;
        case ScalarOp::kWhere:
          add(a == T() ? line.c : line.b, g);
          break;
        case ScalarOp::kPow:
          add(line.a, g * b * Number<T>::Pow(a, b - one));
          if (!(code_[line.b].op == ScalarOp::kConstant)) add(line.b, g * y * Number<T>::Log(a));
          break;
        case ScalarOp::kSin:
          add(line.a, g * Number<T>::Cos(a));
          break;
        case ScalarOp::kCos:
          add(line.a, T() - g * Number<T>::Sin(a));
          break;
        case ScalarOp::kAtan:
          add(line.a, g / (one + a * a));
          break;
        case ScalarOp::kAdd:
          add(line.a, g), add(line.b, g);
          break;
        case ScalarOp::kSub:
          add(line.a, g), add(line.b, T() - g);
          break;
        case ScalarOp::kMul:
          add(line.a, g * b), add(line.b, g * a);
          break;
        case ScalarOp::kDiv:
          add(line.a, g / b), add(line.b, T() - g * y / b);
          break;
        case ScalarOp::kMax:  // At a tie the second has it: relu'(0) = 0.
          add(y == a && !(a == b) ? line.a : line.b, g);
          break;
        case ScalarOp::kExp:
          add(line.a, g * y);
          break;
        case ScalarOp::kLog:
          add(line.a, g / a);
          break;
        case ScalarOp::kSqrt:
          add(line.a, g / (two * y));
          break;
        case ScalarOp::kTanh:
          add(line.a, g * (one - y * y));
          break;
        case ScalarOp::kErf:
          add(line.a, g * Number<T>::FromDouble(2 * std::numbers::inv_sqrtpi) *
                          Number<T>::Exp(T() - a * a));
          break;
      }
    }
  }

  absl::Status status() const {
    if (!bad_index_.has_value()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "index ", *bad_index_, " is outside of dim ", declaration_.dims[statement_.select_dim].name,
        " of size ", declaration_.dims[statement_.select_dim].size.ToString()));
  }

 private:
  // Calls point() where the looked-up dim has the selected value, if that is of this box.
  template <typename Point>
  void AtSelected(Point&& point) {
    const int dim = statement_.select_dim;
    const int64_t value = Number<T>::ToIndex(Load(accesses_[select_]));
    if (value < 0 || value >= declaration_.dims[dim].size.value()) {
      if (!bad_index_.has_value()) bad_index_ = value;
      return;
    }
    if (value < box_.begin[dim] || value >= box_.end[dim]) return;  // Another shard's.
    MoveTo(dim, value);
    point();
    MoveTo(dim, box_.begin[dim]);
  }

  struct Line {
    ScalarOp op;
    int a = -1, b = -1, c = -1;  // lines of the operands
    int access = -1;             // into accesses_
    int dim = -1;                // kIndex
    T constant = T();
    const T* data = nullptr;
    int64_t offset = -1;  // where the load read; -1: outside
  };

  void Compile(const std::vector<const Array<T>*>& tensors) {
    std::vector<int> stack;
    for (const Instruction& instruction : statement_.body) {
      Line line{.op = instruction.op};
      switch (instruction.op) {
        case ScalarOp::kLoad:
        case ScalarOp::kInside:
          line.access = Bind(declaration_.accesses[instruction.access], tensors);
          line.data = tensors[accesses_[line.access].access->tensor]->data.data();
          break;
        case ScalarOp::kConstant:
          line.constant = Number<T>::FromDouble(instruction.constant);
          break;
        case ScalarOp::kIndex:
          line.dim = instruction.dim;
          break;
        default: {
          int* const operands[] = {&line.a, &line.b, &line.c};
          for (int i = Arity(instruction.op) - 1; i >= 0; --i) {
            *operands[i] = stack.back();
            stack.pop_back();
          }
        }
      }
      stack.push_back(static_cast<int>(code_.size()));
      code_.push_back(line);
    }
    values_.resize(code_.size());
    adjoints_.resize(code_.size());
    reached_.resize(code_.size());
  }

  int Bind(const Access& access, const std::vector<const Array<T>*>& tensors) {
    const Array<T>& piece = *tensors[access.tensor];
    tensors_.push_back(piece.data.data());
    BoundAccess bound{.access = &access,
                      .strides = {},
                      .origin = piece.origin,
                      .shape = piece.shape,
                      .sizes = {},
                      .offsets = {},
                      .affine = access.outside == Outside::kNever,
                      .dim_stride = {}};
    const int n = declaration_.num_operands();
    const Shape sizes =
        access.tensor < n ? declaration_.operands[access.tensor]
                          : declaration_.StatementShape(declaration_.statements[access.tensor - n]);
    bound.strides.assign(piece.shape.size(), 1);
    for (int i = static_cast<int>(piece.shape.size()) - 2; i >= 0; --i) {
      bound.strides[i] = bound.strides[i + 1] * piece.shape[i + 1];
    }
    for (size_t i = 0; i < access.indices.size(); ++i) {
      bound.sizes.push_back(sizes[i].value());
      bound.offsets.push_back(access.indices[i].offset.value());
      bound.affine &= access.indices[i].divide == 1 && access.indices[i].modulo == 0;
    }
    if (bound.affine) MakeAffine(&bound);
    accesses_.push_back(std::move(bound));
    return static_cast<int>(accesses_.size()) - 1;
  }

  void MakeAffine(BoundAccess* bound) {
    bound->dim_stride.assign(declaration_.dims.size(), 0);
    for (size_t i = 0; i < bound->access->indices.size(); ++i) {
      const Index& index = bound->access->indices[i];
      int64_t low = index.offset.value() - bound->origin[i], high = low;
      int64_t begin = low;
      for (const auto& [dim, stride] : index.terms) {
        const int64_t first = box_.begin[dim] * stride, last = (box_.end[dim] - 1) * stride;
        begin += first;
        low += std::min(first, last);  // A Slice may step backwards.
        high += std::max(first, last);
        bound->dim_stride[dim] += stride * bound->strides[i];
      }
      // REQUIRES of Evaluate: the piece covers what the box reads.
      ISOMER_CHECK(low >= 0 && high < bound->shape[i]);
      bound->offset += begin * bound->strides[i];
    }
  }

  void BindResult() {
    std::vector<int64_t> origin, shape;
    for (const Index& index : statement_.indices) {
      int64_t low = 0, extent = 1;
      for (const auto& [dim, stride] : index.terms) {
        low += box_.begin[dim] * stride;
        extent += (box_.end[dim] - box_.begin[dim] - 1) * stride;
      }
      origin.push_back(low);
      shape.push_back(extent);
    }
    result_ = Array<T>(shape);
    result_.origin = origin;
    result_strides_.assign(shape.size(), 1);
    for (int i = static_cast<int>(shape.size()) - 2; i >= 0; --i) {
      result_strides_[i] = result_strides_[i + 1] * shape[i + 1];
    }
    result_step_.assign(declaration_.dims.size(), 0);
    for (size_t i = 0; i < statement_.indices.size(); ++i) {
      for (const auto& [dim, stride] : statement_.indices[i].terms)
        result_step_[dim] += stride * result_strides_[i];
    }
  }

  int64_t result_offset() const { return result_offset_; }

  int64_t OffsetOf(const BoundAccess& bound) const {
    if (bound.affine) return bound.offset;
    int64_t offset = 0;
    for (size_t i = 0; i < bound.access->indices.size(); ++i) {
      const Index& index = bound.access->indices[i];
      int64_t coordinate = bound.offsets[i];
      for (const auto& [dim, stride] : index.terms) coordinate += at_[dim] * stride;
      if (index.divide != 1) {
        if (index.exact && coordinate % index.divide != 0) return -1;
        coordinate /= index.divide;
      }
      if (index.modulo != 0) coordinate %= index.modulo;
      if (coordinate < 0 || coordinate >= bound.sizes[i]) return -1;
      coordinate -= bound.origin[i];
      ISOMER_CHECK(coordinate >= 0 && coordinate < bound.shape[i]);
      offset += coordinate * bound.strides[i];
    }
    return offset;
  }
  T Load(const BoundAccess& bound) const {
    return tensors_[&bound - accesses_.data()][OffsetOf(bound)];
  }

  void MoveTo(int dim, int64_t value) {
    const int64_t change = value - at_[dim];
    at_[dim] = value;
    for (BoundAccess& access : accesses_) {
      if (access.affine) access.offset += change * access.dim_stride[dim];
    }
    result_offset_ += change * result_step_[dim];
  }

  template <typename Visit>
  void Walk(const std::vector<int>& loops, size_t depth, Visit&& visit) {
    if (depth == loops.size()) {
      visit();
      return;
    }
    const int dim = loops[depth];
    for (int64_t value = box_.begin[dim]; value < box_.end[dim]; ++value) {
      MoveTo(dim, value);
      Walk(loops, depth + 1, visit);
    }
    MoveTo(dim, box_.begin[dim]);
  }

  const Declaration& declaration_;
  const Statement& statement_;
  const IterationBox& box_;
  std::vector<int64_t> at_;  // the current point
  std::vector<int> index_loops_, reduced_loops_;
  std::vector<BoundAccess> accesses_;
  std::vector<const T*> tensors_;  // data of the piece each access reads
  int select_ = -1;
  std::vector<Line> code_;
  std::vector<T> values_, adjoints_;
  std::vector<char> reached_;  // by a gradient, per line
  Array<T> result_;
  std::vector<int64_t> result_strides_, result_step_;
  int64_t result_offset_ = 0;
  std::optional<int64_t> bad_index_;
};

}  // namespace isomer

#endif  // ISOMER_PCG_EVALUATION_LOOP_NEST_H_
