// Hand-written parallel graphs give the outputs, gradients and losses of the sequential model.
#include "runtime/execution/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "absl/strings/str_replace.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "runtime/checking/compare.h"
#include "runtime/cpu/cpu_backend.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/runtime/agreement.h"

namespace isomer {
namespace {

using testing::HasSubstr;

Model ModelOf(const std::string& text) {
  Model model;
  model.graph = Parsed(text);
  model.loss = "loss";
  return model;
}

double Loss(Job* job) {
  const absl::StatusOr<Array<double>> loss = job->Output("loss");
  EXPECT_TRUE(loss.ok()) << loss.status();
  return loss.ok() ? loss->data[0] : 0;
}

class JobTest : public testing::TestWithParam<ParallelCase> {};

TEST_P(JobTest, AgreesWithTheSequentialModel) {
  const ParallelCase& c = GetParam();
  const Model model = ModelOf(c.sequential);
  const Graph parallel = Parsed(c.parallel);
  const auto backend = MakeCpuBackend();
  StepValues expected;
  ExpectStepAgrees(model, parallel, Lowered(c), backend.get(), &expected);
  ASSERT_FALSE(expected.gradients.empty());
  for (const auto& [name, gradient] : expected.gradients) {
    double largest = 0;
    for (double value : gradient.data) largest = std::max(largest, std::abs(value));
    EXPECT_GT(largest, 0) << name;
  }
}

TEST_P(JobTest, TrainsLikeTheSequentialModel) {
  const ParallelCase& c = GetParam();
  const Model model = ModelOf(c.sequential);
  const Graph parallel = Parsed(c.parallel);
  const auto backend = MakeCpuBackend();
  const auto weights = InitialWeights(model, 3);
  ASSERT_TRUE(weights.ok());
  auto sequential_schedule =
      LowerGraph(model.graph, SequentialViews(model.graph), TrainingOptions(1));
  ASSERT_TRUE(sequential_schedule.ok());
  auto sequential = Job::Start(model.graph, *sequential_schedule, backend.get());
  auto job = Job::Start(parallel, Lowered(c), backend.get());
  ASSERT_TRUE(sequential.ok() && job.ok());
  ASSERT_EQ((*sequential)->SetParameters(*weights), absl::OkStatus());
  ASSERT_EQ((*job)->SetParameters(*weights), absl::OkStatus());
  double first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    const HostValues inputs = RandomInputs(model.graph, 5);
    ASSERT_EQ((*sequential)->TrainStep(inputs, 0.2), absl::OkStatus());
    ASSERT_EQ((*job)->TrainStep(inputs, 0.2), absl::OkStatus());
    last = Loss(job->get());
    if (step == 0) first = last;
    EXPECT_NEAR(last, Loss(sequential->get()), 1e-5 * std::abs(last)) << "step " << step;
  }
  EXPECT_LT(last, first);
  // The trained parameters, mapped back.
  const auto trained = (*sequential)->Parameters();
  const auto actual = (*job)->Parameters();
  ASSERT_TRUE(trained.ok() && actual.ok());
  const StepValues expected{.outputs = *trained, .gradients = {}};
  const Comparison comparison =
      Compare(expected, {.outputs = *actual, .gradients = {}}, ShareOf(expected, 1e-5));
  EXPECT_TRUE(comparison.agrees()) << comparison.worst << " " << comparison.of_worst.error;
}

INSTANTIATE_TEST_SUITE_P(Parallel, JobTest, testing::ValuesIn(ParallelCases()),
                         [](const auto& info) { return info.param.name; });

// An output that is a weight is what the forward pass used, not what the step made of it.
TEST(OutputsThatAreWeights, AreThoseOfTheForwardPass) {
  const auto cases = ParallelCases();
  const auto c = std::find_if(cases.begin(), cases.end(),
                              [](const auto& each) { return each.name == "WeightsAsOutputs"; });
  ASSERT_NE(c, cases.end());
  const Model model = ModelOf(c->sequential);
  const Graph parallel = Parsed(c->parallel);
  for (const UpdateMethod method :
       {UpdateMethod::kAllReduce, UpdateMethod::kSharded, UpdateMethod::kOwner,
        UpdateMethod::kShardedGradients, UpdateMethod::kShardedWeights}) {
    ScheduleOptions options = TrainingOptions(c->num_devices);
    options.update.method = method;
    const auto schedule = LowerGraph(parallel, ViewsOf(parallel), options);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    ASSERT_EQ(CheckSchedule(parallel, *schedule), absl::OkStatus());
    EXPECT_EQ(schedule->output_copies.size(), 2u);
    const auto backend = MakeCpuBackend();
    auto job = Job::Start(parallel, *schedule, backend.get());
    ASSERT_TRUE(job.ok()) << job.status();
    ASSERT_EQ((*job)->SetParameters(*InitialWeights(model, 3)), absl::OkStatus());
    for (int step = 0; step < 2; ++step) {
      const auto before = (*job)->Parameters();
      ASSERT_TRUE(before.ok()) << before.status();
      ASSERT_EQ((*job)->TrainStep(RandomInputs(model.graph, 5), 0.2), absl::OkStatus());
      const auto after = (*job)->Parameters();
      ASSERT_TRUE(after.ok()) << after.status();
      for (const std::string name : {"w", "v"}) {
        const auto output = (*job)->Output(name);
        ASSERT_TRUE(output.ok()) << output.status();
        EXPECT_EQ(output->data, before->at(name).data) << name << " of step " << step;
        EXPECT_NE(output->data, after->at(name).data) << name << " of step " << step;
      }
    }
  }
}

// In a region with channels innermost, a call adds to a sum that has no buffer of one of its
// operands: neither does its gradient need it, nor does anybody want that of it.
TEST(Additions, OfCallsThatLackAnOperand) {
  for (const char* op : {"add(%6, %7)", "sub(%6, %7)", "maximum(%6, %7)", "mul(%6, %7)"}) {
    SCOPED_TRACE(op);
    const Model model = ModelOf(absl::StrReplaceAll(R"(
%0 = input "x" : f32[2,4,6,6]
%1 = weight "w1" : f32[8,4,1,1]
%2 = input "filter" : f32[8,4,1,1]
%3 = weight "w2" : f32[8,8,3,3]
%4 = weight "w3" : f32[8,8,1,1]
%5 = input "target" : f32[2,8,6,6]
%6 = conv2d(%0, %1) {stride=[1,1], padding=[0,0,0,0], dilation=[1,1]} : f32[2,8,6,6]
%7 = conv2d(%0, %2) {stride=[1,1], padding=[0,0,0,0], dilation=[1,1]} : f32[2,8,6,6]
%8 = OP : f32[2,8,6,6]
%9 = conv2d(%6, %3) {stride=[1,1], padding=[1,1,1,1], dilation=[1,1]} : f32[2,8,6,6]
%10 = relu(%8) : f32[2,8,6,6]
%11 = add(%10, %9) : f32[2,8,6,6]
%12 = conv2d(%11, %4) {stride=[1,1], padding=[0,0,0,0], dilation=[1,1]} : f32[2,8,6,6]
%13 = mse(%12, %5) : f32[]
output "loss" = %13
)",
                                                    {{"OP", op}}));
    const auto schedule = LowerGraph(model.graph, SequentialViews(model.graph), TrainingOptions(1));
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    ASSERT_EQ(CheckSchedule(model.graph, *schedule), absl::OkStatus());
    const auto adds =
        std::find_if(schedule->tasks.begin(), schedule->tasks.end(),
                     [](const Task& task) { return task.adds != 0 && task.node == NodeId{8}; });
    ASSERT_NE(adds, schedule->tasks.end()) << schedule->ToString(model.graph);
    EXPECT_EQ(schedule->buffers[adds->writes[0]].layout, Layout::kChannelsLast);
    for (const bool reference : {false, true}) {
      StepValues expected;
      ExpectStepAgrees(model, model.graph, *schedule, MakeCpuBackend(reference).get(), &expected);
    }
  }
}

