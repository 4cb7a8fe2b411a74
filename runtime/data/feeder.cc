#include "runtime/data/feeder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/digest.h"
#include "pcg/support/status_macros.h"
#include "runtime/data/permutation.h"
#include "runtime/device/elements.h"

namespace isomer {
namespace {

// One is used while the next is read; a second bridges a slow read.
constexpr int64_t kBatchesAhead = 2;

bool IsScaled(const BoundInput& bound) {
  return IsFloat(bound.input.type.dtype) && !bound.input.is_label;
}

// Whether the largest value in the training rows says how it is scaled.
bool ScalesItself(const BoundInput& bound) {
  return IsScaled(bound) && bound.records->number_kind() != NumberKind::kFloat;
}

// Looks at the values of rows from `first` on. `largest`: the largest magnitude in the training
// rows.
absl::Status ScanRows(const BoundInput& bound, const RowSplit& split, int64_t first,
                      double* largest) {
  constexpr int64_t kElementsAtOnce = int64_t{1} << 18;
  const Records& records = *bound.records;
  const int64_t per_row = records.row_elements();
  const int64_t at_once = std::max<int64_t>(1, kElementsAtOnce / per_row);
  std::vector<double> values;
  for (; first < records.rows(); first += at_once) {
    const int64_t count = std::min(at_once, records.rows() - first);
    values.resize(count * per_row);
    ISOMER_RETURN_IF_ERROR(records.Read(first, count, values.data()));
    ISOMER_RETURN_IF_ERROR(CheckValues(bound, first, values));
    if (!ScalesItself(bound)) continue;
    for (int64_t row = 0; row < count; ++row) {
      if (split.IsTest(first + row)) continue;
      for (int64_t i = row * per_row; i < (row + 1) * per_row; ++i) {
        *largest = std::max(*largest, std::abs(values[i]));
      }
    }
  }
  return absl::OkStatus();
}

// The rows that must be looked at begin here: next tokens are those of the other input, which takes
// no more than they do, but for the last one.
int64_t FirstToScan(const BoundData& data, const BoundInput& bound) {
  const bool is_seen =
      bound.is_next_token &&
      std::all_of(data.inputs.begin(), data.inputs.end(), [&](const BoundInput& other) {
        return other.input.range.most <= bound.input.range.most;
      });
  return is_seen ? data.rows - 1 : 0;
}

absl::Status CheckRows(const BoundData& data, int64_t rows, absl::string_view what) {
  if (rows >= data.batch) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(data.inputs[0].records->file().path(), ": ", rows,
                                                 " ", what, " rows are fewer than one batch of ",
                                                 data.batch));
}

}  // namespace

Feeder::Feeder(const Graph& graph, uint64_t seed)
    : data_(std::make_shared<Data>(Data{.graph = &graph, .seed = seed})) {}

Feeder::Feeder(std::shared_ptr<const Data> data)
    : data_(std::move(data)),
      ahead_(std::make_unique<ReadAhead>(
          [data = data_](int64_t step) { return data->TrainBatch(step); }, kBatchesAhead)) {}

absl::StatusOr<Feeder> Feeder::OverFiles(const Graph& graph, const DataOptions& options) {
  if (options.files.empty()) return Feeder(graph, options.seed);
  auto data = std::make_shared<Data>(Data{.graph = &graph, .seed = options.seed});
  ISOMER_RETURN_IF_ERROR(data->Prepare(options));
  return Feeder(std::move(data));
}

absl::Status Feeder::Data::Prepare(const DataOptions& options) {
  shuffle = options.shuffle;
  ISOMER_ASSIGN_OR_RETURN(train, BindData(*graph, options.files, options.open));
  if (options.eval_files.empty()) {
    test_split = options.test_split;
  } else {
    ISOMER_ASSIGN_OR_RETURN(eval, BindData(*graph, options.eval_files, options.open));
  }
  ISOMER_ASSIGN_OR_RETURN(split, RowSplit::Parse(test_split, train->rows));
  ISOMER_RETURN_IF_ERROR(CheckRows(*train, split->train_rows(), "training"));
  for (const BoundInput& bound : train->inputs) fed.insert(bound.name());
  return SetScale(options.scale, options.scan);
}

// Networks are initialised for features of about unit size. Rows that test have no say in it.
absl::Status Feeder::Data::SetScale(double scale, bool scan) {
  const bool any = std::any_of(train->inputs.begin(), train->inputs.end(), IsScaled);
  if (scale != 0 && !any) {
    return absl::InvalidArgumentError("--data_scale is for float inputs; the model has none");
  }
  for (size_t i = 0; i < train->inputs.size(); ++i) {
    BoundInput& bound = train->inputs[i];
    double largest = 0;
    if (scan) {
      ISOMER_RETURN_IF_ERROR(ScanRows(bound, *split, FirstToScan(*train, bound), &largest));
    } else if (scale == 0 && ScalesItself(bound)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--noscan_data needs --data_scale for the numbers of ", bound.records->file().path()));
    }
    if (scale != 0 && IsScaled(bound)) bound.factor = scale;
    if (scale == 0 && largest > 0) bound.factor = 1 / largest;
    if (!eval.has_value()) continue;
    if (scan) {
      double ignored = 0;
      const RowSplit all = *RowSplit::Parse("none", eval->rows);
      ISOMER_RETURN_IF_ERROR(
          ScanRows(eval->inputs[i], all, FirstToScan(*eval, eval->inputs[i]), &ignored));
    }
    eval->inputs[i].factor = bound.factor;
  }
  return absl::OkStatus();
}

