#include "verifier/terms/representative_calls.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "pcg/ir/examples.h"

namespace isomer {
namespace {

constexpr const char* kCalls[] = {
    "conv2d(stride=[1,1],padding=[1,1,1,1],dilation=[1,1]) f32[2,4,3,3] f32[2,4,3,3]",
    "conv2d(stride=[2,2],padding=[0,0,0,0],dilation=[1,1]) f32[4,2,4,4] f32[4,2,2,2]",
    "conv2d(stride=[1,1],padding=[0,1,0,1],dilation=[1,1],groups=2) f32[2,4,3,3] f32[4,2,2,2]",
    // Halos: of both sides; of one, with strides; dilated; of groups.
    "conv2d(stride=[1,1],padding=[1,1,1,1],dilation=[1,1]) f32[2,2,4,6] f32[2,2,3,3]",
    "conv2d(stride=[2,1],padding=[1,2,0,0],dilation=[1,1]) f32[2,2,8,6] f32[2,2,3,3]",
    "conv2d(stride=[1,1],padding=[2,0,2,4],dilation=[2,2]) f32[2,2,4,4] f32[2,2,3,3]",
    "conv2d(stride=[1,2],padding=[1,0,1,1],dilation=[1,1],groups=2) f32[2,4,4,8] f32[4,2,3,3]",
    "max_pool(kernel=[2,2],stride=[2,2],padding=[0,0,0,0]) f32[2,4,4,4]",
    "max_pool(kernel=[2,2],stride=[2,2],padding=[1,1,1,1]) f32[2,4,4,4]",
    "max_pool(kernel=[3,3],stride=[1,1],padding=[1,1,1,1]) f32[2,4,4,4]",
    "max_pool(kernel=[3,3],stride=[2,1],padding=[1,0,0,2]) f32[2,2,8,4]",
    "avg_pool(kernel=[2,2],stride=[2,2],padding=[0,0,0,0]) f32[2,4,4,4]",
    "avg_pool(kernel=[2,2],stride=[2,2],padding=[1,1,1,1]) f32[2,4,4,4]",
    "avg_pool(kernel=[2,2],stride=[2,2],padding=[1,1,1,1],count_include_pad=1) f32[2,4,4,4]",
    "avg_pool(kernel=[3,3],stride=[1,1],padding=[1,1,1,1]) f32[2,4,4,4]",
    "avg_pool(kernel=[3,3],stride=[2,1],padding=[1,0,0,2],count_include_pad=1) f32[2,2,8,4]",
    "layer_norm(epsilon=0.125) f32[4,6] f32[6] f32[6]",
    "layer_norm(epsilon=0.125) f32[2,4,6] f32[6] f32[6]",
    "layer_norm(epsilon=0.125) f32[2,2,4,6] f32[6] f32[6]", "reshape(shape=[4,2,3]) f32[4,6]",
    "reshape(shape=[4,6]) f32[4,2,3]", "reshape(shape=[24]) f32[4,6]",
    "reshape(shape=[6,4]) f32[4,6]", "reshape(shape=[2,4,2,3]) f32[2,4,6]",
    "reshape(shape=[8,6]) f32[2,4,2,3]", "reshape(shape=[4,8]) f32[4,2,2,2]",
    "transpose(perm=[1,0]) f32[4,6]", "transpose(perm=[0,2,1]) f32[4,2,6]",
    "transpose(perm=[2,0,1]) f32[4,2,6]", "transpose(perm=[0,2,1,3]) f32[4,2,6,2]",
    "transpose(perm=[0,1,3,2]) f32[4,2,6,2]", "embedding f32[6,4] i64[4]",
    "embedding f32[6,4] i64[2,4]", "cross_entropy f32[4,6] i64[4]",
    "cross_entropy f32[4,2,6] i64[4,2]", "mse f32[4,6] f32[4,6]", "mse f32[4,2,6] f32[4,2,6]"};

// Axes to sum over and a shape: every axis of every rank up to 4 is summed by some call.
constexpr const char* kSums[][2] = {{"[-1]", "f32[6]"},       {"[-1]", "f32[4,6]"},
                                    {"[0]", "f32[4,6]"},      {"[0,2]", "f32[4,2,6]"},
                                    {"[1]", "f32[4,2,6]"},    {"[2,3]", "f32[4,2,2,6]"},
                                    {"[0,1]", "f32[4,2,2,6]"}};

void AddReductions(CallsByKind* table) {
  for (const char* op : {"reduce_sum", "reduce_mean"}) {
    for (const int keepdims : {0, 1}) {
      for (const auto& [axes, type] : kSums) {
        table->Add(absl::StrCat(op, "(axes=", axes, ",keepdims=", keepdims, ") ", type));
      }
    }
  }
}

// Wheres of two dims, each operand's present or broadcast, but for none broadcast, which is an
// example; each dim is present in some operand.
void AddBroadcasts(CallsByKind* table) {
  const std::string shapes[] = {"[4,6]", "[1,6]", "[4,1]", "[1,1]"};
  for (int c = 0; c < 4; ++c) {
    for (int b = 0; b < 4; ++b) {
      for (int a = 0; a < 4; ++a) {
        if ((a & b & c) != 0 || (a | b | c) == 0) continue;
        table->Add(absl::StrCat("where bool", shapes[a], " f32", shapes[b], " f32", shapes[c]));
      }
    }
  }
}

}  // namespace

const std::vector<OperatorCall>& RepresentativeCalls(OpKind kind) {
  static const CallsByKind* const table = [] {
    auto* calls = new CallsByKind;
    for (const char* call : kCalls) calls->Add(call);
    AddReductions(calls);
    calls->AddExamplesOfOthers();
    AddBroadcasts(calls);
    // No example strides.
    calls->Add("conv1d(stride=[2],padding=[0,0],dilation=[1]) f32[2,2,4] f32[4,2,2]");
    return calls;
  }();
  return table->Of(kind);
}

std::vector<OperatorCall> CallsToTry(OpKind kind) {
  return WithExamples(kind, RepresentativeCalls(kind));
}

}  // namespace isomer
