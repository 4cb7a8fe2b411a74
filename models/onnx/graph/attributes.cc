#include "models/onnx/graph/attributes.h"

#include "absl/strings/str_cat.h"

namespace isomer {

using onnx::AttributeProto;

const AttributeProto* OnnxAttributes::Find(const std::string& name,
                                           AttributeProto::AttributeType type) {
  read_.insert(name);
  const auto found = node_.attributes.find(name);
  if (found == node_.attributes.end()) return nullptr;
  if (found->second.type() == type) return &found->second;
  status_.Update(
      absl::InvalidArgumentError(absl::StrCat("attribute ", QuotedName(name), " is not of type ",
                                              AttributeProto::AttributeType_Name(type))));
  return nullptr;
}

int64_t OnnxAttributes::Int(const std::string& name, int64_t absent) {
  const AttributeProto* const found = Find(name, AttributeProto::INT);
  return found == nullptr ? absent : found->i();
}

double OnnxAttributes::Float(const std::string& name, double absent) {
  const AttributeProto* const found = Find(name, AttributeProto::FLOAT);
  return found == nullptr ? absent : found->f();
}

std::string OnnxAttributes::String(const std::string& name, const std::string& absent) {
  const AttributeProto* const found = Find(name, AttributeProto::STRING);
  return found == nullptr ? absent : found->s();
}

std::vector<int64_t> OnnxAttributes::Ints(const std::string& name, std::vector<int64_t> absent) {
  const AttributeProto* const found = Find(name, AttributeProto::INTS);
  if (found == nullptr) return absent;
  return std::vector<int64_t>(found->ints().begin(), found->ints().end());
}

std::vector<double> OnnxAttributes::Floats(const std::string& name, std::vector<double> absent) {
  const AttributeProto* const found = Find(name, AttributeProto::FLOATS);
  if (found == nullptr) return absent;
  return std::vector<double>(found->floats().begin(), found->floats().end());
}

std::vector<std::string> OnnxAttributes::Strings(const std::string& name,
                                                 std::vector<std::string> absent) {
  const AttributeProto* const found = Find(name, AttributeProto::STRINGS);
  if (found == nullptr) return absent;
  return std::vector<std::string>(found->strings().begin(), found->strings().end());
}

OnnxTensor OnnxAttributes::Tensor(const std::string& name, OnnxTensor absent) {
  const AttributeProto* const found = Find(name, AttributeProto::TENSOR);
  if (found == nullptr) return absent;
  absl::StatusOr<OnnxTensor> tensor = ReadOnnxTensor(found->t());
  if (tensor.ok()) return *std::move(tensor);
  status_.Update(absl::InvalidArgumentError(
      absl::StrCat("attribute ", QuotedName(name), ": ", tensor.status().message())));
  return absent;
}

absl::Status OnnxAttributes::Finish() {
  for (const auto& [name, attribute] : node_.attributes) {
    if (read_.count(name) == 0) {
      status_.Update(absl::UnimplementedError(
          absl::StrCat("attribute ", QuotedName(name), " is not known here")));
    }
  }
  return status_;
}

void SetInt(const std::string& name, int64_t value, OnnxNode* node) {
  AttributeProto& attribute = node->attributes[name];
  attribute.set_name(name);
  attribute.set_type(AttributeProto::INT);
  attribute.set_i(value);
}

}  // namespace isomer
