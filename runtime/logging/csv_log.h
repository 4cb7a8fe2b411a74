#ifndef ISOMER_RUNTIME_LOGGING_CSV_LOG_H_
#define ISOMER_RUNTIME_LOGGING_CSV_LOG_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace isomer {

// A table of a training: a line of names, and a row after each step that is logged. The first
// column is the step; what there is no value of is empty.
class CsvLog {
 public:
  // A new file; or, of a training that goes on after `first_step` steps, the rows of the file that
  // there is up to that step, behind which it goes on: none is lost, none is there twice, whatever
  // became of the run before. Errors: its columns are others, or a row is none.
  static absl::StatusOr<std::unique_ptr<CsvLog>> Open(const std::string& path,
                                                      const std::vector<std::string>& columns,
                                                      std::optional<int64_t> first_step);
  ~CsvLog();
  CsvLog(const CsvLog&) = delete;
  CsvLog& operator=(const CsvLog&) = delete;

  // `values`: of the columns behind the step. Flushed.
  absl::Status Add(int64_t step, const std::vector<std::optional<double>>& values);

 private:
  CsvLog(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}

  const std::string path_;
  std::FILE* const file_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_LOGGING_CSV_LOG_H_
