#include "runtime/cuda/products.h"

#include <utility>

#include "pcg/ir/operator_facts.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/support/check.h"
#include "runtime/cuda/made_step.h"
#include "runtime/device/matmul_batches.h"

namespace isomer {
namespace {

GpuPlace Read(int index, int64_t bytes = 0) { return {GpuPlace::kRead, index, bytes}; }
GpuPlace Write(int index, int64_t bytes = 0) { return {GpuPlace::kWrite, index, bytes}; }

GpuSteps StepsOfMatMul(const KernelCall& call) {
  const MatMulBatches s = BatchesOf(call);
  const DataType dtype = call.dtypes[0];
  const int64_t size = BytesPerElement(dtype);
  GpuSteps steps;
  if (!call.gradient) {
    for (const MatMulBatches::Run& run : s.runs) {
      steps.steps.push_back(ProductStep{{.m = s.m,
                                         .n = s.n,
                                         .k = s.k,
                                         .operand_dtype = dtype,
                                         .dtype = dtype,
                                         .batch = run.count,
                                         .a_stride = run.a_stride,
                                         .b_stride = run.b_stride,
                                         .d_stride = run.c_stride},
                                        Read(0, run.a * size),
                                        Read(1, run.b * size),
                                        Write(0, run.c * size)});
    }
    return steps;
  }
  constexpr int kSeed = 3;
  // dA = dC B^T and dB = A^T dC.
  for (const int operand : {0, 1}) {
    if (!call.wanted[operand]) continue;
    if (operand == 0 ? s.shares_a : s.shares_b) {
      steps.steps.push_back(GeneratedGradient(call, operand));
      continue;
    }
    const DataType of_sum = call.SumDtype(operand);
    const int64_t sum_size = BytesPerElement(of_sum);
    for (const MatMulBatches::Run& run : s.runs) {
      Product product = {
          .operand_dtype = dtype, .dtype = of_sum, .adds = call.Adds(operand), .batch = run.count};
      if (operand == 0) {
        product.m = s.m, product.n = s.k, product.k = s.n;
        product.transposes_b = true;
        product.a_stride = run.c_stride, product.b_stride = run.b_stride;
        product.d_stride = run.a_stride;
        steps.steps.push_back(ProductStep{product, Read(kSeed, run.c * size), Read(1, run.b * size),
                                          Write(0, run.a * sum_size)});
      } else {
        product.m = s.k, product.n = s.n, product.k = s.m;
        product.transposes_a = true;
        product.a_stride = run.a_stride, product.b_stride = run.c_stride;
        product.d_stride = run.b_stride;
        steps.steps.push_back(ProductStep{product, Read(0, run.a * size), Read(kSeed, run.c * size),
                                          Write(1, run.b * sum_size)});
      }
    }
  }
  return steps;
}

// The activation of a Linear, on all of its result.
KernelCall ActivationOf(const KernelCall& call, bool gradient) {
  const Operator op(kActivationsOfLinear[call.op.Int("activation") - 1]);
  const std::vector<TensorType> types = {
      SequentialType({call.outputs[0].Volume()}, call.output_dtypes[0])};
  const auto sharding = InferSharding(op, types);
  ISOMER_CHECK(sharding.ok());
  return MakeKernelCall(op, *sharding, types, 0, gradient,
                        gradient ? std::vector<bool>{true} : std::vector<bool>());
}

// The sums of the columns of [rows, columns], whose lines lie `line` elements apart.
GeneratedStep SumOfColumns(const Operator& op, int64_t rows, int64_t columns, int64_t line,
                           DataType dtype, GpuPlace matrix, DataType of_sums, GpuPlace sums,
                           bool adds) {
  MadeStep made(op);
  made.AddOperand({(rows - 1) * line + columns}, dtype, matrix);
  if (adds) made.AddOperand({columns}, of_sums, sums);
  DeclarationBuilder& d = made.Begin();
  const int j = d.Parallel("j", columns), i = d.Sum("i", rows);
  const Expr element = d.In(0, {Index(i) * line + Index(j)});
  if (adds) {
    d.Output({j}, d.Let("S", {j}, Reduction::kSum, {i}, element) + d.In(1, {j}));
  } else {
    d.OutputSum({j}, {i}, element);
  }
  made.AddOutput({columns}, of_sums, sums);
  return std::move(made).Build();
}

GpuSteps StepsOfLinear(const KernelCall& call) {
  const int64_t n = call.operands[1].shape[1], k = call.operands[1].shape[0];
  const int64_t m = call.outputs[0].Volume() / n;
  const bool has_bias = call.operands.size() == 3, activates = call.op.Int("activation") != 0;
  const DataType dtype = call.dtypes[0];
  GpuSteps steps;
  if (!call.gradient) {
    // What is in front of the activation is saved, or becomes the result in its place.
    const GpuPlace z = Write(call.saved.has_value() && activates ? 1 : 0);
    steps.steps.push_back(ProductStep{
        {.m = m, .n = n, .k = k, .operand_dtype = dtype, .dtype = dtype, .has_bias = has_bias},
        Read(0),
        Read(1),
        z,
        has_bias ? Read(2) : GpuPlace()});
    if (activates) {
      steps.steps.push_back(GeneratedStep{ActivationOf(call, false), {z}, {Write(0)}});
    }
    return steps;
  }
  const int result = static_cast<int>(call.operands.size()), seed = result + 1, saved = seed + 1;
  GpuPlace dz = Read(seed);
  if (activates) {
    dz = steps.AddWorkspace(m * n, dtype);
    const GpuPlace z = call.saved.has_value() ? Read(saved) : GpuPlace();
    steps.steps.push_back(
        GeneratedStep{ActivationOf(call, true), {z, Read(result), Read(seed)}, {dz}});
  }
  // dx = dz w^T;  dw = x^T dz;  db = the sum of the rows of dz
  if (call.wanted[0]) {
    steps.steps.push_back(ProductStep{{.m = m,
                                       .n = k,
                                       .k = n,
                                       .transposes_b = true,
                                       .operand_dtype = dtype,
                                       .dtype = call.SumDtype(0),
                                       .adds = call.Adds(0)},
                                      dz,
                                      Read(1),
                                      Write(0)});
  }
  const bool wants_bias = has_bias && call.wanted[2];
  // A product does not add to sums that are there.
  const bool sums_bias =
      wants_bias && call.wanted[1] && !call.Adds(2) && call.SumDtype(1) == call.SumDtype(2);
  if (call.wanted[1]) {
    steps.steps.push_back(ProductStep{{.m = k,
                                       .n = n,
                                       .k = m,
                                       .transposes_a = true,
                                       .operand_dtype = dtype,
                                       .dtype = call.SumDtype(1),
                                       .sums_b = sums_bias,
                                       .adds = call.Adds(1)},
                                      Read(0),
                                      dz,
                                      Write(1),
                                      sums_bias ? Write(2) : GpuPlace()});
  }
  if (wants_bias && !sums_bias) {
    steps.steps.push_back(
        SumOfColumns(call.op, m, n, n, dtype, dz, call.SumDtype(2), Write(2), call.Adds(2)));
  }
  return steps;
}

}  // namespace

GpuPlace GpuSteps::AddWorkspace(int64_t elements, DataType dtype) {
  const GpuPlace place = {GpuPlace::kWorkspace, 0, workspace_bytes};
  workspace_bytes += Aligned(elements * BytesPerElement(dtype));
  return place;
}

GeneratedStep GeneratedGradient(KernelCall call, int operand) {
  GeneratedStep step;
  const size_t reads = call.operands.size() + 2 * call.outputs.size() + (call.saved ? 1 : 0);
  for (size_t i = 0; i < reads; ++i) step.reads.push_back(Read(static_cast<int>(i)));
  for (size_t o = 0; o < call.operands.size(); ++o) {
    const bool is_it = static_cast<int>(o) == operand;
    call.wanted[o] = is_it;
    step.writes.push_back(is_it ? Write(operand) : GpuPlace());
  }
  step.call = std::move(call);
  return step;
}

namespace {

// Operands are lines of elements, whose matrices and batches are in the indices.
GeneratedStep GeneratedProduct(const Operator& op, const ProductStep& step) {
  const Product& p = step.product;
  const auto line_of = [](int64_t line, int64_t dense) { return line == 0 ? dense : line; };
  const int64_t a_line = line_of(p.a_line, p.transposes_a ? p.m : p.k),
                b_line = line_of(p.b_line, p.transposes_b ? p.k : p.n),
                d_line = line_of(p.d_line, p.n);
  const auto extent = [&p](int64_t lines, int64_t line, int64_t size, int64_t stride) {
    return std::vector<int64_t>{(p.batch - 1) * stride + (lines - 1) * line + size};
  };
  const std::vector<int64_t> of_d = extent(p.m, d_line, p.n, p.d_stride);
  MadeStep made(op);
  made.AddOperand(
      p.transposes_a ? extent(p.k, a_line, p.m, p.a_stride) : extent(p.m, a_line, p.k, p.a_stride),
      p.operand_dtype, step.a);
  made.AddOperand(
      p.transposes_b ? extent(p.n, b_line, p.k, p.b_stride) : extent(p.k, b_line, p.n, p.b_stride),
      p.operand_dtype, step.b);
  const int bias = p.has_bias ? made.AddOperand({p.n}, p.dtype, step.bias) : -1;
  const int before = p.adds ? made.AddOperand(of_d, p.dtype, step.d) : -1;
  DeclarationBuilder& d = made.Begin();
  const int batch = d.Parallel("batch", p.batch), i = d.Parallel("i", p.m),
            j = d.Parallel("j", p.n), k = d.Sum("k", p.k);
  const auto at = [&](int row, int column, int64_t line, int64_t stride, bool transposed) {
    const int lines = transposed ? column : row, elements = transposed ? row : column;
    return Index(batch) * stride + Index(lines) * line + Index(elements);
  };
  const Expr product = d.In(0, {at(i, k, a_line, p.a_stride, p.transposes_a)}) *
                       d.In(1, {at(k, j, b_line, p.b_stride, p.transposes_b)});
  const Index place = at(i, j, d_line, p.d_stride, false);
  if (bias < 0 && before < 0) {
    d.OutputSum({place}, {k}, product);
  } else {
    Expr sum = d.Let("S", {batch, i, j}, Reduction::kSum, {k}, product);
    if (bias >= 0) sum = sum + d.In(bias, {j});
    if (before >= 0) sum = sum + d.In(before, {place});
    d.Output({place}, sum);
  }
  made.AddOutput(of_d, p.dtype, step.d);
  return std::move(made).Build();
}

}  // namespace

std::vector<GpuStep> WithoutLibrary(const Operator& op, const ProductStep& step) {
  if (!step.product.sums_b) return {GeneratedProduct(op, step)};
  ProductStep product = step;
  product.product.sums_b = false;
  product.bias = {};
  const Product& p = step.product;
  return {product, SumOfColumns(op, p.k, p.n, p.b_line == 0 ? p.n : p.b_line, p.operand_dtype,
                                step.b, p.dtype, step.bias, /*adds=*/false)};
}

namespace {

// Along the last dim.
bool IsSoftmaxOfRows(const KernelCall& call) {
  if (call.op.kind() != OpKind::kSoftmax && call.op.kind() != OpKind::kLogSoftmax) return false;
  const int64_t axis = call.op.Int("axis");
  return axis == -1 || axis + 1 == static_cast<int64_t>(call.operands[0].shape.size());
}

}  // namespace

std::optional<GpuSteps> StepsOfProducts(const KernelCall& call, const GpuStepOptions& options) {
  const OpKind kind = call.op.kind();
  const bool is_attention = IsAttention(kind), is_convolution = IsConvolution(kind);
  const bool is_norm_gradient =
      call.gradient && (kind == OpKind::kLayerNorm || kind == OpKind::kRmsNorm);
  const bool is_softmax_gradient = call.gradient && IsSoftmaxOfRows(call);
  if (kind != OpKind::kMatMul && kind != OpKind::kLinear && !is_attention && !is_convolution &&
      !is_norm_gradient && !is_softmax_gradient) {
    return std::nullopt;
  }
  if ((!call.layouts.AreRowMajor() && !is_convolution) || call.outputs[0].empty()) {
    return std::nullopt;
  }
  for (size_t o = 0; o < call.dtypes.size(); ++o) {
    const bool may_be_of_another = (is_attention && o == 3) || is_norm_gradient;
    if (!IsFloat(call.dtypes[o]) || (call.dtypes[o] != call.dtypes[0] && !may_be_of_another)) {
      return std::nullopt;
    }
  }
  if (call.output_dtypes[0] != call.dtypes[0]) return std::nullopt;
  for (const Box& operand : call.operands) {
    if (operand.empty()) return std::nullopt;
  }
  if (call.op.kind() == OpKind::kLinear) return StepsOfLinear(call);
  if (is_norm_gradient) return StepsOfNormGradient(call);
  if (is_softmax_gradient) return StepsOfSoftmaxGradient(call);
  if (is_attention) return StepsOfAttention(call, options);
  if (is_convolution) {
    if (!IsConvolutionOfProducts(call)) return std::nullopt;
    return StepsOfConvolution(call, options.most_part_bytes);
  }
  if (call.operands[0].shape.size() < 2 || call.operands[1].shape.size() < 2) return std::nullopt;
  return StepsOfMatMul(call);
}

}  // namespace isomer
