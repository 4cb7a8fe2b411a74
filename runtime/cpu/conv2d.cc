// Conv2d by oneDNN's convolution, operands reordered to the layouts it prefers.
#include <memory>
#include <utility>

#include "dnnl.hpp"
#include "runtime/cpu/kernels.h"

namespace isomer {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using tag = dnnl::memory::format_tag;

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

memory::desc Describe(const memory::dims& dims, tag format) {
  return memory::desc(dims, memory::data_type::f32, format);
}

// What the three primitives have in common.
struct ConvShape {
  explicit ConvShape(const KernelCall& call) {
    const Operator& op = call.op;
    x = call.operands[0].shape;
    y = call.outputs[0].shape;
    const std::vector<int64_t>& kernel = call.operands[1].shape;
    // A task with a share of the groups sees fewer; one with a share of the channels sees one.
    const int64_t groups = x[1] / kernel[1];
    w = groups == 1 ? kernel
                    : memory::dims{groups, kernel[0] / groups, kernel[1], kernel[2], kernel[3]};
    w_tag = groups == 1 ? tag::oihw : tag::goihw;
    stride = op.Ints("stride");
    dilation = {op.Ints("dilation")[0] - 1, op.Ints("dilation")[1] - 1};
    const std::vector<int64_t>& padding = op.Ints("padding");
    padding_begin = {padding[0], padding[1]};
    padding_end = {padding[2], padding[3]};
  }

  dnnl::convolution_forward::primitive_desc Forward() const {
    return {{dnnl::prop_kind::forward_training, algorithm::convolution_direct,
             Describe(x, tag::any), Describe(w, tag::any), Describe(y, tag::any), stride, dilation,
             padding_begin, padding_end},
            Engine()};
  }
  dnnl::convolution_backward_data::primitive_desc BackwardData() const {
    return {{algorithm::convolution_direct, Describe(x, tag::any), Describe(w, tag::any),
             Describe(y, tag::any), stride, dilation, padding_begin, padding_end},
            Engine(),
            Forward()};
  }
  dnnl::convolution_backward_weights::primitive_desc BackwardWeights() const {
    return {{algorithm::convolution_direct, Describe(x, tag::any), Describe(w, tag::any),
             Describe(y, tag::any), stride, dilation, padding_begin, padding_end},
            Engine(),
            Forward()};
  }

  memory::dims x, w, y, stride, dilation, padding_begin, padding_end;
  tag w_tag;
};

// One primitive with its operands and result, in oneDNN's layouts and in ours.
class Primitive {
 public:
  Primitive(dnnl::primitive primitive, std::vector<std::pair<int, memory::desc>> inputs,
            std::vector<memory::desc> plain_inputs, std::pair<int, memory::desc> output,
            memory::desc plain_output)
      : primitive_(std::move(primitive)), stream_(Engine()), output_argument_(output.first) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs_.push_back(Slot(inputs[i].second, plain_inputs[i]));
      arguments_.emplace(inputs[i].first, inputs_.back().inner);
    }
    output_ = Slot(output.second, plain_output);
    arguments_.emplace(output.first, output_.inner);
  }

  void Run(absl::Span<const void* const> inputs, void* output) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs_[i].plain.set_data_handle(const_cast<void*>(inputs[i]));
      if (inputs_[i].reorders) {
        dnnl::reorder(inputs_[i].plain, inputs_[i].inner)
            .execute(stream_, inputs_[i].plain, inputs_[i].inner);
      }
    }
    output_.plain.set_data_handle(output);
    primitive_.execute(stream_, arguments_);
    if (output_.reorders) {
      dnnl::reorder(output_.inner, output_.plain).execute(stream_, output_.inner, output_.plain);
    }
    stream_.wait();
  }

 private:
  struct Slot {
    Slot() = default;
    Slot(const memory::desc& wanted, const memory::desc& given)
        : reorders(wanted != given), plain(given, Engine(), nullptr) {
      inner = reorders ? memory(wanted, Engine()) : plain;
    }
    bool reorders = false;
    memory plain, inner;
  };

  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<Slot> inputs_;
  Slot output_;
  int output_argument_;
  std::unordered_map<int, memory> arguments_;
};

template <typename Function>
absl::Status Guarded(Function function) {
  try {
    function();
  } catch (const dnnl::error& error) {
    return absl::InternalError(error.message);
  }
  return absl::OkStatus();
}

KernelFunction Failing(absl::Status status) {
  return [status](Reads, Writes) { return status; };
}

}  // namespace

KernelFunction Conv2dKernel(const KernelCall& call) {
  const ConvShape s(call);
  const memory::desc x = Describe(s.x, tag::nchw), w = Describe(s.w, s.w_tag),
                     y = Describe(s.y, tag::nchw);
  std::shared_ptr<Primitive> forward, data, weights;
  const absl::Status made = Guarded([&] {
    if (!call.gradient) {
      const auto pd = s.Forward();
      forward = std::make_shared<Primitive>(
          dnnl::convolution_forward(pd),
          std::vector<std::pair<int, memory::desc>>{{DNNL_ARG_SRC, pd.src_desc()},
                                                    {DNNL_ARG_WEIGHTS, pd.weights_desc()}},
          std::vector<memory::desc>{x, w}, std::make_pair(DNNL_ARG_DST, pd.dst_desc()), y);
      return;
    }
    if (call.wanted[0]) {
      const auto pd = s.BackwardData();
      data = std::make_shared<Primitive>(
          dnnl::convolution_backward_data(pd),
          std::vector<std::pair<int, memory::desc>>{{DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
                                                    {DNNL_ARG_WEIGHTS, pd.weights_desc()}},
          std::vector<memory::desc>{y, w}, std::make_pair(DNNL_ARG_DIFF_SRC, pd.diff_src_desc()),
          x);
    }
    if (call.wanted[1]) {
      const auto pd = s.BackwardWeights();
      weights = std::make_shared<Primitive>(
          dnnl::convolution_backward_weights(pd),
          std::vector<std::pair<int, memory::desc>>{{DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
                                                    {DNNL_ARG_SRC, pd.src_desc()}},
          std::vector<memory::desc>{y, x},
          std::make_pair(DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc()), w);
    }
  });
  if (!made.ok()) return Failing(made);
  return [forward, data, weights](Reads reads, Writes writes) {
    return Guarded([&] {
      if (forward != nullptr) forward->Run({reads[0], reads[1]}, writes[0]);
      if (data != nullptr) data->Run({reads[3], reads[1]}, writes[0]);
      if (weights != nullptr) weights->Run({reads[3], reads[0]}, writes[1]);
    });
  };
}

}  // namespace isomer
