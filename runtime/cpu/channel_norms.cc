// Normalisation of channels: GroupNorm, BatchNorm, BatchNormTraining.
//
// GroupNorm and BatchNormTraining take the statistics of blocks, which are a range of channels of
// one sample, or one channel of all samples. Their gradients are given them: GroupNorm's as it
// saved them, the mean and r of each block, the other's as its outputs. With xhat =
// (x - mean) r, r = 1 / sqrt(variance + epsilon) and q = g gamma, over a block:
//   dgamma += sum g xhat;  dbeta += sum g;  dx = r (q - mean(q) - xhat mean(q xhat))
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "runtime/cpu/channels.h"
#include "runtime/cpu/kernels.h"

namespace isomer {
namespace {

// y = (x - mean) scale + beta
void Normalise(const Channels& channels, int64_t first, int64_t end, const float* x,
               const float* mean, const float* scale, const float* beta, float* y) {
  ForEachElement(channels, first, end,
                 [=](int64_t i, int64_t c) { y[i] = (x[i] - mean[c]) * scale[c] + beta[c]; });
}

// The sums of g and of g (x - mean).
class GradientSums {
 public:
  explicit GradientSums(int64_t size) : partial_(2 * size), sums_(2 * size, 0) {}
  void Add(const Channels& channels, int64_t first, int64_t end, const float* x, const float* mean,
           const float* g) {
    const auto terms = [=](int64_t i, int64_t c) {
      return std::array<float, 2>{g[i], g[i] * (x[i] - mean[c])};
    };
    AddSumsOfChannels<2>(channels, first, end, terms, partial_.data(), sums_.data());
  }
  double operator[](int64_t i) const { return sums_[i]; }

 private:
  std::vector<float> partial_;
  std::vector<double> sums_;
};

// to[c], to[size + c]: of channel c the mean of the rows, and the squares of the distances from it.
ISOMER_VECTORISED void MomentsOfRows(const float* x, int64_t rows, int64_t size, float* to) {
  float *means = to, *squares = to + size;
  std::fill_n(to, 2 * size, 0.0f);
  for (int64_t row = 0; row < rows; ++row) {
#pragma GCC ivdep
    for (int64_t c = 0; c < size; ++c) means[c] += x[row * size + c];
  }
  const float part = 1 / static_cast<float>(rows);
#pragma GCC ivdep
  for (int64_t c = 0; c < size; ++c) means[c] *= part;
  for (int64_t row = 0; row < rows; ++row) {
#pragma GCC ivdep
    for (int64_t c = 0; c < size; ++c) {
      const float distance = x[row * size + c] - means[c];
      squares[c] += distance * distance;
    }
  }
}

// Per channel of samples [first, end), the mean and the summed squares of the distances from it. x
// is read once, piece by piece, for the caches have a piece while it is gone over twice (Chan,
// Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances",
// 1982).
class ChannelMoments {
 public:
  ChannelMoments(const Channels& channels, int64_t first, int64_t end, const float* x)
      : means_(channels.size, 0), squares_(channels.size, 0) {
    const int64_t size = channels.size, inner = channels.inner;
    if (channels.last) {
      // Half of a core's first cache, but no more than floats add up well.
      const int64_t rows_at_a_time = std::clamp<int64_t>(4096 / size, 8, 64);
      std::vector<float> piece(2 * size);
      for (int64_t row = first * inner; row < end * inner; row += rows_at_a_time) {
        const int64_t rows = std::min(rows_at_a_time, end * inner - row);
        MomentsOfRows(x + row * size, rows, size, piece.data());
        AddPiece(0, size, row - first * inner, rows, piece.data(), piece.data() + size);
      }
      return;
    }
    for (int64_t line = first * size; line < end * size; ++line) {
      const float* numbers = x + line * inner;
      const float mean = static_cast<float>(LineSum(numbers, inner) / static_cast<double>(inner));
      const float squares = static_cast<float>(LineSums<1>(inner, [=](int64_t i) {
        return std::array<float, 1>{(numbers[i] - mean) * (numbers[i] - mean)};
      })[0]);
      AddPiece(line % size, 1, (line / size - first) * inner, inner, &mean, &squares);
    }
  }

