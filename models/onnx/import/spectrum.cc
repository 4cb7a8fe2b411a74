// Discrete Fourier transforms: products with a matrix of cosines and sines. Complex numbers are
// pairs, the last dim.
#include <cmath>
#include <utility>

#include "models/onnx/import/formulas.h"
#include "models/onnx/import/operators.h"

namespace isomer {
namespace {

// Y[k] = sum over i: X[i] e^(-2 pi i k j / length), or with + and divided by `length`.
struct FourierTransform {
  int64_t length = 1;
  bool is_inverse = false;
  // Half of a spectrum that is that of real numbers: k up to length / 2. Of the inverse, X.
  bool is_onesided = false;

  int64_t half() const { return length / 2 + 1; }
  int64_t inputs() const { return is_onesided && is_inverse ? half() : length; }
  int64_t outputs() const { return is_onesided && !is_inverse ? half() : length; }
  int64_t output_parts() const { return is_onesided && is_inverse ? 1 : 2; }
};

// The matrix of the transform of the first `used` inputs of `parts` (1: real) numbers each,
// [used * parts, outputs * output parts].
std::vector<float> FourierMatrix(const FourierTransform& f, int64_t used, int64_t parts) {
  const double two_pi = 2 * std::acos(-1.0), n = static_cast<double>(f.length);
  std::vector<float> matrix;
  for (int64_t i = 0; i < used; ++i) {
    // What half of a spectrum leaves out is the conjugate of what it has, which adds as much to the
    // real numbers.
    const bool stands_for_two = f.is_onesided && f.is_inverse && i > 0 && 2 * i != f.length;
    const double scale = f.is_inverse ? (stands_for_two ? 2 : 1) / n : 1;
    for (int64_t part = 0; part < parts; ++part) {
      for (int64_t k = 0; k < f.outputs(); ++k) {
        // i k modulo n first: of large angles little would remain.
        const auto turns = static_cast<int64_t>(static_cast<__int128>(i) * k % f.length);
        const double angle = two_pi * static_cast<double>(turns) / n;
        const double c = scale * std::cos(angle);
        const double s = (f.is_inverse ? scale : -scale) * std::sin(angle);
        matrix.push_back(static_cast<float>(part == 0 ? c : -s));
        if (f.output_parts() == 2) matrix.push_back(static_cast<float>(part == 0 ? s : c));
      }
    }
  }
  return matrix;
}

// One number that the operand must hold as a constant; `absent` where it is left out.
int64_t ConstantInt(NodeImporter& node, int i, int64_t absent) {
  const std::vector<int64_t> values = node.ConstantInts(i, {absent});
  return node.Expect(values.size() == 1, "input ", i, " is not one number") ? values[0] : absent;
}

}  // namespace

// DFT(x [.., 1 or 2], dft_length, axis); before opset 20 the axis is an attribute.
void ImportDft(NodeImporter& node) {
  TensorRef x = node.Operand(0);
  if (!node.ok()) return;
  const int rank = node.Rank(x);
  const int64_t stated =
      node.opset() >= 20 ? ConstantInt(node, 2, -2) : node.attributes.Int("axis", 1);
  FourierTransform f;
  f.is_inverse = node.attributes.Int("inverse", 0) != 0;
  f.is_onesided = node.attributes.Int("onesided", 0) != 0;
  const int axis = node.Axis(stated, rank);
  if (!node.ok()) return;
  Sizes sizes = node.Sizes(x);
  const int64_t parts = sizes.back(), given = sizes[axis];
  if (!node.Expect(axis != rank - 1, "the axis is that of real and imaginary parts") ||
      !node.Expect(parts == 1 || parts == 2, "the last dim has size ", parts, ", not 1 or 2")) {
    return;
  }
  const bool is_half = f.is_onesided && f.is_inverse;
  f.length = ConstantInt(node, 1, is_half ? 2 * (given - 1) : given);
  if (!node.Expect(f.length >= 1 && f.length < (1 << 24), "dft_length is ", f.length)) return;
  // What is further is not read, what is missing is 0.
  const int64_t used = std::min(given, f.inputs());
  x = Sliced(node, x, axis, 0, used);
  const Sizes dims = {used * parts, f.outputs() * f.output_parts()};
  if (!FitsLiteral(node, dims)) return;
  TensorRef matrix = FloatLiteral(node, dims, FourierMatrix(f, used, parts));
  if (!node.ok()) return;
  matrix = Cast(node, matrix, node.Type(x));
  // [.., axis * parts] by the matrix.
  Sizes last = AllAxes(rank), back(rank);
  last.erase(last.begin() + axis);
  last.insert(last.end() - 1, axis);
  for (int i = 0; i < rank; ++i) back[last[i]] = i;
  Sizes rows;
  for (int i = 0; i < rank - 2; ++i) rows.push_back(sizes[last[i]]);
  Sizes result = rows;
  result.push_back(f.outputs());
  result.push_back(f.output_parts());
  rows.push_back(used * parts);
  TensorRef y = Reshaped(node, Transposed(node, x, last), rows);
  if (rows.size() == 1) y = Reshaped(node, y, {1, rows[0]});
  y = Reshaped(node, Product(node, y, matrix), std::move(result));
  DefineAs(node, 0, Transposed(node, y, std::move(back)));
}

// STFT(x [n, length, 1 or 2], step, window, frame length): a DFT of each frame times the window,
// [n, frame, k, 2]. A convolution with the windowed matrix.
void ImportStft(NodeImporter& node) {
  TensorRef x = node.Operand(0);
  if (!node.ok()) return;
  Sizes sizes = node.Sizes(x);
  if (sizes.size() == 2) sizes.push_back(1);
  if (!node.Expect(sizes.size() == 3 && (sizes[2] == 1 || sizes[2] == 2),
                   "input 0 is not [n, length, 1 or 2]")) {
    return;
  }
  const int64_t parts = sizes[2], step = ConstantInt(node, 1, 1);
  const TensorRef window = node.HasInput(2) ? node.Operand(2) : TensorRef();
  const int64_t widest =
      node.HasInput(2) && node.ok() ? NumElementsOf(node.Sizes(window)) : sizes[1];
  FourierTransform f;
  f.length = ConstantInt(node, 3, widest);
  f.is_onesided = node.attributes.Int("onesided", 1) != 0;
  if (!node.Expect(step >= 1 && step < (1 << 24), "frame_step is ", step) ||
      !node.Expect(f.length >= 1 && f.length <= sizes[1], "the frame length is ", f.length, " of ",
                   sizes[1]) ||
      !node.Expect(!node.HasInput(2) || node.Sizes(window) == Sizes{f.length},
                   "the window is not [", f.length, "]")) {
    return;
  }
  const int64_t channels = 2 * f.outputs();
  if (!FitsLiteral(node, {channels, parts, f.length})) return;
  // [i, part, channel] to filters [channel, part, i].
  const std::vector<float> matrix = FourierMatrix(f, f.length, parts);
  std::vector<float> turned(matrix.size());
  for (int64_t row = 0; row < f.length * parts; ++row) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      const int64_t at = (channel * parts + row % parts) * f.length + row / parts;
      turned[at] = matrix[row * channels + channel];
    }
  }
  TensorRef filters = FloatLiteral(node, {channels, parts, f.length}, std::move(turned));
  if (!node.ok()) return;
  filters = Cast(node, filters, node.Type(x));
  if (node.HasInput(2)) filters = Apply(node, OpKind::kMul, filters, window);
  x = parts == 1 ? Reshaped(node, x, {sizes[0], 1, sizes[1]}) : Transposed(node, x, {0, 2, 1});
  const Operator conv = {OpKind::kConv1d,
                         {{"stride", Sizes{step}},
                          {"padding", Sizes{0, 0}},
                          {"dilation", Sizes{1}},
                          {"groups", int64_t{1}}}};
  TensorRef y = Transposed(node, node.Call(conv, {x, filters}, "/frames"), {0, 2, 1});
  const int64_t frames = (sizes[1] - f.length) / step + 1;
  DefineAs(node, 0, Reshaped(node, y, {sizes[0], frames, f.outputs(), 2}));
}

}  // namespace isomer
