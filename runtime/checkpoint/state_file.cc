#include "runtime/checkpoint/state_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "pcg/support/hash.h"
#include "pcg/support/json.h"
#include "pcg/support/status_macros.h"
#include "runtime/checkpoint/disk_progress.h"

namespace isomer {
namespace {

// The first tensor begins at a multiple of so many bytes, as safetensors' own files do.
constexpr int64_t kTensorAlignment = 64;
// Lines of so many elements (1 KiB) are worth a call of the system each. Others are put together
// first, in windows of so many.
constexpr int64_t kShortestDirect = 256;
constexpr int64_t kWindowElements = int64_t{1} << 22;
// A call of the disk has at most so many bytes to do, so that one that does not return is told from
// one that has much to do: bytes of a write, elements of a sum, bytes that are not on the disk yet.
constexpr int64_t kMostAtOnce = int64_t{8} << 20;
constexpr int64_t kMostUnwritten = int64_t{32} << 20;

absl::Status FileError(const std::string& path, absl::string_view doing) {
  return absl::UnavailableError(absl::StrCat(path, ": ", doing, ": ", std::strerror(errno)));
}

}  // namespace

void PositionSum::Add(int64_t first, int64_t stride, absl::Span<const float> elements) {
  uint64_t sum = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    const uint64_t place = static_cast<uint64_t>(first) + i * static_cast<uint64_t>(stride);
    // Of one place, different bits give different numbers.
    sum += HashMix(place * 0x9e3779b97f4a7c15 + std::bit_cast<uint32_t>(elements[i]));
  }
  value_ += sum;
}

int64_t StateTensor::elements() const {
  int64_t product = 1;
  for (int64_t dim : dims) product *= dim;
  return product;
}

StateLayout LayOut(std::vector<StateTensor> tensors) {
  StateLayout layout;
  Json header;
  header[kMetadataName]["format"] = "pt";
  int64_t at = 0;
  for (StateTensor& tensor : tensors) {
    const int64_t bytes = tensor.elements() * static_cast<int64_t>(sizeof(float));
    Json& entry = header[tensor.name];
    entry["dtype"] = "F32";
    entry["shape"] = tensor.dims.empty() ? Json::EmptyArray() : Json(tensor.dims);
    entry["data_offsets"] = Json(std::vector<int64_t>{at, at + bytes});
    tensor.begin = at;
    at += bytes;
  }
  std::string text = header.PrintCompact();
  const int64_t size = static_cast<int64_t>(text.size() + sizeof(uint64_t));
  text.append((kTensorAlignment - size % kTensorAlignment) % kTensorAlignment, ' ');
  const uint64_t length = text.size();
  layout.header.assign(reinterpret_cast<const char*>(&length), sizeof(length));
  layout.header += text;
  for (StateTensor& tensor : tensors) tensor.begin += static_cast<int64_t>(layout.header.size());
  layout.bytes = static_cast<int64_t>(layout.header.size()) + at;
  layout.tensors = std::move(tensors);
  return layout;
}

