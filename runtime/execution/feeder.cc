#include "runtime/execution/feeder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"

namespace isomer {

absl::Status Feeder::FindInputs(const std::string& source) {
  for (int id = 0; id < graph_->num_nodes(); ++id) {
    const Node& node = graph_->node(id);
    if (node.op.kind() != OpKind::kInput || node.outputs[0].rank() == 0) continue;
    const bool is_float = IsFloat(node.outputs[0].dtype);
    if (!is_float && !IsInteger(node.outputs[0].dtype)) continue;
    std::string& name = is_float ? features_ : labels_;
    if (!name.empty()) continue;
    name = node.name;
    (is_float ? features_shape_ : labels_shape_) = node.outputs[0].Sizes();
  }
  if (features_.empty() || labels_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": the model needs a float input and an integer one for labels"));
  }
  batch_ = features_shape_[0];
  int64_t per_row = 1;
  for (size_t i = 1; i < features_shape_.size(); ++i) per_row *= features_shape_[i];
  if (per_row != train_.num_features) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": rows of ", train_.num_features,
                                                   " features; input '", features_, "' takes ",
                                                   per_row));
  }
  if (labels_shape_ != std::vector<int64_t>{batch_}) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": input '", labels_, "' does not take one label per row"));
  }
  if (train_.size() < batch_) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": ", train_.size(), " training rows are fewer than one batch of ", batch_));
  }
  return absl::OkStatus();
}

absl::StatusOr<Feeder> Feeder::OverRows(const Graph& graph, uint64_t seed,
                                        const std::string& source, LabelledRows train,
                                        LabelledRows test) {
  Feeder feeder(graph, seed);
  feeder.train_ = train;
  feeder.test_ = test;
  ISOMER_RETURN_IF_ERROR(feeder.FindInputs(source));
  return feeder;
}

HostValues Feeder::Batch(int64_t step) const {
  // What is not from a row, such as the seed of a dropout's mask, is another in each step.
  HostValues inputs = RandomInputs(*graph_, seed_ + static_cast<uint64_t>(step));
  if (!has_rows()) return inputs;
  return RowsFrom(train_, step % batches_per_epoch() * batch_, std::move(inputs));
}

HostValues Feeder::RowsFrom(const LabelledRows& rows, int64_t first, HostValues inputs) const {
  Array<double> features(features_shape_), labels(labels_shape_);
  for (int64_t b = 0; b < batch_; ++b) {
    const int64_t row = (first + b) % rows.size();
    const auto values = rows.features.subspan(row * rows.num_features, rows.num_features);
    std::copy(values.begin(), values.end(), features.data.begin() + b * rows.num_features);
    labels.data[b] = static_cast<double>(rows.labels[row]);
  }
  inputs[features_] = std::move(features);
  inputs[labels_] = std::move(labels);
  return inputs;
}

std::string Feeder::Fingerprint() const {
  return absl::StrCat("seed ", seed_, ", ", train_.size(), " rows of ", train_.num_features,
                      " features, batches of ", batch_);
}

absl::StatusOr<double> Feeder::TestAccuracy(Job* job) const {
  const std::string& name = graph_->outputs()[0].name;
  int64_t right = 0;
  for (int64_t first = 0; first < test_.size(); first += batch_) {
    ISOMER_RETURN_IF_ERROR(job->Evaluate(RowsFrom(test_, first, RandomInputs(*graph_, seed_))));
    ISOMER_ASSIGN_OR_RETURN(const Array<double> logits, job->Output(name));
    if (logits.shape.size() != 2 || logits.shape[0] != batch_) {
      return absl::InvalidArgumentError(
          absl::StrCat("output '", name, "' does not classify: it is not [", batch_, ", n]"));
    }
    const int64_t classes = logits.shape[1];
    for (int64_t b = 0; b < batch_ && first + b < test_.size(); ++b) {
      const auto line = logits.data.begin() + b * classes;
      right += std::max_element(line, line + classes) - line == test_.labels[first + b];
    }
  }
  return static_cast<double>(right) / static_cast<double>(std::max<int64_t>(test_.size(), 1));
}

}  // namespace isomer
