// The cuda backend on a driver without a GPU (fake_cuda_driver.h), against the cpu backend.
#include "runtime/cuda/cuda_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "absl/algorithm/container.h"
#include "pcg/ir/examples.h"
#include "pcg/ir/plan.h"
#include "pcg/ir/precision.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/file.h"
#include "pcg/support/status_macros.h"
#include "runtime/checking/compare.h"
#include "runtime/communication/thread_communicator.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/device/elements.h"
#include "runtime/execution/job.h"
#include "runtime/execution/make_backend.h"
#include "runtime/profiler/profile_rank.h"
#include "runtime/profiler/profile_tasks.h"
#include "runtime/profiler/profiler.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"
#include "tests/runtime/cuda/fake_cuda_driver.h"
#include "tests/runtime/cuda/fake_nccl.h"
#include "tests/runtime/cuda/fake_streams.h"
#include "tests/runtime/short_training.h"

namespace isomer {
namespace {

using testing::HasSubstr;

constexpr DataType kFloats[] = {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16};

// Bytes of the host, and the same on the device.
class Twin {
 public:
  Twin(Backend* backend, std::vector<char> bytes)
      : backend_(*backend), host_(std::move(bytes)), memory_(nullptr, [](char*) {}) {
    auto memory = backend_.Allocate(size());
    EXPECT_TRUE(memory.ok()) << memory.status();
    memory_ = *std::move(memory);
    EXPECT_EQ(backend_.operations().FromHost(host_.data(), size(), memory_.get()),
              absl::OkStatus());
  }
  // Numbers between -2 and 2 of a type.
  Twin(Backend* backend, DataType dtype, int64_t count, uint64_t seed)
      : Twin(backend, Random(dtype, count, seed)) {}

  int64_t size() const { return static_cast<int64_t>(host_.size()); }
  void* host() { return host_.data(); }
  void* device() { return memory_.get(); }
  float* host_floats() { return reinterpret_cast<float*>(host_.data()); }
  float* device_floats() { return reinterpret_cast<float*>(memory_.get()); }

  // The device has what the host has, if `least` is 0 to the bit.
  void ExpectSame(DataType dtype, double least = 0) {
    std::vector<char> found(host_.size());
    ASSERT_EQ(backend_.operations().ToHost(memory_.get(), size(), found.data()), absl::OkStatus());
    const int64_t count = size() / BytesPerElement(dtype);
    std::vector<double> wanted(count), numbers(count);
    LoadElements(dtype, host_.data(), count, wanted.data());
    LoadElements(dtype, found.data(), count, numbers.data());
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_NEAR(numbers[i], wanted[i], least * (1 + std::abs(wanted[i]))) << i;
    }
  }

 private:
  static std::vector<char> Random(DataType dtype, int64_t count, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> number(-2, 2);
    std::vector<double> numbers(count);
    for (double& x : numbers) x = number(random);
    std::vector<char> bytes(count * BytesPerElement(dtype));
    StoreElements(numbers.data(), count, dtype, bytes.data());
    return bytes;
  }

  Backend& backend_;
  std::vector<char> host_;
  Backend::Memory memory_;
};

class CudaBackendTest : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = MakeCudaBackend(FakeCudaToolchain(/*gpus=*/2));
  DeviceOperations& device_ = backend_->operations();
  DeviceOperations host_;
};

TEST_F(CudaBackendTest, FillsAddsAndConverts) {
  constexpr int64_t kCount = 1000;
  for (DataType dtype : kAllDataTypes) {
    for (const double value : {0.0, 1.0, 3.7}) {
      Twin x(backend_.get(), dtype, kCount, 1);
      ASSERT_EQ(host_.Fill(value, kCount - 1, dtype, x.host()), absl::OkStatus());
      ASSERT_EQ(device_.Fill(value, kCount - 1, dtype, x.device()), absl::OkStatus());
      x.ExpectSame(dtype);
    }
  }
  const double factor = 0.25;
  std::vector<char> bytes(sizeof factor);
  std::memcpy(bytes.data(), &factor, sizeof factor);
  Twin at(backend_.get(), bytes);
  for (DataType dtype : kFloats) {
    Twin x(backend_.get(), dtype, kCount, 1);
    ASSERT_EQ(host_.FillScaled(3.7, &factor, kCount - 1, dtype, x.host()), absl::OkStatus());
    ASSERT_EQ(device_.FillScaled(3.7, static_cast<const double*>(at.device()), kCount - 1, dtype,
                                 x.device()),
              absl::OkStatus());
    x.ExpectSame(dtype);
  }
  for (DataType from : kFloats) {
    for (DataType to : kFloats) {
      Twin x(backend_.get(), from, kCount, 2), y(backend_.get(), to, kCount, 3);
      ASSERT_EQ(host_.Convert(from, x.host(), kCount, to, y.host()), absl::OkStatus());
      ASSERT_EQ(device_.Convert(from, x.device(), kCount, to, y.device()), absl::OkStatus());
      y.ExpectSame(to);
      if (from != to && to != DataType::kFloat32) continue;
      ASSERT_EQ(host_.Add(from, x.host(), kCount, to, y.host()), absl::OkStatus());
      ASSERT_EQ(device_.Add(from, x.device(), kCount, to, y.device()), absl::OkStatus());
      y.ExpectSame(to);
    }
  }
}

