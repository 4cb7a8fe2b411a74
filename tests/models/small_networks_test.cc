// The small networks of models/data/small against what torch computed for them in float64.
#include <cmath>
#include <map>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/onnx/import/onnx_import.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/support/file.h"

namespace isomer {
namespace {

const std::string kData = ISOMER_SOURCE_DIR "/models/data/small/";

struct TorchNetwork {
  struct Output {
    std::string name;
    int64_t size = 0;
    double mean = 0, sum_of_squares = 0;
    std::vector<double> first;
  };
  std::string file;
  std::map<std::string, Array<double>> inputs;
  std::vector<Output> outputs;
};

void PrintTo(const TorchNetwork& network, std::ostream* out) { *out << network.file; }

// models/export/export_small.py describes the format.
std::vector<TorchNetwork> ReadReference() {
  std::vector<TorchNetwork> networks;
  std::istringstream file(ReadFile(kData + "reference.txt").value());
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, name, word;
    words >> kind >> name;
    if (kind == "model") {
      networks.emplace_back().file = name;
    } else if (kind == "input") {
      int64_t modulus = 0;
      std::vector<int64_t> dims;
      words >> modulus;
      for (int64_t dim; words >> dim;) dims.push_back(dim);
      Array<double> array(dims);
      for (int64_t i = 0; i < array.size(); ++i) {
        array.data[i] = modulus == 0 ? std::sin(0.7 * static_cast<double>(i) + 0.3)
                                     : static_cast<double>((7 * i + 3) % modulus);
      }
      networks.back().inputs[name] = std::move(array);
    } else if (kind == "output") {
      TorchNetwork::Output output;
      output.name = name;
      words >> output.size >> word >> output.mean >> word >> output.sum_of_squares >> word;
      for (double value; words >> value;) output.first.push_back(value);
      networks.back().outputs.push_back(std::move(output));
    }
  }
  return networks;
}

std::map<NodeId, Value<double>> Leaves(const Model& model, const TorchNetwork& network) {
  std::map<NodeId, Value<double>> leaves;
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    if (!IsLeaf(node.op.kind())) continue;
    Array<double> array(node.outputs[0].Sizes());
    if (node.op.kind() == OpKind::kInput) {
      array = network.inputs.at(node.name);
    } else {
      const StoredValues& values = model.weights.at(node.name);
      array.data.assign(values.begin(), values.end());
    }
    leaves[NodeId{id}] = {node.outputs[0], {std::move(array)}};
  }
  return leaves;
}

class SmallNetwork : public testing::TestWithParam<TorchNetwork> {};

// Weights are float32 in the file, and so are its constants: hence 1e-4 and not 1e-12.
TEST_P(SmallNetwork, AgreesWithTorch) {
  const TorchNetwork& network = GetParam();
  const auto model = ImportOnnx(kData + network.file);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto values = EvaluateGraph(model->graph, Leaves(*model, network));
  ASSERT_TRUE(values.ok()) << values.status();
  ASSERT_EQ(model->graph.outputs().size(), network.outputs.size());
  for (size_t o = 0; o < network.outputs.size(); ++o) {
    const TorchNetwork::Output& expected = network.outputs[o];
    const auto& [name, tensor] = model->graph.outputs()[o];
    EXPECT_EQ(name, expected.name);
    const Array<double>& computed = (*values)[tensor.node.value][tensor.output].parts[0];
    ASSERT_EQ(computed.size(), expected.size);
    const double count = static_cast<double>(expected.size);
    const double scale = std::sqrt(expected.sum_of_squares / count);
    double sum = 0, squares = 0;
    for (double v : computed.data) sum += v, squares += v * v;
    EXPECT_NEAR(sum / count, expected.mean, 1e-4 * scale) << name;
    EXPECT_NEAR(squares, expected.sum_of_squares, 1e-4 * expected.sum_of_squares) << name;
    for (size_t i = 0; i < expected.first.size(); ++i) {
      EXPECT_NEAR(computed.data[i], expected.first[i], 1e-4 * scale) << name << " " << i;
    }
  }
}

std::string NameOfNetwork(const testing::TestParamInfo<TorchNetwork>& info) {
  return info.param.file.substr(0, info.param.file.find('.'));
}

INSTANTIATE_TEST_SUITE_P(Torch, SmallNetwork, testing::ValuesIn(ReadReference()), NameOfNetwork);

// In training form: statistics of the batch, and Dropout whose mask comes from a seed.
TEST(SmallNetworks, TrainingFormKeepsItsRandomness) {
  const Model model = ImportOnnx(kData + "mobilenet_v2_training.onnx").value();
  std::map<OpKind, int> counts;
  for (int id = 0; id < model.graph.num_nodes(); ++id) ++counts[model.graph.node(id).op.kind()];
  EXPECT_EQ(counts[OpKind::kDropout], 1);
  EXPECT_EQ(counts[OpKind::kBatchNorm], 0);
  EXPECT_EQ(counts[OpKind::kBatchNormTraining], 12);
  EXPECT_EQ(counts[OpKind::kInput], 2);  // the images, and the seed
}

TEST(SmallNetworks, CellsAreOperatorsOfTheirOwn) {
  std::map<OpKind, int> counts;
  for (const char* file : {"lstm_language_model.onnx", "gru_classifier.onnx"}) {
    const Model model = ImportOnnx(kData + file).value();
    for (int id = 0; id < model.graph.num_nodes(); ++id) ++counts[model.graph.node(id).op.kind()];
  }
  EXPECT_EQ(counts[OpKind::kLstmCell], 2 * 6);  // layers, steps
  EXPECT_EQ(counts[OpKind::kGruCell], 2 * 5);   // directions, steps
}

}  // namespace
}  // namespace isomer
