#ifndef ISOMER_RUNTIME_EXECUTION_FEEDER_H_
#define ISOMER_RUNTIME_EXECUTION_FEEDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/graph.h"
#include "runtime/execution/host_values.h"
#include "runtime/execution/job.h"

namespace isomer {

// Rows of features with a label each. The memory belongs to somebody else.
struct LabelledRows {
  int64_t num_features = 0;
  absl::Span<const float> features;  // by rows
  absl::Span<const int64_t> labels;

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

// Where the inputs of a step come from: random numbers, or the rows of a data set for the first
// float input and the first integer one (the labels).
class Feeder {
 public:
  // Step s gets the random inputs of seed + s. REQUIRES: `graph` outlives the feeder.
  Feeder(const Graph& graph, uint64_t seed) : graph_(&graph), seed_(seed) {}

  // Steps take the training rows in order; a last batch that is not full is left out. Inputs that
  // the rows have no values for stay those of the seed. Errors begin with `source` and say which
  // input does not fit the rows.
  static absl::StatusOr<Feeder> OverRows(const Graph& graph, uint64_t seed,
                                         const std::string& source, LabelledRows train,
                                         LabelledRows test);

  bool has_rows() const { return train_.size() > 0; }
  // REQUIRES: has_rows().
  int64_t batches_per_epoch() const { return train_.size() / batch_; }

  HostValues Batch(int64_t step) const;
  // Equal for feeders that give the same batches, as far as is cheap to say.
  std::string Fingerprint() const;

  // The part of the test rows that the graph's first output, [batch, classes], classifies as their
  // label says. REQUIRES: has_rows().
  absl::StatusOr<double> TestAccuracy(Job* job) const;

 private:
  absl::Status FindInputs(const std::string& source);
  // `inputs` with `batch_` rows from `first` on; after the last comes the first again.
  HostValues RowsFrom(const LabelledRows& rows, int64_t first, HostValues inputs) const;

  const Graph* graph_;
  uint64_t seed_;
  LabelledRows train_, test_;
  int64_t batch_ = 1;
  std::string features_, labels_;  // names of inputs
  std::vector<int64_t> features_shape_, labels_shape_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_FEEDER_H_
