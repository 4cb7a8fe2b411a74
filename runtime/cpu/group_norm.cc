// Normalisation over the statistics of blocks: GroupNorm, BatchNormTraining.
//
// Both see their operand as [outer, channels, inner] and normalise a block of it, which is a
// channel range of one sample (GroupNorm) or one channel of all samples (BatchNormTraining). With
// xhat = (x - mean) r, r = 1 / sqrt(variance + epsilon) and q = g gamma, over a block:
//   dgamma += sum g xhat;  dbeta += sum g;  dx = r (q - mean(q) - xhat mean(q xhat))
#include <algorithm>
#include <cmath>

#include "runtime/cpu/kernels.h"

namespace isomer {
namespace {

struct Block {
  int64_t first_outer, last_outer, first_channel, last_channel;  // the last ones are not in it
};

// Calls f(offset, channel) for every element of the block.
template <typename Function>
void ForEachIn(const Block& block, const AxisSplit& split, Function f) {
  for (int64_t n = block.first_outer; n < block.last_outer; ++n) {
    for (int64_t c = block.first_channel; c < block.last_channel; ++c) {
      const int64_t at = (n * split.size + c) * split.inner;
      for (int64_t i = at; i < at + split.inner; ++i) f(i, c);
    }
  }
}

struct Statistics {
  double count = 0, mean = 0, variance = 0;

  Statistics(const Block& block, const AxisSplit& split, const float* x) {
    double sum = 0, squares = 0;
    ForEachIn(block, split, [&](int64_t i, int64_t) { sum += x[i], ++count; });
    mean = sum / count;
    ForEachIn(block, split, [&](int64_t i, int64_t) { squares += (x[i] - mean) * (x[i] - mean); });
    variance = squares / count;
  }
};

struct Norm {
  AxisSplit split;
  std::vector<Block> blocks;
  double epsilon;
  bool has_statistics;  // as outputs 1 and 2, one a channel
};

void Forward(const Norm& norm, Reads reads, Writes writes) {
  const float *x = Floats(reads[0]), *gamma = Floats(reads[1]), *beta = Floats(reads[2]);
  float* y = Floats(writes[0]);
  for (const Block& block : norm.blocks) {
    const Statistics s(block, norm.split, x);
    const float mean = static_cast<float>(s.mean);
    const float r = static_cast<float>(1 / std::sqrt(s.variance + norm.epsilon));
    ForEachIn(block, norm.split,
              [&](int64_t i, int64_t c) { y[i] = (x[i] - mean) * r * gamma[c] + beta[c]; });
    if (!norm.has_statistics) continue;
    Floats(writes[1])[block.first_channel] = mean;
    Floats(writes[2])[block.first_channel] = static_cast<float>(s.variance);
  }
}

void Gradient(const Norm& norm, Reads reads, Writes writes) {
  const int first_gradient = norm.has_statistics ? 6 : 4;
  const float *x = Floats(reads[0]), *gamma = Floats(reads[1]), *g = Floats(reads[first_gradient]);
  float* dx = Floats(writes[0]);
  std::vector<double> dgamma(norm.split.size, 0), dbeta(norm.split.size, 0);
  for (const Block& block : norm.blocks) {
    const Statistics s(block, norm.split, x);
    const double r = 1 / std::sqrt(s.variance + norm.epsilon);
    double sum_q = 0, sum_qx = 0;
    ForEachIn(block, norm.split, [&](int64_t i, int64_t c) {
      const double xhat = (x[i] - s.mean) * r, q = g[i] * gamma[c];
      sum_q += q;
      sum_qx += q * xhat;
      dgamma[c] += g[i] * xhat;
      dbeta[c] += g[i];
    });
    if (dx == nullptr) continue;
    // What the mean and the variance themselves add to dx: dmean / N + 2 dvariance (x - mean) / N.
    double of_mean = 0, of_variance = 0;
    if (norm.has_statistics) {
      of_mean = Floats(reads[7])[block.first_channel] / s.count;
      of_variance = 2 * Floats(reads[8])[block.first_channel] / s.count;
    }
    const double mean_q = sum_q / s.count, mean_qx = sum_qx / s.count;
    ForEachIn(block, norm.split, [&](int64_t i, int64_t c) {
      const double centred = x[i] - s.mean, q = g[i] * gamma[c];
      dx[i] = static_cast<float>(r * (q - mean_q - centred * r * mean_qx) + of_mean +
                                 of_variance * centred);
    });
  }
  if (writes[1] != nullptr) std::copy(dgamma.begin(), dgamma.end(), Floats(writes[1]));
  if (writes[2] != nullptr) std::copy(dbeta.begin(), dbeta.end(), Floats(writes[2]));
}

KernelFunction NormKernel(const KernelCall& call, Norm norm) {
  return [norm = std::move(norm), gradient = call.gradient](Reads reads, Writes writes) {
    (gradient ? Gradient : Forward)(norm, reads, writes);
    return absl::OkStatus();
  };
}

}  // namespace

KernelFunction GroupNormKernel(const KernelCall& call) {
  Norm norm{SplitAtAxis(call.operands[0], 1), {}, call.op.Number("epsilon"), false};
  // A task may have a part of the groups.
  const int64_t channels = call.declaration.operands[0][1].value();
  const int64_t per_group = channels / call.op.Int("groups");
  for (int64_t n = 0; n < norm.split.outer; ++n) {
    for (int64_t c = 0; c < norm.split.size; c += per_group) {
      norm.blocks.push_back({n, n + 1, c, c + per_group});
    }
  }
  return NormKernel(call, std::move(norm));
}

KernelFunction BatchNormTrainingKernel(const KernelCall& call) {
  Norm norm{SplitAtAxis(call.operands[0], 1), {}, call.op.Number("epsilon"), true};
  for (int64_t c = 0; c < norm.split.size; ++c) {
    norm.blocks.push_back({0, norm.split.outer, c, c + 1});
  }
  return NormKernel(call, std::move(norm));
}

}  // namespace isomer
