#include "runtime/data/input_binding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "pcg/evaluation/leaf_draws.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/status_macros.h"
#include "runtime/data/csv.h"
#include "runtime/data/idx.h"
#include "runtime/data/open_data.h"

namespace isomer {
namespace {

template <typename... Parts>
absl::Status Refused(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

std::string InputText(const ModelInput& input) {
  return absl::StrCat("input '", input.name, "' ", input.type.ToString());
}

std::string NamesOf(const std::vector<const ModelInput*>& inputs) {
  return absl::StrJoin(inputs, ", ", [](std::string* out, const ModelInput* input) {
    absl::StrAppend(out, "'", input->name, "'");
  });
}

ValueRange RangeOf(const LeafRole& role, DataType dtype) {
  constexpr double kExact = int64_t{1} << 53;  // integers that a double holds
  const bool is_index = IsIndexOperand(role.kind, role.operand);
  if (is_index) return {true, 0, static_cast<double>(role.limit - 1)};
  if (role.kind == OpKind::kBinaryCrossEntropy && role.operand == 1) return {false, 0, 1};
  if (dtype == DataType::kBool) return {true, 0, 1};
  if (dtype == DataType::kInt32) {
    return {true, double{std::numeric_limits<int32_t>::min()},
            double{std::numeric_limits<int32_t>::max()}};
  }
  if (dtype == DataType::kInt64) return {true, -kExact, kExact};
  constexpr double kMost = std::numeric_limits<float>::max();
  return {false, -kMost, kMost};
}

// What --data says: which file, and for which input, "" where it leaves that open.
struct FileForInput {
  std::string input, path;
};

// Builds what BindData returns.
class Binder {
 public:
  Binder(const Graph& graph, const OpenOptions& options)
      : options_(options), inputs_(InputsForData(graph)) {
    for (const ModelInput& input : inputs_) {
      (input.is_label ? labels_ : features_).push_back(&input);
    }
  }

  absl::StatusOr<BoundData> Bind(const std::vector<std::string>& files) {
    if (inputs_.empty()) return Refused(files[0], ": the model has no input that rows feed");
    std::vector<FileForInput> parsed;
    for (const std::string& text : files) {
      parsed.push_back(Parse(text));
      if (!parsed.back().input.empty()) named_.insert(parsed.back().input);
    }
    for (const FileForInput& file : parsed) ISOMER_RETURN_IF_ERROR(AddFile(file));
    if (options_.raw_type.has_value() && !used_raw_type_) {
      return Refused("--data_dtype is for files of nothing but tokens; ", parsed[0].path,
                     " says of which type it is");
    }
    if (!options_.label_column.empty() && !used_label_column_) {
      return Refused("--label_column is for CSV with features and labels; ", parsed[0].path,
                     " has no such column");
    }
    return Fit();
  }

 private:
  const ModelInput* Find(absl::string_view name) const {
    for (const ModelInput& input : inputs_) {
      if (input.name == name) return &input;
    }
    return nullptr;
  }

  // Names of files and of inputs may both have a '='.
  FileForInput Parse(const std::string& text) const {
    for (size_t at = text.find('='); at != text.npos; at = text.find('=', at + 1)) {
      if (Find(text.substr(0, at)) != nullptr) return {text.substr(0, at), text.substr(at + 1)};
    }
    return {"", text};
  }

  // What feeds an input already comes before.
  void Feed(const ModelInput& input, std::shared_ptr<const Records> records) {
    fed_[input.name].push_back(std::move(records));
  }

  // The one input that is no label.
  absl::StatusOr<const ModelInput*> OnlyFeatures(const std::string& path) const {
    if (features_.size() == 1) return features_[0];
    if (features_.empty()) return Refused(path, ": the model has no input but labels");
    return Refused(path, ": the model has the inputs ", NamesOf(features_),
                   ": --data NAME=FILE says which");
  }

  // The one label, unless a file is named for it; null for none.
  const ModelInput* OnlyLabel() const {
    return labels_.size() == 1 && !named_.contains(labels_[0]->name) ? labels_[0] : nullptr;
  }

  absl::Status AddFile(const FileForInput& file) {
    absl::StatusOr<OpenedData> data = OpenData(file.path, options_.raw_type);
    if (!data.ok()) {
      const size_t at = file.path.find('=');
      if (absl::IsNotFound(data.status()) && at != file.path.npos && file.input.empty()) {
        return Refused("--data=", file.path, ": the model has no input '", file.path.substr(0, at),
                       "'; there are ", AllNames());
      }
      return data.status();
    }
    used_raw_type_ |= data->is_raw;
    const ModelInput* input = nullptr;
    if (!file.input.empty()) {
      input = Find(file.input);
    } else if (!data->has_names) {
      ISOMER_ASSIGN_OR_RETURN(input, OnlyFeatures(file.path));
    }
    if (data->table != nullptr) return AddTable(*data, *input, !file.input.empty());
    if (data->has_names) return AddNamed(*data, input);
    Feed(*input, data->arrays[0].records);
    return file.input.empty() ? AddIdxLabels(file.path) : absl::OkStatus();
  }

  absl::Status AddTable(const OpenedData& data, const ModelInput& input, bool is_named) {
    std::vector<int64_t> columns(data.table->num_columns());
    for (size_t c = 0; c < columns.size(); ++c) columns[c] = static_cast<int64_t>(c);
    const ModelInput* const label = is_named ? nullptr : OnlyLabel();
    if (label != nullptr) {
      if (columns.size() < 2) {
        return Refused(data.path,
                       ": one cell in a line; features and a label are expected, separated by "
                       "commas");
      }
      ISOMER_ASSIGN_OR_RETURN(const int64_t column, data.table->LabelColumn(options_.label_column));
      used_label_column_ = true;
      columns.erase(columns.begin() + column);
      Feed(*label, std::make_shared<CsvRecords>(data.table, std::vector<int64_t>{column},
                                                /*is_scalar=*/true));
    }
    Feed(input, std::make_shared<CsvRecords>(data.table, std::move(columns),
                                             /*is_scalar=*/false));
    return absl::OkStatus();
  }

  // `input`: null for those of the arrays' names.
  absl::Status AddNamed(const OpenedData& data, const ModelInput* input) {
    if (input != nullptr) {
      const NamedRecords* one = data.arrays.size() == 1 ? &data.arrays[0] : nullptr;
      for (const NamedRecords& array : data.arrays) {
        if (array.name == input->name) one = &array;
      }
      if (one == nullptr) {
        return Refused(data.path, ": it has ", data.arrays.size(), " arrays, and none is named '",
                       input->name, "'");
      }
      Feed(*input, one->records);
      return absl::OkStatus();
    }
    for (const NamedRecords& array : data.arrays) {
      const ModelInput* const named = Find(array.name);
      if (named == nullptr) {
        return Refused(data.path, ": array '", absl::CHexEscape(array.name),
                       "' has the name of no input; there are ", AllNames());
      }
      Feed(*named, array.records);
    }
    return absl::OkStatus();
  }

  absl::Status AddIdxLabels(const std::string& images) {
    const std::optional<std::string> path = IdxLabelsOf(images);
    const ModelInput* const label = OnlyLabel();
    if (!path.has_value() || label == nullptr) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(const OpenedData data, OpenData(*path, std::nullopt));
    if (data.arrays.size() != 1) return Refused(*path, ": it is no IDX file of labels");
    Feed(*label, data.arrays[0].records);
    return absl::OkStatus();
  }

  std::string AllNames() const {
    return absl::StrJoin(inputs_, ", ", [](std::string* out, const ModelInput& input) {
      absl::StrAppend(out, "'", input.name, "'");
    });
  }

  // Elements of an input that one row has.
  absl::StatusOr<int64_t> PerRow(const ModelInput& input) const {
    const int64_t elements = input.type.NumElements();
    if (elements % batch_ == 0) return elements / batch_;
    return Refused(InputText(input), " cannot be cut into the ", batch_,
                   " rows of a batch, dim 0 of '", BatchInput().name, "'");
  }

  const ModelInput& BatchInput() const { return features_.empty() ? inputs_[0] : *features_[0]; }

  // Of a stream of integers its sequences; else null.
  static const BinaryRecords* StreamFor(const ModelInput& input, const Records* records,
                                        int64_t per_row) {
    const auto* const binary = dynamic_cast<const BinaryRecords*>(records);
    const bool fits = binary != nullptr && binary->is_stream() && per_row > 1 &&
                      IsInteger(input.type.dtype) && binary->number_kind() == NumberKind::kInteger;
    return fits ? binary : nullptr;
  }

  absl::Status CheckShape(const ModelInput& input, const Records& records, int64_t per_row) const {
    std::vector<int64_t> wanted = input.type.Sizes();
    if (wanted.size() > 1 && wanted[0] == batch_) {
      wanted.erase(wanted.begin());
    } else {
      wanted = {per_row};
    }
    const std::vector<int64_t>& given = records.row_shape();
    const bool is_flat = given.size() <= 1 || wanted.size() <= 1;
    const auto without_ones = [](std::vector<int64_t> shape) {
      std::erase(shape, 1);
      return shape;
    };
    if (records.row_elements() == per_row &&
        (is_flat || without_ones(given) == without_ones(wanted))) {
      return absl::OkStatus();
    }
    std::string where;
    if (given.size() == wanted.size()) {
      const size_t d =
          std::mismatch(given.begin(), given.end(), wanted.begin()).first - given.begin();
      where = absl::StrCat(": dim ", d + 1, " is ", given[d], " and not ", wanted[d]);
    }
    return Refused(records.file().path(), ": it has ", records.ToString(), "; ", InputText(input),
                   " takes ", ShapeText(wanted), " a row", where);
  }

  // Whether the labels are the next tokens; then they have the same parts.
  absl::Status FindNextTokens() {
    if (features_.size() != 1 || labels_.size() != 1 || fed_.contains(labels_[0]->name) ||
        !fed_.contains(features_[0]->name)) {
      return absl::OkStatus();
    }
    const ModelInput &features = *features_[0], &label = *labels_[0];
    ISOMER_ASSIGN_OR_RETURN(const int64_t per_row, PerRow(features));
    if (!IsInteger(label.type.dtype) || label.type.NumElements() != features.type.NumElements() ||
        StreamFor(features, fed_.at(features.name)[0].get(), per_row) == nullptr) {
      return absl::OkStatus();
    }
    next_tokens_ = &label;
    fed_[label.name] = fed_.at(features.name);
    return absl::OkStatus();
  }

  // The rows of a file for an input, a stream cut into sequences.
  absl::StatusOr<std::shared_ptr<const Records>> RowsFor(
      const ModelInput& input, int64_t per_row, std::shared_ptr<const Records> records) const {
    const std::string& path = records->file().path();
    if (const BinaryRecords* const stream = StreamFor(input, records.get(), per_row)) {
      const bool has_next = next_tokens_ != nullptr;
      const int64_t rows = (stream->rows() - (has_next ? 1 : 0)) / per_row;
      if (rows == 0) {
        return Refused(path, ": ", stream->rows(), " tokens make no sequence of ", per_row,
                       has_next ? " and the token after it" : "");
      }
      records = stream->Cut(per_row, /*shift=*/&input == next_tokens_ ? 1 : 0, rows);
    }
    if (records->number_kind() == NumberKind::kFloat && input.range.is_integer) {
      return Refused(path, ": it has ", records->ToString(), "; ", InputText(input),
                     " takes integers");
    }
    ISOMER_RETURN_IF_ERROR(CheckShape(input, *records, per_row));
    return records;
  }

  absl::StatusOr<BoundData> Fit() {
    batch_ = BatchInput().type.Sizes()[0];
    ISOMER_RETURN_IF_ERROR(FindNextTokens());
    BoundData data = {.batch = batch_};
    for (const ModelInput& input : inputs_) {
      const auto found = fed_.find(input.name);
      if (found == fed_.end()) {
        return Refused(InputText(input), " gets no data: --data ", input.name, "=FILE",
                       input.is_label && !input.is_class
                           ? "; where labels are classes, isomer-optimize --loss=cross_entropy "
                             "makes a plan with them"
                           : "");
      }
      ISOMER_ASSIGN_OR_RETURN(const int64_t per_row, PerRow(input));
      std::vector<std::shared_ptr<const Records>> parts;
      for (const std::shared_ptr<const Records>& part : found->second) {
        ISOMER_ASSIGN_OR_RETURN(parts.emplace_back(), RowsFor(input, per_row, part));
      }
      const bool is_one = parts.size() == 1;
      ISOMER_ASSIGN_OR_RETURN(std::shared_ptr<const Records> records,
                              JoinedRecords::Join(std::move(parts)));
      if (data.inputs.empty()) data.rows = records->rows();
      if (records->rows() != data.rows) {
        return Refused(records->file().path(), ": ", records->rows(), " rows for input '",
                       input.name, "', and ", data.rows, " in ",
                       data.inputs[0].records->file().path(), " for '", data.inputs[0].name(), "'");
      }
      data.inputs.push_back({.input = input,
                             .records = std::move(records),
                             .is_next_token = is_one && &input == next_tokens_});
    }
    return data;
  }

  const OpenOptions& options_;
  const std::vector<ModelInput> inputs_;
  std::vector<const ModelInput*> features_, labels_;
  std::set<std::string> named_;
  std::map<std::string, std::vector<std::shared_ptr<const Records>>> fed_;
  const ModelInput* next_tokens_ = nullptr;  // the label that is
  int64_t batch_ = 1;
  bool used_raw_type_ = false, used_label_column_ = false;
};

}  // namespace

std::vector<ModelInput> InputsForData(const Graph& graph) {
  std::vector<ModelInput> inputs;
  const auto users = graph.Users();
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.op.kind() != OpKind::kInput || node.outputs[0].rank() == 0) continue;
    const LeafRole role = RoleOf(graph, users, NodeId{id});
    const OperatorTraits& traits = TraitsOf(role.kind);
    const bool is_index = IsIndexOperand(role.kind, role.operand);
    if (is_index && traits.index_domain == IndexDomain::kSeed) continue;
    const bool is_label = traits.op_class == OperatorClass::kLoss && role.operand == 1;
    inputs.push_back({.name = node.name,
                      .type = node.outputs[0],
                      .is_label = is_label,
                      .is_class = is_label && is_index,
                      .range = RangeOf(role, node.outputs[0].dtype)});
  }
  return inputs;
}

