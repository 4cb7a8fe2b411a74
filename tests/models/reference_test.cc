// The committed networks against what torch computed for them in float64 (models/data/README.md).
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/loss.h"
#include "models/onnx/import/onnx_import.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/support/file.h"
#include "runtime/data/csv.h"
#include "runtime/data/data_file.h"

namespace isomer {
namespace {

const std::string kReferenceModels = ISOMER_SOURCE_DIR "/models/data/";

// The lines of a reference file: "gradient conv1.bias l2" -> its numbers.
std::map<std::string, std::vector<double>> ReadReference(const std::string& path) {
  std::map<std::string, std::vector<double>> values;
  std::istringstream file(ReadFile(path).value());
  for (std::string line; std::getline(file, line);) {
    if (line[0] == '#') continue;
    std::istringstream words(line);
    std::string subject, name;
    words >> subject;
    if (subject == "output" || subject == "gradient") {
      words >> name;
      subject += " " + name;
    }
    std::string key = subject;
    for (std::string word; words >> word;) {
      char* end = nullptr;
      const double number = std::strtod(word.c_str(), &end);
      if (*end == '\0') {
        values[key].push_back(number);
      } else {
        key = subject + " " + word;
      }
    }
  }
  return values;
}

Value<double> ValueOf(const TensorType& type, std::vector<double> numbers) {
  Array<double> array(type.Sizes());
  array.data = std::move(numbers);
  return {type, {std::move(array)}};
}

// The leaves of a model by node id; inputs by name, weights from the model.
std::map<NodeId, Value<double>> Leaves(const Model& model,
                                       const std::map<std::string, std::vector<double>>& inputs) {
  std::map<NodeId, Value<double>> leaves;
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    if (node.op.kind() == OpKind::kInput) {
      leaves[NodeId{id}] = ValueOf(node.outputs[0], inputs.at(node.name));
    } else if (node.op.kind() == OpKind::kWeight) {
      const StoredValues& weight = model.weights.at(node.name);
      leaves[NodeId{id}] = ValueOf(node.outputs[0], {weight.begin(), weight.end()});
    }
  }
  return leaves;
}

const Array<double>& OutputOf(const Model& model, const Values<double>& values, int output) {
  const TensorRef tensor = model.graph.outputs()[output].tensor;
  return values[tensor.node.value][tensor.output].parts[0];
}

class Reference {
 public:
  explicit Reference(const std::string& file) : values_(ReadReference(kReferenceModels + file)) {}

  const std::vector<double>& at(const std::string& key) const { return values_.at(key); }

  void ExpectOutput(const std::string& name, const Array<double>& output) const {
    double sum = 0, squares = 0;
    for (double v : output.data) sum += v, squares += v * v;
    ExpectFirst("output " + name + " first", output.data);
    Expect("output " + name + " mean", sum / static_cast<double>(output.size()));
    Expect("output " + name + " sum_of_squares", squares);
  }
  void ExpectGradient(const std::string& name, const Array<double>& gradient) const {
    double squares = 0, weighted = 0;
    for (int64_t i = 0; i < gradient.size(); ++i) {
      squares += gradient.data[i] * gradient.data[i];
      weighted += gradient.data[i] * static_cast<double>(i % 7 - 3);
    }
    Expect("gradient " + name + " l2", std::sqrt(squares));
    ExpectFirst("gradient " + name + " first", gradient.data);
    Expect("gradient " + name + " weighted_sum", weighted);
  }
  void Expect(const std::string& key, double computed) const {
    const double expected = at(key)[0];
    EXPECT_NEAR(computed, expected, Tolerance(expected)) << key;
  }

 private:
  // The absolute part is for what is 0 in theory, and for constants rounded to float32.
  static double Tolerance(double expected) { return 1e-7 + 1e-5 * std::abs(expected); }
  void ExpectFirst(const std::string& key, const std::vector<double>& computed) const {
    for (size_t i = 0; i < at(key).size(); ++i) {
      EXPECT_NEAR(computed[i], at(key)[i], Tolerance(at(key)[i])) << key << " " << i;
    }
  }

