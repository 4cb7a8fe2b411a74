#include "runtime/data/row_split.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace isomer {
namespace {

constexpr int64_t kEveryFifth = 5;

}  // namespace

absl::StatusOr<RowSplit> RowSplit::Parse(const std::string& text, int64_t rows) {
  if (text == "every_fifth") return RowSplit(rows, rows / kEveryFifth, /*is_tail=*/false);
  if (text == "none") return RowSplit(rows, 0, /*is_tail=*/true);
  absl::string_view tail = text;
  int64_t test_rows = 0;
  if (absl::ConsumePrefix(&tail, "tail:") && absl::SimpleAtoi(tail, &test_rows) && test_rows >= 0 &&
      test_rows <= rows) {
    return RowSplit(rows, test_rows, /*is_tail=*/true);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--test_split=", text, ": every_fifth is expected, none, or tail:N with N rows or fewer"));
}

bool RowSplit::IsTest(int64_t row) const {
  return is_tail_ ? row >= train_rows() : row % kEveryFifth == kEveryFifth - 1;
}

int64_t RowSplit::TrainRow(int64_t index) const {
  constexpr int64_t kTrained = kEveryFifth - 1;
  return is_tail_ ? index : index / kTrained * kEveryFifth + index % kTrained;
}

int64_t RowSplit::TestRow(int64_t index) const {
  return is_tail_ ? train_rows() + index : index * kEveryFifth + kEveryFifth - 1;
}

}  // namespace isomer
