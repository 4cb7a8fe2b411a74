// Files that a command line names to be written, tried before any work is done for them.
#ifndef ISOMER_PCG_SUPPORT_OUTPUT_FILES_H_
#define ISOMER_PCG_SUPPORT_OUTPUT_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace isomer {

// "--out" and "found.plan"; "" for an argument that is no flag.
struct NamedFile {
  std::string flag;
  std::string path;
};

// CheckCanWrite of each. Errors: "--out: x/y.plan: the folder to write to does not exist".
absl::Status CheckCanWriteAll(absl::Span<const NamedFile> outputs);

// That no output is another, nor one that is read, by whatever path. Pipes and devices may be named
// more than once.
absl::Status CheckAreApart(absl::Span<const NamedFile> outputs, absl::Span<const NamedFile> inputs);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_OUTPUT_FILES_H_