// The backend of the cpu, of which one device fails at its n-th kernel.
class FailingBackend : public Backend {
 public:
  explicit FailingBackend(int32_t device) : cpu_(MakeCpuBackend()), device_(device) {}
  absl::string_view name() const override { return "failing"; }
  void EnterDevice(int32_t device, int32_t num_devices) override {
    entered_device = device;
    cpu_->EnterDevice(device, num_devices);
  }
  absl::StatusOr<Memory> Allocate(int64_t bytes) override { return cpu_->Allocate(bytes); }
  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelCall& call) override {
    auto kernel = cpu_->MakeKernel(call);
    if (!kernel.ok() || entered_device != device_) return kernel;
    return std::make_unique<FailingKernel>(*std::move(kernel), &calls_);
  }

 private:
  class FailingKernel : public Kernel {
   public:
    FailingKernel(std::unique_ptr<Kernel> kernel, int* calls)
        : kernel_(std::move(kernel)), calls_(calls) {}
    int64_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
    absl::Status Run(absl::Span<const void* const> reads, absl::Span<void* const> writes,
                     void* workspace) override {
      constexpr int kFailsAt = 15;
      if (++*calls_ == kFailsAt) return absl::DataLossError("the device is gone");
      return kernel_->Run(reads, writes, workspace);
    }

   private:
    const std::unique_ptr<Kernel> kernel_;
    int* const calls_;
  };
  static thread_local int32_t entered_device;
  const std::unique_ptr<Backend> cpu_;
  const int32_t device_;
  int calls_ = 0;  // of the failing device's thread alone
};
thread_local int32_t FailingBackend::entered_device = -1;

