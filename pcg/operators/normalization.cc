// Normalisation: what is normalised over is needed as a whole.
#include "absl/strings/str_cat.h"
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"

namespace isomer {

// M[..] = max_j X[..,j];  S[..] = sum_j exp(X[..,j] - M[..])
// Softmax:    Y[..,j] = exp(X[..,j] - M[..]) / S[..]
// LogSoftmax: Y[..,j] = X[..,j] - M[..] - log S[..]
absl::StatusOr<Declaration> DeclareSoftmax(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  ISOMER_ASSIGN_OR_RETURN(const int axis,
                          NormalizeAxis(op.Int("axis"), static_cast<int>(x.size())));
  DeclarationBuilder d(shapes);
  std::vector<int> rest;
  std::vector<Index> index;
  int j = -1;
  for (int i = 0; i < static_cast<int>(x.size()); ++i) {
    const int dim =
        i == axis ? (j = d.Whole("j", x[i])) : d.Parallel("i" + std::to_string(i), x[i]);
    if (i != axis) rest.push_back(dim);
    index.push_back(dim);
  }
  const Expr max = d.Let("M", rest, Reduction::kMax, {j}, d.In(0, index));
  const Expr numerator = Apply(ScalarOp::kExp, d.In(0, index) - max);
  const Expr sum = d.Let("S", rest, Reduction::kSum, {j}, numerator);
  if (op.kind() == OpKind::kLogSoftmax) {
    d.Output(index, d.In(0, index) - max - Apply(ScalarOp::kLog, sum));
  } else {
    d.Output(index, numerator / sum);
  }
  return d.Build();
}

constexpr OperatorTraits kSoftmaxTraits = {
    .gradient_reads_result = true,
    .examples = {{"Softmax", "softmax f32[2,4,6]"},
                 {"SoftmaxFirstAxis", "softmax(axis=0) f32[4,6]"}}};
constexpr OperatorTraits kLogSoftmaxTraits = {
    .needs_float32 = true,
    .gradient_reads_result = true,
    .examples = {{"LogSoftmax", "log_softmax f32[2,4,6]"},
                 {"LogSoftmaxFirstAxis", "log_softmax(axis=0) f32[4,6]"}}};

// mean[..] = sum_h X[..,h] / H;  var[..] = sum_h (X[..,h] - mean[..])^2 / H
// Y[..,h] = (X[..,h] - mean[..]) / sqrt(var[..] + epsilon) * G[h] + B[h]
absl::StatusOr<Declaration> DeclareLayerNorm(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  if (x.empty()) return ExpectRank(op, shapes, 0, 1);
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 1, 1));
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 2, 1));
  for (int o : {1, 2}) {
    if (shapes[o][0] != x.back()) return Mismatch(op, "h", 0, x.back(), o, shapes[o][0]);
  }
  if (!x.back().known()) return absl::UnimplementedError("layer_norm: needs a concrete size of h");
  DeclarationBuilder d(shapes);
  const std::vector<int> rest =
      d.Dims("i", DimKind::kParallel, absl::MakeConstSpan(x).first(x.size() - 1));
  const int h = d.Whole("h", x.back());
  std::vector<Index> index(rest.begin(), rest.end());
  index.push_back(h);
  const Expr size = static_cast<double>(x.back().value());
  const Expr total = d.Let("total", rest, Reduction::kSum, {h}, d.In(0, index));
  const Expr centred = d.In(0, index) - total / size;
  const Expr squares = d.Let("squares", rest, Reduction::kSum, {h}, centred * centred);
  d.Output(index,
           centred / Apply(ScalarOp::kSqrt, squares / size + op.Number("epsilon")) * d.In(1, {h}) +
               d.In(2, {h}));
  return d.Build();
}

constexpr OperatorTraits kLayerNormTraits = {
    .scales = {1},
    .saved_per_row = 2,  // mean and deviation
    .examples = {{"LayerNorm", "layer_norm(epsilon=0.01) f32[2,4,6] f32[6] f32[6]"}}};

