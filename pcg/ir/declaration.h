// What an operator means: a declaration over its iteration space.
//
// An operator is declared once, as a short list of statements of the form
//
//     tensor[indices] = body                          for all values of the index dims
//     tensor[indices] = sum (or max) over dims: body
//
// where body is pointwise in loads of operands and earlier statements. Softmax, for example:
//
//     M[..]   = max_j X[..,j]
//     S[..]   = sum_j exp(X[..,j] - M[..])
//     Y[..,j] = exp(X[..,j] - M[..]) / S[..]
//
// Everything else is derived from this: shapes, legal degrees and operand types (type_inference.h),
// FLOPs and bytes (work.h), values and gradients over any number type (evaluator.h), and the term
// that the prover reads (verifier/). No operator's meaning is written a second time.
#ifndef ISOMER_PCG_IR_DECLARATION_H_
#define ISOMER_PCG_IR_DECLARATION_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "pcg/ir/extent.h"

namespace isomer {

// How a dim of the iteration space may be partitioned (SOAP: the sample, attribute and parameter
// dims of FlexFlow are parallel dims; its reduction dims are sum dims).
enum class DimKind {
  kParallel,  // indexes the output: pieces are independent
  kSpatial,   // indexes the output; pieces need a halo of their neighbours
  kSum,       // summed over by the statement of the output: pieces give partial sums
  kWhole,     // needed as a whole by every task
};

const char* DimKindName(DimKind kind);

struct IterationDim {
  std::string name;
  DimKind kind;
  Extent size;
};

// An index of a tensor dim: (sum of stride * dim + offset) / divide % modulo. Most are one dim;
// windows (y*stride + r - padding) and merged dims (h*64 + e) are affine; only a Reshape between
// incommensurable shapes divides. modulo 0 means none. `exact`: where the division leaves a
// remainder the index is outside of the tensor (transposed convolution).
struct Index {
  Index() = default;
  Index(int dim) : terms{{dim, 1}} {}  // NOLINT: an iteration dim is the common index
  std::vector<std::pair<int, int64_t>> terms;
  Extent offset;
  int64_t divide = 1;
  int64_t modulo = 0;
  bool exact = false;
  friend bool operator==(const Index&, const Index&) = default;
};
Index operator*(Index index, int64_t stride);
Index operator+(Index a, const Index& b);
Index Shifted(Index index, const Extent& offset);
bool Mentions(const Index& index, int dim);
// The dim of `index` whose contiguous pieces tile [0, size) in order, or -1.
int LeadOfIndex(const std::vector<IterationDim>& dims, const Index& index, const Extent& size);

// What a load outside of the tensor's bounds reads.
enum class Outside {
  kNever,  // the indices stay inside, by construction
  kZero,   // padding of convolutions; the other parts of a Concat
  kSkip,   // the point takes no part in the reduction (max pooling)
};

struct Access {
  int tensor;  // operand t, or statement t - number of operands
  std::vector<Index> indices;
  Outside outside = Outside::kNever;
};

// Pointwise code in postfix order, over any number type. Comparisons give 1 or 0, and have no
// gradient; nor have floor and round.
enum class ScalarOp {
  kLoad,      // push the element that an access names
  kInside,    // push 1 where the access is inside its tensor, else 0
  kConstant,  // push a constant
  kIndex,     // push the value of an iteration dim: a coordinate of the logical tensors
  // Of two.
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kPow,
  kLess,
  kEqual,
  kRandom,  // a pseudo-random number in [0, 1), a fixed function of two integers
  // Of one.
  kExp,
  kLog,
  kSqrt,
  kTanh,
  kErf,
  kSin,
  kCos,
  kAtan,
  kFloor,
  kRound,  // half to even
  // Of three.
  kWhere,  // the second where the first is not zero, else the third
};

const char* ScalarOpName(ScalarOp op);
// How many values it takes: 0 to 3.
int Arity(ScalarOp op);

struct Instruction {
  ScalarOp op;
  int access = -1;      // kLoad, kInside
  double constant = 0;  // kConstant; exactly representable (write 1/n as a division)
  int dim = -1;         // kIndex
};

using Body = std::vector<Instruction>;

// Arithmetic that builds bodies.
struct Expr {
  Body code;
  Expr(Body body) : code(std::move(body)) {}                                          // NOLINT
  Expr(double constant) : code{{.op = ScalarOp::kConstant, .constant = constant}} {}  // NOLINT
};
Expr operator+(Expr a, const Expr& b);
Expr operator-(Expr a, const Expr& b);
Expr operator-(Expr a);  // a * -1
Expr operator*(Expr a, const Expr& b);
Expr operator/(Expr a, const Expr& b);
Expr Max(Expr a, const Expr& b);
Expr Apply(ScalarOp function, Expr a);
Expr Apply(ScalarOp function, Expr a, const Expr& b);
Expr operator<(Expr a, const Expr& b);
Expr Equal(Expr a, const Expr& b);
Expr Where(Expr condition, const Expr& yes, const Expr& no);
// The value of an iteration dim.
Expr Coordinate(int dim);

enum class Reduction { kNone, kSum, kMax, kProduct };

struct Statement {
  std::string name;
  int output = -1;             // which output this statement defines; -1: an intermediate
  std::vector<Index> indices;  // of the tensor defined; affine, no offset
  Reduction reduction = Reduction::kNone;
  std::vector<int> reduced;  // iteration dims
  Body body;
  // A look-up: of the reduced dim `select_dim`, only the value that access `select` holds takes
  // part. Y[..,h] = sum_v [v == I[..]] W[v,h] is an Embedding without a loop over v. Values outside
  // of the dim's range (of a shard's range) contribute nothing.
  int select_dim = -1;
  int select = -1;
  // Every value is above zero, whatever the operands hold, for a reason that is not to be seen
  // here: a window has an element inside, a query sees a key. So what is divided by it is defined
  // (rules/theorems/domains.h).
  bool positive = false;
};

struct Declaration {
  std::vector<IterationDim> dims;
  std::vector<Shape> operands;
  std::vector<Access> accesses;
  std::vector<Statement> statements;
  std::vector<Shape> outputs;

