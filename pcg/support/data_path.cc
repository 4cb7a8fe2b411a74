#include "pcg/support/data_path.h"

#include <sys/auxv.h>

#include <filesystem>
#include <system_error>

namespace isomer {
namespace {

std::string& DataFolder() {
  static auto* const folder = new std::string;
  return *folder;
}

}  // namespace

void SetDataFolder(absl::string_view folder) { DataFolder() = std::string(folder); }

std::string DataPath(absl::string_view relative) {
  const std::filesystem::path name(std::string{relative});
  std::error_code error;
  if (!DataFolder().empty()) {
    const std::filesystem::path set = std::filesystem::path(DataFolder()) / name;
    if (std::filesystem::exists(set, error)) return set.string();
  }
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    // Without /proc, as in some roots: as the kernel was given it.
    const auto* started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    program = std::filesystem::canonical(started == nullptr ? "" : started, error);
  }
  if (!error) {
    // Of an installed program nothing but its own files: the tree that it was built from may be
    // there, and be another one.
    const auto installed = program.parent_path().parent_path() / "share" / "isomer";
    if (std::filesystem::is_directory(installed, error)) return (installed / name).string();
  }
  return (std::filesystem::path(ISOMER_SOURCE_DIR) / name).string();
}

}  // namespace isomer
