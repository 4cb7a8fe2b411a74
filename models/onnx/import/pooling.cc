// Pooling over windows, and over whole images.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "models/onnx/import/formulas.h"
#include "models/onnx/import/operators.h"
#include "models/onnx/import/window.h"

namespace isomer {
namespace {

enum class Pooling { kMax, kAverage, kAverageWithPadding };

// A pool over `image`, with what its window needs at the end beyond the padding of the file.
struct Pool {
  Pooling kind;
  Window window;
  std::vector<int64_t> image;      // sizes of the spatial dims
  std::vector<int64_t> positions;  // of the window
  std::vector<int64_t> excess;     // elements past the padding that the last window reaches
  bool is_dilated = false;
};

Pool ReadPool(NodeImporter& node, Pooling kind, TensorRef x) {
  Pool pool;
  pool.kind = kind;
  pool.image = ImageSizes(node, x);
  pool.window = ReadWindow(node, {}, pool.image);
  const bool rounds_up = node.attributes.Int("ceil_mode", 0) == 1;
  if (!node.ok()) return pool;
  const int rank = pool.window.rank();
  for (int i = 0; i < rank; ++i) {
    const int64_t positions = pool.window.Positions(i, pool.image[i], rounds_up);
    if (!node.Expect(positions > 0, "dim ", i + 2, " of size ", pool.image[i],
                     " is smaller than the window")) {
      return pool;
    }
    const int64_t reached = (positions - 1) * pool.window.stride[i] + pool.window.Span(i);
    const int64_t there = pool.image[i] + pool.window.padding[i] + pool.window.padding[rank + i];
    pool.positions.push_back(positions);
    pool.excess.push_back(std::max<int64_t>(0, reached - there));
    pool.is_dilated |= pool.window.dilation[i] != 1;
  }
  return pool;
}

// The padding of all dims of [n, c, spatial..]: that of the window with the excess at the end.
Sizes FullPadding(const Pool& pool) {
  const int rank = pool.window.rank();
  Sizes padding(2 * (rank + 2), 0);
  for (int i = 0; i < rank; ++i) {
    padding[2 + i] = pool.window.padding[i];
    padding[rank + 4 + i] = pool.window.padding[rank + i] + pool.excess[i];
  }
  return padding;
}

// How many elements of the kernel count at each position: those inside of the image, or, where
// padding counts, all.
std::vector<float> Counts(const Pool& pool) {
  std::vector<float> counts = {1};
  const bool counts_padding = pool.kind == Pooling::kAverageWithPadding;
  for (int i = 0; i < pool.window.rank(); ++i) {
    std::vector<float> next;
    for (float outer : counts) {
      const int64_t kernel = pool.window.kernel[i], step = pool.window.dilation[i];
      // How many elements of a kernel that begins at `from` lie before `end`.
      auto before = [&](int64_t from, int64_t end) {
        return from >= end ? 0 : std::min(kernel, (end - from - 1) / step + 1);
      };
      for (int64_t p = 0; p < pool.positions[i]; ++p) {
        const int64_t from = p * pool.window.stride[i] - pool.window.padding[i];
        const int64_t inside =
            counts_padding ? kernel : before(from, pool.image[i]) - before(from, 0);
        next.push_back(outer * static_cast<float>(inside));
      }
    }
    counts = std::move(next);
  }
  return counts;
}

// Along one dim after the other, one slice of the padded image for each element of the kernel,
// combined. For windows that the pooling operators do not have: dilated ones, and ones that may lie
// in the padding alone.
TensorRef PoolBySlices(NodeImporter& node, const Pool& pool, TensorRef x) {
  constexpr int64_t kMostSlices = 1024;
  const Window& window = pool.window;
  const bool is_max = pool.kind == Pooling::kMax;
  const double outside = is_max ? std::numeric_limits<float>::lowest() : 0;
  TensorRef result = Padded(node, x, FullPadding(pool), outside);
  for (int i = 0; i < window.rank() && node.ok(); ++i) {
    if (window.kernel[i] > kMostSlices) {
      node.Refuse("a dilated window of ", window.kernel[i], " elements; at most ", kMostSlices);
      return {};
    }
    const TensorRef padded = result;
    for (int64_t k = 0; k < window.kernel[i]; ++k) {
      const TensorRef slice =
          Sliced(node, padded, 2 + i, k * window.dilation[i], pool.positions[i], window.stride[i]);
      result =
          k == 0 ? slice : Apply(node, is_max ? OpKind::kMaximum : OpKind::kAdd, result, slice);
    }
  }
  if (is_max || !node.ok()) return result;
  Sizes dims = pool.positions;
  if (!FitsLiteral(node, dims)) return {};
  return Apply(node, OpKind::kDiv, result, FloatLiteral(node, std::move(dims), Counts(pool)));
}

TensorRef AddPool(NodeImporter& node, const Pool& pool, TensorRef x) {
  if (!node.ok()) return {};
  const int rank = pool.window.rank();
  Window window = pool.window;
  bool fits = !pool.is_dilated;
  for (int i = 0; i < rank; ++i) {
    window.padding[rank + i] += pool.excess[i];
    fits = fits && window.padding[i] < window.kernel[i] &&
           window.padding[rank + i] < window.kernel[i] &&
           window.Positions(i, pool.image[i]) == pool.positions[i];
  }
  if (!fits) return PoolBySlices(node, pool, x);
  const bool counts_padding = pool.kind == Pooling::kAverageWithPadding;
  Operator op(pool.kind == Pooling::kMax ? OpKind::kMaxPool : OpKind::kAvgPool,
              {{"kernel", window.kernel}, {"stride", window.stride}, {"padding", window.padding}});
  if (pool.kind != Pooling::kMax) op.Set("count_include_pad", int64_t{counts_padding});
  return node.Call(std::move(op), {x}, "/pool");
}

// Padding that counts is a part of the image, what the window reaches beyond it is not.
TensorRef AddAveragePoolWithPadding(NodeImporter& node, Pool pool, TensorRef x) {
  const bool has_excess = std::any_of(pool.excess.begin(), pool.excess.end(),
                                      [](int64_t excess) { return excess > 0; });
  if (!node.ok() || !has_excess) return AddPool(node, pool, x);
  const int rank = pool.window.rank();
  Sizes padding(2 * (rank + 2), 0);
  for (int i = 0; i < rank; ++i) {
    int64_t& begin = pool.window.padding[i];
    int64_t& end = pool.window.padding[rank + i];
    pool.image[i] += begin + end;
    padding[2 + i] = std::exchange(begin, 0);
    padding[rank + 4 + i] = std::exchange(end, 0);
  }
  pool.kind = Pooling::kAverage;
  return AddPool(node, pool, Padded(node, x, std::move(padding), 0));
}

}  // namespace

void ImportPool(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const bool is_max = node.op() == "MaxPool";
  const bool counts_padding = node.attributes.Int("count_include_pad", 0) == 1;
  node.attributes.Ignore("storage_order");  // of the indices, an output that is not computed
  const Pool pool = ReadPool(node,
                             is_max           ? Pooling::kMax
                             : counts_padding ? Pooling::kAverageWithPadding
                                              : Pooling::kAverage,
                             x);
  DefineAs(node, 0,
           pool.kind == Pooling::kAverageWithPadding ? AddAveragePoolWithPadding(node, pool, x)
                                                     : AddPool(node, pool, x));
}

// (sum over the window of |x|^p)^(1/p)
void ImportLpPool(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const double p = static_cast<double>(node.attributes.Int("p", 2));
  const Pool pool = ReadPool(node, Pooling::kAverageWithPadding, x);
  if (!node.Expect(p >= 1, "p is ", p)) return;
  const TensorRef size = Apply(node, OpKind::kAbs, x);
  const TensorRef powers = p == 1 ? size : Apply(node, OpKind::kPow, size, p);
  // An average over all elements of the kernel, times their number: what is outside is 0.
  const double count = static_cast<double>(NumElementsOf(pool.window.kernel));
  const TensorRef sum = Scaled(node, AddPool(node, pool, powers), count);
  DefineAs(node, 0, p == 1 ? sum : Apply(node, OpKind::kPow, sum, 1 / p));
}

// Over all dims but batch and channel, which stay with size 1.
void ImportGlobalPool(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const Sizes axes = AllAxes(node.Rank(x), 2);
  if (!node.Expect(!axes.empty(), "input 0 has rank ", node.Rank(x), ", and nothing to pool")) {
    return;
  }
  if (node.op() == "GlobalAveragePool") {
    return node.Define(0, node.Call({OpKind::kReduceMean, {{"axes", axes}}}, {x}));
  }
  if (node.op() == "GlobalMaxPool") {
    return node.Define(0, node.Call({OpKind::kReduceMax, {{"axes", axes}}}, {x}));
  }
  const double p = static_cast<double>(node.attributes.Int("p", 2));
  const TensorRef powers = Apply(node, OpKind::kPow, Apply(node, OpKind::kAbs, x), p);
  const TensorRef sum = Reduced(node, OpKind::kReduceSum, powers, axes);
  DefineAs(node, 0, Apply(node, OpKind::kPow, sum, 1 / p));
}

}  // namespace isomer