TEST_F(CudaBackendTest, UpdatesByEveryOptimizer) {
  constexpr int64_t kCount = 500;
  std::vector<UpdateRule> rules;
  for (const OptimizerTraits& traits : AllOptimizers()) {
    rules.emplace_back(traits.kind);
    rules.emplace_back(traits.kind, OptimizerSettings{.momentum = 0.8,
                                                      .nesterov = true,
                                                      .beta1 = 0.8,
                                                      .beta2 = 0.95,
                                                      .epsilon = 1e-3,
                                                      .weight_decay = 0.1});
    rules.push_back(rules.back());
    rules.back().decays = false;
  }
  for (const UpdateRule& rule : rules) {
    for (DataType of_gradient : kFloats) {
      for (DataType low : kFloats) {
        SCOPED_TRACE(testing::Message() << OptimizerName(rule.optimizer) << " "
                                        << DataTypeName(of_gradient) << " " << DataTypeName(low));
        Twin w(backend_.get(), DataType::kFloat32, kCount, 4),
            g(backend_.get(), of_gradient, kCount, 5);
        Twin rounded(backend_.get(), low, kCount, 6);
        std::vector<Twin> states;
        std::vector<float*> on_host, on_device;
        for (int i = 0; i < NumStates(rule.optimizer); ++i) {
          states.emplace_back(backend_.get(), std::vector<char>(kCount * sizeof(float)));
        }
        for (Twin& state : states) {
          on_host.push_back(state.host_floats());
          on_device.push_back(state.device_floats());
        }
        const bool has_low = low != DataType::kFloat32;
        for (int64_t number = 1; number <= 3; ++number) {
          const UpdateFactors factors = FactorsOf({rule, number, 0.1, 0.5});
          std::vector<char> bytes(sizeof factors);
          std::memcpy(bytes.data(), &factors, sizeof factors);
          Twin of_step(backend_.get(), bytes);
          ASSERT_EQ(
              host_.Update(rule, &factors, {of_gradient, g.host()}, kCount, w.host_floats(),
                           w.host_floats(), on_host, {low, has_low ? rounded.host() : nullptr}),
              absl::OkStatus());
          ASSERT_EQ(device_.Update(rule, static_cast<const UpdateFactors*>(of_step.device()),
                                   {of_gradient, g.device()}, kCount, w.device_floats(),
                                   w.device_floats(), on_device,
                                   {low, has_low ? rounded.device() : nullptr}),
                    absl::OkStatus());
        }
        w.ExpectSame(DataType::kFloat32, 1e-6);
        for (Twin& state : states) state.ExpectSame(DataType::kFloat32, 1e-6);
        if (has_low) rounded.ExpectSame(low, 1e-2);
      }
    }
  }
}

TEST_F(CudaBackendTest, CopiesRegionsAndSumsPieces) {
  const Box from = {{0, 4, 2}, {3, 6, 5}}, to = {{1, 2, 0}, {4, 8, 9}},
            region = {{1, 5, 3}, {2, 4, 3}};
  for (DataType dtype : kAllDataTypes) {
    Twin x(backend_.get(), dtype, from.Volume(), 7), y(backend_.get(), dtype, to.Volume(), 8);
    const int64_t bytes = BytesPerElement(dtype);
    ASSERT_EQ(host_.CopyRegion(region, from, x.host(), to, y.host(), bytes), absl::OkStatus());
    ASSERT_EQ(device_.CopyRegion(region, from, x.device(), to, y.device(), bytes),
              absl::OkStatus());
    y.ExpectSame(dtype);
    if (dtype == DataType::kBool) continue;  // Nobody sums these.
    // More than go into one pass; and none.
    for (const int count : {0, 1, 2, 20}) {
      std::vector<MovedPiece> on_host, on_device;
      for (int i = 0; i < count; ++i) {
        Box part = region;
        part.shape[1] = 1 + i % 4;
        on_host.push_back({part, from, x.host()});
        on_device.push_back({part, from, x.device()});
      }
      ASSERT_EQ(host_.SumPieces(on_host, to, dtype, y.host()), absl::OkStatus());
      ASSERT_EQ(device_.SumPieces(on_device, to, dtype, y.device()), absl::OkStatus());
      y.ExpectSame(dtype, dtype == DataType::kFloat32    ? 1e-6
                          : dtype == DataType::kBFloat16 ? 2e-2
                          : dtype == DataType::kFloat16  ? 2e-3
                                                         : 0);
    }
  }
}

