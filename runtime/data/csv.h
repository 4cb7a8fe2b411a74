#ifndef ISOMER_RUNTIME_DATA_CSV_H_
#define ISOMER_RUNTIME_DATA_CSV_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/data/data_file.h"
#include "runtime/data/records.h"

namespace isomer {

// Numbers as text (RFC 4180): a row a line, cells apart by commas, or by tabs or semicolons where
// the first line has no comma; cells may stand in quotes. A first line in which no cell is a number
// (or only those that count the columns, as pandas writes them) has their names. Empty lines are
// passed over. Of the file only the place of every 16th row is kept; rows are parsed when they are
// read.
class CsvTable {
 public:
  // Errors name file and line: "digits.csv:17: 64 cells, but line 1 has 65".
  static absl::StatusOr<std::shared_ptr<const CsvTable>> Open(std::shared_ptr<const DataFile> file);

  int64_t rows() const { return rows_; }
  int64_t num_columns() const { return num_columns_; }
  // Empty without a line of names.
  const std::vector<std::string>& column_names() const { return names_; }
  // The column of this name; or, for "", the first of 'label', 'labels', 'target', 'class' and 'y'
  // that there is, or the last. Errors list the names.
  absl::StatusOr<int64_t> LabelColumn(const std::string& name) const;

  const DataFile& file() const { return *file_; }
  // Numbers of these columns, in [first, first + count). Errors: "d.csv:17: cell 3 'abc' is not a
  // number".
  absl::Status Read(int64_t first, int64_t count, const std::vector<int64_t>& columns,
                    double* values) const;
  // The number of the line of a row.
  int64_t LineOf(int64_t row) const;

 private:
  struct Mark {
    int64_t offset, line;
  };

  explicit CsvTable(std::shared_ptr<const DataFile> file) : file_(std::move(file)) {}
  absl::Status ReadIndex();

  std::shared_ptr<const DataFile> file_;
  char separator_ = ',';
  int64_t rows_ = 0, num_columns_ = 0;
  std::vector<std::string> names_;
  std::vector<Mark> marks_;  // of rows 0, 16, 32, ..
};

// Some columns of a table; row_shape() is [columns], or [] for `is_scalar` of one column.
class CsvRecords : public Records {
 public:
  CsvRecords(std::shared_ptr<const CsvTable> table, std::vector<int64_t> columns, bool is_scalar);

  absl::Status Read(int64_t first, int64_t count, double* values) const override;
  std::string Place(int64_t row, int64_t element) const override;
  const DataFile& file() const override { return table_->file(); }
  uint64_t fingerprint() const override;
  std::string ToString() const override;

 private:
  std::shared_ptr<const CsvTable> table_;
  std::vector<int64_t> columns_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DATA_CSV_H_
