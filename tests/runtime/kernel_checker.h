// Compares kernels with the declarations of their calls.
#ifndef ISOMER_TESTS_RUNTIME_KERNEL_CHECKER_H_
#define ISOMER_TESTS_RUNTIME_KERNEL_CHECKER_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/examples.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/profile/work.h"
#include "pcg/schedule/memory/memory.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/device/backend.h"
#include "runtime/device/elements.h"
#include "runtime/device/moves.h"
#include "tests/pcg/random_operands.h"

namespace isomer {

inline void PrintTo(const ExampleCall& call, std::ostream* out) { *out << call.op.ToString(); }

using Ints = std::vector<int64_t>;

// The example with its values, or its indices, in every type that they may be in.
inline std::vector<ExampleCall> Variants(const ExampleCall& example) {
  std::vector<ExampleCall> calls = {example};
  for (DataType dtype : kAllDataTypes) {
    for (bool values : {true, false}) {
      ExampleCall call = example;
      EXPECT_TRUE(NormalizeAttributes(&call.op).ok());
      std::vector<DataType> dtypes;
      for (size_t o = 0; o < call.operands.size(); ++o) {
        if (HoldsValues(call.op.kind(), static_cast<int>(o)) == values)
          call.operands[o].dtype = dtype;
        dtypes.push_back(call.operands[o].dtype);
      }
      if (call.operands == example.operands || !InferDataType(call.op, dtypes).ok()) continue;
      absl::StrAppend(&call.name, values ? " of " : " by ", DataTypeName(dtype));
      calls.push_back(std::move(call));
    }
  }
  return calls;
}

// A buffer and the same numbers for the evaluator.
struct Shard {
  Array<double> array;
  DataType dtype;
  std::vector<int64_t> buffer;  // Large enough for any type.

  // Has the elements in the buffer in the order of `layout`, if they are row-major, or back.
  void Turn(Layout layout, bool back = false) {
    if (layout == Layout::kRowMajor) return;
    const Box box = {array.origin, array.shape};
    std::vector<double> elements(array.size()), turned(array.size());
    LoadElements(dtype, buffer.data(), array.size(), elements.data());
    const Box lying = InMemory(box, layout);
    std::vector<int64_t> strides(lying.shape.size(), 1);
    for (size_t i = strides.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * lying.shape[i + 1];
    std::rotate(strides.begin() + 1, strides.end() - 1, strides.end());  // Of the logical dims.
    std::vector<int64_t> at(box.shape.size(), 0);
    for (int64_t i = 0; i < array.size(); ++i) {
      int64_t place = 0;
      for (size_t d = 0; d < at.size(); ++d) place += at[d] * strides[d];
      turned[back ? i : place] = elements[back ? place : i];
      for (size_t d = at.size(); d-- > 0 && ++at[d] == box.shape[d];) at[d] = 0;
    }
    StoreElements(turned.data(), array.size(), dtype, buffer.data());
  }

  // The part of `whole` that the box covers.
  Shard(const Box& box, DataType type, const Array<double>& whole)
      : array(box.shape), dtype(type), buffer(box.Volume()) {
    array.origin = box.origin;
    CopyToBuffer(whole, box, dtype, buffer.data());
    LoadElements(dtype, buffer.data(), array.size(), array.data.data());
  }
  // These numbers, rounded to the type.
  Shard(Array<double> values, DataType type)
      : array(std::move(values)), dtype(type), buffer(array.size()) {
    StoreElements(array.data.data(), array.size(), dtype, buffer.data());
    LoadElements(dtype, buffer.data(), array.size(), array.data.data());
  }
};

// To be written by a kernel: full of what it should not leave there.
inline Shard Unwritten(const Box& box, DataType dtype) {
  Array<double> array(box.shape, 99);
  array.origin = box.origin;
  return Shard(std::move(array), dtype);
}

// A workspace that is full of what nobody may read there: NaN, and bytes behind it that stay.
struct Workspace {
  static constexpr char kDirt = '\xFF';
  static constexpr int64_t kBehind = 256;
  int64_t bytes;
  std::unique_ptr<char[], void (*)(void*)> memory;
};
inline Workspace DirtyWorkspace(const Kernel& kernel) {
  const int64_t bytes = Aligned(kernel.workspace_bytes());
  char* memory = static_cast<char*>(std::aligned_alloc(kAlignment, bytes + Workspace::kBehind));
  std::fill_n(memory, bytes + Workspace::kBehind, Workspace::kDirt);
  return {bytes, {memory, std::free}};
}
inline absl::Status RunIn(const Workspace& workspace, Kernel* kernel,
                          const std::vector<const void*>& reads, const std::vector<void*>& writes) {
  absl::Status status = kernel->Run(reads, writes, workspace.memory.get());
  for (int64_t i = 0; i < Workspace::kBehind; ++i) {
    if (workspace.memory[workspace.bytes + i] == Workspace::kDirt) continue;
    return absl::InternalError("a kernel wrote behind its workspace");
  }
  return status;
}

inline std::vector<const Array<double>*> Pointers(const std::vector<Shard>& shards) {
  std::vector<const Array<double>*> pointers;
  for (const Shard& shard : shards) pointers.push_back(&shard.array);
  return pointers;
}

inline double Tolerance(DataType dtype) {
  switch (dtype) {
    case DataType::kBFloat16:
      return 2e-2;
    case DataType::kFloat16:
      return 3e-3;
    case DataType::kFloat32:
      return 2e-5;
    default:
      return 0;
  }
}

// Within the tolerance of the type, or another that is greater.
inline void ExpectClose(const Shard& actual, const Array<double>& expected, double least = 0) {
  std::vector<double> numbers(expected.size());
  LoadElements(actual.dtype, actual.buffer.data(), expected.size(), numbers.data());
  // What the declaration gives, as integers and truth values hold it.
  const Shard rounded(expected, actual.dtype);
  const Array<double>& wanted = IsFloat(actual.dtype) ? expected : rounded.array;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double tolerance =
        std::max(least, Tolerance(actual.dtype)) * (1 + std::abs(wanted.data[i]));
    EXPECT_NEAR(numbers[i], wanted.data[i], tolerance) << "at " << i;
  }
}

// Compares the kernels of one call with its declaration.
class Checker {
 public:
  Checker(const ExampleCall& call, bool reference, CallLayouts layouts = {})
      : Checker(call, MakeCpuBackend(reference), std::move(layouts)) {}
  Checker(const ExampleCall& call, std::shared_ptr<Backend> backend, CallLayouts layouts = {})
      : op_(call.op),
        operands_(call.operands),
        layouts_(std::move(layouts)),
        backend_(std::move(backend)) {
    EXPECT_TRUE(NormalizeAttributes(&op_).ok());
    backend_->EnterDevice(0, 1);
    std::mt19937_64 random(7);
    values_ = RandomOperands<double>(call, random);
  }