absl::Status StateFileWriter::Create(const std::string& path, const StateLayout& layout) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return FileError(path, "cannot be made");
  const absl::Cleanup closes = [file] { close(file); };
  NoteDiskCall("fallocate");
  int made = fallocate(file, 0, 0, layout.bytes);
  // Some file systems cannot set space aside.
  if (made != 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) made = ftruncate(file, layout.bytes);
  if (made != 0) {
    return FileError(path, absl::StrCat("there is no room for ", layout.bytes, " bytes"));
  }
  NoteDiskCall("pwrite");
  for (size_t at = 0; at < layout.header.size();) {
    const ssize_t written =
        pwrite(file, layout.header.data() + at, layout.header.size() - at, static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return FileError(path, "cannot be written");
    at += static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StateFileWriter>> StateFileWriter::Open(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return FileError(path, "cannot be opened");
  return std::unique_ptr<StateFileWriter>(new StateFileWriter(path, file));
}

StateFileWriter::~StateFileWriter() { close(file_); }

absl::Status StateFileWriter::WriteAt(int64_t offset, const float* elements, int64_t count) {
  const char* data = reinterpret_cast<const char*>(elements);
  int64_t left = count * static_cast<int64_t>(sizeof(float));
  while (left > 0) {
    NoteDiskCall("pwrite");
    const ssize_t written =
        pwrite(file_, data, static_cast<size_t>(std::min(left, kMostAtOnce)), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return FileError(path_, "cannot be written");
    data += written, offset += written, left -= written;
    unwritten_ += written;
    if (unwritten_ < kMostUnwritten) continue;
    ISOMER_RETURN_IF_ERROR(Sync());
  }
  return absl::OkStatus();
}

absl::Status StateFileWriter::Write(const StateTensor& tensor, StateLines lines,
                                    const float* elements, PositionSum* sum) {
  int64_t begin = std::numeric_limits<int64_t>::max(), end = 0;
  bool is_direct = true;
  std::vector<float> line_elements;
  lines([&](const StateLine& line) {
    begin = std::min(begin, line.first);
    end = std::max(end, line.first + line.stride * (line.count - 1) + 1);
    is_direct &= line.stride == 1 && line.count >= kShortestDirect;
    for (int64_t at = 0; at < line.count; at += kMostAtOnce) {
      NoteDiskCall("sum");
      sum->Add(line.first + at * line.stride, line.stride,
               absl::MakeConstSpan(elements + line.place + at,
                                   static_cast<size_t>(std::min(line.count - at, kMostAtOnce))));
    }
  });
  constexpr int64_t kBytes = sizeof(float);
  absl::Status status;
  if (is_direct) {
    // Lines that go on where the one before ends are one.
    StateLine whole = {0, 1, 0, 0};
    const auto write = [&] {
      if (whole.count == 0 || !status.ok()) return;
      status = WriteAt(tensor.begin + whole.first * kBytes, elements + whole.place, whole.count);
    };
    lines([&](const StateLine& line) {
      if (line.first == whole.first + whole.count && line.place == whole.place + whole.count) {
        whole.count += line.count;
        return;
      }
      write();
      whole = line;
    });
    write();
    return status;
  }
  std::vector<float> window;
  std::vector<char> is_there;
  for (int64_t from = begin; from < end; from += kWindowElements) {
    const int64_t to = std::min(end, from + kWindowElements);
    window.assign(to - from, 0);
    is_there.assign(to - from, 0);
    lines([&](const StateLine& line) {
      const int64_t stride = std::max<int64_t>(line.stride, 1);
      int64_t i = line.first >= from ? 0 : (from - line.first + stride - 1) / stride;
      for (; i < line.count && line.first + i * line.stride < to; ++i) {
        window[line.first + i * line.stride - from] = elements[line.place + i];
        is_there[line.first + i * line.stride - from] = 1;
      }
    });
    for (int64_t at = 0; at < to - from;) {
      const char* const mark = is_there.data();
      const int64_t first = std::find(mark + at, mark + (to - from), 1) - mark;
      const int64_t last = std::find(mark + first, mark + (to - from), 0) - mark;
      ISOMER_RETURN_IF_ERROR(
          WriteAt(tensor.begin + (from + first) * kBytes, window.data() + first, last - first));
      at = last;
    }
  }
  return absl::OkStatus();
}

absl::Status StateFileWriter::Sync() {
  NoteDiskCall("fdatasync");
  unwritten_ = 0;
  return fdatasync(file_) == 0 ? absl::OkStatus() : FileError(path_, "cannot be written");
}

absl::StatusOr<StateFile> StateFile::Open(const std::string& path, const StateLayout& layout) {
  ISOMER_ASSIGN_OR_RETURN(MappedFile file, MapFile(path));
  if (file.size != layout.bytes) {
    return absl::DataLossError(
        absl::StrCat(path, " has ", file.size, " bytes, not ", layout.bytes));
  }
  if (std::memcmp(file.bytes.get(), layout.header.data(), layout.header.size()) != 0) {
    return absl::DataLossError(absl::StrCat(path, ": its header is damaged"));
  }
  return StateFile(std::move(file));
}

absl::Span<const float> StateFile::ElementsOf(const StateTensor& tensor) const {
  return absl::MakeConstSpan(reinterpret_cast<const float*>(file_.bytes.get() + tensor.begin),
                             static_cast<size_t>(tensor.elements()));
}

void StateFile::LetGo(absl::Span<const float> elements) const {
  file_.LetGo(reinterpret_cast<const char*>(elements.data()) - file_.bytes.get(),
              static_cast<int64_t>(elements.size() * sizeof(float)));
}

}  // namespace isomer