  double mean(int64_t channel) const { return means_[channel]; }
  double squares(int64_t channel) const { return squares_[channel]; }

 private:
  // Of `count` channels from `first` on, `numbers` of each, behind as many as were `seen`.
  void AddPiece(int64_t first, int64_t count, int64_t seen, int64_t numbers, const float* means,
                const float* squares) {
    const double part = static_cast<double>(numbers) / static_cast<double>(seen + numbers);
    const double both = static_cast<double>(seen) * part;
    ForEachIndex(count, [=, to_means = means_.data() + first,
                         to_squares = squares_.data() + first](int64_t c) {
      const double distance = means[c] - to_means[c];
      to_means[c] += distance * part;
      to_squares[c] += squares[c] + distance * distance * both;
    });
  }

  std::vector<double> means_, squares_;
};

// Per channel the mean of its block and 1 / sqrt(variance + epsilon).
struct Statistics {
  std::vector<float> mean, variance, r;
  double count;  // of a block

  // Of samples [first, end).
  Statistics(const Channels& channels, int64_t first, int64_t end, int64_t per_block,
             double epsilon, const float* x)
      : mean(channels.size),
        variance(channels.size),
        count(static_cast<double>((end - first) * channels.inner * per_block)) {
    const ChannelMoments moments(channels, first, end, x);
    const auto of_channel = static_cast<double>((end - first) * channels.inner);
    for (int64_t c = 0; c < channels.size; c += per_block) {
      double of_block = 0, squares = 0;
      for (int64_t i = c; i < c + per_block; ++i) {
        of_block += moments.mean(i) / static_cast<double>(per_block);
      }
      for (int64_t i = c; i < c + per_block; ++i) {
        const double distance = moments.mean(i) - of_block;
        squares += moments.squares(i) + distance * distance * of_channel;
      }
      std::fill_n(mean.begin() + c, per_block, static_cast<float>(of_block));
      std::fill_n(variance.begin() + c, per_block, static_cast<float>(squares / count));
    }
    SetInverseDeviations(epsilon);
  }
  // As they were found before, of blocks of one channel.
  Statistics(const Channels& channels, double epsilon, const float* means, const float* variances)
      : mean(means, means + channels.size),
        variance(variances, variances + channels.size),
        count(static_cast<double>(channels.outer * channels.inner)) {
    SetInverseDeviations(epsilon);
  }
  // As they were saved, of the blocks of one sample.
  Statistics(const Channels& channels, int64_t per_block, const float* saved)
      : mean(channels.size),
        r(channels.size),
        count(static_cast<double>(channels.inner * per_block)) {
    for (int64_t c = 0; c < channels.size; c += per_block, saved += 2) {
      std::fill_n(mean.begin() + c, per_block, saved[0]);
      std::fill_n(r.begin() + c, per_block, saved[1]);
    }
  }
  void Save(int64_t per_block, float* saved) const {
    for (size_t c = 0; c < mean.size(); c += per_block, saved += 2) {
      saved[0] = mean[c];
      saved[1] = r[c];
    }
  }

 private:
  void SetInverseDeviations(double epsilon) {
    for (float v : variance) r.push_back(static_cast<float>(1 / std::sqrt(v + epsilon)));
  }
};

struct Norm {
  Channels channels;
  int64_t samples, per_block;  // of a block: samples, and channels
  double epsilon;
  bool has_statistics;  // as outputs 1 and 2, one a channel
  bool saves = false;   // for the gradient
  int64_t saved_of_sample() const { return 2 * channels.size / per_block; }