  // All elements of an operand are this.
  Checker& Set(size_t operand, double value) {
    absl::c_fill(values_[operand].data, value);
    return *this;
  }
  void CheckWholeCall() { CheckTasks(operands_); }
  void CheckEveryShard();

 private:
  // Runs all tasks of the call with these operand types.
  void CheckTasks(const std::vector<TensorType>& operands) {
    absl::StatusOr<Sharding> sharding = InferSharding(op_, operands);
    ASSERT_TRUE(sharding.ok()) << sharding.status();
    for (int64_t shard = 0; shard < sharding->outputs[0].NumShards(); ++shard) {
      SCOPED_TRACE(testing::Message()
                   << "shard " << shard << " of " << sharding->outputs[0].ToString());
      for (const bool saves : {false, true}) CheckForward(*sharding, operands, shard, saves);
      CheckGradient(*sharding, operands, shard);
    }
  }

  std::vector<Shard> Slices(const KernelCall& call) {
    std::vector<Shard> slices;
    for (size_t o = 0; o < values_.size(); ++o) {
      slices.emplace_back(call.operands[o], call.dtypes[o], values_[o]);
    }
    return slices;
  }

  void CheckForward(const Sharding& sharding, const std::vector<TensorType>& operands,
                    int64_t shard, bool saves) {
    KernelCall call = MakeKernelCall(op_, sharding, operands, shard, false);
    call.layouts = layouts_;
    if (saves) call.saved = SavedBy(call);
    if (saves && !call.saved) return;
    std::vector<Shard> slices = Slices(call);
    const auto expected = Evaluate<double>(call.declaration, call.iteration, Pointers(slices));
    ASSERT_TRUE(expected.ok()) << expected.status();
    auto kernel = backend_->MakeKernel(call);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    std::vector<const void*> reads;
    for (size_t o = 0; o < slices.size(); ++o) {
      slices[o].Turn(layouts_.OfOperand(o));
      reads.push_back(slices[o].buffer.data());
    }
    std::vector<Shard> outputs;
    std::vector<void*> writes;
    for (size_t t = 0; t < call.outputs.size(); ++t) {
      outputs.push_back(Unwritten(call.outputs[t], call.output_dtypes[t]));
      writes.push_back(outputs.back().buffer.data());
    }
    std::vector<char> saved(saves ? call.saved->bytes() : 0);
    if (saves) writes.push_back(saved.data());
    ASSERT_EQ(RunIn(DirtyWorkspace(**kernel), kernel->get(), reads, writes), absl::OkStatus());
    for (size_t t = 0; t < outputs.size(); ++t) {
      outputs[t].Turn(layouts_.OfOutput(t), /*back=*/true);
      ExpectClose(outputs[t], (*expected)[t]);
    }
  }

