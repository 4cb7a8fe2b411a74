#include "models/frameworks/safetensors.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "pcg/support/json.h"

namespace isomer {
namespace {

const char* ElementName(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat32:
    case DataType::kBFloat16:
    case DataType::kFloat16:
      return "F32";
    case DataType::kInt64:
      return "I64";
    case DataType::kInt32:
      return "I32";
    case DataType::kBool:
      return "BOOL";
  }
  return "";
}

template <typename Element>
void AppendElement(Element element, std::string* to) {
  char bytes[sizeof(Element)];
  std::memcpy(bytes, &element, sizeof(Element));
  to->append(bytes, sizeof(Element));
}

void AppendValues(const StoredValues& values, DataType dtype, std::string* to) {
  for (const float value : values) {
    switch (dtype) {
      case DataType::kInt64:
        AppendElement(static_cast<int64_t>(value), to);
        break;
      case DataType::kInt32:
        AppendElement(static_cast<int32_t>(value), to);
        break;
      case DataType::kBool:
        AppendElement(static_cast<uint8_t>(value != 0), to);
        break;
      default:
        AppendElement(value, to);
    }
  }
}

}  // namespace

SafetensorsFile SafetensorsOf(const Model& model) {
  SafetensorsFile file;
  std::string elements;
  Json header = Json::EmptyObject();
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    const auto found = model.weights.find(node.name);
    if (!IsStored(node.op.kind()) || found == model.weights.end()) continue;
    if (found->second.file() != nullptr) continue;
    const size_t begin = elements.size();
    AppendValues(found->second, node.outputs[0].dtype, &elements);
    Json& entry = header[node.name];
    entry["dtype"] = ElementName(node.outputs[0].dtype);
    entry["shape"] = Json(node.outputs[0].Sizes());
    entry["data_offsets"].Append(begin);
    entry["data_offsets"].Append(elements.size());
    file.offsets[node.name] = static_cast<int64_t>(begin);
  }
  std::string text = header.PrintCompact();
  while (text.size() % 8 != 0) text.push_back(' ');  // elements lie aligned
  AppendElement(static_cast<uint64_t>(text.size()), &file.contents);
  absl::StrAppend(&file.contents, text, elements);
  for (auto& [name, offset] : file.offsets) offset += static_cast<int64_t>(text.size()) + 8;
  return file;
}

}  // namespace isomer
