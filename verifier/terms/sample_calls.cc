#include "verifier/terms/sample_calls.h"

#include <algorithm>
#include <string>
#include <utility>

#include "pcg/ir/examples.h"
#include "pcg/support/check.h"

namespace isomer {
namespace {

using Sizes = std::vector<int64_t>;

RepresentativeCall CallOn(OpKind kind, std::vector<Attribute> attributes,
                          const std::vector<Sizes>& shapes) {
  RepresentativeCall call{Operator(kind, std::move(attributes)), {}};
  ISOMER_CHECK(NormalizeAttributes(&call.op).ok());
  for (const Sizes& shape : shapes) {
    const bool indices = IsIndexOperand(kind, static_cast<int>(call.operands.size()));
    call.operands.push_back(SequentialType(shape, indices ? DataType::kInt64 : DataType::kFloat32));
  }
  return call;
}

RepresentativeCall Conv(Sizes stride, Sizes padding, int64_t groups, Sizes x, Sizes w,
                        Sizes dilation = {1, 1}) {
  return CallOn(OpKind::kConv2d,
                {{"stride", std::move(stride)},
                 {"padding", std::move(padding)},
                 {"dilation", std::move(dilation)},
                 {"groups", groups}},
                {std::move(x), std::move(w)});
}

RepresentativeCall Pool(OpKind kind, Sizes padding, int64_t count_include_pad,
                        Sizes kernel = {2, 2}, Sizes stride = {2, 2}, Sizes x = {2, 4, 4, 4}) {
  std::vector<Attribute> attributes = {{"kernel", std::move(kernel)},
                                       {"stride", std::move(stride)},
                                       {"padding", std::move(padding)}};
  if (kind == OpKind::kAvgPool) attributes.push_back({"count_include_pad", count_include_pad});
  return CallOn(kind, std::move(attributes), {std::move(x)});
}

RepresentativeCall ReductionCall(OpKind kind, Sizes axes, int64_t keepdims, Sizes shape) {
  return CallOn(kind, {{"axes", std::move(axes)}, {"keepdims", keepdims}}, {std::move(shape)});
}

RepresentativeCall Reshape(Sizes from, Sizes to) {
  return CallOn(OpKind::kReshape, {{"shape", std::move(to)}}, {std::move(from)});
}

RepresentativeCall Transpose(Sizes perm, Sizes shape) {
  return CallOn(OpKind::kTranspose, {{"perm", std::move(perm)}}, {std::move(shape)});
}

// Wheres of two dims, the first operand's present or broadcast, and each of the others'.
void AddBroadcasts(std::vector<RepresentativeCall>* calls) {
  for (int bits = 0; bits < 64; ++bits) {
    RepresentativeCall call{Operator(OpKind::kWhere), {}};
    Sizes full = {1, 1};
    for (int o = 0; o < 3; ++o) {
      const Sizes sizes = {bits >> 2 * o & 1 ? 1 : 4, bits >> 2 * o & 2 ? 1 : 6};
      for (int i = 0; i < 2; ++i) full[i] = std::max(full[i], sizes[i]);
      call.operands.push_back(SequentialType(sizes));
    }
    call.operands[0].dtype = DataType::kBool;
    if (full == Sizes{4, 6}) calls->push_back(std::move(call));
  }
}

}  // namespace

std::vector<RepresentativeCall> RepresentativeCalls(OpKind kind) {
  switch (kind) {
    case OpKind::kConv2d:
      return {Conv({1, 1}, {1, 1, 1, 1}, 1, {2, 4, 3, 3}, {2, 4, 3, 3}),
              Conv({2, 2}, {0, 0, 0, 0}, 1, {4, 2, 4, 4}, {4, 2, 2, 2}),
              Conv({1, 1}, {0, 1, 0, 1}, 2, {2, 4, 3, 3}, {4, 2, 2, 2}),
              // Halos: of both sides; of one, with strides; dilated; of groups.
              Conv({1, 1}, {1, 1, 1, 1}, 1, {2, 2, 4, 6}, {2, 2, 3, 3}),
              Conv({2, 1}, {1, 2, 0, 0}, 1, {2, 2, 8, 6}, {2, 2, 3, 3}),
              Conv({1, 1}, {2, 0, 2, 4}, 1, {2, 2, 4, 4}, {2, 2, 3, 3}, {2, 2}),
              Conv({1, 2}, {1, 0, 1, 1}, 2, {2, 4, 4, 8}, {4, 2, 3, 3})};
    case OpKind::kMaxPool:
    case OpKind::kAvgPool:
      return {Pool(kind, {0, 0, 0, 0}, 0), Pool(kind, {1, 1, 1, 1}, 0), Pool(kind, {1, 1, 1, 1}, 1),
              Pool(kind, {1, 1, 1, 1}, 0, {3, 3}, {1, 1}),
              Pool(kind, {1, 0, 0, 2}, 1, {3, 3}, {2, 1}, {2, 2, 8, 4})};
    case OpKind::kLayerNorm:
      return {CallOn(kind, {{"epsilon", 0.125}}, {{4, 6}, {6}, {6}}),
              CallOn(kind, {{"epsilon", 0.125}}, {{2, 4, 6}, {6}, {6}}),
              CallOn(kind, {{"epsilon", 0.125}}, {{2, 2, 4, 6}, {6}, {6}})};
    case OpKind::kReduceSum:
    case OpKind::kReduceMean: {
      std::vector<RepresentativeCall> calls;
      for (int64_t keepdims : {0, 1}) {
        // Every axis of every rank up to 4 is summed by some call.
        calls.push_back(ReductionCall(kind, {-1}, keepdims, {6}));
        calls.push_back(ReductionCall(kind, {-1}, keepdims, {4, 6}));
        calls.push_back(ReductionCall(kind, {0}, keepdims, {4, 6}));
        calls.push_back(ReductionCall(kind, {0, 2}, keepdims, {4, 2, 6}));
        calls.push_back(ReductionCall(kind, {1}, keepdims, {4, 2, 6}));
        calls.push_back(ReductionCall(kind, {2, 3}, keepdims, {4, 2, 2, 6}));
        calls.push_back(ReductionCall(kind, {0, 1}, keepdims, {4, 2, 2, 6}));
      }
      return calls;
    }
    case OpKind::kReshape:
      return {Reshape({4, 6}, {4, 2, 3}),
              Reshape({4, 2, 3}, {4, 6}),
              Reshape({4, 6}, {24}),
              Reshape({4, 6}, {6, 4}),
              Reshape({2, 4, 6}, {2, 4, 2, 3}),
              Reshape({2, 4, 2, 3}, {8, 6}),
              Reshape({4, 2, 2, 2}, {4, 8})};
    case OpKind::kTranspose:
      return {Transpose({1, 0}, {4, 6}), Transpose({0, 2, 1}, {4, 2, 6}),
              Transpose({2, 0, 1}, {4, 2, 6}), Transpose({0, 2, 1, 3}, {4, 2, 6, 2}),
              Transpose({0, 1, 3, 2}, {4, 2, 6, 2})};
    case OpKind::kEmbedding:
      return {CallOn(kind, {}, {{6, 4}, {4}}), CallOn(kind, {}, {{6, 4}, {2, 4}})};
    case OpKind::kCrossEntropy:
      return {CallOn(kind, {}, {{4, 6}, {4}}), CallOn(kind, {}, {{4, 2, 6}, {4, 2}})};
    case OpKind::kMeanSquaredError:
      return {CallOn(kind, {}, {{4, 6}, {4, 6}}), CallOn(kind, {}, {{4, 2, 6}, {4, 2, 6}})};
    default:
      break;
  }
  std::vector<RepresentativeCall> calls;
  for (ExampleCall& example : ExamplesOf(kind)) {
    calls.push_back({std::move(example.op), std::move(example.operands)});
  }
  if (kind == OpKind::kWhere) AddBroadcasts(&calls);
  if (kind == OpKind::kConv1d) {  // No example strides.
    calls.push_back(CallOn(kind,
                           {{"stride", Sizes{2}}, {"padding", Sizes{0, 0}}, {"dilation", Sizes{1}}},
                           {{2, 2, 4}, {4, 2, 2}}));
  }
  return calls;
}

}  // namespace isomer
