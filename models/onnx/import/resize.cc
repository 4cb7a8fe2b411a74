// Resize and Upsample: along each axis a product with a matrix of interpolation weights.
//
// Output i lies at x(i) in the input. With a kernel f, input j contributes f((j - x) * s) to it,
// divided by the sum of these: f(d) = max(0, 1 - |d|) for linear, Keys' piecewise cubic (1981) for
// cubic; s = 1, or with antialias min(1, scale), which widens the kernel to all that it skips.
// Inputs beyond the edge are the edge's element, or with exclude_outside are left out. Nearest
// takes one input whole.
#include <algorithm>
#include <cmath>
#include <utility>

#include "models/onnx/import/formulas.h"
#include "models/onnx/import/operators.h"

namespace isomer {
namespace {

struct Interpolation {
  std::string mode;         // "nearest", "linear", "cubic"
  std::string coordinates;  // coordinate_transformation_mode
  std::string nearest;      // nearest_mode
  double cubic_coefficient = -0.75;
  bool excludes_outside = false;
  bool antialias = false;
  double extrapolation_value = 0;
};

struct AxisResize {
  int axis;
  int64_t from, to;
  double scale;
  double roi_begin = 0, roi_end = 1;
};

// Where output i lies among the inputs. The width is scale * from: where that is no whole number,
// it is what the standard's own tests divide by.
double Position(const Interpolation& how, const AxisResize& a, int64_t i) {
  const double at = static_cast<double>(i), width = a.scale * static_cast<double>(a.from);
  const double last = static_cast<double>(a.from - 1);
  if (how.coordinates == "asymmetric") return at / a.scale;
  if (how.coordinates == "align_corners") return width == 1 ? 0 : at * last / (width - 1);
  if (how.coordinates == "tf_half_pixel_for_nn") return (at + 0.5) / a.scale;
  if (how.coordinates == "tf_crop_and_resize") {
    if (width == 1) return 0.5 * (a.roi_begin + a.roi_end) * last;
    return a.roi_begin * last + at * (a.roi_end - a.roi_begin) * last / (width - 1);
  }
  const double half_pixel = (at + 0.5) / a.scale - 0.5;
  if (how.coordinates == "pytorch_half_pixel" && width <= 1) return 0;
  if (how.coordinates == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(a.to) / width;
    return static_cast<double>(a.from) / 2 * (1 - adjustment) + half_pixel;
  }
  return half_pixel;
}

double Nearest(const std::string& mode, double scale, double position) {
  // Before opset 11: the input that a smaller output comes after, that a larger one comes from.
  if (mode == "simple") return scale < 1 ? std::ceil(position) : std::floor(position);
  if (mode == "floor") return std::floor(position);
  if (mode == "ceil") return std::ceil(position);
  if (mode == "round_prefer_ceil") return std::floor(position + 0.5);
  return std::ceil(position - 0.5);
}

double Kernel(const Interpolation& how, double distance) {
  const double d = std::abs(distance), a = how.cubic_coefficient;
  if (how.mode == "linear") return std::max(0.0, 1 - d);
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * (d * d * d - 5 * d * d + 8 * d - 4) : 0;
}

// Whether output i lies outside of the input, where extrapolation_value stands.
bool IsExtrapolated(const Interpolation& how, const AxisResize& a, int64_t i) {
  const double position = Position(how, a, i);
  return how.coordinates == "tf_crop_and_resize" &&
         (position < 0 || position > static_cast<double>(a.from - 1));
}

// The weight of every input (rows) for every output (columns).
std::vector<float> Weights(const Interpolation& how, const AxisResize& a) {
  std::vector<float> matrix(a.from * a.to, 0);
  for (int64_t i = 0; i < a.to; ++i) {
    if (IsExtrapolated(how, a, i)) continue;
    const double position = Position(how, a, i);
    if (how.mode == "nearest") {
      const double nearest = Nearest(how.nearest, a.scale, position);
      const int64_t j =
          static_cast<int64_t>(std::clamp(nearest, 0.0, static_cast<double>(a.from - 1)));
      matrix[j * a.to + i] = 1;
      continue;
    }
    const double s = how.antialias ? std::min(1.0, a.scale) : 1;
    const double reach = 2 / s;
    std::vector<double> weights(a.from, 0);
    double sum = 0;
    for (int64_t j = static_cast<int64_t>(std::floor(position - reach));
         j <= static_cast<int64_t>(std::ceil(position + reach)); ++j) {
      const bool is_outside = j < 0 || j >= a.from;
      if (is_outside && how.excludes_outside) continue;
      const double weight = Kernel(how, (static_cast<double>(j) - position) * s);
      weights[std::clamp<int64_t>(j, 0, a.from - 1)] += weight;
      sum += weight;
    }
    for (int64_t j = 0; j < a.from; ++j) {
      matrix[j * a.to + i] = static_cast<float>(weights[j] / sum);
    }
  }
  return matrix;
}

// x with dim `axis` multiplied by the matrix [from, to].
TensorRef ResizeAxis(NodeImporter& node, const Interpolation& how, const AxisResize& a,
                     TensorRef x) {
  // Working out a column takes as long as filling in some elements, however few it has.
  constexpr int64_t kLeastPerColumn = 64;
  if (!FitsLiteral(node, {std::max(a.from, kLeastPerColumn), a.to})) return {};
  const TensorRef matrix = FloatLiteral(node, {a.from, a.to}, Weights(how, a));
  if (!node.ok()) return {};
  const TensorRef weights = Cast(node, matrix, node.Type(x));
  const int rank = node.Rank(x);
  if (a.axis == rank - 1 && rank > 1) return Product(node, x, weights);
  Sizes last = AllAxes(rank), back;
  last.erase(last.begin() + a.axis);
  last.push_back(a.axis);
  for (int64_t i = 0; i < rank; ++i) {
    back.push_back(std::find(last.begin(), last.end(), i) - last.begin());
  }
  if (rank == 1) {
    return Reshaped(node, Product(node, Reshaped(node, x, {1, a.from}), weights), {a.to});
  }
  return Transposed(node, Product(node, Transposed(node, x, last), weights), back);
}

// Which elements of the output are extrapolated: what to add to the products, 0 elsewhere.
TensorRef Extrapolated(NodeImporter& node, const Interpolation& how,
                       const std::vector<AxisResize>& axes, const Sizes& sizes, TensorRef y) {
  Sizes shape(sizes.size(), 1);
  for (const AxisResize& a : axes) shape[a.axis] = a.to;
  if (!FitsLiteral(node, shape)) return {};
  std::vector<float> values(NumElementsOf(shape), 0);
  for (size_t at = 0; at < values.size(); ++at) {
    int64_t rest = static_cast<int64_t>(at);
    Sizes place(shape.size());
    for (int i = static_cast<int>(shape.size()) - 1; i >= 0; --i) {
      place[i] = rest % shape[i];
      rest /= shape[i];
    }
    for (const AxisResize& a : axes) {
      if (IsExtrapolated(how, a, place[a.axis])) {
        values[at] = static_cast<float>(how.extrapolation_value);
      }
    }
  }
  return Apply(node, OpKind::kAdd, y, FloatLiteral(node, shape, std::move(values)));
}

std::vector<double> ConstantNumbers(NodeImporter& node, int input) {
  std::vector<double> numbers;
  if (!node.HasInput(input)) return numbers;
  const OnnxTensor* const constant = node.Constant(input);
  if (constant == nullptr) {
    node.Refuse("input ", input, ", which says the sizes, is no constant");
    return numbers;
  }
  for (int64_t i = 0; i < constant->size(); ++i) numbers.push_back(constant->Number(i));
  return numbers;
}

Interpolation ReadInterpolation(NodeImporter& node) {
  Interpolation how;
  const bool is_old = node.opset() < 11 || node.op() == "Upsample";
  how.mode = node.attributes.String("mode", "nearest");
  how.coordinates = node.attributes.String("coordinate_transformation_mode",
                                           is_old ? "asymmetric" : "half_pixel");
  how.nearest = node.attributes.String("nearest_mode", is_old ? "simple" : "round_prefer_floor");
  how.cubic_coefficient = node.attributes.Float("cubic_coeff_a", -0.75);
  how.excludes_outside = node.attributes.Int("exclude_outside", 0) != 0;
  how.antialias = node.attributes.Int("antialias", 0) != 0;
  how.extrapolation_value = node.attributes.Float("extrapolation_value", 0);
  if (how.mode == "bilinear") how.mode = "linear";
  node.Expect(how.mode == "nearest" || how.mode == "linear" || how.mode == "cubic", "mode ",
              QuotedName(how.mode), " is not known");
  static constexpr const char* kCoordinates[] = {
      "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",  "align_corners",
      "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn"};
  node.Expect(std::find(std::begin(kCoordinates), std::end(kCoordinates), how.coordinates) !=
                  std::end(kCoordinates),
              "coordinate_transformation_mode ", QuotedName(how.coordinates), " is not known");
  return how;
}

// The axes whose size changes, or whose window does.
std::vector<AxisResize> ReadAxes(NodeImporter& node, const Interpolation& how, const Sizes& from) {
  const int rank = static_cast<int>(from.size());
  const bool is_upsample = node.op() == "Upsample", has_roi = !is_upsample && node.opset() >= 11;
  const std::vector<double> attribute = node.attributes.Floats("scales", {});
  const std::vector<double> scales =
      attribute.empty() ? ConstantNumbers(node, has_roi ? 2 : 1) : attribute;
  const std::vector<double> wanted = ConstantNumbers(node, has_roi ? 3 : 4);
  const std::vector<double> roi =
      how.coordinates == "tf_crop_and_resize" ? ConstantNumbers(node, 1) : std::vector<double>();
  const Sizes axes = node.attributes.Ints("axes", AllAxes(rank));
  const std::string policy = node.attributes.String("keep_aspect_ratio_policy", "stretch");
  const size_t n = axes.size();
  if (!node.Expect(scales.size() == n || wanted.size() == n, "scales or sizes need ", n,
                   " numbers") ||
      !node.Expect(roi.empty() || roi.size() == 2 * n, "roi needs ", 2 * n, " numbers")) {
    return {};
  }
  std::vector<AxisResize> result;
  for (size_t i = 0; i < n; ++i) {
    const int axis = node.Axis(axes[i], rank);
    if (!node.ok()) return {};
    AxisResize a = {axis, from[axis], 0, 0};
    const double size = static_cast<double>(a.from);
    const bool by_size = wanted.size() == n;
    const double to = by_size ? wanted[i] : std::floor(size * scales[i]);
    if (!node.Expect(to >= 1 && to < (1 << 24), "dim ", axis, " becomes ", to)) return {};
    a.to = static_cast<int64_t>(to);
    a.scale = by_size ? to / size : scales[i];
    if (!roi.empty()) a.roi_begin = roi[i], a.roi_end = roi[n + i];
    if (!node.Expect(std::isfinite(a.roi_begin) && std::isfinite(a.roi_end), "roi of dim ", axis,
                     " is not finite")) {
      return {};
    }
    result.push_back(a);
  }
  if (policy == "stretch" || wanted.size() != n || result.empty()) return result;
  if (!node.Expect(policy == "not_larger" || policy == "not_smaller", "keep_aspect_ratio_policy ",
                   QuotedName(policy), " is not known")) {
    return {};
  }
  double common = result[0].scale;
  for (const AxisResize& a : result) {
    common = policy == "not_larger" ? std::min(common, a.scale) : std::max(common, a.scale);
  }
  for (AxisResize& a : result) {
    const double to = std::floor(common * static_cast<double>(a.from) + 0.5);
    if (!node.Expect(to >= 1 && to < (1 << 24), "dim ", a.axis, " becomes ", to)) return {};
    a.to = static_cast<int64_t>(to);
    a.scale = common;
  }
  return result;
}

}  // namespace

void ImportResize(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const Interpolation how = ReadInterpolation(node);
  if (!node.ok()) return;
  const DataType type = node.Type(x);
  if (!IsFloat(type) && how.mode != "nearest") return node.Refuse("interpolation of integers");
  std::vector<AxisResize> axes = ReadAxes(node, how, node.Sizes(x));
  const bool is_crop = how.coordinates == "tf_crop_and_resize";
  const auto stays = [&](const AxisResize& a) {
    return a.from == a.to && a.scale == 1 && !is_crop;
  };
  axes.erase(std::remove_if(axes.begin(), axes.end(), stays), axes.end());
  TensorRef y = Cast(node, x, IsFloat(type) ? type : DataType::kFloat32);
  for (const AxisResize& a : axes) y = ResizeAxis(node, how, a, y);
  if (is_crop && how.extrapolation_value != 0 && node.ok()) {
    y = Extrapolated(node, how, axes, node.Sizes(y), y);
  }
  DefineAs(node, 0, Cast(node, y, type));
}

}  // namespace isomer