  const std::map<std::string, std::vector<double>> values_;
};

void ExpectGradients(const Reference& reference, const Model& model,
                     const std::map<NodeId, std::vector<Array<double>>>& gradients) {
  int compared = 0;
  for (const auto& [id, parts] : gradients) {
    const Node& node = model.graph.node(id);
    if (node.op.kind() != OpKind::kWeight) continue;
    reference.ExpectGradient(node.name, parts[0]);
    ++compared;
  }
  EXPECT_EQ(compared, static_cast<int>(model.weights.size()));
}

TEST(Reference, BertTinyOutputsAndGradients) {
  const Model model = ImportOnnx(kReferenceModels + "bert_tiny.onnx").value();
  const Reference reference("bert_tiny_reference.txt");
  std::vector<double> ids;
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 16; ++j) ids.push_back((7 * i + 3 * j) % 128);
  }
  const auto values = EvaluateGraph(model.graph, Leaves(model, {{"input_ids", ids}}));
  ASSERT_TRUE(values.ok()) << values.status();
  const Array<double>& encoded = OutputOf(model, *values, 0);
  reference.ExpectOutput("encoded", encoded);
  // loss = mean(encoded^2), so its gradient with respect to encoded is 2 encoded / n.
  Array<double> seed = encoded;
  double loss = 0;
  for (double& v : seed.data) {
    loss += v * v / static_cast<double>(seed.size());
    v *= 2.0 / static_cast<double>(seed.size());
  }
  reference.Expect("loss", loss);
  const auto gradients = EvaluateGradients(model.graph, *values, {{seed}});
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  ExpectGradients(reference, model, *gradients);
}

class DigitsReference : public testing::Test {
 protected:
  // Output 0 are the logits, output 1 is the loss.
  absl::StatusOr<Values<double>> Evaluate() {
    const auto file = DataFile::Open(kReferenceModels + "digits.csv").value();
    const auto table = CsvTable::Open(file).value();
    std::vector<double> images(64 * 64), labels(64);
    std::vector<int64_t> pixels(64);
    std::iota(pixels.begin(), pixels.end(), 0);
    EXPECT_EQ(table->Read(0, 64, pixels, images.data()), absl::OkStatus());
    EXPECT_EQ(table->Read(0, 64, {64}, labels.data()), absl::OkStatus());
    for (double& value : images) value /= 16;
    return EvaluateGraph(model_.graph, Leaves(model_, {{"image", images}, {"labels", labels}}));
  }
  absl::StatusOr<std::map<NodeId, std::vector<Array<double>>>> Gradients(
      const Values<double>& values) {
    return EvaluateGradients(model_.graph, values,
                             {{Array<double>({64, 10}, 0.0)}, {Array<double>({}, 1.0)}});
  }

  Model model_ = ImportOnnx(kReferenceModels + "digits_cnn.onnx").value();
  const Reference reference_{"digits_cnn_reference.txt"};
};

TEST_F(DigitsReference, OutputsLossAndGradients) {
  ASSERT_TRUE(AttachLoss(&model_, "auto").ok());
  const auto values = Evaluate();
  ASSERT_TRUE(values.ok()) << values.status();
  reference_.ExpectOutput("logits", OutputOf(model_, *values, 0));
  reference_.Expect("loss", OutputOf(model_, *values, 1).data[0]);
  const auto gradients = Gradients(*values);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  ExpectGradients(reference_, model_, *gradients);
}

TEST_F(DigitsReference, LossAfterStepsOfGradientDescent) {
  ASSERT_TRUE(AttachLoss(&model_, "cross_entropy").ok());
  const std::vector<double>& losses = reference_.at("sgd_loss");  // rate, then a loss per step
  auto values = Evaluate();
  ASSERT_TRUE(values.ok()) << values.status();
  for (size_t step = 1; step < losses.size(); ++step) {
    const auto gradients = Gradients(*values);
    ASSERT_TRUE(gradients.ok()) << gradients.status();
    for (const auto& [id, parts] : *gradients) {
      const Node& node = model_.graph.node(id);
      if (node.op.kind() != OpKind::kWeight) continue;
      std::vector<float> weight = model_.weights.at(node.name).ToVector();
      for (size_t i = 0; i < weight.size(); ++i) {
        weight[i] -= static_cast<float>(losses[0] * parts[0].data[i]);
      }
      model_.weights[node.name] = std::move(weight);
    }
    values = Evaluate();
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_NEAR(OutputOf(model_, *values, 1).data[0], losses[step], 1e-6) << "step " << step;
  }
}

}  // namespace
}  // namespace isomer
