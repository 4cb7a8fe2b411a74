#include "optimizer/relaxed_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "optimizer/baselines.h"
#include "optimizer/bounded_calls.h"
#include "optimizer/task_graph.h"
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
    BoundedGraph bounded(model_.graph, &tables_);
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
  CostTables tables_;
};

TEST_P(Relaxing, NoTermIsAboveTheStepOfAnAssignment) { ExpectTermsHold(/*halves=*/false); }

TEST_P(Relaxing, NoTermIsAboveTheStepOfAnAssignmentOnHalves) { ExpectTermsHold(/*halves=*/true); }

INSTANTIATE_TEST_SUITE_P(Scenarios, Relaxing, testing::ValuesIn(BoundScenarios()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace isomer