  int num_operands() const { return static_cast<int>(operands.size()); }
  // The shape of what statement s defines.
  Shape StatementShape(const Statement& s) const;

  // The iteration dim that gives operand dim i (output dim i) its degree: its contiguous pieces are
  // the contiguous pieces of the dim, or, if it is spatial, what its pieces read lies around those
  // (HasHalo). -1 if there is no such dim.
  int LeadOfOperandDim(int operand, int i) const;
  int LeadOfOutputDim(int output, int i) const;
  // True if operand dim i is led by a spatial dim a piece of which reads other elements than the
  // corresponding piece of operand dim i: a window that overlaps its neighbours, or is shifted.
  bool HasHalo(int operand, int i) const;
  // The elements [first, second) of operand dim i that the accesses read while iteration dim v goes
  // over [begin[v], end[v]); first >= second if all of them are outside. REQUIRES: known sizes.
  std::pair<int64_t, int64_t> RangeOfOperandDim(int operand, int i, absl::Span<const int64_t> begin,
                                                absl::Span<const int64_t> end) const;
  // True if every load that `dim` takes part in has it as the lead of the operand dim it indexes,
  // so that a task that owns a piece of it needs only the corresponding pieces of its operands (and
  // their halos), and what tasks make of pieces is what the whole makes (PiecesSuffice).
  bool IsPartitionable(int dim) const;
  // True if, for a sum dim, the outputs are sums over `dim`, so that those over its pieces add up
  // to them; for other dims, if no output's element depends on more than one value of `dim`.
  // Read off the statements, so that it holds of every declaration, whatever its operator.
  bool PiecesSuffice(int dim) const;
  // True if the outputs are linear in the operands of `subset` taken together, the others fixed:
  // then partial sums of those operands give partial sums of the outputs. `subset` has one entry
  // per operand.
  bool IsLinearIn(const std::vector<bool>& subset) const;

  // True if a statement compares elements: what it makes of one that is not a number is a number.
  bool ComparesElements() const;

  // The statements, one per line, as in the head comment.
  std::string ToString() const;
};

// Builds a Declaration; the functions of pcg/operators/ read as the definitions they state.
class DeclarationBuilder {
 public:
  explicit DeclarationBuilder(absl::Span<const Shape> operands);

  int Dim(std::string name, DimKind kind, Extent size);
  int Parallel(std::string name, Extent size) {
    return Dim(std::move(name), DimKind::kParallel, size);
  }
  int Spatial(std::string name, Extent size) {
    return Dim(std::move(name), DimKind::kSpatial, size);
  }
  int Sum(std::string name, Extent size) { return Dim(std::move(name), DimKind::kSum, size); }
  int Whole(std::string name, Extent size) { return Dim(std::move(name), DimKind::kWhole, size); }
  // One dim for each of sizes, named `prefix`0, `prefix`1, ...
  std::vector<int> Dims(const std::string& prefix, DimKind kind, absl::Span<const Extent> sizes);

  Expr In(int operand, std::vector<Index> indices, Outside outside = Outside::kNever);
  Expr Inside(int operand, std::vector<Index> indices);

  // Defines an intermediate and returns a load of it at the same indices.
  Expr Let(std::string name, std::vector<int> indices, Reduction reduction,
           std::vector<int> reduced, Expr body);
  void Output(std::vector<Index> indices, Expr body) {
    OutputReduced(std::move(indices), Reduction::kNone, {}, std::move(body));
  }
  void OutputSum(std::vector<Index> indices, std::vector<int> reduced, Expr body) {
    OutputReduced(std::move(indices), Reduction::kSum, std::move(reduced), std::move(body));
  }
  void OutputReduced(std::vector<Index> indices, Reduction reduction, std::vector<int> reduced,
                     Expr body);
  // The last statement is positive.
  void PromisePositive() { declaration_.statements.back().positive = true; }
  // The last statement sums only over the value of `dim` that `operand` holds at `indices`.
  void Select(int dim, int operand, std::vector<Index> indices);

  Declaration Build() { return std::move(declaration_); }

 private:
  int AddAccess(int tensor, std::vector<Index> indices, Outside outside);
  Declaration declaration_;
};

}  // namespace isomer

#endif  // ISOMER_PCG_IR_DECLARATION_H_