  void CheckGradient(const Sharding& sharding, const std::vector<TensorType>& operands,
                     int64_t shard) {
    std::vector<bool> wanted;
    for (const TensorType& type : operands) wanted.push_back(IsFloat(type.dtype));
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return;
    KernelCall call = MakeKernelCall(op_, sharding, operands, shard, true, wanted);
    call.layouts = layouts_;
    std::vector<Shard> slices = Slices(call);
    const auto outputs = Evaluate<double>(call.declaration, call.iteration, Pointers(slices));
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    std::vector<Shard> results, seeds;
    for (size_t t = 0; t < outputs->size(); ++t) {
      results.emplace_back((*outputs)[t], call.output_dtypes[t]);
      Array<double> seed = (*outputs)[t];
      for (int64_t i = 0; i < seed.size(); ++i) {
        seed.data[i] = IsFloat(call.output_dtypes[t]) ? 0.25 + 0.125 * (i % 5) : 0;
      }
      seeds.emplace_back(std::move(seed), call.output_dtypes[t]);
    }
    std::vector<Array<double>> expected;
    std::vector<Array<double>*> expected_pointers;
    expected.reserve(slices.size());
    for (size_t o = 0; o < slices.size(); ++o) {
      expected.emplace_back(slices[o].array.shape);
      expected.back().origin = slices[o].array.origin;
      expected_pointers.push_back(wanted[o] ? &expected.back() : nullptr);
    }
    ASSERT_EQ(EvaluateGradient<double>(call.declaration, call.iteration, Pointers(slices),
                                       Pointers(seeds), expected_pointers),
              absl::OkStatus());
    for (size_t o = 0; o < slices.size(); ++o) slices[o].Turn(layouts_.OfOperand(o));
    for (size_t t = 0; t < results.size(); ++t) {
      results[t].Turn(layouts_.OfOutput(t));
      seeds[t].Turn(layouts_.OfOutput(t));
    }
    // What the gradient does not need is not there.
    const GradientNeeds needs = NeedsOfGradient(op_, call.declaration, operands);
    std::vector<const void*> reads;
    for (size_t o = 0; o < slices.size(); ++o) {
      reads.push_back(needs.operands[o] ? slices[o].buffer.data() : nullptr);
    }
    for (size_t t = 0; t < results.size(); ++t) {
      reads.push_back(needs.outputs[t] ? results[t].buffer.data() : nullptr);
    }
    for (const Shard& seed : seeds) reads.push_back(seed.buffer.data());
    const std::vector<char> saved = SavedFor(call, slices);
    if (call.saved) reads.push_back(saved.data());
    for (const bool adds : {false, true}) {
      for (const bool in_float32 : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << (adds ? "added" : "written") << (in_float32 ? " in float32" : ""));
        call.sums.clear();
        for (size_t o = 0; (adds || in_float32) && o < wanted.size(); ++o) {
          const bool is_sum = in_float32 && wanted[o];
          call.sums.push_back({is_sum ? DataType::kFloat32 : call.dtypes[o], adds && wanted[o]});
        }
        CheckWrites(call, reads, expected);
      }
    }
  }

  // What the forward kernel saves for `gradient`, of operands in their layouts.
  std::vector<char> SavedFor(const KernelCall& gradient, const std::vector<Shard>& slices) {
    if (!gradient.saved) return {};
    KernelCall forward = gradient;
    forward.gradient = false;
    forward.wanted.clear();
    auto kernel = backend_->MakeKernel(forward);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    std::vector<const void*> reads;
    for (const Shard& slice : slices) reads.push_back(slice.buffer.data());
    std::vector<Shard> outputs;
    std::vector<void*> writes;
    for (size_t t = 0; t < forward.outputs.size(); ++t) {
      outputs.push_back(Unwritten(forward.outputs[t], forward.output_dtypes[t]));
      writes.push_back(outputs.back().buffer.data());
    }
    std::vector<char> saved(forward.saved->bytes());
    writes.push_back(saved.data());
    EXPECT_EQ(RunIn(DirtyWorkspace(**kernel), kernel->get(), reads, writes), absl::OkStatus());
    return saved;
  }

