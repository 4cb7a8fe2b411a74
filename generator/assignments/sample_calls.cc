#include "generator/assignments/sample_calls.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/ir/examples.h"
#include "pcg/ir/operator_traits.h"

namespace isomer {
namespace {

// Types of ranks 2, 1, 3 and 4, with different sizes, so that no axis can be mistaken for another.
constexpr const char* kFloats[] = {"f32[6,8]", "f32[8]", "f32[2,6,8]", "f32[4,2,6,8]"};
constexpr int kRanks[] = {2, 1, 3, 4};  // theirs

// Unary with attributes; of the others, their name is the call.
constexpr const char* kUnary[] = {"scale(factor=3)",
                                  "gelu_tanh(slope=0.75,cubic=0.125)",
                                  "hard_sigmoid(alpha=0.75,beta=0.5)",
                                  "leaky_relu(alpha=0.125)",
                                  "elu(alpha=0.125)",
                                  "clip(min=-0.5,max=1.25)",
                                  "softmax(axis=-1)"};

// Of binary operators, where one operand is broadcast to the other.
constexpr const char* kBroadcasts[] = {
    // Biases and masks.
    "f32[6,8] f32[8]", "f32[8] f32[6,8]", "f32[2,6,8] f32[8]", "f32[8] f32[2,6,8]",
    "f32[2,6,8] f32[6,8]", "f32[6,8] f32[2,6,8]", "f32[4,2,6,8] f32[8]", "f32[8] f32[4,2,6,8]",
    "f32[4,2,6,8] f32[6,8]", "f32[6,8] f32[4,2,6,8]", "f32[4,2,6,8] f32[2,6,8]",
    "f32[2,6,8] f32[4,2,6,8]",
    // Size 1 is broadcast as well; positions, the same for all samples.
    "f32[4,6] f32[4,1]", "f32[4,6] f32[1,6]", "f32[4,2,6,8] f32[4,1,1,8]", "f32[2,4,6] f32[1,4,6]",
    "f32[2,4,6] f32[2,4,1]",
    // Each to the other.
    "f32[4,1] f32[6]", "f32[6] f32[4,1]"};

constexpr const char* kOthers[] = {
    "matmul f32[4,6] f32[6,8]", "matmul f32[2,4,6] f32[6,8]", "matmul f32[2,4,6] f32[2,6,8]",
    "matmul f32[2,4,4,6] f32[2,4,6,8]", "matmul f32[2,4,4,6] f32[6,8]",
    "conv2d(stride=[1,1],padding=[0,0,0,0],dilation=[1,1]) f32[4,2,4,4] f32[6,2,1,1]",
    "conv2d(stride=[1,1],padding=[1,1,1,1],dilation=[1,1]) f32[2,4,4,4] f32[2,4,3,3]",
    "conv2d(stride=[2,2],padding=[1,1,1,1],dilation=[1,1]) f32[2,2,4,4] f32[4,2,3,3]",
    "conv2d(stride=[1,1],padding=[1,1,1,1],dilation=[1,1],groups=2) f32[2,4,4,4] f32[6,2,3,3]",
    "conv2d(stride=[1,1],padding=[0,0,0,0],dilation=[1,1],groups=4) f32[2,8,2,2] f32[12,2,1,1]",
    "max_pool(kernel=[2,2],stride=[2,2],padding=[0,0,0,0]) f32[2,4,4,4]",
    "max_pool(kernel=[3,3],stride=[2,2],padding=[1,1,1,1]) f32[4,2,6,6]",
    "max_pool(kernel=[4,4],stride=[1,1],padding=[0,0,0,0]) f32[6,2,4,4]",
    "avg_pool(kernel=[2,2],stride=[2,2],padding=[0,0,0,0]) f32[2,4,4,4]",
    "avg_pool(kernel=[3,3],stride=[2,2],padding=[1,1,1,1]) f32[4,2,6,6]",
    "avg_pool(kernel=[4,4],stride=[1,1],padding=[0,0,0,0]) f32[6,2,4,4]",
    // Masks of rows and of columns, one for all samples; constants.
    "where bool[6,8] f32[6,8] f32[6,8]", "where bool[8] f32[8] f32[8]",
    "where bool[2,6,8] f32[2,6,8] f32[2,6,8]", "where bool[4,2,6,8] f32[4,2,6,8] f32[4,2,6,8]",
    "where bool[4,1] f32[4,6] f32[4,6]", "where bool[6] f32[4,6] f32[4,6]",
    "where bool[4,6] f32[4,6] f32[1,6]", "where bool[4,6] f32[1,6] f32[4,6]",
    "where bool[4,6] f32[1,6] f32[1,6]", "where bool[4,6] f32[6] f32[4,6]",
    "where bool[4,6] f32[2,4,6] f32[2,4,6]", "where bool[4,1] f32[2,4,6] f32[6]",
    "where bool[4,1] f32[6] f32[6]", "softmax(axis=-2) f32[4,6]",
    "batch_norm(epsilon=0.5) f32[2,4,6,8] f32[4] f32[4] f32[4] f32[4]",
    "batch_norm(epsilon=0.5) f32[2,4] f32[4] f32[4] f32[4] f32[4]",
    "transpose(perm=[1,0]) f32[6,8]", "transpose(perm=[0,2,1]) f32[2,6,8]",
    "transpose(perm=[2,0,1]) f32[2,6,8]", "transpose(perm=[0,2,1,3]) f32[4,2,6,8]",
    "transpose(perm=[0,1,3,2]) f32[4,2,6,8]", "transpose(perm=[0,2,3,1]) f32[4,2,6,8]",
    "reshape(shape=[4,2,4]) f32[4,8]", "reshape(shape=[4,8]) f32[4,2,4]",
    "reshape(shape=[8,8]) f32[2,4,8]", "reshape(shape=[2,4,8]) f32[8,8]",
    "reshape(shape=[2,4,2,4]) f32[2,4,8]", "reshape(shape=[2,4,8]) f32[2,4,2,4]",
    "reshape(shape=[4,8]) f32[4,2,2,2]", "reshape(shape=[4,2,2,2]) f32[4,8]",
    "reshape(shape=[4,8,1,1]) f32[4,8]", "reshape(shape=[4,8]) f32[4,8,1,1]",
    "reshape(shape=[2,4]) f32[8]", "reshape(shape=[8]) f32[2,4]",
    "reshape(shape=[2,1,4,6]) f32[2,4,6]", "reshape(shape=[4,1,6]) f32[4,6]",
    "expand(shape=[2,4,6]) f32[4,1]", "expand(shape=[4,6]) f32[6]", "embedding f32[6,8] i64[4]",
    "embedding f32[6,8] i64[4,2]", "embedding f32[6,8] i64[4,2,2]",
    "gather_matmul f32[4,6] f32[4,6,8] i64[4]", "gather_matmul f32[4,2,6] f32[4,6,8] i64[4,2]",
    "gather_matmul f32[4,2,2,6] f32[4,6,8] i64[4,2,2]", "cross_entropy f32[4,6] i64[4]",
    "cross_entropy f32[2,4,6] i64[2,4]"};

// Elementwise without attributes, on floats.
bool IsPlainUnary(OpKind kind) {
  if (TraitsOf(kind).op_class != OperatorClass::kUnary) return false;
  const ExampleCall example = ExamplesOf(kind)[0];
  return example.op.attributes().empty() && example.operands[0].dtype == DataType::kFloat32;
}

void AddUnary(absl::string_view op, CallsByKind* table) {
  for (const char* type : kFloats) table->Add(absl::StrCat(op, " ", type));
}

void AddBinary(absl::string_view op, CallsByKind* table) {
  for (const char* type : kFloats) table->Add(absl::StrCat(op, " ", type, " ", type));
  for (const char* types : kBroadcasts) table->Add(absl::StrCat(op, " ", types));
}

void AddElementwise(CallsByKind* table) {
  for (const char* op : kUnary) AddUnary(op, table);
  for (OpKind kind : AllOpKinds()) {
    if (IsPlainUnary(kind)) AddUnary(OpName(kind), table);
    if (TraitsOf(kind).op_class == OperatorClass::kBinary) AddBinary(OpName(kind), table);
  }
  AddBinary("mse", table);
  for (const char* type : kFloats) {
    table->Add(absl::StrCat("layer_norm(epsilon=0.5) ", type, " f32[8] f32[8]"));
  }
}

void AddReductions(CallsByKind* table) {
  for (const int keepdims : {1, 0}) {
    for (size_t i = 0; i < std::size(kFloats); ++i) {
      for (const char* axes : {"[-1]", "[0]", "[-1,-2]"}) {
        if (kRanks[i] == 1 && axes == std::string("[-1,-2]")) continue;
        for (const char* op : {"reduce_sum", "reduce_mean"}) {
          table->Add(absl::StrCat(op, "(axes=", axes, ",keepdims=", keepdims, ") ", kFloats[i]));
        }
      }
    }
  }
}

// Concats and Splits of 2, 3 and 4 parts along every axis.
void AddParts(CallsByKind* table) {
  for (const int parts : {2, 3, 4}) {
    for (size_t i = 0; i < std::size(kFloats); ++i) {
      for (int axis = -1; axis >= -kRanks[i]; --axis) {
        const std::vector<std::string> operands(parts, kFloats[i]);
        table->Add(absl::StrCat("concat(axis=", axis, ") ", absl::StrJoin(operands, " ")));
        std::vector<int> whole(kRanks[i], 4);
        whole[kRanks[i] + axis] = 2 * parts;
        table->Add(absl::StrCat("split(axis=", axis, ",sizes=[",
                                absl::StrJoin(std::vector<int>(parts, 2), ","), "]) f32[",
                                absl::StrJoin(whole, ","), "]"));
      }
    }
  }
}

}  // namespace

const std::vector<OperatorCall>& SampleCalls(OpKind kind) {
  static const CallsByKind* const table = [] {
    auto* calls = new CallsByKind;
    AddElementwise(calls);
    AddReductions(calls);
    AddParts(calls);
    for (const char* call : kOthers) calls->Add(call);
    calls->AddExamplesOfOthers();
    return calls;
  }();
  return table->Of(kind);
}

}  // namespace isomer
