#include "runtime/device/elements.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "pcg/support/check.h"
#include "runtime/device/vectorised.h"

namespace isomer {

template <typename Number>
void LoadElements(DataType dtype, const void* from, int64_t count, Number* to) {
  WithElementType(dtype, [&](auto element) {
    const auto* x = static_cast<const decltype(element)*>(from);
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Number>(x[i]);
  });
}

template <typename Number>
void StoreElements(const Number* from, int64_t count, DataType dtype, void* to) {
  WithElementType(dtype, [&](auto element) {
    using Element = decltype(element);
    auto* y = static_cast<Element*>(to);
    for (int64_t i = 0; i < count; ++i) y[i] = ToElement<Element>(from[i]);
  });
}

template void LoadElements(DataType, const void*, int64_t, float*);
template void LoadElements(DataType, const void*, int64_t, double*);
template void StoreElements(const float*, int64_t, DataType, void*);
template void StoreElements(const double*, int64_t, DataType, void*);

bool AreFinite(DataType dtype, const void* data, int64_t count) {
  // Their exponents are all ones.
  const auto are = [&](auto bits, auto exponent) {
    const auto* x = static_cast<const decltype(bits)*>(data);
    decltype(bits) found = 0;
    for (int64_t i = 0; i < count; ++i) {
      found |= static_cast<decltype(bits)>((x[i] & exponent) == exponent);
    }
    return found == 0;
  };
  switch (dtype) {
    case DataType::kBFloat16:
      return are(uint16_t(), uint16_t{0x7f80});
    case DataType::kFloat16:
      return are(uint16_t(), uint16_t{0x7c00});
    default:
      return are(uint32_t(), uint32_t{0x7f800000});
  }
}

// In lanes, which processors add side by side.
double SumOfSquares(DataType dtype, const void* data, int64_t count) {
  constexpr int64_t kLanes = 8;
  std::array<double, kLanes> lanes = {};
  WithFloatType(dtype, [&](auto element) {
    const auto* x = static_cast<const decltype(element)*>(data);
    const auto add = [&](int64_t lane, int64_t i) {
      const double value = static_cast<float>(x[i]);
      lanes[lane] += value * value;
    };
    const int64_t in_full_rows = count / kLanes * kLanes;
    for (int64_t row = 0; row < in_full_rows; row += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) add(lane, row + lane);
    }
    for (int64_t i = in_full_rows; i < count; ++i) add(i - in_full_rows, i);
  });
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

void RoundElements(DataType dtype, double* numbers, int64_t count) {
  WithElementType(dtype, [&](auto element) {
    using Element = decltype(element);
    for (int64_t i = 0; i < count; ++i) {
      numbers[i] = static_cast<double>(ToElement<Element>(numbers[i]));
    }
  });
}

void FillElements(double value, int64_t count, DataType dtype, void* to) {
  WithElementType(dtype, [&](auto element) {
    using Element = decltype(element);
    std::fill_n(static_cast<Element*>(to), count, ToElement<Element>(value));
  });
}

void AddElements(DataType from_dtype, const void* from, int64_t count, DataType dtype, void* to) {
  if (from_dtype != dtype) {
    ISOMER_CHECK(dtype == DataType::kFloat32 && IsFloat(from_dtype));
    WithElementType(from_dtype, [&](auto element) {
      const auto* x = static_cast<const decltype(element)*>(from);
      auto* y = static_cast<float*>(to);
      ForEachIndex(count, [=](int64_t i) { y[i] += static_cast<float>(x[i]); });
    });
    return;
  }
  WithElementType(dtype, [&](auto element) {
    using Element = decltype(element);
    using Sum = SumOf<Element>;
    const auto* x = static_cast<const Element*>(from);
    auto* y = static_cast<Element*>(to);
    ForEachIndex(count, [=](int64_t i) {
      y[i] = ToElement<Element>(static_cast<Sum>(y[i]) + static_cast<Sum>(x[i]));
    });
  });
}

void ConvertElements(DataType from_dtype, const void* from, int64_t count, DataType dtype,
                     void* to) {
  WithFloatType(from_dtype, [&](auto from_element) {
    WithFloatType(dtype, [&](auto element) {
      using Element = decltype(element);
      const auto* x = static_cast<const decltype(from_element)*>(from);
      auto* y = static_cast<Element*>(to);
      ForEachIndex(count, [=](int64_t i) { y[i] = ToElement<Element>(static_cast<float>(x[i])); });
    });
  });
}

void SumElements(DataType dtype, absl::Span<const void* const> terms, int64_t count, void* to) {
  WithElementType(dtype, [&](auto element) {
    using Element = decltype(element);
    using Sum = SumOf<Element>;
    constexpr int64_t kBlock = 1024;  // Stays in the nearest cache.
    Sum sums[kBlock];
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t size = std::min(kBlock, count - begin);
      std::fill_n(sums, size, Sum());
      for (const void* term : terms) {
        const auto* x = static_cast<const Element*>(term) + begin;
        for (int64_t i = 0; i < size; ++i) sums[i] += static_cast<Sum>(x[i]);
      }
      auto* y = static_cast<Element*>(to) + begin;
      for (int64_t i = 0; i < size; ++i) y[i] = ToElement<Element>(sums[i]);
    }
  });
}

}  // namespace isomer
