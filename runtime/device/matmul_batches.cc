#include "runtime/device/matmul_batches.h"

#include "runtime/device/strided.h"

namespace isomer {

MatMulBatches BatchesOf(const KernelCall& call) {
  const std::vector<int64_t>&a = call.operands[0].shape, &b = call.operands[1].shape,
        &c = call.outputs[0].shape;
  MatMulBatches s{.m = a[a.size() - 2], .n = b.back(), .k = a.back(), .runs = {}};
  const int64_t of_a = call.operands[0].Volume() / (s.m * s.k),
                of_b = call.operands[1].Volume() / (s.k * s.n),
                of_c = call.outputs[0].Volume() / (s.m * s.n);
  s.shares_a = of_a != of_c;
  s.shares_b = of_b != of_c;
  if (of_b == 1 && !s.shares_a) {
    s.m *= of_a;
    s.shares_b = false;
    s.runs = {{}};
    return s;
  }
  const int batch = static_cast<int>(c.size()) - 2;
  const auto strides_of = [batch](const std::vector<int64_t>& shape) {
    return BroadcastStrides(absl::MakeConstSpan(shape).first(shape.size() - 2), batch);
  };
  const StridedLoop<3> loop({c.begin(), c.begin() + batch},
                            {strides_of(a), strides_of(b), strides_of(c)});
  loop.ForEachRun([&](const auto& offsets, int64_t count, const auto& strides) {
    s.runs.push_back({count, offsets[0] * s.m * s.k, offsets[1] * s.k * s.n, offsets[2] * s.m * s.n,
                      strides[0] * s.m * s.k, strides[1] * s.k * s.n, strides[2] * s.m * s.n});
  });
  return s;
}

}  // namespace isomer
