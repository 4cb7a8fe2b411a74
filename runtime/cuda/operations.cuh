// What a GPU does beside operators' kernels (device_operations.h), behind prelude.cuh and
// operation_parameters.h.

using namespace isomer;

namespace {

// Data types by number, as DataType has them.
enum { kFloat32 = 0, kInt64 = 1, kBFloat16 = 2, kFloat16 = 3, kInt32 = 4, kBool = 5 };

ISOMER_DEVICE float LoadFloat(const void* x, long long dtype, long long i) {
  if (dtype == kBFloat16) return Load(static_cast<const bf16*>(x), i);
  if (dtype == kFloat16) return Load(static_cast<const f16*>(x), i);
  return Load(static_cast<const float*>(x), i);
}
ISOMER_DEVICE void StoreFloat(void* y, long long dtype, long long i, float value) {
  if (dtype == kBFloat16) {
    Store(static_cast<bf16*>(y), i, value);
  } else if (dtype == kFloat16) {
    Store(static_cast<f16*>(y), i, value);
  } else {
    Store(static_cast<float*>(y), i, value);
  }
}

template <typename Element, typename Number>
ISOMER_DEVICE Number SumOfPieces(const PiecesParameters& a, Number sum, const long long* at) {
  for (int p = 0; p < a.pieces; ++p) {
    long long offset = 0;
    bool is_inside = true;
    for (int d = 0; d < a.rank; ++d) {
      const long long c = at[d] - a.begin[p][d];
      is_inside = is_inside && c >= 0 && c < a.size[p][d];
      offset += c * a.stride[p][d];
    }
    if (is_inside) sum += Load(static_cast<const Element*>(a.from[p]), offset);
  }
  return sum;
}
template <typename Element, typename Number>
ISOMER_DEVICE void SumInto(const PiecesParameters& a, long long i, const long long* at) {
  Element* y = static_cast<Element*>(a.to);
  Store(y, i, SumOfPieces<Element, Number>(a, a.adds != 0 ? Load(y, i) : Number(0), at));
}

template <typename Element, typename Number>
ISOMER_DEVICE void SumTerms(const TermsParameters& a, long long i) {
  Element* y = static_cast<Element*>(a.to);
  Number sum = a.adds != 0 ? Load(y, i) : Number(0);
  for (int t = 0; t < a.terms; ++t) sum += Load(static_cast<const Element*>(a.from[t]), i);
  Store(y, i, sum);
}

}  // namespace

ISOMER_KERNEL(isomer_fill, FillParameters) {
  ISOMER_FOR_EACH(long long, i, a.count) {
    if (a.element_bytes == 1) static_cast<unsigned char*>(a.to)[i] = a.bits;
    if (a.element_bytes == 2) static_cast<unsigned short*>(a.to)[i] = a.bits;
    if (a.element_bytes == 4) static_cast<unsigned*>(a.to)[i] = a.bits;
    if (a.element_bytes == 8) static_cast<unsigned long long*>(a.to)[i] = a.bits;
  }
}

ISOMER_KERNEL(isomer_fill_scaled, ScaledFillParameters) {
  const float value = a.value * *a.factor;
  ISOMER_FOR_EACH(long long, i, a.count) { StoreFloat(a.to, a.dtype, i, value); }
}

// to += from, and to = from, in floats of any precision.
ISOMER_KERNEL(isomer_add, FloatParameters) {
  ISOMER_FOR_EACH(long long, i, a.count) {
    const float sum = LoadFloat(a.to, a.dtype, i) + LoadFloat(a.from, a.from_dtype, i);
    StoreFloat(a.to, a.dtype, i, sum);
  }
}
ISOMER_KERNEL(isomer_convert, FloatParameters) {
  ISOMER_FOR_EACH(long long, i, a.count) {
    StoreFloat(a.to, a.dtype, i, LoadFloat(a.from, a.from_dtype, i));
  }
}

// The formulas of pcg/ir/weight_update.h, as update.cc has them. Optimizers by number, as
// OptimizerKind has them.
enum { kSgd = 0, kMomentum = 1, kAdam = 2, kLion = 3, kAdagrad = 4 };

