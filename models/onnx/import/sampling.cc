// Operators that look between the elements of an image: at each point a weighted sum of the
// elements around it, which is one GatherSum over the image's elements as rows of channels.
//
// Along a dim, the elements first(p) + offset count for the point p by polynomials in p - first(p):
//
//   nearest   round(p)                    1
//   linear    floor(p), floor(p) + 1      1 - t, t
//   cubic     floor(p) - 1 .. + 2         Keys' piecewise cubic (1981) with a = -0.75
//
// Along several dims the weights are products.
#include <utility>

#include "models/onnx/import/formulas.h"
#include "models/onnx/import/operators.h"
#include "models/onnx/import/window.h"
#include "models/support/einsum.h"

namespace isomer {
namespace {

// The elements that count for a point, and coefficients[power][offset] of their weights.
struct Stencil {
  OpKind first = OpKind::kFloor;
  std::vector<int64_t> offsets;
  std::vector<std::vector<float>> coefficients;
};

Stencil LinearStencil() { return {OpKind::kFloor, {0, 1}, {{1, 0}, {-1, 1}}}; }

Stencil CubicStencil() {
  constexpr float a = -0.75F;
  return {OpKind::kFloor,
          {-1, 0, 1, 2},
          {{0, 1, 0, 0}, {a, 0, -a, 0}, {-2 * a, -a - 3, 2 * a + 3, a}, {a, a + 2, -a - 2, -a}}};
}

// What stands for elements outside of an image: 0, the edge, or the image mirrored in its edge
// elements or in their outer borders.
enum class Beyond { kZeros, kEdge, kMirroredInElement, kMirroredInBorder };

// Elements of an image for each point, [points.., n], as indices (int64) with their weights.
struct Samples {
  TensorRef index, weight;
};

// Places of elements (int64), moved to the elements of a dim of `size` that stand for them.
TensorRef MovedInside(NodeImporter& node, TensorRef at, int64_t size, Beyond beyond) {
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  const int64_t past_edge = beyond == Beyond::kMirroredInBorder ? 1 : 0;
  const int64_t period = 2 * (size - 1 + past_edge);
  if (period > 0 && (beyond == Beyond::kMirroredInElement || past_edge == 1)) {
    // There and back: 0, 1, .. size - 1, .. 1 in a period.
    const TensorRef rounds = Apply(node, OpKind::kDiv, at, number(period));
    const TensorRef whole = Apply(node, OpKind::kMul, rounds, number(period));
    const TensorRef rest = Apply(node, OpKind::kSub, at, whole);
    const TensorRef positive =
        Where(node, IsNegative(node, rest), Apply(node, OpKind::kAdd, rest, number(period)), rest);
    const TensorRef back =
        Apply(node, OpKind::kSub, Number(node, number(period - past_edge), positive), positive);
    return Apply(node, OpKind::kMinimum, positive, back);
  }
  return Apply(node, OpKind::kMinimum, Apply(node, OpKind::kMaximum, at, 0), number(size - 1));
}

// The elements along a dim of `size` for points [points..] in units of elements.
Samples SamplesAlong(NodeImporter& node, const Stencil& stencil, TensorRef points, int64_t size,
                     Beyond beyond) {
  if (!node.ok()) return {};
  const int64_t n = static_cast<int64_t>(stencil.offsets.size());
  auto literal = [&](const std::vector<float>& values) {
    return Cast(node, FloatLiteral(node, {n}, values), node.Type(points));
  };
  Sizes sizes = node.Sizes(points);
  sizes.push_back(1);
  const TensorRef p = Reshaped(node, points, std::move(sizes));
  const TensorRef first = Apply(node, stencil.first, p), t = Apply(node, OpKind::kSub, p, first);
  const TensorRef at = Apply(node, OpKind::kAdd, Cast(node, first, DataType::kInt64),
                             IntLiteral(node, {n}, stencil.offsets));
  TensorRef weight = literal(stencil.coefficients.back());
  for (size_t i = stencil.coefficients.size() - 1; i-- > 0;) {
    weight = Apply(node, OpKind::kAdd, Apply(node, OpKind::kMul, weight, t),
                   literal(stencil.coefficients[i]));
  }
  weight = Expanded(node, weight, node.Sizes(at));
  if (beyond == Beyond::kZeros) {
    const TensorRef zero = Number(node, 0, weight);
    const TensorRef last = Number(node, static_cast<double>(size - 1), at);
    weight = Where(node, IsNegative(node, at), zero, weight);
    weight = Where(node, Apply(node, OpKind::kLess, last, at), zero, weight);
  }
  return {MovedInside(node, at, size, beyond), weight};
}

// Sums of elements of `images` [batches.., c, spatial..] of these spatial sizes around points
// [batches.., points..], whose coordinates along each spatial dim are given in elements:
// [batches.., points.., c].
TensorRef Sampled(NodeImporter& node, TensorRef images, const Sizes& spatial,
                  const Stencil& stencil, const std::vector<TensorRef>& points, Beyond beyond) {
  if (!node.ok()) return {};
  Samples all;
  int64_t stride = NumElementsOf(spatial);
  for (size_t i = 0; i < spatial.size(); ++i) {
    stride /= spatial[i];
    Samples samples = SamplesAlong(node, stencil, points[i], spatial[i], beyond);
    if (!node.ok()) return {};
    if (stride > 1) {
      samples.index = Apply(node, OpKind::kMul, samples.index, static_cast<double>(stride));
    }
    if (i == 0) {
      all = samples;
      continue;
    }
    // Each of those so far with each along this dim.
    Sizes before = node.Sizes(all.index), along = node.Sizes(samples.index), both = before;
    both.back() *= along.back();
    before.push_back(1);
    along.insert(along.end() - 1, 1);
    auto paired = [&](OpKind kind, TensorRef a, TensorRef b) {
      const TensorRef pairs =
          Apply(node, kind, Reshaped(node, a, before), Reshaped(node, b, along));
      return Reshaped(node, pairs, both);
    };
    all = {paired(OpKind::kAdd, all.index, samples.index),
           paired(OpKind::kMul, all.weight, samples.weight)};
  }
  if (!node.ok()) return {};
  // Rows of channels.
  const Sizes sizes = node.Sizes(images);
  const int channel = static_cast<int>(sizes.size() - spatial.size()) - 1;
  Sizes perm = AllAxes(channel), rows(sizes.begin(), sizes.begin() + channel);
  for (size_t i = 0; i < spatial.size(); ++i) perm.push_back(channel + 1 + static_cast<int>(i));
  perm.push_back(channel);
  rows.push_back(NumElementsOf(spatial));
  rows.push_back(sizes[channel]);
  const TensorRef table = Reshaped(node, Transposed(node, images, perm), std::move(rows));
  const TensorRef weight = node.ok() ? Cast(node, all.weight, node.Type(images)) : TensorRef();
  return node.Call(OpKind::kGatherSum, {table, all.index, weight}, "/gather_sum");
}

// The last dim of x, of size `parts`, taken apart.
std::vector<TensorRef> PartsOfLastDim(NodeImporter& node, TensorRef x, int64_t parts) {
  if (!node.ok()) return std::vector<TensorRef>(parts);
  Sizes sizes = node.Sizes(x);
  const int axis = static_cast<int>(sizes.size()) - 1;
  sizes.pop_back();
  std::vector<TensorRef> result = SplitInto(node, x, axis, Sizes(parts, 1));
  for (TensorRef& part : result) part = Reshaped(node, part, sizes);
  return result;
}

}  // namespace

// GridSample(x [n, c, spatial..], grid [n, out.., k]): at each point the coordinates along the k
// spatial dims, the last first, from -1 to 1, which are the middles of the edge elements
// (align_corners) or their outer borders.
void ImportGridSample(NodeImporter& node) {
  const TensorRef x = node.Operand(0), grid = node.Operand(1);
  const Sizes image = ImageSizes(node, x);
  const std::string mode = node.attributes.String("mode", "linear");
  const std::string padding = node.attributes.String("padding_mode", "zeros");
  const bool aligned = node.attributes.Int("align_corners", 0) != 0;
  if (!node.ok()) return;
  const int64_t k = static_cast<int64_t>(image.size());
  const Sizes points = node.Sizes(grid);
  if (!node.Expect(
          points.size() == image.size() + 2 && points.back() == k && points[0] == node.Sizes(x)[0],
          "the grid is not [", node.Sizes(x)[0], ", .., ", k, "] of rank ", k + 2)) {
    return;
  }
  Stencil stencil = {OpKind::kRound, {0}, {{1}}};
  if (mode == "linear" || mode == "bilinear") {
    stencil = LinearStencil();
  } else if (mode == "cubic" || mode == "bicubic") {
    stencil = CubicStencil();
  } else if (!node.Expect(mode == "nearest", "mode ", QuotedName(mode), " is not known")) {
    return;
  }
  Beyond beyond = Beyond::kZeros;
  if (padding == "border") {
    beyond = Beyond::kEdge;
  } else if (padding == "reflection") {
    beyond = aligned ? Beyond::kMirroredInElement : Beyond::kMirroredInBorder;
  } else if (!node.Expect(padding == "zeros", "padding_mode ", QuotedName(padding),
                          " is not known")) {
    return;
  }
  std::vector<TensorRef> coordinates = PartsOfLastDim(node, grid, k);
  std::vector<TensorRef> elements;
  for (int64_t i = 0; i < k; ++i) {
    const double size = static_cast<double>(image[i]);
    const TensorRef scaled =
        Scaled(node, coordinates[k - 1 - i], aligned ? (size - 1) / 2 : size / 2);
    elements.push_back(Apply(node, OpKind::kAdd, scaled, (size - 1) / 2));
  }
  const TensorRef sums = Sampled(node, x, image, stencil, elements, beyond);
  Sizes perm = AllAxes(static_cast<int>(k) + 1);  // the channels, which are last, second
  perm.insert(perm.begin() + 1, k + 1);
  DefineAs(node, 0, Transposed(node, sums, std::move(perm)));
}

// AffineGrid(theta [n, k, k + 1], size [n, c, spatial..]): for GridSample, theta times each point
// of a regular grid (with a 1 below its coordinates), [n, spatial.., k].
void ImportAffineGrid(NodeImporter& node) {
  const TensorRef theta = node.Operand(0);
  const Sizes size = node.ConstantInts(1);
  const bool aligned = node.attributes.Int("align_corners", 0) != 0;
  if (!node.ok()) return;
  const int64_t k = static_cast<int64_t>(size.size()) - 2;
  if (!node.Expect(k >= 1 && k <= 3 && node.Sizes(theta) == Sizes{size[0], k, k + 1},
                   "theta is not [n, k, k + 1] for the k spatial dims of the size")) {
    return;
  }
  Sizes image(size.begin() + 2, size.end());
  const int64_t points = NumElementsOf(image);
  if (!node.Expect(points >= 1, "a size is not positive") || !FitsLiteral(node, {k + 1, points})) {
    return;
  }
  std::vector<float> regular((k + 1) * points, 1);
  int64_t stride = points;
  for (int64_t i = 0; i < k; ++i) {
    stride /= image[i];
    const double last = static_cast<double>(image[i] - 1);
    for (int64_t point = 0; point < points; ++point) {
      const double at = 2 * static_cast<double>(point / stride % image[i]) - last;
      const double half = aligned ? last : last + 1;
      regular[(k - 1 - i) * points + point] = half == 0 ? 0 : static_cast<float>(at / half);
    }
  }
  const TensorRef grid = FloatLiteral(node, {k + 1, points}, std::move(regular));
  if (!node.ok()) return;
  const TensorRef moved = Product(node, theta, Cast(node, grid, node.Type(theta)));
  Sizes result = image;
  result.insert(result.begin(), size[0]);
  result.push_back(k);
  DefineAs(node, 0, Reshaped(node, Transposed(node, moved, {0, 2, 1}), std::move(result)));
}

// DeformConv(x [n, c, y, x], w [o, c / group, r, q], offset, bias, mask): a convolution whose
// window's elements are moved by offsets [n, offset_group * r * q * 2, oy, ox] (along y, along x),
// looked up between elements, and weighted by a mask [n, offset_group * r * q, oy, ox].
void ImportDeformConv(NodeImporter& node) {
  const TensorRef x = node.Operand(0), w = node.Operand(1), offset = node.Operand(2);
  const Sizes image = ImageSizes(node, x);
  if (!node.ok()) return;
  if (image.size() != 2) return node.Refuse("images of ", image.size(), " dims, not 2");
  const Sizes weight = node.Sizes(w), sizes = node.Sizes(x);
  if (!node.Expect(weight.size() == 4, "input 1 has rank ", weight.size(), ", not 4")) return;
  const Window window = ReadWindow(node, {weight[2], weight[3]}, image);
  const int64_t groups = node.attributes.Int("group", 1);
  const int64_t offset_groups = node.attributes.Int("offset_group", 1);
  if (!node.ok()) return;
  const int64_t n = sizes[0], c = sizes[1], o = weight[0], taps = weight[2] * weight[3];
  const int64_t height = window.Positions(0, image[0]), width = window.Positions(1, image[1]);
  const int64_t points = height * width;
  if (!node.Expect(groups >= 1 && offset_groups >= 1 && c % groups == 0 && o % groups == 0 &&
                       c % offset_groups == 0 && weight[1] == c / groups,
                   "group ", groups, " and offset_group ", offset_groups, " do not divide ", c,
                   " channels") ||
      !node.Expect(node.Sizes(offset) == Sizes{n, offset_groups * taps * 2, height, width},
                   "the offsets are not [", n, ", ", offset_groups * taps * 2, ", ", height, ", ",
                   width, "]") ||
      !FitsLiteral(node, {2, taps, points})) {
    return;
  }
  const std::vector<TensorRef> offsets =
      SplitInto(node, Reshaped(node, offset, {n, offset_groups, taps, 2, points}), 3, {1, 1});
  std::vector<TensorRef> elements;
  for (int axis = 0; axis < 2; ++axis) {
    std::vector<float> regular;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t in_window = axis == 0 ? tap / weight[3] : tap % weight[3];
      for (int64_t point = 0; point < points; ++point) {
        const int64_t at = axis == 0 ? point / width : point % width;
        regular.push_back(static_cast<float>(at * window.stride[axis] - window.padding[axis] +
                                             in_window * window.dilation[axis]));
      }
    }
    const TensorRef moved = Reshaped(node, offsets[axis], {n, offset_groups, taps, points});
    const TensorRef places = FloatLiteral(node, {taps, points}, std::move(regular));
    if (!node.ok()) return;
    elements.push_back(Apply(node, OpKind::kAdd, moved, Cast(node, places, node.Type(moved))));
  }
  const TensorRef grouped =
      Reshaped(node, x, {n, offset_groups, c / offset_groups, image[0], image[1]});
  TensorRef found = Sampled(node, grouped, image, LinearStencil(), elements, Beyond::kZeros);
  if (node.HasInput(4)) {
    const TensorRef mask = node.Operand(4);
    if (!node.Expect(node.Sizes(mask) == Sizes{n, offset_groups * taps, height, width},
                     "the mask is not [", n, ", ", offset_groups * taps, ", ", height, ", ", width,
                     "]")) {
      return;
    }
    found =
        Apply(node, OpKind::kMul, found, Reshaped(node, mask, {n, offset_groups, taps, points, 1}));
  }
  // [n, offset group, tap, point, channel of it] to [n, group, channel of it, tap, point].
  const TensorRef columns = Reshaped(node, Transposed(node, found, {0, 1, 4, 2, 3}),
                                     {n, groups, c / groups * taps, points});
  const TensorRef filters = Reshaped(node, w, {groups, o / groups, c / groups * taps});
  if (!node.ok()) return;
  const absl::StatusOr<TensorRef> product =
      AddEinsum(&node.state().model.graph, "ngqp,goq->ngop", {columns, filters},
                absl::StrCat(CallName(node.node()), "/product"));
  if (!node.Expect(product.ok(), product.status().message())) return;
  TensorRef y = Reshaped(node, *product, {n, o, height, width});
  if (node.HasInput(3)) {
    if (!node.Expect(node.Sizes(node.Operand(3)) == Sizes{o}, "the bias is not [", o, "]")) return;
    y = Apply(node, OpKind::kAdd, y, Reshaped(node, node.Operand(3), {1, o, 1, 1}));
  }
  DefineAs(node, 0, y);
}

