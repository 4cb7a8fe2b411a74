// A file of float32 tensors in the safetensors format (https://github.com/huggingface/safetensors):
// eight bytes with the size of a JSON header, the header with names, shapes and places, and the
// elements, row-major, little-endian. Many processes write their parts of one file, so that it is
// whole whatever the plan was, and other programs read it.
#ifndef ISOMER_RUNTIME_CHECKPOINT_STATE_FILE_H_
#define ISOMER_RUNTIME_CHECKPOINT_STATE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/support/mapped_file.h"

namespace isomer {

// A sum over elements of a number that depends on the element's bits and on its place: parts of a
// tensor have sums that add up to the tensor's, modulo 2^64. Any change of one element, and with a
// probability of 1 - 2^-64 any other, changes it.
class PositionSum {
 public:
  // Elements `first`, `first + stride`, ..
  void Add(int64_t first, int64_t stride, absl::Span<const float> elements);
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
};

struct StateTensor {
  std::string name;  // in the file
  std::vector<int64_t> dims;
  int64_t begin = 0;  // where its elements are, in bytes of the file

  int64_t elements() const;
};

// Where everything is in the file; the same for all who are given the same names and dims.
struct StateLayout {
  std::vector<StateTensor> tensors;
  std::string header;  // the first bytes of the file, up to the first tensor
  int64_t bytes = 0;   // of the file
};
// In the header: about the file, and so no tensor's name.
inline constexpr char kMetadataName[] = "__metadata__";
// Sets where the tensors are, one behind the other. REQUIRES: names that are not alike.
StateLayout LayOut(std::vector<StateTensor> tensors);

// A part of a tensor: lines of elements `count` of the tensor, from `first` on every `stride`-th,
// that lie at `place` and on in memory.
struct StateLine {
  int64_t first, stride, count, place;
};
// Calls its argument for all lines of the part; the same ones whenever it is called.
using StateLines = absl::FunctionRef<void(absl::FunctionRef<void(const StateLine&)>)>;

// Files of a layout that are being written.
class StateFileWriter {
 public:
  // Makes the file, of its full size: space that the disk does not have is missed here.
  static absl::Status Create(const std::string& path, const StateLayout& layout);
  // For one of those who write it.
  static absl::StatusOr<std::unique_ptr<StateFileWriter>> Open(const std::string& path);
  ~StateFileWriter();
  StateFileWriter(const StateFileWriter&) = delete;
  StateFileWriter& operator=(const StateFileWriter&) = delete;

  // Elements of a tensor, and adds them to `sum`.
  absl::Status Write(const StateTensor& tensor, StateLines lines, const float* elements,
                     PositionSum* sum);
  // Until the disk has it.
  absl::Status Sync();

 private:
  StateFileWriter(std::string path, int file) : path_(std::move(path)), file_(file) {}
  absl::Status WriteAt(int64_t offset, const float* elements, int64_t count);

  const std::string path_;
  const int file_;
  int64_t unwritten_ = 0;  // bytes since the last Sync
};

// A file that is read.
class StateFile {
 public:
  // Errors: "d/state.safetensors has 12 bytes, not 4096", its header is damaged.
  static absl::StatusOr<StateFile> Open(const std::string& path, const StateLayout& layout);

  absl::Span<const float> ElementsOf(const StateTensor& tensor) const;
  // They need not stay in memory.
  void LetGo(absl::Span<const float> elements) const;

 private:
  explicit StateFile(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECKPOINT_STATE_FILE_H_
