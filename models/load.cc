#include "models/load.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "models/onnx/import/onnx_import.h"
#include "models/zoo/zoo.h"
#include "pcg/support/mapped_file.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// The text form of graphs: the first line that is no comment defines %0.
bool LooksLikeGraphText(absl::string_view contents) {
  for (absl::string_view line : absl::StrSplit(contents.substr(0, 1 << 16), '\n')) {
    line = absl::StripLeadingAsciiWhitespace(line);
    if (!line.empty() && line[0] != '#') return absl::StartsWith(line, "%");
  }
  return false;
}

absl::StatusOr<Model> ReadGraphText(const std::string& path, absl::string_view contents) {
  absl::StatusOr<Graph> graph = ParseGraph(contents);
  if (!graph.ok()) {
    return absl::Status(graph.status().code(), absl::StrCat(path, ": ", graph.status().message()));
  }
  if (graph->outputs().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the graph has no output; is it cut?"));
  }
  Model model;
  model.name = path.substr(path.find_last_of('/') + 1);
  model.graph = *std::move(graph);
  return model;
}

// Isomer's own files state every size; another batch would be another model.
absl::Status CheckBatch(const std::string& path, const Model& model, int64_t batch_size) {
  if (batch_size == 0) return absl::OkStatus();
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    if (node.op.kind() != OpKind::kInput) continue;
    const TensorType& type = node.outputs[0];
    if (type.rank() > 0 && type.dims[0].size == batch_size) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": input '", node.name, "' is ", type.ToString(),
                     ", and the batch of this file cannot become ", batch_size));
  }
  return absl::InvalidArgumentError(absl::StrCat(path, ": it has no inputs, and so no batch"));
}

absl::StatusOr<ImportOptions> ImportOptionsOf(const LoadOptions& options) {
  ImportOptions result;
  result.batch_size = options.batch_size;
  result.notes = options.notes;
  for (const std::string& binding : options.dims) {
    const size_t equals = binding.rfind('=');
    const std::string name = binding.substr(0, equals);
    int64_t size = 0;
    if (equals == std::string::npos || name.empty() ||
        !absl::SimpleAtoi(binding.substr(equals + 1), &size) || size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--dim=", binding, ": name=N is expected, with a positive N"));
    }
    if (!result.dims.insert({name, size}).second) {
      return absl::InvalidArgumentError(absl::StrCat("--dim: ", name, " is given twice"));
    }
  }
  return result;
}

absl::Status NoDims(const std::string& spec, const LoadOptions& options) {
  if (options.dims.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(spec, ": --dim=", options.dims[0], ": only an .onnx file has dims with names"));
}

}  // namespace

absl::StatusOr<Model> LoadAnyModel(const std::string& spec, const LoadOptions& options) {
  if (options.batch_size < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch_size is ", options.batch_size, "; it must be positive"));
  }
  ISOMER_ASSIGN_OR_RETURN(ImportOptions import_options, ImportOptionsOf(options));
  if (absl::StartsWith(spec, "zoo:")) {
    ISOMER_RETURN_IF_ERROR(NoDims(spec, options));
    return BuildZooModel(absl::StripPrefix(spec, "zoo:"), options.batch_size);
  }
  ISOMER_ASSIGN_OR_RETURN(const FileContents file, OpenFile(spec, options.most_read_bytes));
  const absl::string_view contents = file.bytes();
  import_options.leave_data = file.is_mapped();
  const bool is_own_file = !DeclaredKind(contents).empty();
  if (is_own_file || LooksLikeGraphText(contents)) {
    ISOMER_RETURN_IF_ERROR(NoDims(spec, options));
    ISOMER_ASSIGN_OR_RETURN(Model model,
                            is_own_file ? LoadModel(spec) : ReadGraphText(spec, contents));
    ISOMER_RETURN_IF_ERROR(CheckBatch(spec, model, options.batch_size));
    return model;
  }
  return ParseOnnx(contents, spec, import_options);
}

absl::StatusOr<std::vector<std::string>> ListUnsupportedOf(const std::string& spec,
                                                           const LoadOptions& options) {
  ISOMER_ASSIGN_OR_RETURN(const ImportOptions import_options, ImportOptionsOf(options));
  if (absl::StartsWith(spec, "zoo:")) return std::vector<std::string>();
  ISOMER_ASSIGN_OR_RETURN(const FileContents file, OpenFile(spec, options.most_read_bytes));
  const absl::string_view contents = file.bytes();
  if (!DeclaredKind(contents).empty() || LooksLikeGraphText(contents)) {
    return std::vector<std::string>();
  }
  ISOMER_ASSIGN_OR_RETURN(std::vector<std::string> lines,
                          ListUnsupported(contents, spec, import_options));
  if (lines.empty() && options.notes != nullptr) {
    options.notes->push_back(absl::StrCat(spec, ": all of it is supported"));
  }
  return lines;
}

}  // namespace isomer