TEST(JobFailure, DeviceThatFailsEndsTheJobEverywhere) {
  for (const ParallelCase& c : ParallelCases()) {
    SCOPED_TRACE(c.name);
    const Model model = ModelOf(c.sequential);
    const Graph parallel = Parsed(c.parallel);
    const int32_t device = c.name == "BranchesOnTwoDevices" ? 0 : 1;
    FailingBackend backend(device);
    auto job = Job::Start(parallel, Lowered(c), &backend);
    ASSERT_TRUE(job.ok()) << job.status();
    ASSERT_EQ((*job)->SetParameters(*InitialWeights(model, 3)), absl::OkStatus());
    absl::Status status;
    for (int step = 0; step < 20 && status.ok(); ++step) {
      status = (*job)->TrainStep(RandomInputs(model.graph, 5), 0.1);
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr("the device is gone"));
    // It stays ended.
    EXPECT_EQ((*job)->TrainStep(RandomInputs(model.graph, 5), 0.1), status);
  }
}

TEST(JobFailure, MissingInputIsNamed) {
  const Model model = ModelOf(kMlp);
  const auto backend = MakeCpuBackend();
  auto schedule = LowerGraph(model.graph, SequentialViews(model.graph), TrainingOptions(1));
  auto job = Job::Start(model.graph, *schedule, backend.get());
  ASSERT_TRUE(job.ok());
  ASSERT_EQ((*job)->SetParameters(*InitialWeights(model, 3)), absl::OkStatus());
  HostValues inputs = RandomInputs(model.graph, 5);
  inputs.erase("labels");
  EXPECT_THAT(std::string((*job)->TrainStep(inputs, 0.1).message()), HasSubstr("'labels'"));
}

TEST(Job, TraceHasAnEventPerTaskOfEachDevice) {
  const ParallelCase c = ParallelCases()[0];
  const Model model = ModelOf(c.sequential);
  const Graph parallel = Parsed(c.parallel);
  const auto backend = MakeCpuBackend();
  auto job = Job::Start(parallel, Lowered(c), backend.get());
  ASSERT_TRUE(job.ok());
  ASSERT_EQ((*job)->SetParameters(*InitialWeights(model, 3)), absl::OkStatus());
  (*job)->StartTrace();
  ASSERT_EQ((*job)->TrainStep(RandomInputs(model.graph, 5), 0.1), absl::OkStatus());
  const std::string trace = *(*job)->ChromeTrace();
  EXPECT_THAT(trace, HasSubstr("traceEvents"));
  EXPECT_THAT(trace, HasSubstr("\"device 1\""));
  EXPECT_THAT(trace, HasSubstr("all_reduce"));
  EXPECT_THAT(trace, HasSubstr("\"tid\": 3"));
}

TEST(Job, MeasuresStepsAndMemoryOfItsDevices) {
  const ParallelCase c = ParallelCases()[0];
  const Model model = ModelOf(c.sequential);
  const Graph parallel = Parsed(c.parallel);
  const auto backend = MakeCpuBackend();
  auto job = Job::Start(parallel, Lowered(c), backend.get(), {.pin = true});
  ASSERT_TRUE(job.ok());
  ASSERT_EQ((*job)->SetParameters(*InitialWeights(model, 3)), absl::OkStatus());
  ASSERT_EQ((*job)->TrainStep(RandomInputs(model.graph, 5), 0.1), absl::OkStatus());
  const auto step_us = (*job)->StepUs();
  ASSERT_TRUE(step_us.ok()) << step_us.status();
  EXPECT_GT(*step_us, 0);
  const auto memory = (*job)->UsedMemory();
  ASSERT_TRUE(memory.ok()) << memory.status();
  ASSERT_EQ(memory->size(), (*job)->memory().arena_bytes.size());
  for (size_t d = 0; d < memory->size(); ++d) {
    EXPECT_GE((*memory)[d].peak, (*job)->memory().arena_bytes[d]) << d;
    EXPECT_LT((*memory)[d].peak, (*job)->memory().arena_bytes[d] + (1 << 24)) << d;
    EXPECT_LT((*memory)[d].kernels, 1 << 24) << d;
  }
}

}  // namespace
}  // namespace isomer