TEST_F(CudaBackendTest, SumsSquares) {
  for (DataType dtype : kFloats) {
    for (int64_t count : {0, 1, 255, 300, 70000}) {
      Twin x(backend_.get(), dtype, std::max<int64_t>(count, 1), 9);
      const double expected = host_.SumOfSquares(dtype, x.host(), count).value();
      const double found = device_.SumOfSquares(dtype, x.device(), count).value();
      EXPECT_NEAR(found, expected, 1e-12 * expected) << DataTypeName(dtype) << " " << count;
      EXPECT_EQ(device_.SumOfSquares(dtype, x.device(), count).value(), found);
    }
  }
}

TEST_F(CudaBackendTest, SeesWhatIsNotFinite) {
  for (DataType dtype : kFloats) {
    Twin x(backend_.get(), dtype, 300, 9);
    EXPECT_TRUE(device_.AreFinite(dtype, x.device(), 300).value());
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
      char* at = static_cast<char*>(x.device()) + 299 * BytesPerElement(dtype);
      ASSERT_EQ(device_.Fill(bad, 1, dtype, at), absl::OkStatus());
      EXPECT_FALSE(device_.AreFinite(dtype, x.device(), 300).value());
      EXPECT_TRUE(device_.AreFinite(dtype, x.device(), 299).value());
    }
  }
}