// RoiAlign(x [n, c, y, x], rois [r, 4] (x and y of two corners), sample of each roi [r]): the
// average of sampling_ratio^2 points between elements in each of output_height x output_width cells
// of a roi, [r, c, cells..]. Points that lie more than an element outside of the image count as 0.
void ImportRoiAlign(NodeImporter& node) {
  const TensorRef x = node.Operand(0), rois = node.Operand(1), samples = node.Operand(2);
  const Sizes image = ImageSizes(node, x);
  const int64_t ratio = node.attributes.Int("sampling_ratio", 0);
  const Sizes cells = {node.attributes.Int("output_height", 1),
                       node.attributes.Int("output_width", 1)};
  const double scale = node.attributes.Float("spatial_scale", 1);
  const std::string mode = node.attributes.String("mode", "avg");
  const std::string corners = node.attributes.String(
      "coordinate_transformation_mode", node.opset() >= 16 ? "half_pixel" : "output_half_pixel");
  if (!node.ok()) return;
  if (image.size() != 2) return node.Refuse("images of ", image.size(), " dims, not 2");
  if (mode != "avg") return node.Refuse("mode ", QuotedName(mode));
  if (ratio == 0) {
    return node.Refuse("sampling_ratio 0: how many points there are depends on the data");
  }
  constexpr int64_t kMost = 4096;
  const auto fits = [](int64_t count) { return count > 0 && count <= kMost; };
  if (!node.Expect(node.Rank(samples) == 1, "the samples of the rois are not [r]")) return;
  const int64_t n = node.Sizes(samples)[0];
  if (!node.Expect(node.Sizes(rois) == Sizes{n, 4}, "the rois are not [", n, ", 4]") ||
      !node.Expect(fits(ratio) && fits(cells[0]) && fits(cells[1]),
                   "sampling_ratio, output_height or output_width is not between 1 and ", kMost)) {
    return;
  }
  const bool moved = corners == "half_pixel";
  const std::vector<TensorRef> ends = SplitInto(node, rois, 1, {1, 1, 1, 1});
  Samples along[2];
  for (int axis = 0; axis < 2; ++axis) {
    auto place = [&](TensorRef end) {
      const TensorRef scaled = Scaled(node, end, scale);
      return moved ? Apply(node, OpKind::kSub, scaled, 0.5) : scaled;
    };
    const TensorRef begin = place(ends[1 - axis]), end = place(ends[3 - axis]);
    TensorRef length = Apply(node, OpKind::kSub, end, begin);
    if (!moved) length = Apply(node, OpKind::kMaximum, length, 1);
    const int64_t points = cells[axis] * ratio;
    if (!FitsLiteral(node, {points})) return;
    std::vector<float> regular;
    for (int64_t i = 0; i < points; ++i) {
      regular.push_back(
          static_cast<float>((static_cast<double>(i) + 0.5) / static_cast<double>(points)));
    }
    const TensorRef share = FloatLiteral(node, {1, points}, std::move(regular));
    if (!node.ok()) return;
    const TensorRef at =
        Apply(node, OpKind::kAdd, begin,
              Apply(node, OpKind::kMul, length, Cast(node, share, node.Type(rois))));
    Samples& found = along[axis];
    found = SamplesAlong(node, LinearStencil(), at, image[axis], Beyond::kEdge);
    const TensorRef zero = Number(node, 0, found.weight);
    const TensorRef point = Reshaped(node, at, {n, points, 1});
    for (const TensorRef outside :
         {Apply(node, OpKind::kLess, point, -1),
          Apply(node, OpKind::kLess, Number(node, static_cast<double>(image[axis]), point),
                point)}) {
      found.weight = Where(node, outside, zero, found.weight);
    }
    Sizes apart = {1, n, 1, 1, 1, 1};
    apart[2 + axis] = cells[axis], apart[4 + axis] = 2 * ratio;
    found = {Reshaped(node, found.index, apart), Reshaped(node, found.weight, apart)};
  }
  const Sizes together = {1, n, cells[0], cells[1], 4 * ratio * ratio};
  TensorRef index = Apply(node, OpKind::kMul, along[0].index, static_cast<double>(image[1]));
  index = Apply(node, OpKind::kAdd, index, along[1].index);
  const int64_t elements = image[0] * image[1];
  const TensorRef of_sample =
      Scaled(node, Cast(node, samples, DataType::kInt64), static_cast<double>(elements));
  index = Reshaped(node,
                   Apply(node, OpKind::kAdd, index, Reshaped(node, of_sample, {1, n, 1, 1, 1, 1})),
                   together);
  TensorRef weight = Apply(node, OpKind::kMul, along[0].weight, along[1].weight);
  weight = Reshaped(node, Scaled(node, weight, 1 / static_cast<double>(ratio * ratio)), together);
  if (!node.ok()) return;
  const Sizes sizes = node.Sizes(x);
  const TensorRef table =
      Reshaped(node, Transposed(node, x, {0, 2, 3, 1}), {1, sizes[0] * elements, sizes[1]});
  const TensorRef sums = node.Call(OpKind::kGatherSum,
                                   {table, index, Cast(node, weight, node.Type(x))}, "/gather_sum");
  DefineAs(node, 0,
           Transposed(node, Reshaped(node, sums, {n, cells[0], cells[1], sizes[1]}), {0, 3, 1, 2}));
}

}  // namespace isomer
