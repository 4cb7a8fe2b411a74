#ifndef ISOMER_RUNTIME_DATA_ROW_SPLIT_H_
#define ISOMER_RUNTIME_DATA_ROW_SPLIT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace isomer {

// Which rows of a file train, and which test.
class RowSplit {
 public:
  // "every_fifth": rows 4, 9, 14, .. test. Where a file runs from writer to writer, as the digits
  // do, every writer of the test rows was trained on. "tail:N": the last N rows test. "none".
  static absl::StatusOr<RowSplit> Parse(const std::string& text, int64_t rows);

  int64_t train_rows() const { return rows_ - test_rows_; }
  int64_t test_rows() const { return test_rows_; }
  bool IsTest(int64_t row) const;
  // The row of the file. REQUIRES: below train_rows(), or test_rows().
  int64_t TrainRow(int64_t index) const;
  int64_t TestRow(int64_t index) const;

 private:
  RowSplit(int64_t rows, int64_t test_rows, bool is_tail)
      : rows_(rows), test_rows_(test_rows), is_tail_(is_tail) {}

  int64_t rows_, test_rows_;
  bool is_tail_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DATA_ROW_SPLIT_H_