  // The gradients that the kernel of `call` writes over what is in their buffers, or adds to it.
  void CheckWrites(const KernelCall& call, const std::vector<const void*>& reads,
                   const std::vector<Array<double>>& expected) {
    auto kernel = backend_->MakeKernel(call);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    std::vector<Shard> gradients;
    std::vector<void*> writes;
    gradients.reserve(expected.size());
    const auto before = [](int64_t i) { return 0.5 - 0.25 * static_cast<double>(i % 3); };
    for (size_t o = 0; o < expected.size(); ++o) {
      const DataType dtype = call.SumDtype(o);
      Shard gradient = Unwritten(call.operands[o], dtype);
      if (call.Adds(o)) {
        Array<double> there = gradient.array;
        for (int64_t i = 0; i < there.size(); ++i) there.data[i] = before(i);
        gradient = Shard(std::move(there), dtype);
        gradient.Turn(layouts_.OfOperand(o));
      }
      gradients.push_back(std::move(gradient));
      writes.push_back(call.wanted[o] ? gradients.back().buffer.data() : nullptr);
    }
    ASSERT_EQ(RunIn(DirtyWorkspace(**kernel), kernel->get(), reads, writes), absl::OkStatus());
    for (size_t o = 0; o < gradients.size(); ++o) {
      if (!call.wanted[o]) continue;
      SCOPED_TRACE(testing::Message() << "gradient of operand " << o);
      gradients[o].Turn(layouts_.OfOperand(o), /*back=*/true);
      Array<double> sum = expected[o];
      for (int64_t i = 0; call.Adds(o) && i < sum.size(); ++i) sum.data[i] += before(i);
      // What is rounded to the operand's type on its way is as near as that.
      ExpectClose(gradients[o], sum, Tolerance(call.dtypes[o]));
    }
  }

  Operator op_;
  std::vector<TensorType> operands_;
  const CallLayouts layouts_;
  std::vector<Array<double>> values_;
  std::shared_ptr<Backend> backend_;
};

inline void Checker::CheckEveryShard() {
  absl::StatusOr<Sharding> whole = InferSharding(op_, operands_);
  ASSERT_TRUE(whole.ok());
  const Declaration& d = whole->declaration;
  for (size_t v = 0; v < d.dims.size(); ++v) {
    if (!d.IsPartitionable(static_cast<int>(v)) || d.dims[v].size.value() % 2 != 0) continue;
    SCOPED_TRACE(testing::Message() << "dim " << d.dims[v].name << " in two");
    Ints degrees(d.dims.size(), 1);
    degrees[v] = 2;
    absl::StatusOr<std::vector<TensorType>> operands = OperandTypesFor(op_, operands_, degrees);
    // A dim with a halo may be of a size that two divides where the operand's is not.
    if (!operands.ok() || !InferSharding(op_, *operands).ok()) continue;
    CheckTasks(*operands);
  }
}

// What may have its channels innermost in a call that takes it so: all images at once, or of a
// convolution also its image or its result alone.
inline std::vector<CallLayouts> LayoutsOf(const ExampleCall& call) {
  Operator op = call.op;
  EXPECT_TRUE(NormalizeAttributes(&op).ok());
  const absl::StatusOr<std::vector<TensorType>> outputs = InferTypes(op, call.operands);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  const LayoutUse use = LayoutUseOf(op, call.operands, *outputs);
  if (use == LayoutUse::kRowMajor) return {};
  const auto layout = [](const TensorType& type) {
    return HasLayouts(type.Sizes()) ? Layout::kChannelsLast : Layout::kRowMajor;
  };
  CallLayouts all;
  for (const TensorType& operand : call.operands) all.operands.push_back(layout(operand));
  for (const TensorType& output : *outputs) all.outputs.push_back(layout(output));
  if (use == LayoutUse::kEach) all.operands[1] = Layout::kRowMajor;
  if (all.AreRowMajor()) return {};
  std::vector<CallLayouts> found = {all};
  if (use == LayoutUse::kEach) {
    found.resize(3, all);
    found[1].operands[0] = Layout::kRowMajor;
    found[2].outputs[0] = Layout::kRowMajor;
  }
  return found;
}

