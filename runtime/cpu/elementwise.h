// Loops of elementwise operators, over operands that are broadcast and buffers of any data type.
#ifndef ISOMER_RUNTIME_CPU_ELEMENTWISE_H_
#define ISOMER_RUNTIME_CPU_ELEMENTWISE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/vector_math.h"
#include "runtime/device/elements.h"
#include "runtime/device/strided.h"

namespace isomer {

// `count` elements from `offset` on as numbers: in place where they are such numbers side by side,
// else in `scratch`.
template <typename Number>
const Number* LoadRun(DataType dtype, const void* data, int64_t offset, int64_t stride,
                      int64_t count, Number* scratch) {
  WithElementType(dtype, [&](auto element) {
    const auto* x = static_cast<const decltype(element)*>(data) + offset;
    if constexpr (std::is_same_v<decltype(element), Number>) {
      if (stride == 1) return;
    }
    if (stride == 0) {
      std::fill_n(scratch, count, static_cast<Number>(*x));
    } else {
      for (int64_t i = 0; i < count; ++i) scratch[i] = static_cast<Number>(x[i * stride]);
    }
  });
  const bool in_place = stride == 1 && dtype == DataType::kFloat32 && std::is_same_v<Number, float>;
  return in_place ? static_cast<const Number*>(data) + offset : scratch;
}

// One loop over the elements of output 0, with the strides of N operands and of the output.
template <size_t N>
StridedLoop<N + 1> BroadcastLoop(const KernelCall& call) {
  const std::vector<int64_t>& sizes = call.outputs[0].shape;
  const int rank = static_cast<int>(sizes.size());
  std::array<std::vector<int64_t>, N + 1> strides;
  for (size_t o = 0; o < N; ++o) strides[o] = BroadcastStrides(call.operands[o].shape, rank);
  strides[N] = BroadcastStrides(sizes, rank);
  return StridedLoop<N + 1>(sizes, std::move(strides));
}

// Y = f(X0, X1, ..), computed in Number.
template <typename Number, size_t N, typename F>
KernelFunction ForwardIn(const KernelCall& call, F f) {
  return [loop = BroadcastLoop<N>(call), dtypes = call.dtypes, to = call.output_dtypes[0], f](
             Reads reads, Writes writes) {
    constexpr int64_t kBlock = 256;
    Number scratch[N + 1][kBlock];
    const bool direct = to == DataType::kFloat32 && std::is_same_v<Number, float>;
    loop.ForEachRun([&](const auto& at, int64_t run, const auto& stride) {
      for (int64_t begin = 0; begin < run; begin += kBlock) {
        const int64_t count = std::min(kBlock, run - begin);
        std::array<const Number*, N> x;
        for (size_t o = 0; o < N; ++o) {
          x[o] =
              LoadRun(dtypes[o], reads[o], at[o] + begin * stride[o], stride[o], count, scratch[o]);
        }
        // The output is whole and in order, so its runs have stride 1.
        const int64_t target = at[N] + begin;
        Number* y = direct ? static_cast<Number*>(writes[0]) + target : scratch[N];
        [&]<size_t... O>(std::index_sequence<O...>) { Apply(f, count, y, x[O]...); }
        (std::make_index_sequence<N>());
        if (direct) continue;
        StoreElements(y, count, to, static_cast<char*>(writes[0]) + target * BytesPerElement(to));
      }
    });
    return absl::OkStatus();
  };
}

// In float where there are only floats (and truth values), else in double, which holds integers up
// to 2^53.
template <size_t N, typename F>
KernelFunction ElementwiseForward(const KernelCall& call, F f) {
  auto exact_in_float = [](DataType dtype) { return IsFloat(dtype) || dtype == DataType::kBool; };
  const bool floats = std::all_of(call.dtypes.begin(), call.dtypes.end(), exact_in_float) &&
                      exact_in_float(call.output_dtypes[0]);
  return floats ? ForwardIn<float, N>(call, f) : ForwardIn<double, N>(call, f);
}

// Gradients, of float32: `shares(x0, x1, .., g)` are what one element adds to the gradients of the
// N operands. Operands that the gradient does not need read as zero.
template <size_t N, typename F>
KernelFunction ElementwiseGradient(const KernelCall& call, F shares) {
  std::vector<int64_t> volumes;
  for (const Box& box : call.operands) volumes.push_back(box.Volume());
  std::array<bool, N> adds;
  for (size_t o = 0; o < N; ++o) adds[o] = call.Adds(o);
  return [loop = BroadcastLoop<N>(call), dtypes = call.dtypes, volumes, adds,
          whole = call.outputs[0].Volume(), shares](Reads reads, Writes writes) {
    constexpr int64_t kBlock = 256;
    float scratch[N][kBlock] = {}, share[N][kBlock];
    // What is not broadcast has one share of each element.
    std::array<std::vector<double>, N> sums;
    for (size_t o = 0; o < N; ++o) {
      if (writes[o] != nullptr && volumes[o] != whole) sums[o].assign(volumes[o], 0);
    }
    loop.ForEachRun([&](const auto& at, int64_t run, const auto& stride) {
      for (int64_t begin = 0; begin < run; begin += kBlock) {
        const int64_t count = std::min(kBlock, run - begin);
        const float* g = Floats(reads[N + 1]) + at[N] + begin;
        std::array<const float*, N> x;
        for (size_t o = 0; o < N; ++o) {
          x[o] = reads[o] == nullptr ? scratch[o]
                                     : LoadRun(dtypes[o], reads[o], at[o] + begin * stride[o],
                                               stride[o], count, scratch[o]);
        }
        // Of an operand that is not broadcast, straight to where they go.
        std::array<float*, N> to, target;
        for (size_t o = 0; o < N; ++o) {
          const bool is_direct = writes[o] != nullptr && volumes[o] == whole;
          target[o] = is_direct ? Floats(writes[o]) + at[o] + begin : share[o];
          to[o] = adds[o] ? share[o] : target[o];
        }
        [&]<size_t... O>(std::index_sequence<O...>) { ApplyEach<N>(shares, count, to, x[O]..., g); }
        (std::make_index_sequence<N>());
        for (size_t o = 0; o < N; ++o) {
          if (to[o] != target[o]) Add(share[o], count, target[o]);
          if (writes[o] == nullptr || volumes[o] == whole) continue;
          double* sum = sums[o].data() + at[o] + begin * stride[o];
          if (stride[o] == 0) {
            *sum += LineSum(share[o], count);
          } else if (stride[o] == 1) {
            AddInDouble(share[o], count, sum);
          } else {
            for (int64_t i = 0; i < count; ++i) sum[i * stride[o]] += share[o][i];
          }
        }
      }
    });
    for (size_t o = 0; o < N; ++o) {
      for (size_t i = 0; i < sums[o].size(); ++i) {
        float& sum = Floats(writes[o])[i];
        sum = static_cast<float>(sums[o][i]) + (adds[o] ? sum : 0);
      }
    }
    return absl::OkStatus();
  };
}

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CPU_ELEMENTWISE_H_
