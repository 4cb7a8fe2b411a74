// Convolutions of one to three spatial dims by oneDNN. Images whose channels are innermost are
// taken as they lie (and points convolved by products of matrices); row-major ones, and weights,
// are reordered to the layouts that it prefers.
//
// A task that has a piece of the image reads a box of it: oneDNN is given the part of that box
// which the windows touch, and as padding what of them lies outside of the image.
//
// A transposed convolution is the gradient of one by its image, with the same weights: its result
// is the image, and its operand has an element for every window. So each of its three kernels is
// one of a convolution (Dumoulin, Visin, "A guide to convolution arithmetic for deep learning",
// 2016, chapter 4):
//
//                            image    weights    places of the windows
//     convolution            x        w          y
//     its kernels            dx = data(dy, w)    dw = weights(dy, x)    y = forward(x, w)
//     transposed             y        w          x
//     its kernels            y = data(x, w)      dw = weights(x, dy)    dx = forward(dy, w)
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "dnnl.hpp"
#include "pcg/ir/operator_facts.h"
#include "pcg/support/status_macros.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/kernels.h"
#include "runtime/device/workspace.h"

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

// By spatial rank.
tag ImageTag(size_t spatial, Layout layout) {
  if (layout == Layout::kChannelsLast) {
    return spatial == 1 ? tag::nwc : spatial == 2 ? tag::nhwc : tag::ndhwc;
  }
  return spatial == 1 ? tag::ncw : spatial == 2 ? tag::nchw : tag::ncdhw;
}
tag KernelTag(size_t spatial, bool groups) {
  if (groups) return spatial == 1 ? tag::goiw : spatial == 2 ? tag::goihw : tag::goidhw;
  return spatial == 1 ? tag::oiw : spatial == 2 ? tag::oihw : tag::oidhw;
}

// What a primitive needs beside its operands and result is given to it.
dnnl::primitive_attr OwnScratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

bool IsTransposed(const KernelCall& call) { return call.op.kind() == OpKind::kConvTranspose; }

// What the three primitives have in common: x is the image, y what the windows make of it.
struct ConvShape {
  explicit ConvShape(const KernelCall& call) {
    const Operator& op = call.op;
    Box image = call.operands[0], windows = call.outputs[0];
    Layout of_image = call.layouts.OfOperand(0), of_windows = call.layouts.OfOutput(0);
    if (IsTransposed(call)) {
      std::swap(image, windows);
      std::swap(of_image, of_windows);
    }
    box = x = image.shape;
    y = windows.shape;
    const std::vector<int64_t>& kernel = call.operands[1].shape;
    // A task with a share of the groups sees fewer; one with a share of the channels sees one.
    const int64_t groups = x[1] / kernel[1];
    w = kernel;
    if (groups > 1) {
      w[0] /= groups;
      w.insert(w.begin(), groups);
    }
    has_point_filters = HasPointFilters(op, box, kernel);
    stride = op.Ints("stride");
    dilation = op.Ints("dilation");
    const size_t spatial = stride.size();
    x_tag = ImageTag(spatial, of_image);
    y_tag = ImageTag(spatial, of_windows);
    x_is_last = of_image == Layout::kChannelsLast;
    y_is_last = of_windows == Layout::kChannelsLast;
    kernel_tag = KernelTag(spatial, groups > 1);
    skipped.assign(2 + spatial, 0);
    for (size_t i = 0; i < spatial; ++i) {
      // What the windows span of the image, in coordinates of the box.
      const int64_t first =
          windows.origin[2 + i] * stride[i] - op.Ints("padding")[i] - image.origin[2 + i];
      const int64_t end =
          first + (y[2 + i] - 1) * stride[i] + dilation[i] * (kernel[2 + i] - 1) + 1;
      const int64_t begin_in_box = std::max<int64_t>(first, 0);
      // What a stride leaves over at the end is padding less than none: oneDNN takes the image
      // whole, and has its fast kernels for that.
      const bool is_left_over = end > begin_in_box && box[2 + i] - end < stride[i];
      const int64_t end_in_box = is_left_over ? box[2 + i] : std::min(end, box[2 + i]);
      skipped[2 + i] = begin_in_box;
      x[2 + i] = end_in_box - begin_in_box;
      touches_nothing |= x[2 + i] <= 0 || y[2 + i] == 0;
      padding_begin.push_back(begin_in_box - first);
      padding_end.push_back(end - end_in_box);
      dilation[i] -= 1;  // oneDNN counts the elements between.
    }
  }

  // Every place of the result is made of the one place of the image that lies where it does.
  bool IsOfPoints() const {
    return x_is_last && y_is_last && x == box && has_point_filters &&
           absl::MakeConstSpan(x).subspan(2) == absl::MakeConstSpan(y).subspan(2);
  }

  // The box, of which the windows touch this part.
  memory::desc Image() const {
    const memory::desc whole = Describe(box, x_tag);
    return x == box ? whole : whole.submemory_desc(x, skipped);
  }

