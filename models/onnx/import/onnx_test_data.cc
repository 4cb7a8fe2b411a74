#include "models/onnx/import/onnx_test_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "models/onnx/graph/graph.h"
#include "models/onnx/import/onnx_import.h"
#include "pcg/support/file.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostExact = int64_t{1} << 53;

// `name`: receives that of the tensor, unless null.
absl::StatusOr<OnnxTensor> ReadTensorFile(const std::string& path, std::string* name = nullptr) {
  ISOMER_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  onnx::TensorProto proto;
  if (!proto.ParseFromString(contents)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": no tensor, or damaged"));
  }
  const std::string folder = path.substr(0, path.find_last_of('/') + 1);
  absl::StatusOr<OnnxTensor> tensor =
      ReadOnnxTensor(proto, &folder, nullptr, NarrowIntegers::kAsInt32);
  if (!tensor.ok()) {
    return absl::Status(tensor.status().code(),
                        absl::StrCat(path, ": ", tensor.status().message()));
  }
  if (name != nullptr) *name = proto.name();
  for (int64_t value : tensor->ints) {
    if (value >= -kMostExact && value <= kMostExact) continue;
    return absl::UnimplementedError(
        absl::StrCat(path, ": it holds ", value, "; integers of up to 53 bits are compared"));
  }
  return tensor;
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

absl::StatusOr<std::vector<OnnxTensor>> ReadNumbered(const std::string& folder,
                                                     const std::string& stem) {
  std::vector<OnnxTensor> tensors;
  for (int i = 0;; ++i) {
    const std::string path = absl::StrCat(folder, "/", stem, "_", i, ".pb");
    if (!Exists(path)) return tensors;
    ISOMER_ASSIGN_OR_RETURN(tensors.emplace_back(), ReadTensorFile(path));
  }
}

absl::StatusOr<std::map<std::string, OnnxTensor>> ReadGradients(const std::string& folder) {
  std::map<std::string, OnnxTensor> gradients;
  for (int i = 0;; ++i) {
    const std::string path = absl::StrCat(folder, "/gradient_", i, ".pb");
    if (!Exists(path)) return gradients;
    std::string name;
    ISOMER_ASSIGN_OR_RETURN(OnnxTensor gradient, ReadTensorFile(path, &name));
    if (!gradients.emplace(name, std::move(gradient)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": a second gradient of ", QuotedName(name)));
    }
  }
}

absl::Status CheckCount(const OnnxTestSet& set, size_t given, size_t wanted, const char* what) {
  if (given == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(set.folder, ": it has ", given, " ", what, "s, and the model ", wanted));
}

bool IsConstant(BoundInputs constants, size_t i, const OnnxTensor& value) {
  switch (constants) {
    case BoundInputs::kNone:
      return false;
    case BoundInputs::kIntegers:
      return !value.is_float();
    case BoundInputs::kAllButFirst:
      return i > 0 || !value.is_float();
    case BoundInputs::kAll:
      break;
  }
  return true;
}

bool Agrees(double got, double expected, double largest, bool is_float,
            const TestTolerance& tolerance) {
  if (got == expected) return true;  // Infinities, too.
  if (!is_float) return false;
  if (std::isnan(expected)) return std::isnan(got);
  const double allowed = std::max(tolerance.absolute + tolerance.relative * std::abs(expected),
                                  tolerance.of_largest * largest);
  return std::abs(got - expected) <= allowed && std::isfinite(expected);
}

std::string IndexText(int64_t position, const std::vector<int64_t>& dims) {
  std::vector<int64_t> index(dims.size());
  for (size_t i = dims.size(); i-- > 0;) {
    index[i] = position % dims[i];
    position /= dims[i];
  }
  return absl::StrCat("[", absl::StrJoin(index, ","), "]");
}

}  // namespace

Array<double> ArrayOf(const OnnxTensor& tensor) {
  Array<double> array(tensor.dims);
  for (int64_t i = 0; i < tensor.size(); ++i) array.data[i] = tensor.Number(i);
  return array;
}

absl::StatusOr<std::map<std::string, Array<double>>> InputsFrom(const OnnxTestSet& set,
                                                                const Graph& graph) {
  std::vector<const OnnxTensor*> given;
  for (const OnnxTensor& input : set.inputs) given.push_back(&input);
  for (const OnnxTensor& target : set.targets) given.push_back(&target);
  std::map<std::string, Array<double>> inputs;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.op.kind() != OpKind::kInput) continue;
    const size_t i = inputs.size();
    if (i < given.size()) {
      const TensorType type = SequentialType(given[i]->dims, given[i]->dtype);
      if (type != node.outputs[0]) {
        return absl::InvalidArgumentError(absl::StrCat(set.folder, ": it has ", type.ToString(),
                                                       " for input ", QuotedName(node.name), ", ",
                                                       node.outputs[0].ToString()));
      }
      inputs[node.name] = ArrayOf(*given[i]);
    } else {
      inputs[node.name] = {};
    }
  }
  if (given.size() == inputs.size()) return inputs;
  return absl::InvalidArgumentError(absl::StrCat(set.folder, ": it has ", set.inputs.size(),
                                                 " inputs and ", set.targets.size(),
                                                 " targets, and the model takes ", inputs.size()));
}

