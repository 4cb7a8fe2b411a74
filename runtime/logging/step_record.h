#ifndef ISOMER_RUNTIME_LOGGING_STEP_RECORD_H_
#define ISOMER_RUNTIME_LOGGING_STEP_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace isomer {

// What is told of a training after a step. What there is none of is left out.
struct StepRecord {
  int64_t step = 0;  // so many were taken
  std::optional<double> loss = {}, learning_rate = {}, gradient_norm = {};
  // Since the record before, as a clock on the wall has it, without tests.
  std::optional<double> step_us = {}, samples_per_s = {}, tokens_per_s = {};
  // Of the model, by what a step of it takes (model_work.h); and of what the devices could do.
  std::optional<double> flops_per_s = {}, mfu = {};
  // How long a step waited since the record before, in microseconds on average.
  std::optional<double> data_wait_us = {}, checkpoint_wait_us = {};
  std::optional<double> resident_bytes = {}, device_bytes = {};
  // What tests found after this step: "loss", "accuracy", ..
  std::vector<std::pair<std::string, double>> test = {};

  // "step 20: loss 0.5, learning rate 0.1, .., 120 us a step".
  std::string ToString() const;
};

// The values of a record as files have them: the names of CSV's columns and TensorBoard's tags.
struct RecordField {
  const char* column;
  const char* tag;
  std::optional<double> StepRecord::*value;
};
absl::Span<const RecordField> RecordFields();

}  // namespace isomer

#endif  // ISOMER_RUNTIME_LOGGING_STEP_RECORD_H_
