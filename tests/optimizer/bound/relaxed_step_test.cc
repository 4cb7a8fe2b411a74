#include "optimizer/bound/relaxed_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "optimizer/bound/bounded_calls.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/simulator/task_graph.h"
#include "tests/optimizer/bound_scenarios.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

class Relaxing : public testing::TestWithParam<BoundScenario> {
 protected:
  Relaxing()
      : model_(GetParam().model),
        rules_(ExampleRules(model_.graph)),
        index_(rules_),
        cost_(GetParam().MachineOf()),
        tables_(index_, cost_, CostOptions{}) {}

  // Every term of a random assignment, those of other assignments included, is below its step.
  void ExpectTermsHold(bool halves) {
    std::mt19937_64 random(halves ? 3 : 7);
    BoundedGraph bounded(model_.graph, model_.loss, &tables_);
    EdgeBounds edges(&tables_);
    for (int64_t devices = cost_.machine().num_devices(); devices >= 1; devices /= 2) {
      const auto calls = bounded.On(devices, halves);
      ASSERT_TRUE(calls.ok()) << calls.status();
      const RelaxedStep step(*calls, &edges, &tables_);
      const auto start = MapBaseline(kSingleDevice, model_.graph, &tables_);
      ASSERT_TRUE(start.ok()) << start.status();
      const auto graph = TaskGraph::Create(model_, *start, &tables_);
      ASSERT_TRUE(graph.ok()) << graph.status();
      std::vector<RelaxedStep::Term> terms = step.QueueTerms();
      for (int change = 0; change < 400; ++change) {
        const int node = static_cast<int>(random() % (*graph)->num_nodes());
        const int choice = static_cast<int>(random() % (*calls).parts[node]->size());
        ASSERT_EQ((*graph)->SetChoice(node, choice), absl::OkStatus());
        (*graph)->Commit();
        std::vector<int> choices;
        bool is_one = true;
        for (int n = 0; n < step.num_calls(); ++n) {
          choices.push_back((*graph)->choice(n));
          is_one &= choices[n] < static_cast<int>((*calls).parts[n]->size());
        }
        if (!is_one) continue;
        for (RelaxedStep::Term& term : step.GreatestTerms(choices)) {
          terms.push_back(std::move(term));
        }
        const double step_us = MicrosecondsOf((*graph)->makespan());
        const auto is_synchronised = [&](int n) {
          return (*(*calls).parts[n])[choices[n]].sync_us > 0;
        };
        int messages = 0;
        for (int n = 0; n < step.num_calls(); ++n) messages += is_synchronised(n);
        if (step.trained() >= 0 && is_synchronised(step.trained()) && messages > 1) {
          for (const auto& term : step.GreatestTerms(choices, RelaxedStep::Messages::kSeveral)) {
            ASSERT_LE(step.Us(term, choices), step_us * (1 + 1e-5)) << devices << " devices";
          }
          ++in_several_messages_;
        }
        for (size_t t = 0; t < terms.size(); ++t) {
          if (t + 5 < terms.size() && t % 7 != static_cast<size_t>(change) % 7) continue;
          ASSERT_LE(step.Us(terms[t], choices), step_us * (1 + 1e-5))
              << "term " << t << " of " << terms.size() << " on " << devices << " devices";
        }
      }
    }
  }

  Model model_;
  RuleSet rules_;
  RuleIndex index_;
  CostModel cost_;
  int in_several_messages_ = 0;
  CostTables tables_;
};

TEST_P(Relaxing, NoTermIsAboveTheStepOfAnAssignment) {
  ExpectTermsHold(/*halves=*/false);
  EXPECT_TRUE(in_several_messages_ > 0 || cost_.machine().num_devices() == 1);
}

TEST_P(Relaxing, NoTermIsAboveTheStepOfAnAssignmentOnHalves) { ExpectTermsHold(/*halves=*/true); }

// What a mixture of assignments is said to take most of is no less than any term of one of them: to
// a few percent, since halos count twice where a path is looked for, but once in its term.
TEST_P(Relaxing, AMixtureHasGreaterTermsThanItsAssignments) {
  std::mt19937_64 random(11);
  BoundedGraph bounded(model_.graph, model_.loss, &tables_);
  EdgeBounds edges(&tables_);
  const auto calls = bounded.On(cost_.machine().num_devices(), /*halves=*/false);
  ASSERT_TRUE(calls.ok()) << calls.status();
  const RelaxedStep step(*calls, &edges, &tables_);
  for (int pair = 0; pair < 30; ++pair) {
    std::vector<std::vector<int>> assignments(2);
    for (std::vector<int>& choices : assignments) {
      for (const auto* parts : calls->parts) {
        choices.push_back(static_cast<int>(random() % parts->size()));
      }
    }
    const auto mean_us = [&](const RelaxedStep::Term& term) {
      return 0.25 * step.Us(term, assignments[0]) + 0.75 * step.Us(term, assignments[1]);
    };
    double greatest_us = 0;
    for (const auto& term : step.GreatestTerms(assignments, {0.25, 0.75})) {
      greatest_us = std::max(greatest_us, mean_us(term));
    }
    // Moves that cannot be are in no assignment of a bound.
    if (greatest_us >= kImpossibleUs / 8) continue;
    for (const std::vector<int>& choices : assignments) {
      for (const auto& term : step.GreatestTerms(choices)) {
        EXPECT_LE(mean_us(term), greatest_us * 1.08);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Relaxing, testing::ValuesIn(BoundScenarios()),
                         [](const auto& info) { return std::string(info.param.name); });

// There are no cuts between the blocks, but a device has to compute all of them and, in between, to
// wait for what moves to the one device that ends the last of them.
TEST(RelaxedStep, WaitsAndComputesWhereSkipsLeaveNoCuts) {
  const Model model = Skips(4, 256, 128);
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  const CostModel cost(TestMachine(1, 4));
  CostTables tables(index, cost, CostOptions{});
  BoundedGraph bounded(model.graph, model.loss, &tables);
  EdgeBounds edges(&tables);
  const auto calls = bounded.On(4, /*halves=*/false);
  ASSERT_TRUE(calls.ok()) << calls.status();
  const RelaxedStep step(*calls, &edges, &tables);
  // The last block ends before the loss.
  const int end = calls->end, block = calls->compute->nodes[end].operands[0].producer;
  std::vector<int> choices;
  for (int n = 0; n < step.num_calls(); ++n) {
    const auto& all = calls->calls[n]->space.choices;
    const auto choice = std::find_if(all.begin(), all.end(), [&](const ShardingChoice& c) {
      if (n >= block) return c.outputs[0].type.NumShards() == 1;
      return c.outputs[0].type.dims[0].degree == 4;
    });
    ASSERT_NE(choice, all.end()) << n;
    choices.push_back(static_cast<int>(choice - all.begin()));
  }
  double waited_us = 0;
  for (const RelaxedStep::Edge& edge : step.edges()) {
    if (edge.to != block) continue;
    waited_us =
        std::max<double>(waited_us, edge.us->waited_there.at(choices[edge.from], choices[edge.to]));
  }
  EXPECT_GT(waited_us, 0);
  double greatest_us = 0;
  for (const auto& term : step.GreatestTerms(choices)) {
    greatest_us = std::max(greatest_us, step.Us(term, choices));
  }
  const double computed_us = step.Us(step.QueueTerms()[0], choices);
  EXPECT_GE(greatest_us, (computed_us + waited_us) * (1 - 1e-5));
}

}  // namespace
}  // namespace isomer
