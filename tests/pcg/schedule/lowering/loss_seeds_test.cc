#include "pcg/schedule/lowering/loss_seeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "pcg/schedule/check/check_calls.h"
#include "tests/pcg/schedule/parallel_graphs.h"

namespace isomer {
namespace {

using testing::Each;
using testing::HasSubstr;

const ParallelCase& CaseOf(const std::string& name) {
  static const std::vector<ParallelCase> cases = ParallelCases();
  return *std::find_if(cases.begin(), cases.end(),
                       [&](const ParallelCase& c) { return c.name == name; });
}

std::vector<double> Filled(const Schedule& schedule) {
  std::vector<double> values;
  for (const Task& task : schedule.tasks) {
    if (task.kind == TaskKind::kFill && task.value != 0) values.push_back(task.value);
  }
  return values;
}

// Summed on one device, or on all of them: each part has the whole gradient.
TEST(LossSeeds, AreFilledInWherePartsOfTheLossAreMade) {
  for (const char* name : {"DataParallelMlp", "RowParallelThenSamples"}) {
    const ParallelCase& c = CaseOf(name);
    const std::vector<double> filled = Filled(Lowered(c));
    EXPECT_EQ(filled.size(), static_cast<size_t>(c.num_devices)) << name;
    EXPECT_THAT(filled, Each(1)) << name;
  }
}

TEST(LossSeeds, AreSharedByCopiesThatAllAreTheLoss) {
  const std::vector<double> filled = Filled(Lowered(CaseOf("ColumnRowParallelMlp")));
  double sum = 0;
  for (double value : filled) sum += value;
  EXPECT_DOUBLE_EQ(sum, 1);
}

TEST(LossSeeds, LetTheBackwardPassBeginBeforeTheLossIsSummed) {
  const Schedule schedule = Lowered(CaseOf("DataParallelMlp"));
  for (const std::vector<int32_t>& program : schedule.programs) {
    bool gradients = false;
    for (int32_t t : program) {
      const Task& task = schedule.tasks[t];
      gradients |= task.kind == TaskKind::kComputeGradient;
      if (task.kind == TaskKind::kSendReceive) {
        EXPECT_TRUE(gradients) << "the loss is in the way";
      }
    }
  }
}

class WrongSeeds : public testing::Test {
 protected:
  std::string Error() const { return std::string(CheckCalls(graph_, schedule_).message()); }
  std::vector<Task*> Seeds() {
    std::vector<Task*> seeds;
    for (Task& task : schedule_.tasks) {
      if (task.kind == TaskKind::kFill && task.value != 0) seeds.push_back(&task);
    }
    return seeds;
  }

  const ParallelCase& case_ = CaseOf("DataParallelMlp");
  const Graph graph_ = Parsed(case_.parallel);
  Schedule schedule_ = Lowered(case_);
};

TEST_F(WrongSeeds, OfOneDeviceAloneIsRefused) {
  for (Task* seed : Seeds()) seed->value = seed == Seeds()[0] ? 4 : 0;
  EXPECT_THAT(Error(), HasSubstr("of the gradient of the loss, 1, -3 is missing"));
}

TEST_F(WrongSeeds, OfNoDeviceAreRefused) {
  for (Task* seed : Seeds()) seed->value = 0;
  EXPECT_THAT(Error(), HasSubstr("of the gradient of the loss, 1, 1 is missing"));
}

TEST_F(WrongSeeds, ForSomethingElseAreRefused) {
  for (Task& task : schedule_.tasks) {
    if (task.kind != TaskKind::kComputeGradient) continue;
    Task fill = *Seeds()[0];
    fill.node = task.node;
    fill.devices = task.devices;
    fill.deps = task.deps;
    fill.writes = {task.writes[0]};
    task = fill;
    break;
  }
  EXPECT_THAT(Error(), HasSubstr("gives a gradient to what is not the loss"));
}

}  // namespace
}  // namespace isomer
