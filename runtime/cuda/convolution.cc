// Convolutions as products, for as many samples at a time as their windows have room:
//
//   C[g, (c r q), n, (y x)] = X[n, g c, y*stride + r*dilation - padding, ..]      generated
//   Y_n,g = W_g C_n,g                     a product for each group, or for each sample
//
// (Chellapilla, Puri, Simard, "High performance convolutional neural networks for document
// processing", 2006), and their gradients:
//
//   dC_n,g = W_g^T dY_n,g, of which dX is what C's gradient is                    generated
//   dW_g = dY_g C_g^T, with dY_g as [o, n, (y x)], over all samples at one time
//
// Windows of one element need no C but for dW. Where results have their channels innermost, all of
// this is transposed, and dY is read as it lies; then windows of one element need no C at all.
#include <algorithm>
#include <utility>

#include "pcg/ir/declaration.h"
#include "pcg/schedule/memory/memory.h"
#include "runtime/cuda/made_step.h"
#include "runtime/cuda/products.h"

namespace isomer {
namespace {

struct ConvolutionSizes {
  int64_t samples, groups, in, out;            // channels of a group
  int64_t kernel = 1, image = 1, windows = 1;  // elements of each
  int64_t depth() const { return in * kernel; }
  // Of a sample: of the image, of the result, of columns.
  int64_t of_x() const { return groups * in * image; }
  int64_t of_y() const { return groups * out * windows; }
  int64_t of_columns() const { return groups * depth() * windows; }
  // So many as have room with their columns; dC is float32.
  int64_t SamplesAtOnce(const KernelCall& call, int64_t most_part_bytes) const {
    const DataType widest = call.gradient ? DataType::kFloat32 : call.dtypes[0];
    return std::clamp<int64_t>(most_part_bytes / (of_columns() * BytesPerElement(widest)), 1,
                               samples);
  }
  size_t rank = 0;
  std::vector<int64_t> stride, dilation, first;  // first element of the first window, in the box

