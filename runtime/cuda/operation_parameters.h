// What the kernels of operations.cuh are given, on both sides: words of eight bytes. Includes
// nothing, as it is a part of their text.
#ifndef ISOMER_RUNTIME_CUDA_OPERATION_PARAMETERS_H_
#define ISOMER_RUNTIME_CUDA_OPERATION_PARAMETERS_H_

namespace isomer {

struct FillParameters {
  void* to;
  long long count, element_bytes;
  unsigned long long bits;
};
// With value times *factor, floats.
struct ScaledFillParameters {
  void* to;
  const double* factor;
  long long count, dtype;
  double value;
};
struct FloatParameters {
  const void* from;
  void* to;
  long long count, from_dtype, dtype;
};
struct UpdateParameters {
  const void* gradient;
  const float* weights;
  float* updated;
  float* states[2];
  void* low;
  // UpdateFactors: rate, correction, scale, shrink, pull.
  const double* factors;
  long long count, optimizer, gradient_dtype, low_dtype, decays, nesterov;
  double momentum, b1, b2, c1, c2, epsilon;
};
constexpr int kMostDims = 8, kMostPieces = 16, kMostTerms = 64;
struct RegionParameters {
  const void* from;
  void* to;
  long long count, element_bytes, rank;
  long long shape[kMostDims], from_stride[kMostDims], to_stride[kMostDims];
};
struct PiecesParameters {
  void* to;
  long long count, dtype, rank, pieces, adds;
  long long shape[kMostDims];
  const void* from[kMostPieces];  // its first element
  long long begin[kMostPieces][kMostDims],
      size[kMostPieces][kMostDims];  // of the region, in the box
  long long stride[kMostPieces][kMostDims];
};
struct TermsParameters {
  void* to;
  long long count, dtype, terms, adds;
  const void* from[kMostTerms];
};
struct FiniteParameters {
  const void* data;
  long long count, dtype;
  long long* found;  // becomes 1 if one is not
};

// Sums of every lanes-th number, from each of the first: of the squares of floats, and of these.
struct SquaresParameters {
  const void* data;
  long long count, dtype, lanes;
  double* sums;
};
struct LanesParameters {
  const double* from;
  long long count, lanes;
  double* sums;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_OPERATION_PARAMETERS_H_