// Devices that share a GPU ask at one time.
TEST(CudaOperations, SeesWhatIsNotFiniteForEachThread) {
  const auto backend = MakeCudaBackend(FakeCudaToolchain(/*gpus=*/1));
  Twin finite(backend.get(), DataType::kFloat32, 64, 1),
      infinite(backend.get(), DataType::kFloat32, 64, 2);
  ASSERT_EQ(backend->operations().Fill(1e300, 1, DataType::kFloat32, infinite.device()),
            absl::OkStatus());
  std::vector<std::thread> threads;
  for (Twin* twin : {&finite, &infinite}) {
    threads.emplace_back([&backend, twin, is_finite = twin == &finite] {
      int wrong = 0;
      for (int i = 0; i < 2000; ++i) {
        wrong += backend->operations().AreFinite(DataType::kFloat32, twin->device(), 64).value() !=
                 is_finite;
      }
      EXPECT_EQ(wrong, 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CudaBackendTest, TrainsAsCoresDo) {
  const auto cpu = MakeCpuBackend();
  for (DataType precision : kFloats) {
    SCOPED_TRACE(DataTypeName(precision));
    const Trained expected = TrainedOn(cpu.get(), precision, 0.01);
    for (ExecutionKind kind : {ExecutionKind::kInline, ExecutionKind::kThreaded}) {
      const Trained trained = TrainedOn(backend_.get(), precision, 0.01, kind);
      const double tolerance = precision == DataType::kFloat32 ? 1e-4 : 3e-2;
      EXPECT_NEAR(trained.loss, expected.loss, tolerance * std::abs(expected.loss));
      for (const auto& [name, values] : expected.parameters) {
        const Array<double>& found = trained.parameters.at(name);
        for (int64_t i = 0; i < values.size(); ++i) {
          ASSERT_NEAR(found.data[i], values.data[i], tolerance * (1 + std::abs(values.data[i])));
        }
      }
    }
  }
}

bool Communicates(const Schedule& schedule) {
  return absl::c_any_of(schedule.tasks,
                        [](const Task& task) { return IsCommunication(task.kind); });
}

// What steps of a schedule lead to.
struct Steps {
  HostValues outputs, parameters, gradients;
};
Steps StepsOf(const Graph& graph, const Schedule& schedule, const HostValues& weights,
              const HostValues& inputs, Backend* backend, ExecutionKind kind, int count = 2) {
  const auto job = Job::Start(graph, schedule, backend, {.execution = {.kind = kind}});
  EXPECT_TRUE(job.ok()) << job.status();
  if (!job.ok()) return {};
  EXPECT_EQ((*job)->SetParameters(weights), absl::OkStatus());
  Steps steps;
  for (int step = 0; step < count; ++step) {
    EXPECT_EQ((*job)->TrainStep(inputs, 0.01), absl::OkStatus());
  }
  for (const Graph::NamedOutput& output : graph.outputs()) {
    steps.outputs[output.name] = (*job)->Output(output.name).value();
  }
  steps.parameters = (*job)->Parameters().value();
  steps.gradients = (*job)->Gradients().value();
  return steps;
}

void ExpectNear(const HostValues& found, const HostValues& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, values] : expected) {
    const Array<double>& others = found.at(name);
    ASSERT_EQ(others.size(), values.size());
    for (int64_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(others.data[i], values.data[i], 1e-4 * (1 + std::abs(values.data[i]))) << name;
    }
  }
}

// Kernels are compiled once for all tests of the process that need nothing else.
CudaToolchain CachedToolchain(int gpus) {
  static const auto* folder =
      new std::string(absl::StrCat(testing::TempDir(), "/cuda_kernels_", getpid()));
  return FakeCudaToolchain(gpus, *folder);
}

// A rank of a job of processes, as far as it can tell.
class AsProcess : public ControlPlane {
 public:
  explicit AsProcess(HostCommunicator* inner) : inner_(*inner) {}
  int32_t rank() const override { return inner_.rank(); }
  int32_t num_ranks() const override { return inner_.num_ranks(); }
  absl::Status Meet() override { return inner_.Meet(); }
  absl::StatusOr<std::vector<std::string>> Gather(absl::string_view mine) override {
    return inner_.Gather(mine);
  }
  absl::Status Exchange(absl::Span<const Send> sends, absl::Span<const Receive> receives) override {
    return inner_.Exchange(sends, receives);
  }
  void Abort(const absl::Status& status) override { inner_.Abort(status); }
  absl::Status Poll() override { return inner_.Poll(); }
  void Post(int64_t progress) override { inner_.Post(progress); }
  int64_t Posted(int32_t rank) const override { return inner_.Posted(rank); }
  bool has_own_process() const override { return true; }

 private:
  HostCommunicator& inner_;
};

// By processes, one GPU each: all of them find the same.
Steps StepsOfProcesses(const Graph& graph, const Schedule& schedule, const HostValues& weights,
                       const HostValues& inputs, Backend* backend, int steps) {
  const int32_t devices = static_cast<int32_t>(schedule.programs.size());
  const auto ranks = MakeThreadCommunicators(devices);
  Steps first;
  std::vector<std::thread> processes;
  for (int32_t r = 0; r < devices; ++r) {
    processes.emplace_back([&, r] {
      AsProcess control(ranks[r].get());
      const auto job =
          Job::Start(graph, schedule, backend,
                     {.execution = {.kind = ExecutionKind::kThreaded}, .control = &control});
      ASSERT_TRUE(job.ok()) << job.status();
      ASSERT_EQ((*job)->SetParameters(weights), absl::OkStatus());
      for (int step = 0; step < steps; ++step) {
        ASSERT_EQ((*job)->TrainStep(inputs, 0.01), absl::OkStatus());
      }
      Steps found;
      for (const Graph::NamedOutput& output : graph.outputs()) {
        found.outputs[output.name] = (*job)->Output(output.name).value();
      }
      found.parameters = (*job)->Parameters().value();
      found.gradients = (*job)->Gradients().value();
      if (r == 0) first = std::move(found);
    });
  }
  for (std::thread& process : processes) process.join();
  return first;
}

// One GPU is all devices: collectives, moves and sums on its memory. And each is one.
class CudaPlansTest : public testing::TestWithParam<ParallelCase> {};

TEST_P(CudaPlansTest, ComputeWhatCoresDo) {
  const ParallelCase& c = GetParam();
  Model model;
  model.graph = Parsed(c.sequential);
  const Graph parallel = Parsed(c.parallel);
  const HostValues weights = InitialWeights(model, 3).value();
  const HostValues inputs = RandomInputs(model.graph, 5);
  const auto cpu = MakeCpuBackend();
  for (UpdateMethod method :
       {UpdateMethod::kAllReduce, UpdateMethod::kSharded, UpdateMethod::kOwner}) {
    SCOPED_TRACE(UpdateMethodName(method));
    ScheduleOptions options = TrainingOptions(c.num_devices);
    options.update = {.optimizer = OptimizerKind::kMomentum, .method = method};
    const auto schedule = LowerGraph(parallel, ViewsOf(parallel, c.strides), options);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const Steps expected =
        StepsOf(parallel, *schedule, weights, inputs, cpu.get(), ExecutionKind::kInline);
    for (const int gpus : {1, static_cast<int>(c.num_devices)}) {
      SCOPED_TRACE(testing::Message() << gpus << " GPUs");
      const auto gpu = MakeCudaBackend(CachedToolchain(gpus));
      for (ExecutionKind kind : {ExecutionKind::kInline, ExecutionKind::kThreaded}) {
        const int before = fake_nccl_calls;
        const Steps found = StepsOf(parallel, *schedule, weights, inputs, gpu.get(), kind);
        ExpectNear(found.outputs, expected.outputs);
        ExpectNear(found.parameters, expected.parameters);
        ExpectNear(found.gradients, expected.gradients);
        EXPECT_EQ(fake_nccl_calls > before, gpus > 1 && Communicates(*schedule));
      }
    }
    const auto gpu = MakeCudaBackend(CachedToolchain(static_cast<int>(c.num_devices)));
    const int before = fake::graph_launches;
    // The third is what was recorded in the second.
    const Steps found =
        StepsOfProcesses(parallel, *schedule, weights, inputs, gpu.get(), /*steps=*/3);
    EXPECT_GT(fake::graph_launches, before);
    const Steps three = StepsOf(parallel, *schedule, weights, inputs, cpu.get(),
                                ExecutionKind::kInline, /*steps=*/3);
    ExpectNear(found.outputs, three.outputs);
    ExpectNear(found.parameters, three.parameters);
    ExpectNear(found.gradients, three.gradients);
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, CudaPlansTest, testing::ValuesIn(ParallelCases()),
                         [](const auto& info) { return info.param.name; });

// A plan of one device, on one GPU.
LoweredPlan LoweredOnOne(OptimizerKind optimizer, DataType precision) {
  Plan plan = MicroBatchPlan(
      {.layers = 2, .stages = 1, .micro_batches = 2, .batch = 8, .width = 16}, precision);
  plan.update.optimizer = optimizer;
  return LowerPlan(plan, /*keep_gradients=*/false).value();
}

// Parameters and losses of steps with learning rates that change, as schedules of them do.
struct Training {
  HostValues parameters;
  std::vector<double> losses;
};
Training TrainingOf(Backend* backend, const LoweredPlan& lowered, ExecutionKind kind, int steps) {
  Model model;
  model.graph = lowered.mapped.graph;
  const auto job =
      Job::Start(lowered.mapped.graph, lowered.schedule, backend, {.execution = {.kind = kind}});
  EXPECT_TRUE(job.ok()) << job.status();
  Training run;
  EXPECT_EQ((*job)->SetParameters(InitialWeights(model, 3).value()), absl::OkStatus());
  for (int step = 0; step < steps; ++step) {
    const HostValues inputs = RandomInputs(lowered.mapped.graph, 5 + step);
    EXPECT_EQ((*job)->TrainStep(inputs, 0.01 / (1 + step)), absl::OkStatus());
    const std::string loss = lowered.mapped.graph.outputs()[0].name;
    run.losses.push_back((*job)->Output(loss).value().data[0]);
  }
  run.parameters = (*job)->Parameters().value();
  return run;
}

TEST(CudaQueues, ReplayStepsWithNewValues) {
  const auto cpu = MakeCpuBackend();
  for (OptimizerKind optimizer : {OptimizerKind::kSgd, OptimizerKind::kAdam}) {
    const LoweredPlan lowered = LoweredOnOne(optimizer, DataType::kFloat32);
    const Training expected = TrainingOf(cpu.get(), lowered, ExecutionKind::kInline, 5);
    const auto gpu = MakeCudaBackend(CachedToolchain(/*gpus=*/1));
    for (ExecutionKind kind : {ExecutionKind::kInline, ExecutionKind::kThreaded}) {
      const int before = fake::graph_launches;
      const Training found = TrainingOf(gpu.get(), lowered, kind, 5);
      ExpectNear(found.parameters, expected.parameters);
      for (int step = 0; step < 5; ++step) {
        EXPECT_NEAR(found.losses[step], expected.losses[step], 1e-4) << step;
      }
      // All steps but the first, and what devices make of parameters when they have them.
      EXPECT_EQ(fake::graph_launches - before, kind == ExecutionKind::kThreaded ? 5 : 0);
    }
  }
}

// Devices with a GPU each, that meet twice in a layer.
struct FourDevices {
  FourDevices() {
    const ParallelCase c = ParallelCases()[1];
    EXPECT_EQ(c.name, "ColumnRowParallelMlp");
    EXPECT_EQ(c.num_devices, 4);
    Model model;
    model.graph = Parsed(c.sequential);
    weights = InitialWeights(model, 3).value();
    inputs = RandomInputs(model.graph, 5);
    graph = Parsed(c.parallel);
    schedule = LowerGraph(graph, ViewsOf(graph, c.strides), TrainingOptions(c.num_devices)).value();
  }
  Steps StepsOn(Backend* backend, ExecutionKind kind) const {
    return StepsOf(graph, schedule, weights, inputs, backend, kind);
  }

  Graph graph;
  Schedule schedule;
  HostValues weights, inputs;
};

// What the fake draws finds waits that are missing.
TEST(CudaQueues, WaitForEachOther) {
  const FourDevices four;
  const auto cpu = MakeCpuBackend();
  const auto gpu = MakeCudaBackend(CachedToolchain(/*gpus=*/4));
  const Steps expected = four.StepsOn(cpu.get(), ExecutionKind::kInline);
  const auto differs = [&] {
    const Steps found = four.StepsOn(gpu.get(), ExecutionKind::kThreaded);
    for (const auto& [name, values] : expected.parameters) {
      for (int64_t i = 0; i < values.size(); ++i) {
        const double difference = std::abs(found.parameters.at(name).data[i] - values.data[i]);
        if (!(difference < 1e-4)) return true;
      }
    }
    return false;
  };
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    fake::Seed(seed);
    EXPECT_FALSE(differs()) << seed;
    fake::forgets_waits = true;
    wrong += differs();
    fake::forgets_waits = false;
  }
  EXPECT_GT(wrong, 0);
}

TEST(CudaQueues, GiveUpOnWhoDoesNotCome) {
  const FourDevices four;
  const auto gpu = MakeCudaBackend(CachedToolchain(/*gpus=*/4));
  const auto job = Job::Start(
      four.graph, four.schedule, gpu.get(),
      {.timeout = std::chrono::milliseconds(300), .execution = {.kind = ExecutionKind::kThreaded}});
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_EQ((*job)->SetParameters(four.weights), absl::OkStatus());
  ASSERT_EQ((*job)->TrainStep(four.inputs, 0.01), absl::OkStatus());
  fake_nccl_hangs = 1;
  const absl::Status status = (*job)->TrainStep(four.inputs, 0.01);
  fake_nccl_hangs = -1;
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(
      std::string(status.message()),
      testing::ContainsRegex("^device [0-3]: .*: device [0-3] waited 300 ms in all_reduce of "
                             "devices 0,1,2,3"));
  EXPECT_EQ((*job)->TrainStep(four.inputs, 0.01), status);
}

// An error of one rank ends what the others wait for.
TEST(CudaQueues, EndTogether) {
  const FourDevices four;
  const auto gpu = MakeCudaBackend(CachedToolchain(/*gpus=*/4));
  const auto ranks = MakeThreadCommunicators(4);
  std::vector<absl::Status> statuses(4);
  std::vector<std::thread> processes;
  for (int32_t r = 0; r < 4; ++r) {
    processes.emplace_back([&, r] {
      AsProcess control(ranks[r].get());
      const auto job = Job::Start(four.graph, four.schedule, gpu.get(),
                                  {.timeout = std::chrono::seconds(20),
                                   .execution = {.kind = ExecutionKind::kThreaded},
                                   .control = &control});
      ASSERT_TRUE(job.ok()) << job.status();
      ASSERT_EQ((*job)->SetParameters(four.weights), absl::OkStatus());
      for (int step = 0; step < 3; ++step) {
        ASSERT_EQ((*job)->TrainStep(four.inputs, 0.01), absl::OkStatus());
      }
      if (r == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        control.Abort(absl::InternalError("rank 1 has enough"));
      }
      statuses[r] = (*job)->TrainStep(four.inputs, 0.01);
    });
  }
  for (std::thread& process : processes) process.join();
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(status.message(), HasSubstr("rank 1 has enough"));
  }
}

TEST(CudaQueues, NameWhoIsBehind) {
  const auto ranks = MakeThreadCommunicators(2);
  const auto gpu = MakeCudaBackend(CachedToolchain(/*gpus=*/2));
  CommunicationGroups groups;
  groups.of_collectives = {{0, 1}};
  std::vector<std::unique_ptr<Communicator>> communicators(2);
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      gpu->EnterDevice(r, 2);
      auto made = gpu->MakeCommunicator(ranks[r].get(), groups, std::chrono::milliseconds(100));
      ASSERT_TRUE(made.ok()) << made.status();
      communicators[r] = *std::move(made);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const int32_t group[] = {0, 1};
  const Communicator::Progress waits = {
      .begun = 7, .ended = 6, .call = "all_reduce", .group = group};
  const Communicator::Progress before = {.begun = 5, .ended = 5};
  ASSERT_EQ(communicators[1]->CheckProgress(before), absl::OkStatus());
  ASSERT_EQ(communicators[0]->CheckProgress(waits), absl::OkStatus());
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  EXPECT_EQ(communicators[0]->CheckProgress(waits).message(),
            "device 0 waited 100 ms in all_reduce of devices 0,1, which did not begin on device 1");
  // Who computes waits for nobody.
  EXPECT_EQ(communicators[1]->CheckProgress(before), absl::OkStatus());
  // Once all are there it takes its time in what they do together.
  ASSERT_EQ(communicators[1]->CheckProgress(waits), absl::OkStatus());
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  ASSERT_EQ(communicators[1]->CheckProgress(waits), absl::OkStatus());
  EXPECT_EQ(communicators[0]->CheckProgress(waits).message(),
            "device 0 waited 100 ms in all_reduce of devices 0,1");
}

TEST(CudaQueues, CarryAPipeline) {
  const auto cpu = MakeCpuBackend();
  const auto gpu = MakeCudaBackend(CachedToolchain(/*gpus=*/2));
  Plan plan = MicroBatchPlan(
      {.layers = 2, .stages = 2, .micro_batches = 4, .batch = 8, .width = 16}, DataType::kFloat32);
  plan.update.optimizer = OptimizerKind::kAdam;
  const LoweredPlan lowered = LowerPlan(plan, /*keep_gradients=*/false).value();
  const Training expected = TrainingOf(cpu.get(), lowered, ExecutionKind::kInline, 3);
  for (ExecutionKind kind : {ExecutionKind::kInline, ExecutionKind::kThreaded}) {
    const int before = fake_nccl_calls;
    const Training found = TrainingOf(gpu.get(), lowered, kind, 3);
    EXPECT_GT(fake_nccl_calls, before);
    ExpectNear(found.parameters, expected.parameters);
    for (int step = 0; step < 3; ++step) {
      EXPECT_NEAR(found.losses[step], expected.losses[step], 1e-4) << step;
    }
  }
}

// By the device's clock: kernels, what it does beside them, and collectives of several.
TEST(CudaProfile, MeasuresByTheDevicesClock) {
  const auto gpu = MakeCudaBackend(CachedToolchain(/*gpus=*/2));
  EXPECT_EQ(gpu->DeviceName().value(), "a fake GPU");
  EXPECT_EQ(gpu->Caches(2)->last, 1 << 16);
  const ProfilerOptions options = {.least_rounds = 2, .most_rounds = 3, .seconds_per_kernel = 1e-3};
  ProfiledKernels kernels;
  for (const OpKind kind : {OpKind::kMatMul, OpKind::kEmbedding, OpKind::kLayerNorm}) {
    const ExampleCall example = ExamplesOf(kind)[0];
    ProfiledKernel kernel = {.op = example.op, .operands = example.operands};
    kernels.emplace(KernelKey(kernel.op, kernel.operands, kernel.wanted), kernel);
    for (const TensorType& operand : example.operands) {
      kernel.wanted.push_back(IsFloat(operand.dtype));
    }
    kernels.emplace(KernelKey(kernel.op, kernel.operands, kernel.wanted), kernel);
  }
  const auto batches = BatchesOf(kernels);
  ASSERT_TRUE(batches.ok()) << batches.status();
  const int before = fake_nccl_calls;
  std::mutex mutex;
  std::map<std::string, KernelTime> times;
  const absl::Status status =
      RunOnThreads(2, /*pin=*/false, gpu.get(), [&](const ProfileRank& of_host) -> absl::Status {
        std::unique_ptr<Communicator> owner;
        ISOMER_ASSIGN_OR_RETURN(const ProfileRank rank, WithDeviceCommunicator(of_host, &owner));
        ISOMER_ASSIGN_OR_RETURN(const double overhead, MeasureTaskOverheadUs(rank));
        EXPECT_GE(overhead, 0);
        for (const ProfileBatch& batch : *batches) {
          ISOMER_ASSIGN_OR_RETURN(auto of_batch, MeasureKernels(rank, batch, options));
          std::lock_guard lock(mutex);
          times.merge(of_batch);
        }
        for (const TaskKind kind : {TaskKind::kAllReduce}) {
          const ProfiledTask task = {.kind = kind, .group_size = IsCommunication(kind) ? 2 : 0};
          ISOMER_ASSIGN_OR_RETURN(const SizeTable table, MeasureTask(rank, task, options));
          EXPECT_FALSE(table.empty());
          EXPECT_GE(table.UsOf(1 << 20), 0);
        }
        return absl::OkStatus();
      });
  ASSERT_EQ(status, absl::OkStatus());
  EXPECT_EQ(times.size(), kernels.size());
  EXPECT_GT(fake_nccl_calls, before);
}

TEST(CudaQueues, TraceStreamsByTheirOwnClock) {
  const LoweredPlan lowered = LoweredOnOne(OptimizerKind::kSgd, DataType::kFloat32);
  const auto gpu = MakeCudaBackend(CachedToolchain(/*gpus=*/1));
  Model model;
  model.graph = lowered.mapped.graph;
  const auto job = Job::Start(lowered.mapped.graph, lowered.schedule, gpu.get(),
                              {.execution = {.kind = ExecutionKind::kThreaded}});
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_EQ((*job)->SetParameters(InitialWeights(model, 3).value()), absl::OkStatus());
  const HostValues inputs = RandomInputs(lowered.mapped.graph, 5);
  for (int step = 0; step < 3; ++step) {
    if (step == 1) (*job)->StartTrace();
    ASSERT_EQ((*job)->TrainStep(inputs, 0.01), absl::OkStatus());
  }
  const std::string trace = (*job)->ChromeTrace().value();
  EXPECT_THAT(trace, HasSubstr("matmul"));
  EXPECT_THAT(trace, Not(HasSubstr("\"dur\":-")));
}

TEST_F(CudaBackendTest, WatchesNoMemoryOfItsOwn) {
  const Plan plan = MicroBatchPlan(
      {.layers = 2, .stages = 1, .micro_batches = 2, .batch = 8, .width = 16}, DataType::kFloat32);
  absl::StatusOr<LoweredPlan> lowered = LowerPlan(plan, /*keep_gradients=*/false);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const auto job = Job::Start(lowered->mapped.graph, lowered->schedule, backend_.get(),
                              {.execution = {.kind = ExecutionKind::kAdversarial}});
  EXPECT_THAT(job.status().message(), HasSubstr("--execution=adversarial"));
}

absl::StatusOr<std::unique_ptr<Kernel>> LookUp(Backend* backend) {
  const std::vector<TensorType> types = {SequentialType({10, 4}),
                                         SequentialType({3}, DataType::kInt64)};
  const Operator op(OpKind::kEmbedding);
  const auto sharding = InferSharding(op, types);
  return backend->MakeKernel(MakeKernelCall(op, *sharding, types, 0, /*gradient=*/false));
}

TEST_F(CudaBackendTest, NamesWhoLooksUpWhatIsNotThere) {
  auto kernel = LookUp(backend_.get());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  Twin table(backend_.get(), DataType::kFloat32, 40, 1),
      rows(backend_.get(), DataType::kFloat32, 12, 2);
  const int64_t indices[] = {3, 10, 0};
  std::vector<char> bytes(sizeof indices);
  std::memcpy(bytes.data(), indices, sizeof indices);
  Twin index(backend_.get(), bytes);
  ASSERT_EQ((*kernel)->Run({table.device(), index.device()}, {rows.device()}, nullptr),
            absl::OkStatus());  // It is not over.
  std::vector<float> found(12);
  const absl::Status status = device_.ToHost(rows.device(), rows.size(), found.data());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("embedding: index 10 is outside"));
  // Once.
  EXPECT_EQ(device_.ToHost(rows.device(), rows.size(), found.data()), absl::OkStatus());
}

