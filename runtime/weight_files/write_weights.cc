#include "runtime/weight_files/write_weights.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "pcg/support/atomic_file.h"
#include "pcg/support/crc32.h"
#include "pcg/support/little_endian.h"
#include "pcg/support/status_macros.h"
#include "pcg/support/utf8.h"
#include "runtime/checkpoint/state_file.h"
#include "runtime/data/npy_array.h"

namespace isomer {
namespace {

// Elements that are made ready at a time.
constexpr size_t kWindow = size_t{1} << 20;

// Calls f with the bytes of all elements, window by window.
absl::Status ForEachWindow(const StoredValues& values,
                           absl::FunctionRef<absl::Status(absl::string_view)> f) {
  std::vector<float> window;
  for (size_t from = 0; from < values.size(); from += kWindow) {
    const size_t to = std::min(values.size(), from + kWindow);
    window.resize(to - from);
    for (size_t i = from; i < to; ++i) window[i - from] = values[i];
    ISOMER_RETURN_IF_ERROR(
        f({reinterpret_cast<const char*>(window.data()), window.size() * sizeof(float)}));
  }
  values.LetGo();
  return absl::OkStatus();
}

// The first day that a ZIP archive can say: files have no time, so that equal weights are equal
// files.
constexpr uint16_t kTime = 0, kDate = (0 << 9) | (1 << 5) | 1;
constexpr uint16_t kVersionWith64Bits = 45, kNamesAreUtf8 = 1 << 11, kStored = 0, kWideField = 1;
constexpr uint32_t kInWideField = 0xffffffff;
constexpr absl::string_view kNpyEnding = ".npy";

struct Member {
  std::string name;
  uint64_t bytes = 0, offset = 0;
  uint32_t crc = 0;
};

// What both the member's own header and the archive's directory say, from the version on.
std::string CommonFields(const Member& member, uint16_t extra_bytes) {
  std::string fields;
  for (uint16_t field : {kVersionWith64Bits, kNamesAreUtf8, kStored, kTime, kDate}) {
    AppendLittleEndian(field, &fields);
  }
  for (uint32_t field : {member.crc, kInWideField, kInWideField})
    AppendLittleEndian(field, &fields);
  AppendLittleEndian(static_cast<uint16_t>(member.name.size()), &fields);
  AppendLittleEndian(extra_bytes, &fields);
  return fields;
}

// Every size is of 64 bits, whether it must be or not: there is one form.
std::string LocalHeader(const Member& member) {
  constexpr uint16_t kBytes = 2 * sizeof(uint64_t);
  std::string header = absl::StrCat("PK\3\4", CommonFields(member, 4 + kBytes), member.name);
  for (uint16_t field : {kWideField, kBytes}) AppendLittleEndian(field, &header);
  for (uint64_t size : {member.bytes, member.bytes}) AppendLittleEndian(size, &header);
  return header;
}

std::string DirectoryEntry(const Member& member) {
  constexpr uint16_t kBytes = 3 * sizeof(uint64_t);
  std::string entry = "PK\1\2";
  AppendLittleEndian(kVersionWith64Bits, &entry);
  entry += CommonFields(member, 4 + kBytes);
  for (uint16_t field : {0, 0, 0})
    AppendLittleEndian(field, &entry);      // comment, disk, internal attributes
  AppendLittleEndian(uint32_t{0}, &entry);  // external attributes
  AppendLittleEndian(kInWideField, &entry);
  entry += member.name;
  for (uint16_t field : {kWideField, kBytes}) AppendLittleEndian(field, &entry);
  for (uint64_t size : {member.bytes, member.bytes, member.offset})
    AppendLittleEndian(size, &entry);
  return entry;
}

// The records behind the directory: of 64 bits, where that is, and the one that all readers look
// for.
std::string EndOfArchive(uint64_t members, uint64_t directory_bytes, uint64_t directory_offset) {
  constexpr uint64_t kBehindSize = 44;
  std::string end = "PK\6\6";
  AppendLittleEndian(kBehindSize, &end);
  AppendLittleEndian(kVersionWith64Bits, &end);
  AppendLittleEndian(kVersionWith64Bits, &end);
  for (uint32_t disk : {0, 0}) AppendLittleEndian(disk, &end);
  for (uint64_t field : {members, members, directory_bytes, directory_offset})
    AppendLittleEndian(field, &end);
  end += "PK\6\7";
  AppendLittleEndian(uint32_t{0}, &end);
  AppendLittleEndian(directory_offset + directory_bytes, &end);
  AppendLittleEndian(uint32_t{1}, &end);
  end += "PK\5\6";
  for (uint16_t disk : {0, 0}) AppendLittleEndian(disk, &end);
  for (int count = 0; count < 2; ++count) AppendLittleEndian(uint16_t{0xffff}, &end);
  for (int size = 0; size < 2; ++size) AppendLittleEndian(kInWideField, &end);
  AppendLittleEndian(uint16_t{0}, &end);  // comment
  return end;
}

absl::Status CheckAreUtf8(const std::string& path, absl::Span<const std::string> names) {
  for (const std::string& name : names) {
    if (IsUtf8(name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": weight '", absl::CEscape(name), "': its name is not UTF-8"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSafetensorsNames(const std::string& path, absl::Span<const std::string> names) {
  ISOMER_RETURN_IF_ERROR(CheckAreUtf8(path, names));
  for (const std::string& name : names) {
    if (name != kMetadataName) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a weight cannot be called '", kMetadataName, "' there"));
  }
  return absl::OkStatus();
}

absl::Status CheckNpzNames(const std::string& path, absl::Span<const std::string> names) {
  constexpr size_t kMost = std::numeric_limits<uint16_t>::max() - kNpyEnding.size();
  constexpr size_t kShown = 40;
  ISOMER_RETURN_IF_ERROR(CheckAreUtf8(path, names));
  for (const std::string& name : names) {
    if (name.size() <= kMost) continue;
    return absl::InvalidArgumentError(absl::StrCat(path, ": a weight's name has ", name.size(),
                                                   " bytes, too many for a ZIP archive: '",
                                                   absl::CEscape(name.substr(0, kShown)), "...'"));
  }
  return absl::OkStatus();
}

absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedWeight> weights) {
  std::vector<StateTensor> tensors;
  for (const NamedWeight& weight : weights) {
    tensors.push_back({.name = weight.name, .dims = weight.dims});
  }
  ISOMER_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  ISOMER_RETURN_IF_ERROR(file.Append(LayOut(std::move(tensors)).header));
  for (const NamedWeight& weight : weights) {
    ISOMER_RETURN_IF_ERROR(
        ForEachWindow(weight.values, [&](absl::string_view bytes) { return file.Append(bytes); }));
  }
  return file.Commit();
}

absl::Status WriteNpz(const std::string& path, absl::Span<const NamedWeight> weights) {
  ISOMER_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  std::vector<Member> members;
  uint64_t offset = 0;
  for (const NamedWeight& weight : weights) {
    const std::string npy = NpyHeaderOf("<f4", weight.dims);
    Member& member = members.emplace_back();
    member.name = absl::StrCat(weight.name, kNpyEnding);
    member.bytes = npy.size() + weight.values.size() * sizeof(float);
    member.offset = offset;
    Crc32 crc;
    crc.Add(npy);
    ISOMER_RETURN_IF_ERROR(ForEachWindow(weight.values, [&](absl::string_view bytes) {
      crc.Add(bytes);
      return absl::OkStatus();
    }));
    member.crc = crc.value();
    const std::string header = LocalHeader(member);
    ISOMER_RETURN_IF_ERROR(file.Append(header));
    ISOMER_RETURN_IF_ERROR(file.Append(npy));
    ISOMER_RETURN_IF_ERROR(
        ForEachWindow(weight.values, [&](absl::string_view bytes) { return file.Append(bytes); }));
    offset += header.size() + member.bytes;
  }
  std::string directory;
  for (const Member& member : members) directory += DirectoryEntry(member);
  ISOMER_RETURN_IF_ERROR(file.Append(directory));
  ISOMER_RETURN_IF_ERROR(file.Append(EndOfArchive(members.size(), directory.size(), offset)));
  return file.Commit();
}

}  // namespace isomer
