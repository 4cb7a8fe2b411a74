#include "pcg/support/output_files.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "pcg/support/file.h"

namespace isomer {
namespace {

namespace fs = std::filesystem;

absl::Status WrongOutput(const NamedFile& output, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(output.flag, ": ", output.path, ": ", why));
}

// A file that can be replaced, or that is not there yet; else a pipe or a device.
bool IsRegular(const fs::path& path) {
  std::error_code ignored;
  return !fs::exists(path, ignored) || fs::is_regular_file(path, ignored);
}

// By whatever path: links lead to one file.
bool IsSame(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  return fs::weakly_canonical(a, error) == fs::weakly_canonical(b, error);
}

}  // namespace

absl::Status CheckCanWriteAll(absl::Span<const NamedFile> outputs) {
  for (const NamedFile& output : outputs) {
    const absl::Status status = CheckCanWrite(output.path);
    if (status.ok()) continue;
    return absl::InvalidArgumentError(absl::StrCat(output.flag, ": ", status.message()));
  }
  return absl::OkStatus();
}

absl::Status CheckAreApart(absl::Span<const NamedFile> outputs,
                           absl::Span<const NamedFile> inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const NamedFile& output = outputs[i];
    if (!IsRegular(output.path)) continue;
    for (const NamedFile& input : inputs) {
      if (!IsSame(output.path, input.path)) continue;
      return WrongOutput(output, absl::StrCat("it is read", input.flag.empty() ? "" : " by ",
                                              input.flag, ", and would be lost"));
    }
    for (const NamedFile& other : outputs.subspan(0, i)) {
      if (!IsSame(output.path, other.path)) continue;
      return WrongOutput(output, absl::StrCat("it is ", other.flag, "'s file, too"));
    }
  }
  return absl::OkStatus();
}

}  // namespace isomer