// Y[..,h] = X[..,h] / sqrt(sum_h X[..,h]^2 / H + epsilon) * G[h]
absl::StatusOr<Declaration> DeclareRmsNorm(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  if (x.empty()) return ExpectRank(op, shapes, 0, 1);
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 1, 1));
  if (shapes[1][0] != x.back()) return Mismatch(op, "h", 0, x.back(), 1, shapes[1][0]);
  if (!x.back().known()) return absl::UnimplementedError("rms_norm: needs a concrete size of h");
  DeclarationBuilder d(shapes);
  const std::vector<int> rest =
      d.Dims("i", DimKind::kParallel, absl::MakeConstSpan(x).first(x.size() - 1));
  const int h = d.Whole("h", x.back());
  std::vector<Index> index(rest.begin(), rest.end());
  index.push_back(h);
  const Expr squares =
      d.Let("squares", rest, Reduction::kSum, {h}, d.In(0, index) * d.In(0, index));
  const Expr mean = squares / static_cast<double>(x.back().value());
  d.Output(index,
           d.In(0, index) / Apply(ScalarOp::kSqrt, mean + op.Number("epsilon")) * d.In(1, {h}));
  return d.Build();
}

constexpr OperatorTraits kRmsNormTraits = {
    .scales = {1},
    .saved_per_row = 1,
    .examples = {{"RmsNorm", "rms_norm(epsilon=0.01) f32[2,4,6] f32[6]"}}};

// mean[n,g] = sum_{c,i..} X[n,(g,c),i..] / N;  var[n,g] = sum_{c,i..} (X - mean)^2 / N
// Y[n,(g,c),i..] = (X - mean) / sqrt(var + epsilon) * gamma[(g,c)] + beta[(g,c)]
absl::StatusOr<Declaration> DeclareGroupNorm(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  if (x.size() < 2) return ExpectRank(op, shapes, 0, 2);
  for (int o : {1, 2}) {
    ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, o, 1));
    if (shapes[o][0] != x[1]) return Mismatch(op, "c", 0, x[1], o, shapes[o][0]);
  }
  ISOMER_RETURN_IF_ERROR(ExpectConcreteSizes(op, {x}));
  const int64_t groups = op.Int("groups");
  if (groups < 1 || x[1].value() % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "group_norm: ", x[1].ToString(), " channels do not divide into ", groups, " groups"));
  }
  DeclarationBuilder d(shapes);
  const int64_t per_group = x[1].value() / groups;
  const int n = d.Parallel("n", x[0]), g = d.Parallel("g", groups), c = d.Whole("c", per_group);
  const Index channel = Index(g) * per_group + Index(c);
  std::vector<int> over = {c};
  std::vector<Index> index = {n, channel};
  double count = static_cast<double>(per_group);
  for (int dim : d.Dims("i", DimKind::kWhole, absl::MakeConstSpan(x).subspan(2))) {
    count *= static_cast<double>(x[index.size()].value());
    over.push_back(dim);
    index.push_back(dim);
  }
  const Expr total = d.Let("total", {n, g}, Reduction::kSum, over, d.In(0, index));
  const Expr centred = d.In(0, index) - total / count;
  const Expr squares = d.Let("squares", {n, g}, Reduction::kSum, over, centred * centred);
  const Expr deviation = Apply(ScalarOp::kSqrt, squares / count + op.Number("epsilon"));
  d.Output(index, centred / deviation * d.In(1, {channel}) + d.In(2, {channel}));
  return d.Build();
}

constexpr OperatorTraits kGroupNormTraits = {
    .scales = {1},
    .saved_per_row = 2,  // mean and deviation of a group
    .takes_channels_last = true,
    .examples = {{"GroupNorm", "group_norm(groups=2,epsilon=0.01) f32[2,4,2,2] f32[4] f32[4]"},
                 {"InstanceNorm", "group_norm(groups=4,epsilon=0.01) f32[2,4,6] f32[4] f32[4]"}}};