  dnnl::convolution_forward::primitive_desc Forward(tag of_x, tag of_y) const {
    return {
        {dnnl::prop_kind::forward_training, algorithm::convolution_direct, Describe(x, of_x),
         Describe(w, tag::any), Describe(y, of_y), stride, dilation, padding_begin, padding_end},
        OwnScratchpad(),
        Engine()};
  }

  // Images whose channels are innermost are taken as they are, and together with others that are
  // made so, unless oneDNN has nothing but plain loops for that.
  template <typename Make>
  auto InGoodLayouts(Make make) const {
    if (x_is_last || y_is_last) {
      const tag last = ImageTag(stride.size(), Layout::kChannelsLast);
      auto made = make(last, last);
      constexpr absl::string_view kPlainLoops = "ref";
      if (!absl::StartsWith(made.impl_info_str(), kPlainLoops)) return made;
    }
    return make(tag::any, tag::any);
  }

  dnnl::convolution_forward::primitive_desc Forward() const {
    return InGoodLayouts([this](tag of_x, tag of_y) { return Forward(of_x, of_y); });
  }
  dnnl::convolution_backward_data::primitive_desc BackwardData() const {
    return InGoodLayouts([this](tag of_x, tag of_y) {
      return dnnl::convolution_backward_data::primitive_desc(
          {algorithm::convolution_direct, Describe(x, of_x), Describe(w, tag::any),
           Describe(y, of_y), stride, dilation, padding_begin, padding_end},
          OwnScratchpad(), Engine(), Forward(of_x, of_y));
    });
  }
  dnnl::convolution_backward_weights::primitive_desc BackwardWeights() const {
    return InGoodLayouts([this](tag of_x, tag of_y) {
      return dnnl::convolution_backward_weights::primitive_desc(
          {algorithm::convolution_direct, Describe(x, of_x), Describe(w, tag::any),
           Describe(y, of_y), stride, dilation, padding_begin, padding_end},
          OwnScratchpad(), Engine(), Forward(of_x, of_y));
    });
  }

  memory::dims box, x, w, y, stride, dilation, padding_begin, padding_end, skipped;
  tag x_tag, y_tag, kernel_tag;
  bool x_is_last, y_is_last, has_point_filters;
  bool touches_nothing = false;  // padding alone
};

// One primitive with its operands and result, in oneDNN's layouts and in ours.
class Primitive {
 public:
  Primitive(dnnl::primitive primitive, std::vector<std::pair<int, memory::desc>> inputs,
            std::vector<memory::desc> plain_inputs, std::pair<int, memory::desc> output,
            memory::desc plain_output, const memory::desc& scratchpad)
      : primitive_(std::move(primitive)),
        stream_(Engine()),
        scratchpad_(scratchpad, Engine(), nullptr) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs_.push_back(Slot(inputs[i].second, plain_inputs[i], false));
      arguments_.emplace(inputs[i].first, inputs_.back().inner);
    }
    output_ = Slot(output.second, plain_output, true);
    arguments_.emplace(output.first, output_.inner);
    arguments_.emplace(DNNL_ARG_SCRATCHPAD, scratchpad_);
    for (Slot& slot : inputs_) {
      if (slot.reorders) PutIntoWorkspace(&slot.inner);
    }
    if (output_.reorders) PutIntoWorkspace(&output_.inner);
    PutIntoWorkspace(&scratchpad_);
  }
  Primitive(const Primitive&) = delete;

  // Bytes of the operands and the result in oneDNN's layouts, and of what it needs itself.
  int64_t workspace_bytes() const { return plan_.bytes(); }

  void Run(absl::Span<const void* const> inputs, void* output, char* workspace) {
    UseWorkspace(workspace);
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs_[i].plain.set_data_handle(const_cast<void*>(inputs[i]));
      if (inputs_[i].reorders) {
        inputs_[i].reorder.execute(stream_, inputs_[i].plain, inputs_[i].inner);
      }
    }
    output_.plain.set_data_handle(output);
    primitive_.execute(stream_, arguments_);
    if (output_.reorders) output_.reorder.execute(stream_, output_.inner, output_.plain);
    stream_.wait();
  }

 private:
  struct Slot {
    Slot() = default;
    Slot(const memory::desc& wanted, const memory::desc& given, bool is_output)
        : reorders(wanted != given), plain(given, Engine(), nullptr) {
      inner = reorders ? memory(wanted, Engine(), nullptr) : plain;
      if (reorders) reorder = is_output ? dnnl::reorder(inner, plain) : dnnl::reorder(plain, inner);
    }
    bool reorders = false;
    memory plain, inner;
    dnnl::reorder reorder;
  };

  void PutIntoWorkspace(memory* what) {
    const auto bytes = static_cast<int64_t>(what->get_desc().get_size());
    if (bytes > 0) in_workspace_.emplace_back(what, plan_.Add<char>(bytes));
  }

  void UseWorkspace(char* workspace) {
    if (workspace == workspace_) return;
    workspace_ = workspace;
    for (const auto& [what, place] : in_workspace_) what->set_data_handle(place.In(workspace));
  }

  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<Slot> inputs_;
  Slot output_;
  memory scratchpad_;
  WorkspacePlan plan_;
  std::vector<std::pair<memory*, Place<char>>> in_workspace_;
  char* workspace_ = nullptr;  // where they are now
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

