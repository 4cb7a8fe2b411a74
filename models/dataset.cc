#include "models/dataset.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "pcg/support/check.h"
#include "pcg/support/file.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// A cell as messages show it: short, and on one line whatever it holds.
std::string CellText(absl::string_view cell) {
  constexpr size_t kShown = 32;
  return absl::StrCat("'", absl::CHexEscape(cell.substr(0, kShown)),
                      cell.size() > kShown ? "..." : "", "'");
}

// Appends the cells of one line to `data`; the error does not yet name file and line.
absl::Status AppendRow(const std::vector<absl::string_view>& cells, double feature_scale,
                       Dataset* data) {
  for (size_t c = 0; c + 1 < cells.size(); ++c) {
    double value;
    if (!absl::SimpleAtod(cells[c], &value) || !std::isfinite(value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("cell ", c + 1, " ", CellText(cells[c]), " is not a number"));
    }
    data->features.push_back(static_cast<float>(value * feature_scale));
  }
  int64_t label;
  if (!absl::SimpleAtoi(cells.back(), &label) || label < 0) {
    return absl::InvalidArgumentError(absl::StrCat("cell ", cells.size(), " ",
                                                   CellText(cells.back()),
                                                   " is not a label, an integer from 0 on"));
  }
  data->labels.push_back(label);
  return absl::OkStatus();
}

void CopyRow(const Dataset& from, int64_t row, Dataset* to) {
  const absl::Span<const float> features = from.row(row);
  to->features.insert(to->features.end(), features.begin(), features.end());
  to->labels.push_back(from.labels[row]);
}

template <typename IsTest>
TrainTest Split(const Dataset& data, IsTest is_test) {
  TrainTest split;
  split.train.num_features = split.test.num_features = data.num_features;
  for (int64_t r = 0; r < data.num_rows(); ++r) {
    CopyRow(data, r, is_test(r) ? &split.test : &split.train);
  }
  return split;
}

}  // namespace

int64_t Dataset::num_classes() const {
  return labels.empty() ? 0 : *std::max_element(labels.begin(), labels.end()) + 1;
}

absl::StatusOr<Dataset> ParseCsv(absl::string_view contents, const std::string& name,
                                 double feature_scale) {
  Dataset data;
  int line_number = 0, first_line = 0;
  for (absl::string_view line : absl::StrSplit(contents, '\n')) {
    ++line_number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    std::vector<absl::string_view> cells = absl::StrSplit(line, ',');
    for (absl::string_view& cell : cells) cell = absl::StripAsciiWhitespace(cell);
    const int64_t num_cells = static_cast<int64_t>(cells.size());
    auto in_line = [&](absl::string_view message) {
      return absl::InvalidArgumentError(absl::StrCat(name, ":", line_number, ": ", message));
    };
    if (first_line == 0) {
      if (num_cells < 2) {
        return in_line(absl::StrCat("one cell ", CellText(cells[0]),
                                    "; features and a label are expected, separated by commas"));
      }
      first_line = line_number;
      data.num_features = num_cells - 1;
    }
    if (num_cells != data.num_features + 1) {
      return in_line(
          absl::StrCat(num_cells, " cells, but line ", first_line, " has ", data.num_features + 1));
    }
    if (absl::Status status = AppendRow(cells, feature_scale, &data); !status.ok()) {
      return in_line(status.message());
    }
  }
  if (first_line == 0) return absl::InvalidArgumentError(absl::StrCat(name, ": has no rows"));
  return data;
}

absl::StatusOr<Dataset> ReadCsv(const std::string& path, double feature_scale) {
  ISOMER_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  return ParseCsv(contents, path, feature_scale);
}

TrainTest SplitEveryFifth(const Dataset& data) {
  return Split(data, [](int64_t row) { return row % 5 == 4; });
}

TrainTest SplitTail(const Dataset& data, int64_t test_rows) {
  ISOMER_CHECK(test_rows >= 0 && test_rows <= data.num_rows());
  return Split(data, [&](int64_t row) { return row >= data.num_rows() - test_rows; });
}

}  // namespace isomer
