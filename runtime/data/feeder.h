#ifndef ISOMER_RUNTIME_DATA_FEEDER_H_
#define ISOMER_RUNTIME_DATA_FEEDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "runtime/data/input_binding.h"
#include "runtime/data/read_ahead.h"
#include "runtime/data/row_split.h"
#include "runtime/execution/host_values.h"

namespace isomer {

struct DataOptions {
  std::vector<std::string> files = {};       // see BindData; none: random inputs
  std::vector<std::string> eval_files = {};  // likewise, of rows that test
  OpenOptions open = {};
  // Of the values of float inputs that are no labels; 0: 1 for files of floats; for text and
  // integers one over the largest in the training rows.
  double scale = 0;
  std::string test_split = "every_fifth";  // of `files`, unless there are eval_files
  bool shuffle = true;
  // Whether all values are looked at before the first step.
  bool scan = true;
  uint64_t seed = 1;
};

// Where the inputs of a step come from: random numbers, or rows of files.
//
// The batch of step s is a function of the files, the seed and s, and of nothing else: who goes on
// at step s of a training needs to know no more. In epoch e, steps [e * n, (e + 1) * n) for the n =
// floor(training rows / batch) whole batches, row i of the epoch is training row p(i), p being the
// permutation that seed and e draw (permutation.h), or i without shuffling; the rows of a last
// batch that is not whole are left out, with shuffling others in each epoch.
class Feeder {
 public:
  // Step s gets the random inputs of seed + s. REQUIRES: `graph` outlives the feeder.
  Feeder(const Graph& graph, uint64_t seed);
  // The same of what is not from files, such as the seed of a dropout's mask. Errors name the file
  // and the row, or the input and its dim.
  static absl::StatusOr<Feeder> OverFiles(const Graph& graph, const DataOptions& options);

  bool has_rows() const { return data_->train.has_value(); }
  // REQUIRES: has_rows().
  int64_t batches_per_epoch() const { return data_->split->train_rows() / data_->train->batch; }
  int64_t batch() const { return data_->train->batch; }
  int64_t test_rows() const;
  // Of all that batches depend on: sizes, beginnings and ends of the files, in the order of inputs;
  // shapes, types, scale; the seed, the split and whether rows are shuffled.
  uint64_t fingerprint() const;
  // All files that are read.
  std::vector<std::string> files() const;
  // For people, a line for each input, and one about rows.
  std::vector<std::string> ToLines() const;

  // Read ahead in a thread when steps are asked for in order. Errors are those of reading; of
  // values, too, where they were not scanned.
  absl::StatusOr<HostValues> Batch(int64_t step) const;
  // How long each Batch() waited for rows, in microseconds; empty without rows.
  std::vector<double> waits_us() const;
  // Their sum.
  double total_wait_us() const { return ahead_ == nullptr ? 0 : ahead_->total_wait_us(); }

  // The rows [first, first + count) of those that test; what is left of the batch are copies of row
  // `first`. REQUIRES: they are there, and no more than a batch.
  absl::StatusOr<HostValues> TestBatch(int64_t first, int64_t count) const;

 private:
  struct Data {
    const Graph* graph;
    uint64_t seed;
    bool shuffle = false;
    std::string test_split = "none";
    std::set<std::string> fed = {};
    std::optional<BoundData> train = std::nullopt, eval = std::nullopt;
    std::optional<RowSplit> split = std::nullopt;

    absl::StatusOr<HostValues> TrainBatch(int64_t step) const;
    absl::StatusOr<HostValues> TestBatch(int64_t first, int64_t count) const;
    // `inputs` with these rows of `data`.
    absl::StatusOr<HostValues> WithRows(const BoundData& data, const std::vector<int64_t>& rows,
                                        HostValues inputs) const;
    absl::Status Prepare(const DataOptions& options);
    absl::Status SetScale(double scale, bool scan);
  };

  explicit Feeder(std::shared_ptr<const Data> data);

  // Kept in one place: the thread that reads ahead has its address.
  std::shared_ptr<const Data> data_;
  std::unique_ptr<ReadAhead> ahead_;  // null without rows
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DATA_FEEDER_H_