  explicit ConvolutionSizes(const KernelCall& call) {
    const Box &x = call.operands[0], &w = call.operands[1], &y = call.outputs[0];
    samples = x.shape[0];
    in = w.shape[1];
    groups = x.shape[1] / in;
    out = w.shape[0] / groups;
    rank = x.shape.size() - 2;
    stride = call.op.Ints("stride");
    dilation = call.op.Ints("dilation");
    for (size_t i = 0; i < rank; ++i) {
      kernel *= w.shape[2 + i];
      image *= x.shape[2 + i];
      windows *= y.shape[2 + i];
      first.push_back(y.origin[2 + i] * stride[i] - call.op.Ints("padding")[i] - x.origin[2 + i]);
    }
  }
  // Each window is an element of the image, in their order.
  bool WindowsAreImage(const KernelCall& call) const {
    for (size_t i = 0; i < rank; ++i) {
      if (stride[i] != 1 || first[i] != 0) return false;
      if (call.operands[0].shape[2 + i] != call.outputs[0].shape[2 + i]) return false;
    }
    return kernel == 1;
  }
};

// C of so many samples; where results have their channels innermost, with those of a window:
// [g, n, (y x), (c r q)].
GeneratedStep Columns(const KernelCall& call, const ConvolutionSizes& c, int64_t samples,
                      GpuPlace of_x, GpuPlace to) {
  const bool channels_last = call.layouts.OfOutput(0) == Layout::kChannelsLast;
  std::vector<int64_t> x = call.operands[0].shape;
  x[0] = samples;
  MadeStep step(call.op);
  step.AddOperand(x, call.dtypes[0], of_x, call.layouts.OfOperand(0));
  DeclarationBuilder& d = step.Begin();
  const int n = d.Parallel("n", samples), g = d.Parallel("g", c.groups),
            channel = d.Whole("c", c.in);
  std::vector<Index> in = {n, Index(g) * c.in + Index(channel)}, of_depth = {channel},
                     of_windows = {n};
  std::vector<int64_t> depth_sizes = {c.in}, window_sizes = {samples};
  for (size_t i = 0; i < c.rank; ++i) {
    depth_sizes.push_back(call.operands[1].shape[2 + i]);
    window_sizes.push_back(call.outputs[0].shape[2 + i]);
    const int r = d.Whole("r", depth_sizes.back()), y = d.Parallel("y", window_sizes.back());
    of_depth.push_back(r);
    of_windows.push_back(y);
    in.push_back(Shifted(Index(y) * c.stride[i] + Index(r) * c.dilation[i], Extent(c.first[i])));
  }
  std::vector<Index> out = {g};
  std::vector<int64_t> columns = {c.groups};
  const auto append = [&](const std::vector<Index>& indices, const std::vector<int64_t>& sizes) {
    out.insert(out.end(), indices.begin(), indices.end());
    columns.insert(columns.end(), sizes.begin(), sizes.end());
  };
  if (channels_last) append(of_windows, window_sizes);
  append(of_depth, depth_sizes);
  if (!channels_last) append(of_windows, window_sizes);
  d.Output(out, d.In(0, in, Outside::kZero));
  step.AddOutput(columns, call.dtypes[0], to);
  return std::move(step).Build();
}

// dX of dC, in float32.
GeneratedStep OfColumns(const KernelCall& call, const ConvolutionSizes& c, int64_t samples,
                        GpuPlace columns, KernelCall::Sum sum, GpuPlace to) {
  GeneratedStep step = Columns(call, c, samples, GpuPlace(), GpuPlace());
  step.call.gradient = true;
  step.call.wanted = {true};
  step.call.output_dtypes = {DataType::kFloat32};
  step.call.sums = {sum};
  step.reads = {GpuPlace(), GpuPlace(), columns};
  step.writes = {to};
  return step;
}

// dY of so many samples, group by group and channel by channel.
GeneratedStep ByChannels(const KernelCall& call, const ConvolutionSizes& c, int64_t samples,
                         GpuPlace of_y, GpuPlace to) {
  MadeStep step(call.op);
  step.AddOperand({samples, c.groups * c.out, c.windows}, call.dtypes[0], of_y);
  DeclarationBuilder& d = step.Begin();
  const int g = d.Parallel("g", c.groups), o = d.Parallel("o", c.out), n = d.Parallel("n", samples),
            p = d.Parallel("p", c.windows);
  d.Output({g, o, n, p}, d.In(0, {n, Index(g) * c.out + Index(o), p}));
  step.AddOutput({c.groups, c.out, samples, c.windows}, call.dtypes[0], to);
  return std::move(step).Build();
}

// For each sample and each group a product with the group's matrix of weights; `of`: of the first
// of both. Of what lies by samples (channels of all groups a sample), and of columns.
struct Strides {
  int64_t sample, group;
};
void AddProducts(const ConvolutionSizes& c, int64_t samples, const ProductStep& of,
                 const Strides& b, const Strides& d, std::vector<GpuStep>* steps) {
  const Strides a = {0, c.out * c.depth()};
  const bool by_group = c.groups <= samples;  // batches of samples
  const int64_t count = by_group ? c.groups : samples;
  const auto outer = [&](const Strides& s) { return by_group ? s.group : s.sample; };
  const auto inner = [&](const Strides& s) { return by_group ? s.sample : s.group; };
  for (int64_t i = 0; i < count; ++i) {
    ProductStep step = of;
    step.a = Behind(step.a, i * outer(a), of.product.operand_dtype);
    step.b = Behind(step.b, i * outer(b), of.product.operand_dtype);
    step.d = Behind(step.d, i * outer(d), of.product.dtype);
    step.product.batch = by_group ? samples : c.groups;
    step.product.a_stride = inner(a);
    step.product.b_stride = inner(b);
    step.product.d_stride = inner(d);
    steps->push_back(std::move(step));
  }
}

}  // namespace

bool IsConvolutionOfProducts(const KernelCall& call) {
  // Thinner matrices are no work for tensor cores.
  constexpr int64_t kFewestChannels = 8;
  const ConvolutionSizes c(call);
  return c.out >= kFewestChannels && c.depth() >= kFewestChannels;
}

namespace {

// Results have their channels innermost: a product for all groups and samples of a part, of
// matrices with a line for each window.
GpuSteps StepsOfChannelsLast(const KernelCall& call, int64_t most_part_bytes) {
  const ConvolutionSizes c(call);
  const DataType dtype = call.dtypes[0];
  const bool is_direct =
      call.layouts.OfOperand(0) == Layout::kChannelsLast && c.WindowsAreImage(call);
  const int64_t most = c.SamplesAtOnce(call, most_part_bytes);
  const int64_t of_x = c.of_x(), of_y = c.of_y();
  GpuSteps steps;
  const GpuPlace x = {GpuPlace::kRead, 0}, w = {GpuPlace::kRead, 1};
  const int64_t of_weights = c.out * c.depth();
  // What has a line for each window, of a group: the image itself or columns; and results.
  struct Lines {
    int64_t line, group;
  };
  const auto of_columns = [&](int64_t samples) {
    return is_direct ? Lines{c.groups * c.in, c.in}
                     : Lines{c.depth(), c.depth() * samples * c.windows};
  };
  const Lines of_results = {c.groups * c.out, c.out};
  const GpuPlace dy = {GpuPlace::kRead, static_cast<int>(call.operands.size()) + 1};
  const GpuPlace columns =
      is_direct
          ? GpuPlace()
          : steps.AddWorkspace(most * c.of_columns(), call.gradient ? DataType::kFloat32 : dtype);
  for (int64_t n = 0; n < c.samples; n += most) {
    const int64_t samples = std::min(most, c.samples - n), m = samples * c.windows;
    const Lines lines = of_columns(samples);
    const GpuPlace part_of_x = Behind(x, n * of_x, dtype), part_of_dy = Behind(dy, n * of_y, dtype);
    const auto find_columns = [&] {
      if (is_direct) return part_of_x;
      steps.steps.push_back(Columns(call, c, samples, part_of_x, columns));
      return columns;
    };
    if (!call.gradient) {
      const GpuPlace b = find_columns();
      steps.steps.push_back(ProductStep{{.m = m,
                                         .n = c.out,
                                         .k = c.depth(),
                                         .transposes_b = true,
                                         .operand_dtype = dtype,
                                         .dtype = dtype,
                                         .batch = c.groups,
                                         .a_stride = lines.group,
                                         .b_stride = of_weights,
                                         .d_stride = of_results.group,
                                         .a_line = lines.line,
                                         .d_line = of_results.line},
                                        b,
                                        w,
                                        Behind({GpuPlace::kWrite, 0}, n * of_y, dtype)});
      continue;
    }
    if (call.wanted[0]) {
      const GpuPlace dx = Behind({GpuPlace::kWrite, 0}, n * of_x, call.SumDtype(0));
      steps.steps.push_back(ProductStep{{.m = m,
                                         .n = c.depth(),
                                         .k = c.out,
                                         .operand_dtype = dtype,
                                         .dtype = is_direct ? call.SumDtype(0) : DataType::kFloat32,
                                         .adds = is_direct && call.Adds(0),
                                         .batch = c.groups,
                                         .a_stride = of_results.group,
                                         .b_stride = of_weights,
                                         .d_stride = lines.group,
                                         .a_line = of_results.line,
                                         .d_line = lines.line},
                                        part_of_dy,
                                        w,
                                        is_direct ? dx : columns});
      if (!is_direct) {
        steps.steps.push_back(
            OfColumns(call, c, samples, columns, {call.SumDtype(0), call.Adds(0)}, dx));
      }
    }
    if (call.wanted[1]) {
      const GpuPlace b = find_columns();
      steps.steps.push_back(ProductStep{{.m = c.out,
                                         .n = c.depth(),
                                         .k = m,
                                         .transposes_a = true,
                                         .operand_dtype = dtype,
                                         .dtype = call.SumDtype(1),
                                         .adds = call.Adds(1) || n > 0,
                                         .batch = c.groups,
                                         .a_stride = of_results.group,
                                         .b_stride = lines.group,
                                         .d_stride = of_weights,
                                         .a_line = of_results.line,
                                         .b_line = lines.line},
                                        part_of_dy,
                                        b,
                                        {GpuPlace::kWrite, 1}});
    }
  }
  return steps;
}

}  // namespace

GpuSteps StepsOfConvolution(const KernelCall& call, int64_t most_part_bytes) {
  if (call.layouts.OfOutput(0) == Layout::kChannelsLast) {
    return StepsOfChannelsLast(call, most_part_bytes);
  }
  const ConvolutionSizes c(call);
  const DataType dtype = call.dtypes[0];
  const bool is_direct = call.layouts.OfOperand(0) == Layout::kRowMajor && c.WindowsAreImage(call);
  const int64_t most = c.SamplesAtOnce(call, most_part_bytes);
  const int64_t of_sample = c.of_columns(), of_x = c.of_x(), of_y = c.of_y();
  GpuSteps steps;
  const GpuPlace x = {GpuPlace::kRead, 0}, w = {GpuPlace::kRead, 1};
  // W_g C_n,g, or its transpose with dY.
  const auto product = [&](bool is_gradient, DataType of) {
    Product p = {.m = is_gradient ? c.depth() : c.out,
                 .n = c.windows,
                 .k = is_gradient ? c.out : c.depth(),
                 .transposes_a = is_gradient,
                 .operand_dtype = dtype,
                 .dtype = of};
    return p;
  };
  const Strides by_sample_in = {of_x, c.in * c.image}, by_sample_out = {of_y, c.out * c.windows};
  const auto in_columns = [&](int64_t samples) {
    return Strides{c.windows, c.depth() * samples * c.windows};
  };
  if (!call.gradient) {
    const GpuPlace columns = is_direct ? GpuPlace() : steps.AddWorkspace(most * of_sample, dtype);
    for (int64_t n = 0; n < c.samples; n += most) {
      const int64_t samples = std::min(most, c.samples - n);
      ProductStep step = {product(false, dtype), w, Behind(x, n * of_x, dtype),
                          Behind({GpuPlace::kWrite, 0}, n * of_y, dtype)};
      if (!is_direct) {
        steps.steps.push_back(Columns(call, c, samples, step.b, columns));
        step.b = columns;
        step.product.b_line = samples * c.windows;
      }
      AddProducts(c, samples, step, is_direct ? by_sample_in : in_columns(samples), by_sample_out,
                  &steps.steps);
    }
    return steps;
  }
  const GpuPlace dy = {GpuPlace::kRead, static_cast<int>(call.operands.size()) + 1};
  if (call.wanted[0]) {
    const DataType of_sum = call.SumDtype(0);
    const GpuPlace columns =
        is_direct ? GpuPlace() : steps.AddWorkspace(most * of_sample, DataType::kFloat32);
    for (int64_t n = 0; n < c.samples; n += most) {
      const int64_t samples = std::min(most, c.samples - n);
      const GpuPlace dx = Behind({GpuPlace::kWrite, 0}, n * of_x, of_sum);
      ProductStep step = {product(true, is_direct ? of_sum : DataType::kFloat32), w,
                          Behind(dy, n * of_y, dtype), is_direct ? dx : columns};
      if (is_direct) {
        step.product.adds = call.Adds(0);
        AddProducts(c, samples, step, by_sample_out, by_sample_in, &steps.steps);
        continue;
      }
      step.product.d_line = samples * c.windows;
      AddProducts(c, samples, step, by_sample_out, in_columns(samples), &steps.steps);
      steps.steps.push_back(OfColumns(call, c, samples, columns, {of_sum, call.Adds(0)}, dx));
    }
  }
  if (call.wanted[1]) {
    const GpuPlace columns = steps.AddWorkspace(most * of_sample, dtype);
    const GpuPlace by_channels = steps.AddWorkspace(most * of_y, dtype);
    for (int64_t n = 0; n < c.samples; n += most) {
      const int64_t samples = std::min(most, c.samples - n);
      const int64_t k = samples * c.windows;
      steps.steps.push_back(Columns(call, c, samples, Behind(x, n * of_x, dtype), columns));
      steps.steps.push_back(ByChannels(call, c, samples, Behind(dy, n * of_y, dtype), by_channels));
      steps.steps.push_back(ProductStep{{.m = c.out,
                                         .n = c.depth(),
                                         .k = k,
                                         .transposes_b = true,
                                         .operand_dtype = dtype,
                                         .dtype = call.SumDtype(1),
                                         .adds = call.Adds(1) || n > 0,
                                         .batch = c.groups,
                                         .a_stride = c.out * k,
                                         .b_stride = c.depth() * k,
                                         .d_stride = c.out * c.depth()},
                                        by_channels,
                                        columns,
                                        {GpuPlace::kWrite, 1}});
    }
  }
  return steps;
}

}  // namespace isomer
