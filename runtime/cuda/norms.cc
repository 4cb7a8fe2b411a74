// Gradients of norms of rows, in two kernels: one with a block for each row of x, and one that sums
// over rows. With x' = x - mean (RMS norm: x), r = 1 / sqrt(mean of x'^2 + epsilon), g = dY G:
//
//   dX = r (g - mean(g) - x' r^2 mean(g x'))        (RMS norm: without mean(g))
//   dG = sum over rows of dY x' r;  dB = sum of dY
//
// The first leaves mean and r of each row for the second. And of softmaxes of rows, by their
// result:
//
//   dX = Y (dY - sum(dY Y))         (of the logarithm: dY - exp(Y) sum(dY))
#include "pcg/schedule/memory/memory.h"
#include "runtime/cuda/made_step.h"

namespace isomer {
namespace {

// What is there, to which an operand's gradient is added; no operand: it is written.
struct Sum {
  DataType dtype;
  GpuPlace place;
  std::optional<int> before;
};

Sum SumInto(const KernelCall& call, int operand, const std::vector<int64_t>& shape,
            MadeStep* step) {
  Sum sum = {call.SumDtype(operand), {GpuPlace::kWrite, operand}, std::nullopt};
  if (call.Adds(operand)) sum.before = step->AddOperand(shape, sum.dtype, sum.place);
  return sum;
}

}  // namespace

GpuSteps StepsOfSoftmaxGradient(const KernelCall& call) {
  const int64_t h = call.operands[0].shape.back(), rows = call.operands[0].Volume() / h;
  const std::vector<int64_t> matrix = {rows, h};
  MadeStep step(call.op);
  step.AddOperand(matrix, call.output_dtypes[0], {GpuPlace::kRead, 1});
  step.AddOperand(matrix, call.output_dtypes[0], {GpuPlace::kRead, 2});
  const Sum dx = SumInto(call, 0, matrix, &step);
  DeclarationBuilder& d = step.Begin();
  const int r = d.Parallel("r", rows), e = d.Whole("h", h);
  const Expr y = d.In(0, {r, e}), g = d.In(1, {r, e});
  const bool is_log = call.op.kind() == OpKind::kLogSoftmax;
  const Expr sum = d.Let("S", {r}, Reduction::kSum, {e}, is_log ? g : g * y);
  Expr result = is_log ? g - Apply(ScalarOp::kExp, y) * sum : y * (g - sum);
  if (dx.before) result = d.In(*dx.before, {r, e}) + result;
  d.Output({r, e}, result);
  step.AddOutput(matrix, dx.dtype, dx.place);
  GpuSteps steps;
  steps.steps.push_back(std::move(step).Build());
  return steps;
}

GpuSteps StepsOfNormGradient(const KernelCall& call) {
  const bool is_layer_norm = call.op.kind() == OpKind::kLayerNorm;
  const int operands = static_cast<int>(call.operands.size());
  const int64_t h = call.operands[0].shape.back(), rows = call.operands[0].Volume() / h;
  const std::vector<int64_t> matrix = {rows, h}, line = {h}, of_rows = {rows, 2};
  const GpuPlace x = {GpuPlace::kRead, 0}, gamma = {GpuPlace::kRead, 1},
                 dy = {GpuPlace::kRead, operands + 1};
  const bool sums_rows = call.wanted[1] || (is_layer_norm && call.wanted[2]);
  GpuSteps steps;
  const GpuPlace found = sums_rows ? steps.AddWorkspace(rows * 2, DataType::kFloat32) : GpuPlace();
  {
    MadeStep step(call.op);
    step.AddOperand(matrix, call.dtypes[0], x);
    step.AddOperand(matrix, call.output_dtypes[0], dy);
    step.AddOperand(line, call.dtypes[1], gamma);
    std::optional<Sum> dx;
    if (call.wanted[0]) dx = SumInto(call, 0, matrix, &step);
    DeclarationBuilder& d = step.Begin();
    const int r = d.Parallel("r", rows), e = d.Whole("h", h);
    const Expr size = static_cast<double>(h);
    Expr centred = d.In(0, {r, e}), mean = 0.0;
    if (is_layer_norm) {
      mean = d.Let("total", {r}, Reduction::kSum, {e}, d.In(0, {r, e})) / size;
      centred = centred - mean;
    }
    const Expr squares = d.Let("squares", {r}, Reduction::kSum, {e}, centred * centred);
    const Expr reciprocal =
        Expr(1.0) / Apply(ScalarOp::kSqrt, squares / size + call.op.Number("epsilon"));
    if (dx) {
      const Expr g = d.In(1, {r, e}) * d.In(2, {e});
      Expr rest = g;
      if (is_layer_norm) rest = rest - d.Let("of_g", {r}, Reduction::kSum, {e}, g) / size;
      const Expr product = d.Let("of_gx", {r}, Reduction::kSum, {e}, g * centred);
      rest = rest - centred * (reciprocal * reciprocal) * (product / size);
      Expr result = rest * reciprocal;
      if (dx->before) result = d.In(*dx->before, {r, e}) + result;
      d.Output({r, e}, result);
      step.AddOutput(matrix, dx->dtype, dx->place);
    }
    if (sums_rows) {
      const int which = d.Whole("c", 2);
      d.Output({r, which}, Where(Coordinate(which) < 0.5, mean, reciprocal));
      step.AddOutput(of_rows, DataType::kFloat32, found);
    }
    steps.steps.push_back(std::move(step).Build());
  }
  if (!sums_rows) return steps;
  MadeStep step(call.op);
  step.AddOperand(matrix, call.dtypes[0], x);
  step.AddOperand(matrix, call.output_dtypes[0], dy);
  step.AddOperand(of_rows, DataType::kFloat32, found);
  std::optional<Sum> dg, db;
  if (call.wanted[1]) dg = SumInto(call, 1, line, &step);
  if (is_layer_norm && call.wanted[2]) db = SumInto(call, 2, line, &step);
  DeclarationBuilder& d = step.Begin();
  const int r = d.Sum("r", rows), e = d.Parallel("h", h);
  const auto at_row = [&](int64_t which) { return d.In(2, {r, Shifted(Index(), Extent(which))}); };
  const auto add = [&](const Sum& sum, const char* name, const Expr& term) {
    if (sum.before) {
      d.Output({e}, d.In(*sum.before, {e}) + d.Let(name, {e}, Reduction::kSum, {r}, term));
    } else {
      d.OutputSum({e}, {r}, term);
    }
    step.AddOutput(line, sum.dtype, sum.place);
  };
  const Expr gradient = d.In(1, {r, e});
  if (dg) {
    Expr centred = d.In(0, {r, e});
    if (is_layer_norm) centred = centred - at_row(0);
    add(*dg, "dG", gradient * centred * at_row(1));
  }
  if (db) add(*db, "dB", gradient);
  steps.steps.push_back(std::move(step).Build());
  return steps;
}

}  // namespace isomer
