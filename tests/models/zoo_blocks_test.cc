// What blocks of the zoo compute, against their definitions.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/zoo/blocks/expert_blocks.h"
#include "models/zoo/blocks/transformer_blocks.h"
#include "models/zoo/zoo.h"
#include "pcg/evaluation/evaluator.h"

namespace isomer {
namespace {

constexpr int64_t kGroups = 2, kTokens = 6, kHidden = 3, kExperts = 4, kIntermediate = 5,
                  kVocabulary = 3;
constexpr double kAuxiliaryWeight = 0.5;

struct Evaluated {
  std::map<std::string, Array<double>> leaves;   // by name
  std::map<std::string, Array<double>> outputs;  // by name
};

// Floats are random, indices 0, 1, 2, 0, ...
Evaluated EvaluateOnRandom(const Graph& graph) {
  std::mt19937 generator(7);
  std::normal_distribution<double> normal;
  Evaluated result;
  std::map<NodeId, Value<double>> leaves;
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    if (!IsLeaf(node.op.kind())) continue;
    Array<double> values(node.outputs[0].Sizes());
    for (int64_t i = 0; i < values.size(); ++i) {
      values.data[i] = node.outputs[0].dtype == DataType::kInt64 ? static_cast<double>(i % 3)
                                                                 : normal(generator);
    }
    result.leaves[node.name] = values;
    leaves[id] = {node.outputs[0], {values}};
  }
  const absl::StatusOr<Values<double>> values = EvaluateGraph(graph, leaves);
  EXPECT_TRUE(values.ok()) << values.status();
  if (!values.ok()) return result;
  for (const Graph::NamedOutput& output : graph.outputs()) {
    result.outputs[output.name] =
        (*values)[output.tensor.node.value][output.tensor.output].parts[0];
  }
  return result;
}

// The row of a token, or what an expert makes of it.
using Row = std::vector<double>;

// row * weight, where the weight [.., row size, n] begins at `offset`.
Row Times(const Row& row, const Array<double>& weight, int64_t offset, int64_t n) {
  Row result(n);
  for (size_t i = 0; i < row.size(); ++i) {
    for (int64_t j = 0; j < n; ++j) result[j] += row[i] * weight.data[offset + i * n + j];
  }
  return result;
}

Row ExpertOf(const Evaluated& e, const Row& row, int64_t expert, bool gated) {
  const int64_t size = kHidden * kIntermediate;
  Row middle = Times(row, e.leaves.at("moe/experts/up.weight"), expert * size, kIntermediate);
  if (gated) {
    const Row gate =
        Times(row, e.leaves.at("moe/experts/gate.weight"), expert * size, kIntermediate);
    for (int64_t i = 0; i < kIntermediate; ++i) middle[i] *= gate[i] / (1 + std::exp(-gate[i]));
  } else {
    for (double& value : middle) value = std::max(value, 0.0);
  }
  return Times(middle, e.leaves.at("moe/experts/down.weight"), expert * size, kHidden);
}

Row GatesOf(const Evaluated& e, const Row& row) {
  Row gates = Times(row, e.leaves.at("moe/gate.weight"), 0, kExperts);
  double sum = 0;
  for (double& gate : gates) sum += gate = std::exp(gate);
  for (double& gate : gates) gate /= sum;
  return gates;
}

Row RowOf(const Array<double>& x, int64_t group, int64_t token) {
  const auto begin = x.data.begin() + (group * kTokens + token) * kHidden;
  return Row(begin, begin + kHidden);
}

struct Expected {
  Array<double> y{{kGroups, kTokens, kHidden}};
  double auxiliary = 0;
  int dropped = 0;
};

// Token by token, as in GShard's algorithms 1 and 2 without the random choice.
Expected Mixture(const Evaluated& e, int64_t capacity, bool gated) {
  Expected result;
  for (int64_t g = 0; g < kGroups; ++g) {
    std::vector<Row> gates(kTokens);
    std::vector<std::array<int64_t, 2>> chosen(kTokens);
    std::vector<int64_t> taken(kExperts);
    auto use = [&](int64_t s, int choice) {
      const int64_t expert = chosen[s][choice];
      if (taken[expert]++ >= capacity) {
        ++result.dropped;
        return;
      }
      const Row row = ExpertOf(e, RowOf(e.leaves.at("x"), g, s), expert, gated);
      const double share = gates[s][expert] / (gates[s][chosen[s][0]] + gates[s][chosen[s][1]]);
      for (int64_t i = 0; i < kHidden; ++i) {
        result.y.data[(g * kTokens + s) * kHidden + i] += share * row[i];
      }
    };
    for (int64_t s = 0; s < kTokens; ++s) {
      gates[s] = GatesOf(e, RowOf(e.leaves.at("x"), g, s));
      Row rest = gates[s];
      for (int64_t& choice : chosen[s]) {
        choice = std::max_element(rest.begin(), rest.end()) - rest.begin();
        rest[choice] = -1;
      }
      use(s, 0);
    }
    for (int64_t expert = 0; expert < kExperts; ++expert) {
      double mean = 0;
      for (const Row& of_token : gates) mean += of_token[expert] / kTokens;
      result.auxiliary += static_cast<double>(taken[expert]) / kTokens * mean / kGroups;
    }
    for (int64_t s = 0; s < kTokens; ++s) use(s, 1);
  }
  return result;
}

// A layer of experts whose outputs are the logits too.
Graph LayerOf(int64_t capacity_percent, bool gated) {
  ModelBuilder b;
  ExpertLayers experts(b, {.experts = kExperts,
                           .intermediate = kIntermediate,
                           .capacity_percent = capacity_percent,
                           .random = false,
                           .gated = gated});
  const TensorRef y = experts.Layer(b.Input("x", {kGroups, kTokens, kHidden}), "moe");
  b.Output("y", y);
  experts.AddLoss(b.Reshape(y, {kGroups * kTokens, kVocabulary}, "logits"), kGroups,
                  kAuxiliaryWeight);
  absl::StatusOr<Model> model = b.Build();
  EXPECT_TRUE(model.ok()) << model.status();
  return std::move(model->graph);
}

double CrossEntropy(const Evaluated& e) {
  const Array<double>&y = e.outputs.at("y"), &labels = e.leaves.at("labels");
  double sum = 0;
  for (int64_t row = 0; row < kGroups * kTokens; ++row) {
    double total = 0;
    for (int64_t i = 0; i < kVocabulary; ++i) total += std::exp(y.data[row * kVocabulary + i]);
    sum += std::log(total) - y.data[row * kVocabulary + static_cast<int64_t>(labels.data[row])];
  }
  return sum / (kGroups * kTokens);
}

TEST(ExpertLayers, AreSumsOverTwoExpertsOfEachToken) {
  const struct {
    int64_t percent, capacity;
    bool gated;
  } cases[] = {{50 * kExperts, kTokens, false},  // Nothing is dropped.
               {50 * kExperts, kTokens, true},
               {100, kTokens * 2 / kExperts, false},
               {1, 1, true}};
  for (const auto& [percent, capacity, gated] : cases) {
    SCOPED_TRACE(percent);
    const Evaluated e = EvaluateOnRandom(LayerOf(percent, gated));
    ASSERT_EQ(e.outputs.count("y"), 1);
    const Expected expected = Mixture(e, capacity, gated);
    const Array<double>& y = e.outputs.at("y");
    for (int64_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y.data[i], expected.y.data[i], 1e-9) << i;
    EXPECT_EQ(expected.dropped == 0, capacity == kTokens);
    EXPECT_NEAR(e.outputs.at("loss").data[0],
                CrossEntropy(e) + kAuxiliaryWeight * expected.auxiliary, 1e-9);
  }
}

Row Plus(Row row, const Evaluated& e, const std::string& bias, int64_t offset) {
  const auto found = e.leaves.find(bias);
  if (found == e.leaves.end()) return row;
  for (size_t i = 0; i < row.size(); ++i) row[i] += found->second.data[offset + i];
  return row;
}

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

// With biases where there are any.
Row RoutedExpertOf(const Evaluated& e, const Row& row, int64_t expert, RoutedSizes::Gate kind) {
  const auto product = [&](const Row& of, const std::string& name, int64_t outputs) {
    const int64_t inputs = static_cast<int64_t>(of.size());
    const std::string leaf = "moe/experts/" + name;
    return Plus(Times(of, e.leaves.at(leaf + ".weight"), expert * inputs * outputs, outputs), e,
                leaf + ".bias", expert * outputs);
  };
  Row gate = product(row, "gate", kIntermediate), middle = product(row, "up", kIntermediate);
  for (int64_t i = 0; i < kIntermediate; ++i) {
    if (kind == RoutedSizes::Gate::kSwish) {
      middle[i] *= gate[i] * Logistic(gate[i]);
    } else {
      const double open = std::min(gate[i], 7.0), up = std::clamp(middle[i], -7.0, 7.0);
      middle[i] = (up + 1) * open * Logistic(1.702 * open);
    }
  }
  return product(middle, "down", kHidden);
}

// The groups that a token chooses: those whose best scores have the greatest sums.
std::vector<int64_t> ChosenGroups(const RoutedSizes& sizes, const Row& choice) {
  const int64_t of_group = kExperts / sizes.groups, best = sizes.chosen / sizes.chosen_groups;
  Row sums;
  for (int64_t n = 0; n < sizes.groups; ++n) {
    Row in_group(choice.begin() + n * of_group, choice.begin() + (n + 1) * of_group);
    std::sort(in_group.rbegin(), in_group.rend());
    sums.push_back(std::accumulate(in_group.begin(), in_group.begin() + best, 0.0));
  }
  std::vector<int64_t> groups;
  for (int64_t m = 0; m < sizes.chosen_groups; ++m) {
    groups.push_back(std::max_element(sums.begin(), sums.end()) - sums.begin());
    sums[groups.back()] = -1e9;
  }
  return groups;
}

// The experts that a token chooses, as many in each of its groups.
std::vector<int64_t> ChosenExperts(const RoutedSizes& sizes, Row choice) {
  const int64_t of_group = kExperts / sizes.groups;
  std::vector<int64_t> chosen;
  for (const int64_t group : ChosenGroups(sizes, choice)) {
    for (int64_t r = 0; r < sizes.chosen / sizes.chosen_groups; ++r) {
      const auto begin = choice.begin() + group * of_group;
      chosen.push_back(std::max_element(begin, begin + of_group) - choice.begin());
      choice[chosen.back()] = -1e9;
    }
  }
  return chosen;
}

// Token by token, each choice in the next free place of its expert, and of its group.
Array<double> RoutedMixture(const Evaluated& e, const RoutedSizes& sizes, int64_t capacity,
                            int64_t rows_of_group, int* dropped) {
  Array<double> y({kGroups, kTokens, kHidden});
  for (int64_t g = 0; g < kGroups; ++g) {
    std::vector<int64_t> taken(kExperts), rows(sizes.groups);
    for (int64_t s = 0; s < kTokens; ++s) {
      const Row row = RowOf(e.leaves.at("x"), g, s);
      Row scores =
          Plus(Times(row, e.leaves.at("moe/router.weight"), 0, kExperts), e, "moe/router.bias", 0);
      double all = 0;
      for (const double score : scores) all += std::exp(score);
      for (double& score : scores) {
        score =
            sizes.scores == RoutedSizes::Scores::kSoftmax ? std::exp(score) / all : Logistic(score);
      }
      const Row choice = Plus(scores, e, "moe/choice.bias", 0);
      const std::vector<int64_t> chosen = ChosenExperts(sizes, choice);
      double sum = 0;
      for (const int64_t expert : chosen) sum += scores[expert];
      std::vector<bool> has_place(sizes.groups);
      for (const int64_t group : ChosenGroups(sizes, choice)) {
        has_place[group] = rows[group]++ < rows_of_group;
      }
      double* to = &y.data[(g * kTokens + s) * kHidden];
      for (const int64_t expert : chosen) {
        if (!has_place[expert / (kExperts / sizes.groups)] || taken[expert]++ >= capacity) {
          ++*dropped;
          continue;
        }
        const Row of_expert = RoutedExpertOf(e, row, expert, sizes.gate);
        for (int64_t i = 0; i < kHidden; ++i) {
          to[i] += sizes.scale * scores[expert] / sum * of_expert[i];
        }
      }
      if (sizes.shared == 0) continue;
      const int64_t width = sizes.shared * kIntermediate;
      const Row gate = Times(row, e.leaves.at("moe/shared/gate.weight"), 0, width);
      Row middle = Times(row, e.leaves.at("moe/shared/up.weight"), 0, width);
      for (int64_t i = 0; i < width; ++i) middle[i] *= gate[i] * Logistic(gate[i]);
      const Row down = Times(middle, e.leaves.at("moe/shared/down.weight"), 0, kHidden);
      for (int64_t i = 0; i < kHidden; ++i) to[i] += down[i];
    }
  }
  return y;
}

TEST(RoutedExperts, AreSumsOverTheChosenExpertsOfEachToken) {
  const RoutedSizes plain = {.experts = kExperts, .chosen = 3, .intermediate = kIntermediate};
  RoutedSizes of_deepseek = plain, of_gpt_oss = plain;
  of_deepseek.scores = RoutedSizes::Scores::kSigmoid;
  of_deepseek.biased_choice = true;
  of_deepseek.scale = 2.5;
  of_deepseek.shared = 2;
  of_gpt_oss.biases = true;
  of_gpt_oss.gate = RoutedSizes::Gate::kClamped;
  RoutedSizes of_one_group = plain, of_both_groups = plain;
  of_one_group.chosen = of_both_groups.chosen = 2;
  of_one_group.groups = of_both_groups.groups = 2;
  of_both_groups.chosen_groups = 2;
  of_both_groups.scale = 2.5;
  for (RoutedSizes sizes : {plain, of_deepseek, of_gpt_oss, of_one_group, of_both_groups}) {
    for (const int64_t percent : {100, 400}) {
      SCOPED_TRACE(percent);
      sizes.capacity_percent = percent;
      ModelBuilder b;
      b.Output("y", RoutedExperts(b, b.Input("x", {kGroups, kTokens, kHidden}), sizes, "moe"));
      const absl::StatusOr<Model> model = b.Build();
      ASSERT_TRUE(model.ok()) << model.status();
      const Evaluated e = EvaluateOnRandom(model->graph);
      ASSERT_EQ(e.outputs.count("y"), 1);
      int dropped = 0;
      const auto even_share = [&](int64_t choices, int64_t takers) {
        return percent == 100 ? (choices * kTokens + takers - 1) / takers : kTokens;
      };
      const int64_t capacity = even_share(sizes.chosen, kExperts);
      const int64_t rows =
          sizes.groups == 1 ? kTokens : even_share(sizes.chosen_groups, sizes.groups);
      const Array<double> expected = RoutedMixture(e, sizes, capacity, rows, &dropped);
      const Array<double>& y = e.outputs.at("y");
      for (int64_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y.data[i], expected.data[i], 1e-9) << i;
      EXPECT_EQ(dropped == 0, percent == 400);
    }
  }
}

TEST(RoutedExperts, RefuseGroupsThatDoNotSuit) {
  const auto refused = [](int64_t chosen, int64_t groups, int64_t chosen_groups) {
    ModelBuilder b;
    const RoutedSizes sizes = {.experts = kExperts,
                               .chosen = chosen,
                               .intermediate = kIntermediate,
                               .groups = groups,
                               .chosen_groups = chosen_groups};
    b.Output("y", RoutedExperts(b, b.Input("x", {kGroups, kTokens, kHidden}), sizes, "moe"));
    return std::string(b.Build().status().message());
  };
  EXPECT_EQ(refused(5, 1, 1), "a token cannot choose 5 of 4 experts");
  EXPECT_EQ(refused(2, 3, 1), "4 experts in 3 groups are not as many in each");
  EXPECT_EQ(refused(2, 2, 3), "a token cannot choose 3 of 2 groups");
  EXPECT_EQ(refused(3, 2, 2), "a token cannot choose 3 experts, as many in each of 2 groups of 2");
  EXPECT_EQ(refused(3, 2, 1), "a token cannot choose 3 experts, as many in each of 1 groups of 2");
}

TEST(RotationTables, HoldCosAndSinOfPlaceTimesFrequency) {
  ModelBuilder b;
  const Rotation rotation = RotationTables(b, 5, 4, 100);
  b.Output("cos", rotation.cos);
  b.Output("sin", rotation.sin);
  const absl::StatusOr<Model> model = b.Build();
  ASSERT_TRUE(model.ok()) << model.status();
  for (int place = 0; place < 5; ++place) {
    for (int i = 0; i < 2; ++i) {
      const double angle = place * (i == 0 ? 1 : 0.1);
      EXPECT_FLOAT_EQ(model->weights.at("rotation/cos")[place * 2 + i], std::cos(angle));
      EXPECT_FLOAT_EQ(model->weights.at("rotation/sin")[place * 2 + i], std::sin(angle));
    }
  }
}

// The first token sees itself alone, so that others do not change its logits.
TEST(Attention, OfGptIsCausal) {
  const absl::StatusOr<Model> model =
      BuildZooModel("gpt?layers=2&hidden=4&heads=2&vocabulary=3&seq=4&batch=1");
  ASSERT_TRUE(model.ok()) << model.status();
  const absl::StatusOr<Model> alone =
      BuildZooModel("gpt?layers=2&hidden=4&heads=2&vocabulary=3&seq=1&batch=1");
  ASSERT_TRUE(alone.ok()) << alone.status();
  const Evaluated e = EvaluateOnRandom(model->graph);
  std::map<NodeId, Value<double>> leaves;
  for (NodeId id : alone->graph.TopologicalOrder()) {
    const Node& node = alone->graph.node(id);
    if (!IsLeaf(node.op.kind())) continue;
    Array<double> values(node.outputs[0].Sizes());
    std::copy_n(e.leaves.at(node.name).data.begin(), values.size(), values.data.begin());
    leaves[id] = {node.outputs[0], {values}};
  }
  const absl::StatusOr<Values<double>> values = EvaluateGraph(alone->graph, leaves);
  ASSERT_TRUE(values.ok()) << values.status();
  const Array<double>& logits = (*values)[alone->graph.outputs()[0].tensor.node.value][0].parts[0];
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(logits.data[i], e.outputs.at("logits").data[i], 1e-9);
  }
}

}  // namespace
}  // namespace isomer