  Statistics StatisticsOf(int64_t first, const float* x) const {
    return Statistics(channels, first, first + samples, per_block, epsilon, x);
  }
};

void Forward(const Norm& norm, Reads reads, Writes writes) {
  const float *x = Floats(reads[0]), *gamma = Floats(reads[1]), *beta = Floats(reads[2]);
  std::vector<float> scale(norm.channels.size);
  for (int64_t n = 0; n < norm.channels.outer; n += norm.samples) {
    const Statistics s = norm.StatisticsOf(n, x);
    for (size_t c = 0; c < scale.size(); ++c) scale[c] = s.r[c] * gamma[c];
    Normalise(norm.channels, n, n + norm.samples, x, s.mean.data(), scale.data(), beta,
              Floats(writes[0]));
    if (norm.saves) s.Save(norm.per_block, Floats(writes[1]) + n * norm.saved_of_sample());
    if (!norm.has_statistics) continue;
    std::copy(s.mean.begin(), s.mean.end(), Floats(writes[1]));
    std::copy(s.variance.begin(), s.variance.end(), Floats(writes[2]));
  }
}

void Gradient(const Norm& norm, Reads reads, Writes writes) {
  const Channels& channels = norm.channels;
  const int64_t size = channels.size;
  const int first_gradient = norm.has_statistics ? 6 : 4;
  const float *x = Floats(reads[0]), *gamma = Floats(reads[1]), *g = Floats(reads[first_gradient]);
  std::vector<double> dgamma(size, 0), dbeta(size, 0);
  // dx = of_g g + of_x (x - mean) + rest
  std::vector<float> of_g(size), of_x(size), rest(size);
  for (int64_t n = 0; n < channels.outer; n += norm.samples) {
    const int64_t end = n + norm.samples;
    const Statistics s =
        norm.has_statistics
            ? Statistics(channels, norm.epsilon, Floats(reads[4]), Floats(reads[5]))
            : Statistics(channels, norm.per_block, Floats(reads[5]) + n * norm.saved_of_sample());
    const float* mean = s.mean.data();
    GradientSums sums(size);
    sums.Add(channels, n, end, x, mean, g);
    for (int64_t begin = 0; begin < size; begin += norm.per_block) {
      const double r = s.r[begin];
      double mean_q = 0, mean_qx = 0;
      for (int64_t c = begin; c < begin + norm.per_block; ++c) {
        dgamma[c] += sums[size + c] * r;
        dbeta[c] += sums[c];
        mean_q += sums[c] * gamma[c] / s.count;
        mean_qx += sums[size + c] * r * gamma[c] / s.count;
      }
      // What the mean and the variance themselves add: dmean / N + 2 dvariance (x - mean) / N.
      double of_mean = 0, of_variance = 0;
      if (norm.has_statistics) {
        of_mean = Floats(reads[7])[begin] / s.count;
        of_variance = 2 * Floats(reads[8])[begin] / s.count;
      }
      for (int64_t c = begin; c < begin + norm.per_block; ++c) {
        of_g[c] = static_cast<float>(r * gamma[c]);
        of_x[c] = static_cast<float>(of_variance - r * r * mean_qx);
        rest[c] = static_cast<float>(of_mean - r * mean_q);
      }
    }
    if (writes[0] == nullptr) continue;
    ForEachElement(
        channels, n, end,
        [=, dx = Floats(writes[0]), a = of_g.data(), b = of_x.data(), d = rest.data()](
            int64_t i, int64_t c) { dx[i] = a[c] * g[i] + b[c] * (x[i] - mean[c]) + d[c]; });
  }
  if (writes[1] != nullptr) std::copy(dgamma.begin(), dgamma.end(), Floats(writes[1]));
  if (writes[2] != nullptr) std::copy(dbeta.begin(), dbeta.end(), Floats(writes[2]));
}

KernelFunction NormKernel(const KernelCall& call, Norm norm) {
  return [norm, gradient = call.gradient](Reads reads, Writes writes) {
    (gradient ? Gradient : Forward)(norm, reads, writes);
    return absl::OkStatus();
  };
}

Channels ChannelsOf(const KernelCall& call) {
  return {call.operands[0], call.layouts.OfOperand(0)};
}

// Operands X, gamma, beta, mean, variance:
//   dx = g r gamma;  dgamma = sum g (x - mean) r;  dbeta = sum g
//   dmean = -sum g r gamma;  dvariance = -1/2 sum g (x - mean) gamma r^3
void BatchNormGradient(const Channels& channels, float epsilon, Reads reads, Writes writes) {
  const float *x = Floats(reads[0]), *gamma = Floats(reads[1]), *mean = Floats(reads[3]),
              *variance = Floats(reads[4]), *g = Floats(reads[6]);
  const int64_t size = channels.size;
  std::vector<float> scale(size);
  for (int64_t c = 0; c < size; ++c) scale[c] = gamma[c] / std::sqrt(variance[c] + epsilon);
  GradientSums sums(size);
  // Some places at a time, or a sample, while the caches have it.
  const Channels parts = channels.ByPlace();
  const int64_t at_once = channels.last ? 64 : 1;
  for (int64_t n = 0; n < parts.outer; n += at_once) {
    const int64_t end = std::min(n + at_once, parts.outer);
    sums.Add(parts, n, end, x, mean, g);
    if (writes[0] == nullptr) continue;
    ForEachElement(parts, n, end,
                   [dx = Floats(writes[0]), g, a = scale.data()](int64_t i, int64_t c) {
                     dx[i] = g[i] * a[c];
                   });
  }
  for (int64_t c = 0; c < size; ++c) {
    const double r = 1 / std::sqrt(variance[c] + epsilon);
    const double of_channel[] = {0, sums[size + c] * r, sums[c], -sums[c] * r * gamma[c],
                                 -0.5 * sums[size + c] * gamma[c] * r * r * r};
    for (int o = 1; o < 5; ++o) {
      if (writes[o] != nullptr) Floats(writes[o])[c] = static_cast<float>(of_channel[o]);
    }
  }
}

}  // namespace

KernelFunction GroupNormKernel(const KernelCall& call) {
  // A task may have a part of the groups.
  const int64_t channels = call.declaration.operands[0][1].value();
  return NormKernel(call, {.channels = ChannelsOf(call),
                           .samples = 1,
                           .per_block = channels / call.op.Int("groups"),
                           .epsilon = call.op.Number("epsilon"),
                           .has_statistics = false,
                           .saves = call.saved.has_value()});
}

KernelFunction BatchNormTrainingKernel(const KernelCall& call) {
  const Channels channels = ChannelsOf(call);
  return NormKernel(call, {.channels = channels,
                           .samples = channels.outer,
                           .per_block = 1,
                           .epsilon = call.op.Number("epsilon"),
                           .has_statistics = true});
}

KernelFunction BatchNormKernel(const KernelCall& call) {
  const Channels channels = ChannelsOf(call);
  const float epsilon = static_cast<float>(call.op.Number("epsilon"));
  if (call.gradient) {
    return [=](Reads reads, Writes writes) {
      BatchNormGradient(channels, epsilon, reads, writes);
      return absl::OkStatus();
    };
  }
  return [=](Reads reads, Writes writes) {
    const float *gamma = Floats(reads[1]), *variance = Floats(reads[4]);
    std::vector<float> scale(channels.size);
    for (size_t c = 0; c < scale.size(); ++c)
      scale[c] = gamma[c] / std::sqrt(variance[c] + epsilon);
    Normalise(channels, 0, channels.outer, Floats(reads[0]), Floats(reads[3]), scale.data(),
              Floats(reads[2]), Floats(writes[0]));
    return absl::OkStatus();
  };
}

}  // namespace isomer
