#include "runtime/data/idx.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "pcg/support/status_macros.h"
#include "runtime/data/element_type.h"

namespace isomer {
namespace {

constexpr size_t kIdxHeadBytes = 4, kIdxDimBytes = 4;

std::optional<ElementType> TypeOfIdx(char code) {
  switch (code) {
    case 0x08:
      return ElementType::kUint8;
    case 0x09:
      return ElementType::kInt8;
    case 0x0B:
      return ElementType::kInt16;
    case 0x0C:
      return ElementType::kInt32;
    case 0x0D:
      return ElementType::kFloat32;
    case 0x0E:
      return ElementType::kFloat64;
    default:
      return std::nullopt;
  }
}

size_t NumDims(absl::string_view head) {
  return head.size() < kIdxHeadBytes ? 0 : static_cast<unsigned char>(head[3]);
}
size_t HeaderBytes(absl::string_view head) { return kIdxHeadBytes + NumDims(head) * kIdxDimBytes; }

std::vector<int64_t> DimsOf(absl::string_view head) {
  std::vector<int64_t> dims;
  for (size_t at = kIdxHeadBytes; at < HeaderBytes(head); at += kIdxDimBytes) {
    int64_t size = 0;
    for (size_t b = 0; b < kIdxDimBytes; ++b) {
      size = size << 8 | static_cast<unsigned char>(head[at + b]);
    }
    dims.push_back(size);
  }
  return dims;
}

}  // namespace

bool MayBeIdx(absl::string_view head) {
  constexpr size_t kMostDims = 8;
  return head.size() >= kIdxHeadBytes && head[0] == 0 && head[1] == 0 &&
         TypeOfIdx(head[2]).has_value() && NumDims(head) >= 1 && NumDims(head) <= kMostDims;
}

bool IsWholeIdx(absl::string_view head, int64_t file_bytes) {
  if (!MayBeIdx(head) || head.size() < HeaderBytes(head)) return false;
  int64_t bytes = ElementBytes(*TypeOfIdx(head[2]));
  for (int64_t size : DimsOf(head)) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) return false;
  }
  return bytes == file_bytes - static_cast<int64_t>(HeaderBytes(head));
}

absl::StatusOr<std::shared_ptr<const Records>> OpenIdx(std::shared_ptr<const DataFile> file) {
  constexpr int64_t kHead = 64;  // of eight dims
  ISOMER_ASSIGN_OR_RETURN(const std::string head, file->ReadSome(0, kHead));
  if (!MayBeIdx(head) || head.size() < HeaderBytes(head))
    return file->Error("it is cut short in its header");
  const int64_t begin = static_cast<int64_t>(HeaderBytes(head));
  const std::string path = file->path();
  const int64_t bytes = file->size() - begin;
  return BinaryRecords::OfArray(std::move(file), path, *TypeOfIdx(head[2]), /*big_endian=*/true,
                                DimsOf(head), begin, bytes);
}

std::optional<std::string> IdxLabelsOf(const std::string& images) {
  const size_t slash = images.rfind('/');
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  std::string name = images.substr(begin);
  if (absl::StrReplaceAll({{"images", "labels"}, {"idx3", "idx1"}, {"idx4", "idx1"}}, &name) == 0) {
    return std::nullopt;
  }
  return absl::StrCat(images.substr(0, begin), name);
}

}  // namespace isomer
