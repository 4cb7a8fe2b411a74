#include "runtime/logging/csv_log.h"

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "pcg/support/file.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// What of `contents` a training keeps that goes on after `first_step` steps.
absl::StatusOr<std::string> KeptRows(const std::string& path, absl::string_view contents,
                                     absl::string_view header, int64_t first_step) {
  std::string kept;
  int64_t line = 0;
  while (!contents.empty()) {
    ++line;
    const size_t end = contents.find('\n');
    // A run that was killed may have left half a row.
    if (end == contents.npos) break;
    const absl::string_view row = contents.substr(0, end);
    contents.remove_prefix(end + 1);
    if (line == 1) {
      if (row != header) {
        return absl::InvalidArgumentError(
            absl::StrCat("--log_csv=", path, " has the columns '", row, "', and this run '", header,
                         "'; another file, or the flags of the run before"));
      }
    } else {
      int64_t step = 0;
      if (!absl::SimpleAtoi(row.substr(0, row.find(',')), &step)) {
        return absl::InvalidArgumentError(
            absl::StrCat("--log_csv=", path, ":", line, ": no row of a log"));
      }
      if (step > first_step) continue;
    }
    absl::StrAppend(&kept, row, "\n");
  }
  return kept.empty() ? absl::StrCat(header, "\n") : kept;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CsvLog>> CsvLog::Open(const std::string& path,
                                                     const std::vector<std::string>& columns,
                                                     std::optional<int64_t> first_step) {
  const std::string header = absl::StrCat("step,", absl::StrJoin(columns, ","));
  std::string kept = absl::StrCat(header, "\n");
  if (first_step.has_value()) {
    const absl::StatusOr<std::string> before = ReadFile(path);
    if (before.ok()) {
      ISOMER_ASSIGN_OR_RETURN(kept, KeptRows(path, *before, header, *first_step));
    } else if (!absl::IsNotFound(before.status())) {
      return before.status();
    }
  }
  ISOMER_RETURN_IF_ERROR(WriteFileAtomically(path, kept));
  std::FILE* const file = std::fopen(path.c_str(), "abe");
  if (file == nullptr) {
    return absl::UnavailableError(absl::StrCat(path, ": ", std::strerror(errno)));
  }
  return std::unique_ptr<CsvLog>(new CsvLog(path, file));
}

CsvLog::~CsvLog() { std::fclose(file_); }

absl::Status CsvLog::Add(int64_t step, const std::vector<std::optional<double>>& values) {
  std::string row = absl::StrCat(step);
  for (const std::optional<double>& value : values) {
    row.push_back(',');
    if (value.has_value()) absl::StrAppendFormat(&row, "%.9g", *value);
  }
  row.push_back('\n');
  // In one piece: who reads while it is written finds whole rows.
  if (std::fwrite(row.data(), 1, row.size(), file_) == row.size() && std::fflush(file_) == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(path_, ": ", std::strerror(errno)));
}

}  // namespace isomer
