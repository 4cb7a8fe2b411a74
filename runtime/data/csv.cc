#include "runtime/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "pcg/support/digest.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr int64_t kRowsPerMark = 16;
constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

// A cell as messages show it: short, and on one line whatever it holds.
std::string CellText(absl::string_view cell) {
  constexpr size_t kShown = 32;
  return absl::StrCat("'", absl::CHexEscape(cell.substr(0, kShown)),
                      cell.size() > kShown ? "..." : "", "'");
}

std::optional<double> NumberOf(absl::string_view cell) {
  absl::ConsumePrefix(&cell, "+");
  double value = 0;
  const char* const end = cell.data() + cell.size();
  const auto [at, error] = std::from_chars(cell.data(), end, value);
  if (error != std::errc() || at != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

// Without spaces and quotes around them.
void SplitCells(absl::string_view line, char separator, std::vector<absl::string_view>* cells) {
  cells->clear();
  size_t begin = 0;
  bool is_quoted = false;
  for (size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"') is_quoted = !is_quoted;
    if (i < line.size() && (line[i] != separator || is_quoted)) continue;
    absl::string_view cell = absl::StripAsciiWhitespace(line.substr(begin, i - begin));
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') {
      cell = absl::StripAsciiWhitespace(cell.substr(1, cell.size() - 2));
    }
    cells->push_back(cell);
    begin = i + 1;
  }
}

// Lines that are not empty, from a place in the file on.
class LineReader {
 public:
  LineReader(const DataFile* file, int64_t offset, int64_t line)
      : file_(file), next_read_(offset), next_line_(line) {}

  // Nothing at the end of the file. The line is good until the next call.
  absl::StatusOr<std::optional<absl::string_view>> Next() {
    while (true) {
      const size_t end = buffer_.find('\n', begin_ + searched_);
      if (end == buffer_.npos && next_read_ < file_->size()) {
        ISOMER_RETURN_IF_ERROR(ReadMore());
        continue;
      }
      if (end == buffer_.npos && begin_ == buffer_.size()) return std::nullopt;
      const absl::string_view whole =
          absl::string_view(buffer_).substr(begin_, std::min(end, buffer_.size()) - begin_);
      offset_ = next_read_ - static_cast<int64_t>(buffer_.size() - begin_);
      line_ = next_line_++;
      begin_ = std::min(buffer_.size(), begin_ + whole.size() + 1);
      searched_ = 0;
      const absl::string_view text = absl::StripAsciiWhitespace(whole);
      if (!text.empty()) return std::optional<absl::string_view>(text);
    }
  }

  // Of the last line: its number, from 1, and where it begins.
  int64_t line() const { return line_; }
  int64_t offset() const { return offset_; }

 private:
  absl::Status ReadMore() {
    constexpr int64_t kFirstRead = int64_t{16} << 10, kMostRead = int64_t{1} << 20;
    constexpr size_t kLongestLine = size_t{64} << 20;
    searched_ = buffer_.size() - begin_;
    if (searched_ > kLongestLine) {
      return file_->Error(absl::StrCat("line ", next_line_, " is longer than 64 MiB"));
    }
    read_bytes_ = std::min(std::max(kFirstRead, 2 * read_bytes_), kMostRead);
    ISOMER_ASSIGN_OR_RETURN(const std::string more, file_->ReadSome(next_read_, read_bytes_));
    next_read_ += static_cast<int64_t>(more.size());
    buffer_.erase(0, begin_);
    buffer_ += more;
    begin_ = 0;
    return absl::OkStatus();
  }

  const DataFile* file_;
  std::string buffer_;
  size_t begin_ = 0, searched_ = 0;  // of the next line; how much of it has no end
  int64_t next_read_, next_line_, read_bytes_ = 0;
  int64_t line_ = 0, offset_ = 0;
};

// Names, if no cell is a number but those that say which column it is.
bool IsLineOfNames(const std::vector<absl::string_view>& cells) {
  bool has_name = false;
  for (size_t c = 0; c < cells.size(); ++c) {
    const std::optional<double> number = NumberOf(cells[c]);
    double ignored;
    if (!number.has_value() && absl::SimpleAtod(cells[c], &ignored)) return false;  // nan, inf
    if (number.has_value() && *number != static_cast<double>(c)) return false;
    has_name |= !number.has_value();
  }
  return has_name;
}

absl::Status LineError(const DataFile& file, int64_t line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(file.path(), ":", line, ": ", what));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const CsvTable>> CsvTable::Open(
    std::shared_ptr<const DataFile> file) {
  const std::shared_ptr<CsvTable> table(new CsvTable(std::move(file)));
  ISOMER_RETURN_IF_ERROR(table->ReadIndex());
  return std::shared_ptr<const CsvTable>(table);
}

absl::Status CsvTable::ReadIndex() {
  ISOMER_ASSIGN_OR_RETURN(const std::string head,
                          file_->ReadSome(0, static_cast<int64_t>(kByteOrderMark.size())));
  LineReader reader(file_.get(),
                    head == kByteOrderMark ? static_cast<int64_t>(head.size()) : int64_t{0},
                    /*line=*/1);
  std::vector<absl::string_view> cells;
  int64_t first_line = 0;
  while (true) {
    ISOMER_ASSIGN_OR_RETURN(const std::optional<absl::string_view> line, reader.Next());
    if (!line.has_value()) break;
    if (first_line == 0) {
      first_line = reader.line();
      // The last is that of lines of one cell, too.
      for (char separator : {',', '\t', ';', ','}) {
        separator_ = separator;
        SplitCells(*line, separator, &cells);
        if (cells.size() > 1) break;
      }
      num_columns_ = static_cast<int64_t>(cells.size());
      if (IsLineOfNames(cells)) {
        for (absl::string_view cell : cells) names_.emplace_back(cell);
        continue;
      }
    }
    SplitCells(*line, separator_, &cells);
    if (static_cast<int64_t>(cells.size()) != num_columns_) {
      return LineError(
          *file_, reader.line(),
          absl::StrCat(cells.size(), " cells, but line ", first_line, " has ", num_columns_));
    }
    if (rows_ % kRowsPerMark == 0) marks_.push_back({reader.offset(), reader.line()});
    ++rows_;
  }
  return rows_ == 0 ? file_->Error("has no rows") : absl::OkStatus();
}

absl::StatusOr<int64_t> CsvTable::LabelColumn(const std::string& name) const {
  const auto find = [&](absl::string_view wanted) -> std::optional<int64_t> {
    const auto found = std::find(names_.begin(), names_.end(), wanted);
    if (found == names_.end()) return std::nullopt;
    return found - names_.begin();
  };
  if (name.empty()) {
    for (absl::string_view usual : {"label", "labels", "target", "class", "y"}) {
      if (const auto column = find(usual); column.has_value()) return *column;
    }
    return num_columns_ - 1;
  }
  if (const auto column = find(name); column.has_value()) return *column;
  if (names_.empty()) {
    return file_->Error(
        absl::StrCat("no column '", name, "': its first line has numbers and no names"));
  }
  constexpr size_t kShown = 8;
  std::vector<std::string> shown;
  for (size_t c = 0; c < std::min(kShown, names_.size()); ++c) {
    shown.push_back(CellText(names_[c]));
  }
  if (names_.size() > kShown) shown.push_back("..");
  return file_->Error(
      absl::StrCat("no column '", name, "'; there are ", absl::StrJoin(shown, ", ")));
}

absl::Status CsvTable::Read(int64_t first, int64_t count, const std::vector<int64_t>& columns,
                            double* values) const {
  const Mark& mark = marks_[first / kRowsPerMark];
  LineReader reader(file_.get(), mark.offset, mark.line);
  std::vector<absl::string_view> cells;
  for (int64_t row = first / kRowsPerMark * kRowsPerMark; row < first + count; ++row) {
    ISOMER_ASSIGN_OR_RETURN(const std::optional<absl::string_view> line, reader.Next());
    if (line.has_value() && row < first) continue;
    if (line.has_value()) SplitCells(*line, separator_, &cells);
    if (!line.has_value() || static_cast<int64_t>(cells.size()) != num_columns_) {
      return file_->Error(absl::StrCat("row ", row, " is no longer what it was"));
    }
    for (int64_t column : columns) {
      const std::optional<double> number = NumberOf(cells[column]);
      if (!number.has_value()) {
        return LineError(
            *file_, reader.line(),
            absl::StrCat("cell ", column + 1, " ", CellText(cells[column]), " is not a number"));
      }
      *values++ = *number;
    }
  }
  return absl::OkStatus();
}

int64_t CsvTable::LineOf(int64_t row) const {
  const Mark& mark = marks_[row / kRowsPerMark];
  LineReader reader(file_.get(), mark.offset, mark.line);
  for (int64_t r = row / kRowsPerMark * kRowsPerMark; r <= row; ++r) {
    if (!reader.Next().ok()) break;
  }
  return reader.line();
}

CsvRecords::CsvRecords(std::shared_ptr<const CsvTable> table, std::vector<int64_t> columns,
                       bool is_scalar)
    : Records(table->rows(),
              is_scalar ? std::vector<int64_t>()
                        : std::vector<int64_t>{static_cast<int64_t>(columns.size())},
              NumberKind::kText),
      table_(std::move(table)),
      columns_(std::move(columns)) {}

absl::Status CsvRecords::Read(int64_t first, int64_t count, double* values) const {
  return table_->Read(first, count, columns_, values);
}

std::string CsvRecords::Place(int64_t row, int64_t element) const {
  return absl::StrCat(file().path(), ":", table_->LineOf(row), ": cell ", columns_[element] + 1);
}

uint64_t CsvRecords::fingerprint() const {
  return Digest().Add(file().fingerprint(), rows(), columns_).value();
}

std::string CsvRecords::ToString() const {
  return absl::StrCat(rows(), " rows of ", columns_.size(),
                      columns_.size() == 1 ? " column" : " columns");
}

}  // namespace isomer