ISOMER_KERNEL(isomer_update, UpdateParameters) {
  const float rate = a.factors[0], correction = a.factors[1], scale = a.factors[2];
  const float shrink = a.decays != 0 ? a.factors[3] : 1, pull = a.decays != 0 ? a.factors[4] : 0;
  const float momentum = a.momentum, b1 = a.b1, b2 = a.b2, c1 = a.c1, c2 = a.c2,
              epsilon = a.epsilon;
  ISOMER_FOR_EACH(long long, i, a.count) {
    const float before = a.weights[i];
    const float g = LoadFloat(a.gradient, a.gradient_dtype, i) + pull * before;
    const float x = scale * g;
    float w = shrink * before;
    if (a.optimizer == kSgd) {
      w = w - rate * g;
    } else if (a.optimizer == kMomentum) {
      const float velocity = momentum * a.states[0][i] + x;
      a.states[0][i] = velocity;
      w = w - rate * (a.nesterov != 0 ? x + momentum * velocity : velocity);
    } else if (a.optimizer == kAdam) {
      const float mean = b1 * a.states[0][i] + c1 * x;
      const float square = b2 * a.states[1][i] + c2 * x * x;
      a.states[0][i] = mean;
      a.states[1][i] = square;
      w = w - rate * mean / (sqrtf(square) * correction + epsilon);
    } else if (a.optimizer == kLion) {
      const float mean = a.states[0][i];
      const float direction = b1 * mean + c1 * x;
      a.states[0][i] = b2 * mean + c2 * x;
      w = w - rate * (direction > 0 ? 1.0f : direction < 0 ? -1.0f : direction);
    } else {
      const float sum = a.states[0][i] + x * x;
      a.states[0][i] = sum;
      w = w - rate * x / (sqrtf(sum) + epsilon);
    }
    a.updated[i] = w;
    if (a.low != nullptr) StoreFloat(a.low, a.low_dtype, i, w);
  }
}

ISOMER_KERNEL(isomer_copy_region, RegionParameters) {
  ISOMER_FOR_EACH(long long, i, a.count) {
    long long rest = i, from = 0, to = 0;
    for (int d = static_cast<int>(a.rank) - 1; d >= 0; --d) {
      const long long c = rest % a.shape[d];
      rest /= a.shape[d];
      from += c * a.from_stride[d];
      to += c * a.to_stride[d];
    }
    if (a.element_bytes == 1) {
      static_cast<unsigned char*>(a.to)[to] = static_cast<const unsigned char*>(a.from)[from];
    } else if (a.element_bytes == 2) {
      static_cast<unsigned short*>(a.to)[to] = static_cast<const unsigned short*>(a.from)[from];
    } else if (a.element_bytes == 4) {
      static_cast<unsigned*>(a.to)[to] = static_cast<const unsigned*>(a.from)[from];
    } else {
      static_cast<unsigned long long*>(a.to)[to] =
          static_cast<const unsigned long long*>(a.from)[from];
    }
  }
}

ISOMER_KERNEL(isomer_sum_pieces, PiecesParameters) {
  ISOMER_FOR_EACH(long long, i, a.count) {
    long long at[kMostDims], rest = i;
    for (int d = static_cast<int>(a.rank) - 1; d >= 0; --d) {
      at[d] = rest % a.shape[d];
      rest /= a.shape[d];
    }
    if (a.dtype == kFloat32) SumInto<float, float>(a, i, at);
    if (a.dtype == kBFloat16) SumInto<bf16, float>(a, i, at);
    if (a.dtype == kFloat16) SumInto<f16, float>(a, i, at);
    if (a.dtype == kInt64) SumInto<long long, long long>(a, i, at);
    if (a.dtype == kInt32) SumInto<int, long long>(a, i, at);
    if (a.dtype == kBool) SumInto<bool8, long long>(a, i, at);
  }
}

ISOMER_KERNEL(isomer_sum_terms, TermsParameters) {
  ISOMER_FOR_EACH(long long, i, a.count) {
    if (a.dtype == kFloat32) SumTerms<float, float>(a, i);
    if (a.dtype == kBFloat16) SumTerms<bf16, float>(a, i);
    if (a.dtype == kFloat16) SumTerms<f16, float>(a, i);
    if (a.dtype == kInt64) SumTerms<long long, long long>(a, i);
    if (a.dtype == kInt32) SumTerms<int, long long>(a, i);
    if (a.dtype == kBool) SumTerms<bool8, long long>(a, i);
  }
}

ISOMER_KERNEL(isomer_are_finite, FiniteParameters) {
  ISOMER_FOR_EACH(long long, i, a.count) {
    const float x = LoadFloat(a.data, a.dtype, i);
    if (!(x - x == 0)) *a.found = 1;
  }
}

ISOMER_KERNEL(isomer_sum_of_squares, SquaresParameters) {
  ISOMER_FOR_EACH(long long, lane, a.lanes) {
    double sum = 0;
    for (long long i = lane; i < a.count; i += a.lanes) {
      const double x = LoadFloat(a.data, a.dtype, i);
      sum += x * x;
    }
    a.sums[lane] = sum;
  }
}
ISOMER_KERNEL(isomer_sum_lanes, LanesParameters) {
  ISOMER_FOR_EACH(long long, lane, a.lanes) {
    double sum = 0;
    for (long long i = lane; i < a.count; i += a.lanes) sum += a.from[i];
    a.sums[lane] = sum;
  }
}
