#ifndef ISOMER_RUNTIME_LOGGING_EVENT_FILE_H_
#define ISOMER_RUNTIME_LOGGING_EVENT_FILE_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isomer {

// A record of a TFRecord file: its length in 8 bytes, the masked CRC-32C of these, the contents,
// and their masked CRC-32C; all little-endian.
// https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details
std::string TfRecord(absl::string_view contents);
// The contents of all records. Errors: it ends inside of one, or a checksum is another.
absl::StatusOr<std::vector<std::string>> ReadTfRecords(absl::string_view file);

// The scalars of a training as TensorBoard shows them: a file of events in a folder, to which each
// run adds one of its own.
class EventFile {
 public:
  // Makes the folder where there is none. The file's name has the time and the process, so that no
  // two runs have one file. Of a training that goes on after `first_step` steps TensorBoard forgets
  // what the run before had behind that.
  static absl::StatusOr<std::unique_ptr<EventFile>> Create(const std::string& folder,
                                                           std::optional<int64_t> first_step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // Values after so many steps, each under its tag, such as "train/loss"; flushed.
  absl::Status Add(int64_t step, const std::vector<std::pair<std::string, double>>& scalars);
  const std::string& path() const { return path_; }

 private:
  EventFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  absl::Status Write(absl::string_view record);

  const std::string path_;
  std::FILE* const file_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_LOGGING_EVENT_FILE_H_
