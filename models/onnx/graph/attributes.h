#ifndef ISOMER_MODELS_ONNX_GRAPH_ATTRIBUTES_H_
#define ISOMER_MODELS_ONNX_GRAPH_ATTRIBUTES_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/onnx/graph/graph.h"
#include "models/onnx/tensor.h"

namespace isomer {

// Reads the attributes of one node. The first error, an attribute of the wrong type, is kept in
// status(), which in the end also refuses attributes that nothing asked for: none may be ignored
// in silence.
class OnnxAttributes {
 public:
  explicit OnnxAttributes(const OnnxNode& node) : node_(node) {}

  bool Has(const std::string& name) const { return node_.attributes.count(name) > 0; }
  int64_t Int(const std::string& name, int64_t absent);
  double Float(const std::string& name, double absent);
  std::string String(const std::string& name, const std::string& absent);
  std::vector<int64_t> Ints(const std::string& name, std::vector<int64_t> absent);
  std::vector<double> Floats(const std::string& name, std::vector<double> absent);
  std::vector<std::string> Strings(const std::string& name, std::vector<std::string> absent);
  OnnxTensor Tensor(const std::string& name, OnnxTensor absent);
  // For attributes without a meaning here, such as the momentum of running statistics.
  void Ignore(const std::string& name) { read_.insert(name); }

  // The first error of what was read so far.
  const absl::Status& status() const { return status_; }
  // The same, or an error for an attribute that was not read.
  absl::Status Finish();

 private:
  const onnx::AttributeProto* Find(const std::string& name,
                                   onnx::AttributeProto::AttributeType type);

  const OnnxNode& node_;
  std::set<std::string> read_;
  absl::Status status_;
};

// Gives a node that is made here an attribute of an integer.
void SetInt(const std::string& name, int64_t value, OnnxNode* node);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_ATTRIBUTES_H_