absl::StatusOr<HostValues> Feeder::Data::WithRows(const BoundData& data,
                                                  const std::vector<int64_t>& rows,
                                                  HostValues inputs) const {
  for (const BoundInput& bound : data.inputs) {
    Array<double> array(bound.input.type.Sizes());
    const int64_t per_row = bound.records->row_elements();
    std::vector<double> values;
    for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
      // Rows that follow each other are read at once.
      for (end = begin + 1; end < rows.size() && rows[end] == rows[end - 1] + 1;) ++end;
      const int64_t count = static_cast<int64_t>(end - begin);
      values.resize(count * per_row);
      ISOMER_RETURN_IF_ERROR(bound.records->Read(rows[begin], count, values.data()));
      ISOMER_RETURN_IF_ERROR(CheckValues(bound, rows[begin], values));
      std::transform(values.begin(), values.end(),
                     array.data.begin() + static_cast<int64_t>(begin) * per_row,
                     [&](double value) { return value * bound.factor; });
    }
    RoundElements(bound.input.type.dtype, array.data.data(), array.size());
    inputs[bound.name()] = std::move(array);
  }
  return inputs;
}

absl::StatusOr<HostValues> Feeder::Data::TrainBatch(int64_t step) const {
  const int64_t per_epoch = split->train_rows() / train->batch;
  const int64_t epoch = step / per_epoch, first = step % per_epoch * train->batch;
  const Permutation permutation(split->train_rows(), HashCombine(seed, epoch));
  std::vector<int64_t> rows(train->batch);
  for (int64_t b = 0; b < train->batch; ++b) {
    rows[b] = split->TrainRow(shuffle ? permutation(first + b) : first + b);
  }
  return WithRows(*train, rows, RandomInputs(*graph, seed + static_cast<uint64_t>(step), fed));
}

absl::StatusOr<HostValues> Feeder::Data::TestBatch(int64_t first, int64_t count) const {
  const BoundData& data = eval.has_value() ? *eval : *train;
  std::vector<int64_t> rows(data.batch);
  for (int64_t b = 0; b < data.batch; ++b) {
    const int64_t row = first + (b < count ? b : 0);
    rows[b] = eval.has_value() ? row : split->TestRow(row);
  }
  return WithRows(data, rows, RandomInputs(*graph, seed, fed));
}

int64_t Feeder::test_rows() const {
  if (!has_rows()) return 0;
  return data_->eval.has_value() ? data_->eval->rows : data_->split->test_rows();
}

uint64_t Feeder::fingerprint() const {
  Digest digest;
  digest.Add(data_->seed);
  if (!has_rows()) return digest.value();
  digest.Add(data_->shuffle, data_->test_split, data_->train->batch, data_->train->rows);
  for (const BoundInput& bound : data_->train->inputs) {
    digest.Add(bound.name(), bound.input.type.dtype, bound.input.type.Sizes(),
               bound.records->fingerprint(), bound.factor);
  }
  return digest.value();
}

std::vector<std::string> Feeder::files() const {
  std::set<std::string> files;
  for (const auto* data : {&data_->train, &data_->eval}) {
    if (!data->has_value()) continue;
    for (const BoundInput& bound : (*data)->inputs) {
      for (const std::string& path : bound.records->paths()) files.insert(path);
    }
  }
  return {files.begin(), files.end()};
}

std::vector<std::string> Feeder::ToLines() const {
  std::vector<std::string> lines;
  if (!has_rows()) return lines;
  for (const BoundInput& bound : data_->train->inputs) {
    lines.push_back(absl::StrCat("input '", bound.name(), "' ", bound.input.type.ToString(), ": ",
                                 bound.records->ToString(), " of ", bound.records->file().path(),
                                 bound.factor == 1 ? "" : absl::StrCat(", times ", bound.factor)));
  }
  lines.push_back(absl::StrCat(data_->split->train_rows(), " rows train",
                               data_->shuffle ? ", shuffled" : ", in order", "; ", test_rows(),
                               data_->eval.has_value() ? " of --eval_data" : "", " test"));
  return lines;
}

absl::StatusOr<HostValues> Feeder::Batch(int64_t step) const {
  // What is not from a row, such as the seed of a dropout's mask, is another in each step.
  if (ahead_ == nullptr) {
    return RandomInputs(*data_->graph, data_->seed + static_cast<uint64_t>(step));
  }
  return ahead_->Take(step);
}

std::vector<double> Feeder::waits_us() const {
  return ahead_ == nullptr ? std::vector<double>() : ahead_->waits_us();
}

absl::StatusOr<HostValues> Feeder::TestBatch(int64_t first, int64_t count) const {
  return data_->TestBatch(first, count);
}

}  // namespace isomer