// With channels innermost, a convolution whose kernel is a point is a product of matrices: y = x
// w^T with a row for every place of the image.
KernelFunction PointConvolution(const KernelCall& call) {
  const int64_t in = call.operands[1].shape[1], out = call.operands[1].shape[0];
  const int64_t places = call.outputs[0].Volume() / out;
  if (!call.gradient) {
    return [=](Reads reads, Writes writes) {
      return Gemm(false, true, places, out, in, 1, Floats(reads[0]), Floats(reads[1]), 0,
                  Floats(writes[0]));
    };
  }
  const float keep_x = call.Adds(0) ? 1 : 0, keep_w = call.Adds(1) ? 1 : 0;
  return [=](Reads reads, Writes writes) -> absl::Status {
    const float* g = Floats(reads[3]);
    if (writes[0] != nullptr) {
      ISOMER_RETURN_IF_ERROR(
          Gemm(false, false, places, in, out, 1, g, Floats(reads[1]), keep_x, Floats(writes[0])));
    }
    if (writes[1] == nullptr) return absl::OkStatus();
    return Gemm(true, false, out, in, places, 1, g, Floats(reads[0]), keep_w, Floats(writes[1]));
  };
}

}  // namespace

bool IsPointConvolution(const KernelCall& call) { return ConvShape(call).IsOfPoints(); }

KernelFunction Conv2dKernel(const KernelCall& call) {
  const ConvShape s(call);
  const bool transposed = IsTransposed(call);
  if (!transposed && s.IsOfPoints()) return PointConvolution(call);
  const bool has_kernel_turned = call.layouts.OfOperand(1) != Layout::kRowMajor;
  if (s.touches_nothing || has_kernel_turned) return ReferenceKernel(call);
  const memory::desc x = s.Image(), w = Describe(s.w, s.kernel_tag), y = Describe(s.y, s.y_tag);
  using Inputs = std::vector<std::pair<int, memory::desc>>;
  std::shared_ptr<Primitive> forward, data, weights;
  const absl::Status made = Guarded([&] {
    const bool gradient_of_operand = call.gradient && call.wanted[0];
    if (transposed ? gradient_of_operand : !call.gradient) {
      const auto pd = s.Forward();
      forward = std::make_shared<Primitive>(
          dnnl::convolution_forward(pd),
          Inputs{{DNNL_ARG_SRC, pd.src_desc()}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}},
          std::vector<memory::desc>{x, w}, std::make_pair(DNNL_ARG_DST, pd.dst_desc()), y,
          pd.scratchpad_desc());
    }
    if (transposed ? !call.gradient : gradient_of_operand) {
      const auto pd = s.BackwardData();
      data = std::make_shared<Primitive>(
          dnnl::convolution_backward_data(pd),
          Inputs{{DNNL_ARG_DIFF_DST, pd.diff_dst_desc()}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}},
          std::vector<memory::desc>{y, w}, std::make_pair(DNNL_ARG_DIFF_SRC, pd.diff_src_desc()), x,
          pd.scratchpad_desc());
    }
    if (call.gradient && call.wanted[1]) {
      const auto pd = s.BackwardWeights();
      weights = std::make_shared<Primitive>(
          dnnl::convolution_backward_weights(pd),
          Inputs{{DNNL_ARG_DIFF_DST, pd.diff_dst_desc()}, {DNNL_ARG_SRC, pd.src_desc()}},
          std::vector<memory::desc>{y, x},
          std::make_pair(DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc()), w, pd.scratchpad_desc());
    }
  });
  if (!made.ok()) return Failing(made);
  // Nothing flows to what no window touches.
  const int64_t image_bytes = Product(s.box) * static_cast<int64_t>(sizeof(float));
  const int64_t bytes_to_clear = s.x == s.box ? 0 : image_bytes;
  int64_t workspace_bytes = 0;  // of one after the other
  for (const auto& primitive : {forward, data, weights}) {
    if (primitive == nullptr) continue;
    workspace_bytes = std::max(workspace_bytes, primitive->workspace_bytes());
  }
  // Which reads are the image and what the windows make of it, or their gradients.
  constexpr int kOperand = 0, kOutputGradient = 3;
  const int image = transposed && call.gradient ? kOutputGradient : kOperand;
  const int windows = !transposed && call.gradient ? kOutputGradient : kOperand;
  return {workspace_bytes, [=](Reads reads, Writes writes, char* workspace) {
            return Guarded([&] {
              if (data != nullptr) std::memset(writes[0], 0, bytes_to_clear);
              if (forward != nullptr) forward->Run({reads[image], reads[1]}, writes[0], workspace);
              if (data != nullptr) data->Run({reads[windows], reads[1]}, writes[0], workspace);
              if (weights != nullptr) {
                weights->Run({reads[windows], reads[image]}, writes[1], workspace);
              }
            });
          }};
}

}  // namespace isomer