// Beside the examples: calls as they lie between convolutions.
inline std::vector<ExampleCall> CallsOfImages() {
  std::vector<ExampleCall> calls;
  for (const ExampleCall& example : Examples()) {
    if (!LayoutsOf(example).empty()) calls.push_back(example);
  }
  const auto image = SequentialType({2, 4, 3, 2}), bias = SequentialType({4, 1, 1}),
             channels = SequentialType({1, 4, 1, 1}), mask = SequentialType({2, 1, 3, 2}),
             planes = SequentialType({4, 3, 2}), places = SequentialType({3, 2});
  const auto add = [&](std::string name, Operator op, std::vector<TensorType> operands) {
    calls.push_back({std::move(name), std::move(op), std::move(operands)});
  };
  add("ReluOfImages", OpKind::kRelu, {image});
  add("GeluOfLines", OpKind::kGelu, {SequentialType({2, 4, 6})});
  add("CastOfImages", {OpKind::kCast, {{"to", int64_t{2}}}}, {image});
  add("AddOfImages", OpKind::kAdd, {image, image});
  add("MulByBias", OpKind::kMul, {image, bias});
  add("SubOfChannels", OpKind::kSub, {image, channels});
  add("DivByMask", OpKind::kDiv, {image, mask});
  add("MulByPlanes", OpKind::kMul, {image, planes});
  add("AddOfPlaces", OpKind::kAdd, {image, places});
  add("WhereOfImages", OpKind::kWhere, {SequentialType({4, 1, 1}, DataType::kBool), image, image});
  const auto reduction = [&](OpKind kind, Ints axes, int64_t keepdims) {
    return Operator(kind, {{"axes", std::move(axes)}, {"keepdims", keepdims}});
  };
  add("MeanOfChannels", reduction(OpKind::kReduceMean, {0, 2, 3}, 1), {image});
  add("MeanOfPlanes", reduction(OpKind::kReduceMean, {2, -1}, 0), {image});
  add("SumOverChannels", reduction(OpKind::kReduceSum, {1}, 1), {image});
  add("SumOverSamples", reduction(OpKind::kReduceSum, {0}, 0), {image});
  add("MaxOverRows", reduction(OpKind::kReduceMax, {2}, 1), {image});
  add("ProductOfChannels", reduction(OpKind::kReduceProd, {0, 2, 3}, 0), {image});
  for (int64_t axis = 0; axis < 4; ++axis) {
    add(absl::StrCat("Concat", axis), {OpKind::kConcat, {{"axis", axis - 4}}}, {image, image});
  }
  add("SplitOfChannels", {OpKind::kSplit, {{"axis", int64_t{1}}, {"sizes", Ints{1, 3}}}}, {image});
  add("SplitOfRows", {OpKind::kSplit, {{"axis", int64_t{2}}, {"sizes", Ints{2, 1}}}}, {image});
  add("SliceOfImages",
      {OpKind::kSlice,
       {{"starts", Ints{0, 1, 2, 0}}, {"sizes", Ints{2, 2, 2, 2}}, {"steps", Ints{1, 2, -1, 1}}}},
      {image});
  add("PadOfImages",
      {OpKind::kPad, {{"padding", Ints{0, 1, 1, 0, 0, 0, 2, 1}}, {"mode", int64_t{1}}}}, {image});
  add("DropoutOfImages", {OpKind::kDropout, {{"rate", 0.5}}},
      {image, SequentialType({}, DataType::kInt64)});
  const auto convolution = [&](OpKind kind, Ints stride, Ints padding, int64_t groups) {
    Ints dilation(stride.size(), 1);
    return Operator(kind, {{"stride", std::move(stride)},
                           {"padding", std::move(padding)},
                           {"dilation", std::move(dilation)},
                           {"groups", groups}});
  };
  add("ConvolutionOfPoints", convolution(OpKind::kConv2d, {1, 1}, {0, 0, 0, 0}, 1),
      {image, SequentialType({6, 4, 1, 1})});
  add("ConvolutionOfPointsInGroups", convolution(OpKind::kConv2d, {1, 1}, {0, 0, 0, 0}, 2),
      {image, SequentialType({6, 2, 1, 1})});
  add("ConvolutionOfPointsApart", convolution(OpKind::kConv2d, {2, 2}, {0, 0, 0, 0}, 1),
      {SequentialType({2, 4, 6, 4}), SequentialType({6, 4, 1, 1})});
  add("ConvolutionOfPointsPadded", convolution(OpKind::kConv2d, {1, 1}, {1, 0, 0, 1}, 1),
      {image, SequentialType({6, 4, 1, 1})});
  add("ConvolutionThatLeavesRows", convolution(OpKind::kConv2d, {3, 2}, {0, 1, 0, 0}, 1),
      {SequentialType({2, 16, 8, 6}), SequentialType({16, 16, 2, 3})});
  add("ConvolutionOfLinePoints", convolution(OpKind::kConv1d, {1}, {0, 0}, 1),
      {SequentialType({2, 4, 6}), SequentialType({2, 4, 1})});
  return calls;
}

}  // namespace isomer

#endif  // ISOMER_TESTS_RUNTIME_KERNEL_CHECKER_H_
