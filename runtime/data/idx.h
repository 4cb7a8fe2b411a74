// The format of MNIST: a header of four bytes, two zeros, the type and the number of dims; the dims
// as big-endian 32-bit numbers; the elements, big-endian. http://yann.lecun.com/exdb/mnist/
#ifndef ISOMER_RUNTIME_DATA_IDX_H_
#define ISOMER_RUNTIME_DATA_IDX_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/data_file.h"
#include "runtime/data/records.h"

namespace isomer {

// Whether a file that begins with `head` may be one, and whether it has as many bytes as it then
// says: numbers of another kind may begin in the same way.
bool MayBeIdx(absl::string_view head);
bool IsWholeIdx(absl::string_view head, int64_t file_bytes);

// REQUIRES: MayBeIdx of its first 4 KiB.
absl::StatusOr<std::shared_ptr<const Records>> OpenIdx(std::shared_ptr<const DataFile> file);

// The file of labels that goes with one of images: "t10k-images-idx3-ubyte" has
// "t10k-labels-idx1-ubyte". Nothing for another name.
std::optional<std::string> IdxLabelsOf(const std::string& images);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DATA_IDX_H_
