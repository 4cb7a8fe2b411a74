#ifndef ISOMER_PCG_SUPPORT_MAPPED_FILE_H_
#define ISOMER_PCG_SUPPORT_MAPPED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isomer {

// All of a file, in memory as it is looked at.
struct MappedFile {
  std::shared_ptr<const char> bytes;  // null: empty
  int64_t size = 0;

  // What has been read of these bytes need not stay in memory; who reads them again may.
  void LetGo(int64_t offset, int64_t count) const;
};

// One mapping of each file, while anybody has it. Errors name the file: "w.bin: no regular file".
absl::StatusOr<MappedFile> MapFile(const std::string& path);

// A file of which large ones are mapped.
struct FileContents {
  MappedFile mapping;
  std::string read;

  bool is_mapped() const { return mapping.bytes != nullptr; }
  absl::string_view bytes() const {
    return is_mapped() ? absl::string_view(mapping.bytes.get(), mapping.size) : read;
  }
};

// Regular files of more than `most_read` bytes are mapped, others read.
absl::StatusOr<FileContents> OpenFile(const std::string& path, int64_t most_read);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_MAPPED_FILE_H_