absl::Status CheckTensorTypes(absl::string_view contents, const std::string& name) {
  ISOMER_ASSIGN_OR_RETURN(const OnnxGraph graph, ReadOnnxGraph(contents, name));
  for (const auto* infos : {&graph.inputs, &graph.outputs}) {
    for (const onnx::ValueInfoProto& info : *infos) {
      if (info.type().has_tensor_type()) continue;
      return absl::UnimplementedError(absl::StrCat(name, ": ",
                                                   infos == &graph.inputs ? "input " : "output ",
                                                   QuotedName(info.name()), ": it is no tensor"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OnnxTestSet>> ReadOnnxTestSets(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return absl::NotFoundError(absl::StrCat(folder, ": no such folder"));
  }
  std::vector<std::string> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, "test_data_set_")) folders.push_back(entry.path().string());
  }
  if (error) return absl::NotFoundError(absl::StrCat(folder, ": ", error.message()));
  std::sort(folders.begin(), folders.end());
  if (folders.empty()) folders = {folder};
  std::vector<OnnxTestSet> sets;
  for (std::string& path : folders) {
    OnnxTestSet set;
    ISOMER_ASSIGN_OR_RETURN(set.inputs, ReadNumbered(path, "input"));
    ISOMER_ASSIGN_OR_RETURN(set.outputs, ReadNumbered(path, "output"));
    ISOMER_ASSIGN_OR_RETURN(set.targets, ReadNumbered(path, "target"));
    ISOMER_ASSIGN_OR_RETURN(set.gradients, ReadGradients(path));
    for (const OnnxTensor& output : set.outputs) {
      if (output.size() > 0) continue;
      return absl::UnimplementedError(
          absl::StrCat(path, ": output ", &output - &set.outputs[0], " has no elements"));
    }
    if (set.outputs.empty()) {
      return absl::NotFoundError(
          absl::StrCat(path, ": no output_0.pb to compare with, and no folder test_data_set_0"));
    }
    set.folder = std::move(path);
    sets.push_back(std::move(set));
  }
  return sets;
}

absl::StatusOr<BoundModel> BindOnnxModel(absl::string_view contents, const std::string& name,
                                         const OnnxTestSet& set, BoundInputs constants) {
  ISOMER_ASSIGN_OR_RETURN(const OnnxGraph graph, ReadOnnxGraph(contents, name));
  ISOMER_RETURN_IF_ERROR(CheckCount(set, set.inputs.size(), graph.inputs.size(), "input"));
  ISOMER_RETURN_IF_ERROR(CheckCount(set, set.outputs.size(), graph.outputs.size(), "output"));
  BoundModel bound = {.model = {}, .inputs = {}, .set = set};
  bound.set.inputs.clear();
  ImportOptions options;
  std::map<std::string, OnnxTensor> values;
  for (size_t i = 0; i < set.inputs.size(); ++i) {
    const std::string& input = graph.inputs[i].name();
    options.input_shapes[input] = set.inputs[i].dims;
    if (IsConstant(constants, i, set.inputs[i])) {
      values[input] = set.inputs[i];
    } else {
      bound.inputs[input] = ArrayOf(set.inputs[i]);
      bound.set.inputs.push_back(set.inputs[i]);
    }
  }
  options.input_values = &values;
  ISOMER_ASSIGN_OR_RETURN(bound.model, ParseOnnx(contents, name, options));
  for (size_t i = 0; i < set.inputs.size(); ++i) {
    const int elem_type = graph.inputs[i].type().tensor_type().elem_type();
    const absl::StatusOr<DataType> dtype = OnnxDataType(elem_type, NarrowIntegers::kAsInt32);
    if (dtype.ok() && *dtype == set.inputs[i].dtype) continue;
    return absl::InvalidArgumentError(absl::StrCat(set.folder, ": input ", i, " is ",
                                                   DataTypeName(set.inputs[i].dtype),
                                                   ", which the model does not take there"));
  }
  for (int id = 0; id < bound.model.graph.num_nodes(); ++id) {
    const Node& node = bound.model.graph.node(id);
    if (node.op.kind() != OpKind::kInput || bound.inputs.count(node.name) > 0) continue;
    return absl::UnimplementedError(absl::StrCat(name, ": it draws random numbers (from ",
                                                 QuotedName(node.name), "), not those of a test"));
  }
  return bound;
}

TensorDistance DistanceFrom(const OnnxTensor& expected, const Array<double>& got,
                            const TensorType& type, const TestTolerance& tolerance) {
  TensorDistance distance;
  const TensorType expected_type = SequentialType(expected.dims, expected.dtype);
  if (type != expected_type) {
    distance.difference =
        absl::StrCat("its type is ", type.ToString(), ", not ", expected_type.ToString());
    return distance;
  }
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double magnitude = std::abs(expected.Number(i));
    if (std::isfinite(magnitude)) distance.scale = std::max(distance.scale, magnitude);
  }
  int64_t differing = 0, worst = -1;
  double worst_off = -1;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double wanted = expected.Number(i);
    const bool is_same = got.data[i] == wanted || (std::isnan(got.data[i]) && std::isnan(wanted));
    const double by = is_same ? 0 : std::abs(got.data[i] - wanted);
    const double off = std::isnan(by) ? HUGE_VAL : by;
    distance.most = std::max(distance.most, off);
    if (Agrees(got.data[i], wanted, distance.scale, expected.is_float(), tolerance)) continue;
    ++differing;
    if (off <= worst_off) continue;
    worst = i;
    worst_off = off;
  }
  if (differing == 0) return distance;
  distance.difference =
      absl::StrFormat("%s is %.9g, not %.9g (off by %.3g of up to %.3g; %d of %d elements differ)",
                      IndexText(worst, expected.dims), got.data[worst], expected.Number(worst),
                      std::abs(got.data[worst] - expected.Number(worst)), distance.scale, differing,
                      expected.size());
  return distance;
}

}  // namespace isomer
