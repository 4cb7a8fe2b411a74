// Elementwise operators.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pcg/ir/finite_cast.h"
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"

namespace isomer {

namespace {

Expr BinaryBody(const Operator& op, const Expr& a, const Expr& b) {
  switch (op.kind()) {
    case OpKind::kSub:
      return a - b;
    case OpKind::kMul:
      return a * b;
    case OpKind::kDiv:
      return a / b;
    case OpKind::kMaximum:
      return Max(a, b);
    case OpKind::kMinimum:
      return Max(a * -1.0, b * -1.0) * -1.0;
    case OpKind::kPow:
      return Apply(ScalarOp::kPow, a, b);
    case OpKind::kEqual:
      return Equal(a, b);
    case OpKind::kLess:
      return a < b;
    case OpKind::kLessEqual:  // At most one holds; neither where one is not a number.
      return (a < b) + Equal(a, b);
    default:
      return a + b;
  }
}

// The iteration dims of a call whose operands are broadcast as in NumPy, and how each operand is
// indexed by them: dims align from the right, and a dim that an operand lacks or has with size 1
// does not index it.
struct Broadcast {
  std::vector<std::vector<Index>> in;
  std::vector<Index> out;
};

absl::StatusOr<Broadcast> BroadcastDims(const Operator& op, absl::Span<const Shape> shapes,
                                        DeclarationBuilder* d) {
  size_t rank = 0;
  for (const Shape& shape : shapes) rank = std::max(rank, shape.size());
  Broadcast broadcast;
  broadcast.in.resize(shapes.size());
  for (size_t i = 0; i < rank; ++i) {
    const std::string name = absl::StrCat("i", i);
    // The size of operand o there; what it lacks has size 1.
    auto size = [&](size_t o) {
      const size_t missing = rank - shapes[o].size();
      return i < missing ? Extent(1) : shapes[o][i - missing];
    };
    size_t widest = 0;
    while (widest + 1 < shapes.size() && size(widest) == Extent(1)) ++widest;
    const Extent full = size(widest);
    const int dim = d->Parallel(name, full);
    for (size_t o = 0; o < shapes.size(); ++o) {
      if (size(o) != full && size(o) != Extent(1)) {
        return Mismatch(op, name, static_cast<int>(widest), full, static_cast<int>(o), size(o));
      }
      if (i + shapes[o].size() >= rank) {
        broadcast.in[o].push_back(size(o) == full ? Index(dim) : Index());
      }
    }
    broadcast.out.push_back(dim);
  }
  return broadcast;
}

}  // namespace

// Y[i..] = A[i..] op B[i..]
absl::StatusOr<Declaration> DeclareBinary(const Operator& op, absl::Span<const Shape> shapes) {
  DeclarationBuilder d(shapes);
  ISOMER_ASSIGN_OR_RETURN(const Broadcast index, BroadcastDims(op, shapes, &d));
  d.Output(index.out, BinaryBody(op, d.In(0, index.in[0]), d.In(1, index.in[1])));
  return d.Build();
}

constexpr OperatorTraits kAddTraits = {.op_class = OperatorClass::kBinary,
                                       .takes = OperandTypes::kNumbers,
                                       .is_commutative = true,
                                       .examples = {{"Add", "add f32[4,6] f32[4,6]"},
                                                    {"AddInts", "add i64[4,6] i64[4,6]"},
                                                    {"AddBroadcast", "add f32[2,4,6] f32[6]"}}};
constexpr OperatorTraits kSubTraits = {
    .op_class = OperatorClass::kBinary,
    .takes = OperandTypes::kNumbers,
    .examples = {{"Sub", "sub f32[4,6] f32[4,6]"}, {"SubBroadcast", "sub f32[4,1] f32[2,4,6]"}}};
constexpr OperatorTraits kMulTraits = {
    .op_class = OperatorClass::kBinary,
    .takes = OperandTypes::kNumbers,
    .is_commutative = true,
    .examples = {{"Mul", "mul f32[4,6] f32[1,6]"}, {"MulInts", "mul i32[4,6] i32[6]"}}};
constexpr OperatorTraits kDivTraits = {.op_class = OperatorClass::kBinary,
                                       .takes = OperandTypes::kNumbers,
                                       .takes_positive_numbers = true,
                                       .rounding = IntegerRounding::kAlways,
                                       .examples = {{"Div", "div f32[4,6] f32[4,6]"}}};
constexpr OperatorTraits kMaximumTraits = {
    .op_class = OperatorClass::kBinary,
    .takes = OperandTypes::kAnything,  // of bools: or
    .is_commutative = true,
    .examples = {{"Maximum", "maximum f32[4,6] f32[4,6]"},
                 {"MaximumBool", "maximum bool[4,6] bool[4,6]"}}};
constexpr OperatorTraits kMinimumTraits = {
    .op_class = OperatorClass::kBinary,
    .takes = OperandTypes::kAnything,  // of bools: and
    .is_commutative = true,
    .examples = {{"Minimum", "minimum f32[4,6] f32[4,6]"},
                 {"MinimumBool", "minimum bool[4,6] bool[6]"}}};
constexpr OperatorTraits kPowTraits = {.op_class = OperatorClass::kBinary,
                                       .takes = OperandTypes::kNumbers,
                                       .takes_positive_numbers = true,
                                       .rounding = IntegerRounding::kAlways,  // to a negative power
                                       .examples = {{"Pow", "pow f32[4,6] f32[4,1]"}}};
constexpr OperatorTraits kEqualTraits = {
    .op_class = OperatorClass::kBinary,
    .takes = OperandTypes::kAnything,
    .result = ResultType::kBool,
    .is_commutative = true,
    .examples = {{"Equal", "equal f32[4,6] f32[4,6]"}, {"EqualInts", "equal i64[4,6] i64[6]"}}};
constexpr OperatorTraits kLessTraits = {.op_class = OperatorClass::kBinary,
                                        .takes = OperandTypes::kNumbers,
                                        .result = ResultType::kBool,
                                        .examples = {{"Less", "less f32[4,6] f32[1,6]"}}};
constexpr OperatorTraits kLessEqualTraits = {
    .op_class = OperatorClass::kBinary,
    .takes = OperandTypes::kNumbers,
    .result = ResultType::kBool,
    .examples = {{"LessEqual", "less_equal f32[4,6] f32[4,6]"}}};

// Y[i..] = C[i..] ? A[i..] : B[i..]
absl::StatusOr<Declaration> DeclareWhere(const Operator& op, absl::Span<const Shape> shapes) {
  DeclarationBuilder d(shapes);
  ISOMER_ASSIGN_OR_RETURN(const Broadcast index, BroadcastDims(op, shapes, &d));
  d.Output(index.out, Where(d.In(0, index.in[0]), d.In(1, index.in[1]), d.In(2, index.in[2])));
  return d.Build();
}

constexpr OperatorTraits kWhereTraits = {
    .takes = OperandTypes::kAnything,
    .condition_operand = 0,
    .examples = {{"Where", "where bool[4,6] f32[4,6] f32[4,6]"},
                 {"WhereBroadcast", "where bool[4,1] f32[2,4,6] f32[6]"},
                 {"WhereInts", "where bool[4,6] i64[4,6] i64[6]"}}};

namespace {

// By tanh, which does not overflow.
Expr Sigmoid(const Expr& x) { return (Apply(ScalarOp::kTanh, x * 0.5) + 1.0) * 0.5; }

Expr Sqrt(const Expr& x) { return Apply(ScalarOp::kSqrt, x); }
Expr Abs(const Expr& x) { return Max(x, -x); }

// max(x, 0) + log(1 + exp(-|x|)), which does not overflow.
Expr Softplus(const Expr& x) {
  return Max(x, 0.0) + Apply(ScalarOp::kLog, Expr(1.0) + Apply(ScalarOp::kExp, -Abs(x)));
}

Expr Clip(const Expr& x, double low, double high) {
  return Where(x < low, low, Where(Expr(high) < x, high, x));
}

// Of an infinite one the difference to itself is not a number.
Expr FiniteNumber(const Expr& x, DataType low) {
  const double most = LargestNumber(low);
  return Where(Equal(x - x, 0.0), Clip(x, -most, most), x);
}

}  // namespace

Expr UnaryBody(const Operator& op, const Expr& x) {
  switch (op.kind()) {
    case OpKind::kScale:
      return x * op.Number("factor");
    case OpKind::kRelu:
      return Max(x, 0.0);
    case OpKind::kGelu:  // The exact form, with erf.
      return x * 0.5 * (Expr(1.0) + Apply(ScalarOp::kErf, x / Sqrt(2.0)));
    case OpKind::kGeluTanh: {  // With slope sqrt(2/pi) and cubic 0.044715, close to Gelu.
      const Expr inner = (x + x * x * x * op.Number("cubic")) * op.Number("slope");
      return x * 0.5 * (Expr(1.0) + Apply(ScalarOp::kTanh, inner));
    }
    case OpKind::kTanh:
      return Apply(ScalarOp::kTanh, x);
    case OpKind::kSigmoid:
      return Sigmoid(x);
    case OpKind::kSwish:
      return x * Sigmoid(x);
    case OpKind::kHardSwish:  // x * HardSigmoid(x) with alpha = 1/6, beta = 1/2
      return x * Clip(x / 6.0 + 0.5, 0, 1);
    case OpKind::kHardSigmoid:
      return Clip(x * op.Number("alpha") + op.Number("beta"), 0, 1);
    case OpKind::kLeakyRelu:
      return Where(x < 0.0, x * op.Number("alpha"), x);
    case OpKind::kElu:
      return Where(x < 0.0, (Apply(ScalarOp::kExp, x) - 1.0) * op.Number("alpha"), x);
    case OpKind::kSoftplus:
      return Softplus(x);
    case OpKind::kClip:
      return Clip(x, op.Number("min"), op.Number("max"));
    case OpKind::kLog:
      return Apply(ScalarOp::kLog, x);
    case OpKind::kSqrt:
      return Sqrt(x);
    case OpKind::kReciprocal:
      return Expr(1.0) / x;
    case OpKind::kErf:
      return Apply(ScalarOp::kErf, x);
    case OpKind::kSin:
      return Apply(ScalarOp::kSin, x);
    case OpKind::kCos:
      return Apply(ScalarOp::kCos, x);
    case OpKind::kAtan:
      return Apply(ScalarOp::kAtan, x);
    case OpKind::kAbs:
      return Abs(x);
    case OpKind::kSign:
      return (Expr(0.0) < x) - (x < 0.0);
    case OpKind::kFloor:
      return Apply(ScalarOp::kFloor, x);
    case OpKind::kCeil:
      return -Apply(ScalarOp::kFloor, -x);
    case OpKind::kRound:
      return Apply(ScalarOp::kRound, x);
    case OpKind::kNot:
      return Equal(x, 0.0);
    case OpKind::kCast:  // The value; the type it is stored in rounds it.
      return IsFiniteCast(op) ? FiniteNumber(x, static_cast<DataType>(op.Int("to"))) : x;
    default:
      return Apply(ScalarOp::kExp, x);
  }
}

// Y[i..] = f(X[i..])
absl::StatusOr<Declaration> DeclareUnary(const Operator& op, absl::Span<const Shape> shapes) {
  DeclarationBuilder d(shapes);
  const std::vector<int> i = d.Dims("i", DimKind::kParallel, shapes[0]);
  const std::vector<Index> index(i.begin(), i.end());
  d.Output(index, UnaryBody(op, d.In(0, index)));
  return d.Build();
}

constexpr OperatorTraits kScaleTraits = {.op_class = OperatorClass::kUnary,
                                         .takes = OperandTypes::kNumbers,
                                         .rounding = IntegerRounding::kByNumbers,
                                         .examples = {{"Scale", "scale(factor=0.3) f32[4,6]"}}};
constexpr OperatorTraits kReluTraits = {.op_class = OperatorClass::kUnary,
                                        .takes = OperandTypes::kNumbers,
                                        .gradient_reads_result = true,
                                        .examples = {{"Relu", "relu f32[4,6]"}}};
constexpr OperatorTraits kGeluTraits = {.op_class = OperatorClass::kUnary,
                                        .examples = {{"Gelu", "gelu f32[4,6]"}}};
constexpr OperatorTraits kGeluTanhTraits = {
    .op_class = OperatorClass::kUnary,
    .examples = {{"GeluTanh", "gelu_tanh(slope=0.796875,cubic=0.044715) f32[4,6]"}}};
constexpr OperatorTraits kTanhTraits = {.op_class = OperatorClass::kUnary,
                                        .gradient_reads_result = true,
                                        .examples = {{"Tanh", "tanh f32[4,6]"}}};
constexpr OperatorTraits kSigmoidTraits = {.op_class = OperatorClass::kUnary,
                                           .gradient_reads_result = true,
                                           .examples = {{"Sigmoid", "sigmoid f32[4,6]"}}};
constexpr OperatorTraits kExpTraits = {.op_class = OperatorClass::kUnary,
                                       .gradient_reads_result = true,
                                       .examples = {{"Exp", "exp f32[4,6]"}}};
constexpr OperatorTraits kSwishTraits = {.op_class = OperatorClass::kUnary,
                                         .examples = {{"Swish", "swish f32[4,6]"}}};
constexpr OperatorTraits kHardSwishTraits = {.op_class = OperatorClass::kUnary,
                                             .examples = {{"HardSwish", "hard_swish f32[4,6]"}}};
constexpr OperatorTraits kHardSigmoidTraits = {
    .op_class = OperatorClass::kUnary,
    .examples = {{"HardSigmoid", "hard_sigmoid(alpha=0.75,beta=0.5) f32[4,6]"}}};
constexpr OperatorTraits kLeakyReluTraits = {
    .op_class = OperatorClass::kUnary,
    .examples = {{"LeakyRelu", "leaky_relu(alpha=0.125) f32[4,6]"}}};
constexpr OperatorTraits kEluTraits = {.op_class = OperatorClass::kUnary,
                                       .examples = {{"Elu", "elu(alpha=1.5) f32[4,6]"}}};
constexpr OperatorTraits kSoftplusTraits = {.op_class = OperatorClass::kUnary,
                                            .examples = {{"Softplus", "softplus f32[4,6]"}}};
constexpr OperatorTraits kClipTraits = {.op_class = OperatorClass::kUnary,
                                        .takes = OperandTypes::kNumbers,
                                        .rounding = IntegerRounding::kByNumbers,
                                        .examples = {{"Clip", "clip(min=-0.5,max=1.25) f32[4,6]"},
                                                     {"ClipInts", "clip(min=2,max=3) i64[4,6]"}}};
constexpr OperatorTraits kLogTraits = {.op_class = OperatorClass::kUnary,
                                       .takes_positive_numbers = true,
                                       .examples = {{"Log", "log f32[4,6]"}}};
constexpr OperatorTraits kSqrtTraits = {.op_class = OperatorClass::kUnary,
                                        .takes_positive_numbers = true,
                                        .examples = {{"Sqrt", "sqrt f32[4,6]"}}};
constexpr OperatorTraits kReciprocalTraits = {.op_class = OperatorClass::kUnary,
                                              .takes_positive_numbers = true,
                                              .examples = {{"Reciprocal", "reciprocal f32[4,6]"}}};
constexpr OperatorTraits kErfTraits = {.op_class = OperatorClass::kUnary,
                                       .examples = {{"Erf", "erf f32[4,6]"}}};
constexpr OperatorTraits kSinTraits = {.op_class = OperatorClass::kUnary,
                                       .examples = {{"Sin", "sin f32[4,6]"}}};
constexpr OperatorTraits kCosTraits = {.op_class = OperatorClass::kUnary,
                                       .examples = {{"Cos", "cos f32[4,6]"}}};
constexpr OperatorTraits kAtanTraits = {.op_class = OperatorClass::kUnary,
                                        .examples = {{"Atan", "atan f32[4,6]"}}};
constexpr OperatorTraits kAbsTraits = {.op_class = OperatorClass::kUnary,
                                       .takes = OperandTypes::kNumbers,
                                       .examples = {{"Abs", "abs f32[4,6]"}}};
constexpr OperatorTraits kSignTraits = {.op_class = OperatorClass::kUnary,
                                        .takes = OperandTypes::kNumbers,
                                        .examples = {{"Sign", "sign f32[4,6]"}}};
constexpr OperatorTraits kFloorTraits = {.op_class = OperatorClass::kUnary,
                                         .takes = OperandTypes::kNumbers,
                                         .examples = {{"Floor", "floor f32[4,6]"}}};
constexpr OperatorTraits kCeilTraits = {.op_class = OperatorClass::kUnary,
                                        .takes = OperandTypes::kNumbers,
                                        .examples = {{"Ceil", "ceil f32[4,6]"}}};
constexpr OperatorTraits kRoundTraits = {.op_class = OperatorClass::kUnary,
                                         .takes = OperandTypes::kNumbers,
                                         .examples = {{"Round", "round f32[4,6]"}}};
constexpr OperatorTraits kNotTraits = {.op_class = OperatorClass::kUnary,
                                       .takes = OperandTypes::kAnything,
                                       .result = ResultType::kBool,
                                       .examples = {{"Not", "not bool[4,6]"}}};
constexpr OperatorTraits kCastTraits = {.op_class = OperatorClass::kUnary,
                                        .takes = OperandTypes::kAnything,
                                        .result = ResultType::kOfAttribute,
                                        .rounding = IntegerRounding::kByTypes,
                                        .examples = {{"Cast", "cast(to=0) f32[4,6]"},
                                                     {"CastToInt64", "cast(to=1) i32[4,6]"},
                                                     {"CastToFloat32", "cast(to=0) i64[4,6]"},
                                                     {"CastToBool", "cast(to=5) i64[4,6]"}}};

}  // namespace isomer
