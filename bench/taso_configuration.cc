#include "bench/taso_configuration.h"

#include "absl/strings/str_cat.h"

namespace isomer {
namespace {

TensorType Type(const char* text) { return *ParseTensorType(text); }

Operator Parsed(const std::string& text) { return *ParseOperator(text); }

// "Same" convolution of a kernel, stride 1.
Operator Convolution(int height, int width, int dilation, int groups) {
  const int y = dilation * (height / 2), x = dilation * (width / 2);
  return Parsed(absl::StrCat("conv2d(stride=[1,1],padding=[", y, ",", x, ",", y, ",", x,
                             "],dilation=[", dilation, ",", dilation, "],groups=", groups, ")"));
}

// An output channel for each input channel; the middle of the kernel is 1.
std::vector<double> IdentityKernel(int channels, int kernel) {
  std::vector<double> values;
  for (int o = 0; o < channels; ++o) {
    for (int c = 0; c < channels; ++c) {
      for (int k = 0; k < kernel * kernel; ++k) {
        values.push_back(o == c && k == kernel * kernel / 2 ? 1 : 0);
      }
    }
  }
  return values;
}

}  // namespace

Configuration TasoConfiguration(int max_operators) {
  Configuration result;
  result.name = "taso";
  result.max_operators = max_operators;
  auto inputs = [&](const char* type, int count) {
    for (int i = 0; i < count; ++i) result.inputs.push_back(Type(type));
  };
  inputs("f32[2,4]", 3);
  inputs("f32[4,4]", 3);
  inputs("f32[2,4,5,5]", 3);
  inputs("f32[4,4,3,3]", 3);
  inputs("f32[4,4,1,3]", 3);
  inputs("f32[4,4,3,1]", 3);
  inputs("f32[4,1,3,3]", 1);
  inputs("f32[]", 1);
  auto constant = [&](const char* type, std::vector<double> values) {
    result.values.resize(result.inputs.size());
    result.inputs.push_back(Type(type));
    result.values.push_back(std::move(values));
  };
  constant("f32[4,1,3,3]", std::vector<double>(4 * 9, 1));
  constant("f32[4,4,3,3]", IdentityKernel(4, 3));
  constant("f32[4,4]", IdentityKernel(4, 1));
  constant("f32[2,4,5,5]", std::vector<double>(2 * 4 * 25, 1));
  result.operators = {Operator(OpKind::kMatMul), Operator(OpKind::kAdd), Operator(OpKind::kMul),
                      Operator(OpKind::kRelu)};
  for (int dilation : {1, 2}) {
    for (int groups : {1, 4}) result.operators.push_back(Convolution(3, 3, dilation, groups));
    result.operators.push_back(Convolution(1, 3, dilation, 1));
    result.operators.push_back(Convolution(3, 1, dilation, 1));
  }
  for (const char* text :
       {"avg_pool(kernel=[3,3],stride=[1,1],padding=[1,1,1,1])",
        "max_pool(kernel=[3,3],stride=[1,1],padding=[1,1,1,1])", "pad(padding=[0,0,1,0,0,0,1,0])",
        "pad(padding=[0,0,0,1,0,0,0,1])", "concat(axis=1)", "concat(axis=0)",
        "split(axis=1,sizes=[2,2])", "split(axis=0,sizes=[2,2])", "split(axis=0,sizes=[1,1])",
        "split(axis=0,sizes=[4,4])", "split(axis=1,sizes=[4,4])", "transpose(perm=[1,0])"}) {
    result.operators.push_back(Parsed(text));
  }
  return result;
}

}  // namespace isomer