std::optional<int64_t> RowsOfBatch(const Graph& graph) {
  const std::vector<ModelInput> inputs = InputsForData(graph);
  const auto features = std::find_if(inputs.begin(), inputs.end(), [](const ModelInput& input) {
    return !input.is_label && input.type.rank() > 0;
  });
  if (features == inputs.end()) return std::nullopt;
  return features->type.dims[0].size;
}

absl::StatusOr<BoundData> BindData(const Graph& graph, const std::vector<std::string>& files,
                                   const OpenOptions& options) {
  return Binder(graph, options).Bind(files);
}

absl::Status CheckValues(const BoundInput& bound, int64_t first_row,
                         const std::vector<double>& values) {
  const ValueRange& range = bound.input.range;
  // Nearly always all are good: a loop without a way out takes several at a time.
  const bool may_have_fractions =
      range.is_integer && bound.records->number_kind() != NumberKind::kInteger;
  bool is_good = !may_have_fractions;
  for (double value : values) is_good &= (value >= range.least) & (value <= range.most);
  if (is_good) return absl::OkStatus();
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    // False of NaN, too.
    const bool is_in_range = value >= range.least && value <= range.most;
    if (is_in_range && (!range.is_integer || value == std::floor(value))) continue;
    const int64_t per_row = bound.records->row_elements();
    const int64_t at = static_cast<int64_t>(i);
    const bool is_any_finite = range.most == std::numeric_limits<float>::max();
    return absl::InvalidArgumentError(absl::StrCat(
        bound.records->Place(first_row + at / per_row, at % per_row), " is ", value,
        ", and input '", bound.input.name, "' takes ",
        is_any_finite
            ? std::string("finite numbers of float32")
            : absl::StrFormat("%s from %.17g to %.17g", range.is_integer ? "integers" : "numbers",
                              range.least, range.most)));
  }
  return absl::OkStatus();
}

}  // namespace isomer