// The inference form, with given statistics (operands: X, gamma, beta, mean, variance):
// Y[n,c,..] = (X[n,c,..] - mean[c]) / sqrt(variance[c] + epsilon) * gamma[c] + beta[c]
absl::StatusOr<Declaration> DeclareBatchNorm(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  if (x.size() < 2) return ExpectRank(op, shapes, 0, 2);
  for (int o = 1; o < 5; ++o) {
    ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, o, 1));
    if (shapes[o][0] != x[1]) return Mismatch(op, "c", 0, x[1], o, shapes[o][0]);
  }
  DeclarationBuilder d(shapes);
  const int n = d.Parallel("n", x[0]), c = d.Parallel("c", x[1]);
  std::vector<Index> index = {n, c};
  for (int dim : d.Dims("i", DimKind::kParallel, absl::MakeConstSpan(x).subspan(2)))
    index.push_back(dim);
  const Expr deviation = Apply(ScalarOp::kSqrt, d.In(4, {c}) + op.Number("epsilon"));
  d.Output(index, (d.In(0, index) - d.In(3, {c})) / deviation * d.In(1, {c}) + d.In(2, {c}));
  return d.Build();
}

constexpr OperatorTraits kBatchNormTraits = {
    .takes_positive_numbers = true,  // the variance
    .scales = {1, 4},
    .takes_channels_last = true,
    .examples = {
        {"BatchNorm", "batch_norm(epsilon=0.01) f32[2,4,2,2] f32[4] f32[4] f32[4] f32[4]"}}};

// The statistics of the batch, which are outputs too; the variance is the biased one:
// mean[c] = sum_{n,i..} X[n,c,i..] / N;  variance[c] = sum_{n,i..} (X - mean)^2 / N
// Y[n,c,i..] = (X - mean) / sqrt(variance + epsilon) * gamma[c] + beta[c]
absl::StatusOr<Declaration> DeclareBatchNormTraining(const Operator& op,
                                                     absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  if (x.size() < 2) return ExpectRank(op, shapes, 0, 2);
  for (int o : {1, 2}) {
    ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, o, 1));
    if (shapes[o][0] != x[1]) return Mismatch(op, "c", 0, x[1], o, shapes[o][0]);
  }
  DeclarationBuilder d(shapes);
  const int n = d.Whole("n", x[0]), c = d.Parallel("c", x[1]);
  std::vector<int> over = {n};
  std::vector<Index> index = {n, c};
  for (int dim : d.Dims("i", DimKind::kWhole, absl::MakeConstSpan(x).subspan(2))) {
    over.push_back(dim);
    index.push_back(dim);
  }
  double count = 1;
  for (size_t i = 0; i < x.size(); ++i) {
    if (i == 1) continue;
    if (!x[i].known()) {
      return absl::UnimplementedError("batch_norm_training: needs concrete sizes");
    }
    count *= static_cast<double>(x[i].value());
  }
  const Expr mean = d.Let("total", {c}, Reduction::kSum, over, d.In(0, index)) / count;
  const Expr centred = d.In(0, index) - mean;
  const Expr variance = d.Let("squares", {c}, Reduction::kSum, over, centred * centred) / count;
  d.Output(index, centred / Apply(ScalarOp::kSqrt, variance + op.Number("epsilon")) * d.In(1, {c}) +
                      d.In(2, {c}));
  d.Output({c}, mean);
  d.Output({c}, variance);
  return d.Build();
}

constexpr OperatorTraits kBatchNormTrainingTraits = {
    .most_outputs = 3,
    .other_results = ResultType::kFloat32,
    .scales = {1},
    .takes_channels_last = true,
    .examples = {
        {"BatchNormTraining", "batch_norm_training(epsilon=0.01) f32[4,4,2,2] f32[4] f32[4]"},
        {"BatchNormTrainingFeatures", "batch_norm_training(epsilon=0.01) f32[6,4] f32[4] f32[4]"}}};

}  // namespace isomer