TEST_F(CudaBackendTest, SaysWhichGpuIsNotThere) {
  std::thread([&] {
    backend_->EnterDevice(3, 8);
    EXPECT_THAT(backend_->Allocate(8).status().message(),
                HasSubstr("device 3 is not there: this machine has 2 GPUs"));
    EXPECT_THAT(LookUp(backend_.get()).status().message(), HasSubstr("device 3"));
  }).join();
}

TEST_F(CudaBackendTest, SaysHowMuchMemoryThereIs) {
  const auto memory = backend_->Allocate(kFakeCudaBytes + 1);
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(memory.status().message(), HasSubstr("GPU 0: there are no 1073741825 bytes"));
}

TEST_F(CudaBackendTest, SaysThatNcclIsMissing) {
  CudaToolchain toolchain = FakeCudaToolchain(/*gpus=*/2);
  toolchain.open_nccl = []() -> absl::StatusOr<Nccl> {
    return absl::UnavailableError("NCCL is not there");
  };
  const auto backend = MakeCudaBackend(toolchain);
  const Plan plan = MicroBatchPlan(
      {.layers = 2, .stages = 2, .micro_batches = 4, .batch = 8, .width = 16}, DataType::kFloat32);
  absl::StatusOr<LoweredPlan> lowered = LowerPlan(plan, /*keep_gradients=*/false);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const auto job = Job::Start(lowered->mapped.graph, lowered->schedule, backend.get(), {});
  EXPECT_THAT(job.status().message(), HasSubstr("NCCL is not there"));
}

