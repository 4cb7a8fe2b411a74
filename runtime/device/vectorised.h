// Loops over numbers for the widest vectors of the processor that runs them.
#ifndef ISOMER_RUNTIME_DEVICE_VECTORISED_H_
#define ISOMER_RUNTIME_DEVICE_VECTORISED_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace isomer {

// A function, with its loops, for each of these instruction sets; which one runs is found when the
// program starts. Sanitizers are not there yet when it is, and clang 16 has no such attribute.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__ELF__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ISOMER_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ISOMER_VECTORISED
#endif
// What is called in such a loop must be part of it.
#define ISOMER_IN_LOOP __attribute__((always_inline)) inline

// f(0), f(1), .., in any order.
template <typename F>
ISOMER_VECTORISED void ForEachIndex(int64_t count, F f) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) f(i);
}
// y_i = f(x0_i, x1_i, ..), of numbers side by side. y may be one of the others.
template <typename Number, typename F, typename... X>
ISOMER_VECTORISED void Apply(F f, int64_t count, Number* y, const X*... x) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = f(x[i]...);
}
// y_i += x_i
inline void Add(const float* x, int64_t count, float* y) {
  Apply([](float share, float sum) { return sum + share; }, count, y, x, y);
}
// y0_i, y1_i, .. = f(x0_i, x1_i, ..)
template <size_t N, typename F, typename... X>
ISOMER_VECTORISED void ApplyEach(F f, int64_t count, const std::array<float*, N>& y,
                                 const X*... x) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const std::array<float, N> values = f(x[i]...);
    for (size_t o = 0; o < N; ++o) y[o][i] = values[o];
  }
}

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_VECTORISED_H_
