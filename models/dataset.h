// Tables of numbers to train and test on.
#ifndef ISOMER_MODELS_DATASET_H_
#define ISOMER_MODELS_DATASET_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace isomer {

struct Dataset {
  int64_t num_features = 0;
  std::vector<float> features;  // num_rows() x num_features, by rows
  std::vector<int64_t> labels;  // one per row

  int64_t num_rows() const { return static_cast<int64_t>(labels.size()); }
  absl::Span<const float> row(int64_t r) const {
    return absl::MakeConstSpan(features).subspan(r * num_features, num_features);
  }
  // The largest label plus one; 0 without rows.
  int64_t num_classes() const;
};

// Comma-separated numbers without a head line: the features, then the label, an integer >= 0.
// Features are multiplied by `feature_scale` (1/16 takes the digits to [0, 1]). Empty lines are
// passed over. Errors name file and line, and the cell where it is one:
//   "digits.csv:17: 64 cells, but line 1 has 65"
//   "digits.csv:17: cell 3 'abc' is not a number"
absl::StatusOr<Dataset> ReadCsv(const std::string& path, double feature_scale = 1);
// The same on the contents of a file; `name` is what errors call it.
absl::StatusOr<Dataset> ParseCsv(absl::string_view contents, const std::string& name,
                                 double feature_scale = 1);

struct TrainTest {
  Dataset train;
  Dataset test;
};
// Rows 4, 9, 14, ... test, the others train. Where a file runs from writer to writer, as the digits
// do, every writer of the test set was trained on.
TrainTest SplitEveryFifth(const Dataset& data);
// The last `test_rows` rows test. REQUIRES: 0 <= test_rows <= data.num_rows().
TrainTest SplitTail(const Dataset& data, int64_t test_rows);

}  // namespace isomer

#endif  // ISOMER_MODELS_DATASET_H_