TEST(CudaCache, CompilesOnceAndDistrustsWhatItFinds) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/cuda_cache_", getpid());
  std::filesystem::remove_all(folder);
  const auto compilations_of_a_run = [&] {
    const int before = fake_cuda_compilations;
    const auto backend = MakeCudaBackend(FakeCudaToolchain(/*gpus=*/1, folder));
    EXPECT_TRUE(LookUp(backend.get()).ok());
    return fake_cuda_compilations - before;
  };
  EXPECT_EQ(compilations_of_a_run(), 2);  // The device's own kernels, and the look-up.
  EXPECT_EQ(compilations_of_a_run(), 0);
  // Cut off, and of another text.
  for (const std::string content : {"", "fake 1 sm_90\nsomething else"}) {
    int files = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      std::ofstream(file.path()) << content;
      ++files;
    }
    EXPECT_EQ(files, 2);
    EXPECT_EQ(compilations_of_a_run(), 2);
    EXPECT_EQ(compilations_of_a_run(), 0);
  }
  // What follows the text is damaged.
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string content = ReadFile(file.path()).value();
    std::ofstream(file.path()) << content.substr(0, content.size() - 5);
  }
  EXPECT_EQ(compilations_of_a_run(), 2);
  EXPECT_EQ(compilations_of_a_run(), 0);
  std::filesystem::remove_all(folder);
}

TEST(CudaToolchain, SaysWhatThisMachineLacks) {
  const auto backend = MakeBackend("cuda");
  if (backend.ok()) GTEST_SKIP() << "there is a GPU";
  EXPECT_THAT(backend.status().message(), HasSubstr("--backend=cuda: "));
  EXPECT_EQ(backend.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace isomer
