#include "runtime/data/npy.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "pcg/support/little_endian.h"
#include "pcg/support/status_macros.h"
#include "runtime/data/element_type.h"

namespace isomer {
namespace {

constexpr absl::string_view kNpyMagic = "\x93NUMPY";

// Where an array is in a file: all of it, or a member of an archive.
struct ArrayPlace {
  std::string name;  // what errors call it
  int64_t offset = 0, bytes = 0;
};

std::string Shown(absl::string_view text) {
  constexpr size_t kShown = 40;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kShown)),
                      text.size() > kShown ? "..." : "", "'");
}

struct NpyHeader {
  std::string descr;
  bool is_fortran = false;
  std::vector<int64_t> shape;
};

// "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }": a dict of Python. Nothing if it is
// none, or has other keys.
class HeaderParser {
 public:
  explicit HeaderParser(absl::string_view text) : text_(text) {}

  std::optional<NpyHeader> Parse() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    if (!Consume("{")) return std::nullopt;
    while (!Consume("}")) {
      const std::optional<std::string> key = Quoted();
      if (!key.has_value() || !Consume(":")) return std::nullopt;
      bool is_good = false;
      if (*key == "descr") {
        is_good = has_descr = Descr(&header.descr);
      } else if (*key == "fortran_order") {
        header.is_fortran = Consume("True");
        is_good = has_order = header.is_fortran || Consume("False");
      } else if (*key == "shape") {
        is_good = has_shape = Shape(&header.shape);
      }
      if (!is_good) return std::nullopt;
      Consume(",");
    }
    if (!has_descr || !has_order || !has_shape) return std::nullopt;
    return header;
  }

 private:
  bool Consume(absl::string_view word) {
    while (absl::ConsumePrefix(&text_, " ") || absl::ConsumePrefix(&text_, "\n")) {
    }
    return absl::ConsumePrefix(&text_, word);
  }
  std::optional<std::string> Quoted() {
    for (absl::string_view quote : {"'", "\""}) {
      if (!Consume(quote)) continue;
      const size_t end = text_.find(quote);
      if (end == text_.npos) return std::nullopt;
      std::string inside(text_.substr(0, end));
      text_.remove_prefix(end + 1);
      return inside;
    }
    return std::nullopt;
  }
  // Of structures a list.
  bool Descr(std::string* descr) {
    if (const auto quoted = Quoted(); quoted.has_value()) {
      *descr = *quoted;
      return true;
    }
    const size_t end = text_.find(']');
    if (!Consume("[") || end == text_.npos) return false;
    *descr = absl::StrCat("[", text_.substr(0, std::min(end, text_.size())));
    text_.remove_prefix(text_.find(']') + 1);
    return true;
  }
  bool Shape(std::vector<int64_t>* shape) {
    if (!Consume("(")) return false;
    while (!Consume(")")) {
      Consume("");
      const size_t end = text_.find_first_not_of("0123456789");
      int64_t size;
      if (end == text_.npos || !absl::SimpleAtoi(text_.substr(0, end), &size)) return false;
      shape->push_back(size);
      text_.remove_prefix(end);
      Consume(",");
    }
    return true;
  }

  absl::string_view text_;
};

absl::StatusOr<NpyArray> ReadArrayHeader(const DataFile& file, const ArrayPlace& extent) {
  const auto error = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(extent.name, ": ", what...));
  };
  constexpr int64_t kLongestHeader = int64_t{64} << 10;
  ISOMER_ASSIGN_OR_RETURN(
      const std::string head,
      file.ReadSome(extent.offset, std::min<int64_t>(extent.bytes, kLongestHeader)));
  if (!absl::StartsWith(head, kNpyMagic)) return error("it is no array of NumPy's");
  const size_t magic_bytes = kNpyMagic.size() + 2;
  const bool is_first_version =
      absl::StartsWith(absl::ClippedSubstr(head, kNpyMagic.size()), "\x01");
  const size_t length_bytes = is_first_version ? 2 : 4;
  if (head.size() < magic_bytes + length_bytes) return error("it is cut short in its header");
  const size_t length = is_first_version ? LittleEndianAt<uint16_t>(head.data() + magic_bytes)
                                         : LittleEndianAt<uint32_t>(head.data() + magic_bytes);
  const size_t begin = magic_bytes + length_bytes;
  if (length > static_cast<size_t>(kLongestHeader) - begin) {
    return error("its header is longer than 64 KiB");
  }
  if (head.size() < begin + length) return error("it is cut short in its header");
  const absl::string_view text = absl::string_view(head).substr(begin, length);
  const std::optional<NpyHeader> header = HeaderParser(text).Parse();
  if (!header.has_value()) return error("its header is ", Shown(text));
  const std::string& descr = header->descr;
  int64_t bytes = 0;
  std::optional<ElementType> type;
  if (descr.size() >= 3 && absl::SimpleAtoi(descr.substr(2), &bytes) &&
      absl::string_view("<>|=").find(descr[0]) != absl::string_view::npos) {
    type = ElementTypeOf(descr[1], bytes);
  }
  if (!type.has_value()) {
    return error("its elements are ", Shown(descr),
                 "; bool, int8 to int64, uint8 to uint64 and float16 to float64 are read");
  }
  if (header->is_fortran && header->shape.size() > 1) {
    return error("it is in Fortran's order; np.ascontiguousarray makes it C's");
  }
  const int64_t data = static_cast<int64_t>(begin + length);
  return NpyArray{.name = extent.name,
                  .type = *type,
                  .big_endian = descr[0] == '>',
                  .shape = header->shape,
                  .offset = extent.offset + data,
                  .bytes = extent.bytes - data};
}

absl::StatusOr<std::shared_ptr<const Records>> OpenArray(std::shared_ptr<const DataFile> file,
                                                         const ArrayPlace& extent) {
  ISOMER_ASSIGN_OR_RETURN(const NpyArray array, ReadArrayHeader(*file, extent));
  return BinaryRecords::OfArray(std::move(file), array.name, array.type, array.big_endian,
                                array.shape, array.offset, array.bytes);
}

// What the archive's directory says of a member.
struct Member {
  std::string name;
  int64_t header_offset = 0, bytes = 0, stored_bytes = 0;
  int method = 0, flags = 0;
};

// A number that is `kBehind` stands in the extra field of 64-bit numbers, in their order.
constexpr uint32_t kBehind = 0xffffffff;

class ZipReader {
 public:
  explicit ZipReader(const DataFile& file) : file_(file) {}

  absl::StatusOr<std::vector<Member>> Members() {
    ISOMER_RETURN_IF_ERROR(FindDirectory());
    constexpr int64_t kLargestDirectory = int64_t{64} << 20;
    if (directory_offset_ < 0 || directory_bytes_ < 0 || directory_bytes_ > kLargestDirectory ||
        directory_offset_ > file_.size() - directory_bytes_) {
      return CutShort();
    }
    std::string directory(directory_bytes_, '\0');
    ISOMER_RETURN_IF_ERROR(file_.ReadAt(directory_offset_, directory_bytes_, directory.data()));
    std::vector<Member> members;
    for (absl::string_view left = directory; !left.empty();) {
      if (left.size() < kEntryBytes || !absl::StartsWith(left, "PK\1\2")) return CutShort();
      const size_t name_bytes = LittleEndianAt<uint16_t>(&left[28]);
      const size_t extra_bytes = LittleEndianAt<uint16_t>(&left[30]);
      const size_t comment_bytes = LittleEndianAt<uint16_t>(&left[32]);
      if (left.size() < kEntryBytes + name_bytes + extra_bytes + comment_bytes) return CutShort();
      Member member = {.name = std::string(left.substr(kEntryBytes, name_bytes)),
                       .method = LittleEndianAt<uint16_t>(&left[10]),
                       .flags = LittleEndianAt<uint16_t>(&left[8])};
      absl::string_view wide = WideNumbers(left.substr(kEntryBytes + name_bytes, extra_bytes));
      for (const auto& [at, number] :
           {std::pair(24, &member.bytes), std::pair(20, &member.stored_bytes),
            std::pair(42, &member.header_offset)}) {
        const uint32_t narrow = LittleEndianAt<uint32_t>(&left[at]);
        *number = narrow;
        if (narrow != kBehind || wide.size() < sizeof(int64_t)) continue;
        *number = LittleEndianAt<int64_t>(wide.data());
        wide.remove_prefix(sizeof(int64_t));
      }
      members.push_back(std::move(member));
      left.remove_prefix(kEntryBytes + name_bytes + extra_bytes + comment_bytes);
    }
    return members;
  }

  // Where the bytes of a member begin.
  absl::StatusOr<int64_t> BytesOf(const Member& member) const {
    if (member.header_offset < 0 || member.header_offset > file_.size() - kLocalBytes) {
      return CutShort();
    }
    ISOMER_ASSIGN_OR_RETURN(const std::string local,
                            file_.ReadSome(member.header_offset, kLocalBytes));
    if (!absl::StartsWith(local, "PK\3\4")) return CutShort();
    const int64_t begin = member.header_offset + kLocalBytes +
                          LittleEndianAt<uint16_t>(&local[26]) +
                          LittleEndianAt<uint16_t>(&local[28]);
    if (member.bytes < 0 || begin > file_.size() || member.bytes > file_.size() - begin) {
      return CutShort();
    }
    return begin;
  }

 private:
  static constexpr size_t kEntryBytes = 46, kEndBytes = 22, kLocatorBytes = 20, kWideEndBytes = 56;
  static constexpr int64_t kLocalBytes = 30;

  absl::Status CutShort() const {
    return file_.Error("it is no whole .npz archive: it is cut short, or damaged");
  }

  // The extra field of 64-bit numbers; "" without.
  static absl::string_view WideNumbers(absl::string_view extra) {
    constexpr int kWide = 1;
    while (extra.size() >= 4) {
      const size_t size = LittleEndianAt<uint16_t>(&extra[2]);
      if (LittleEndianAt<uint16_t>(&extra[0]) == kWide) return extra.substr(4, size);
      extra.remove_prefix(std::min(extra.size(), 4 + size));
    }
    return "";
  }

  // The record of the archive's end, which a comment of up to 64 KiB may follow.
  absl::Status FindDirectory() {
    constexpr int64_t kMostAtEnd = (int64_t{64} << 10) + kEndBytes + kLocatorBytes;
    const int64_t begin = std::max<int64_t>(0, file_.size() - kMostAtEnd);
    ISOMER_ASSIGN_OR_RETURN(const std::string tail, file_.ReadSome(begin, kMostAtEnd));
    const size_t end = tail.rfind("PK\5\6");
    if (end == tail.npos || end + kEndBytes > tail.size()) return CutShort();
    directory_bytes_ = LittleEndianAt<uint32_t>(&tail[end + 12]);
    directory_offset_ = LittleEndianAt<uint32_t>(&tail[end + 16]);
    // Large archives have a record of 64-bit numbers before it, and where that is.
    if (end < kLocatorBytes || tail.compare(end - kLocatorBytes, 4, "PK\6\7") != 0) {
      return absl::OkStatus();
    }
    const int64_t wide_offset = LittleEndianAt<int64_t>(&tail[end - kLocatorBytes + 8]);
    if (wide_offset < 0 || wide_offset > file_.size() - static_cast<int64_t>(kWideEndBytes)) {
      return CutShort();
    }
    ISOMER_ASSIGN_OR_RETURN(const std::string wide, file_.ReadSome(wide_offset, kWideEndBytes));
    if (!absl::StartsWith(wide, "PK\6\6")) return CutShort();
    directory_bytes_ = LittleEndianAt<int64_t>(&wide[40]);
    directory_offset_ = LittleEndianAt<int64_t>(&wide[48]);
    return absl::OkStatus();
  }

  const DataFile& file_;
  int64_t directory_offset_ = 0, directory_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Records>> OpenNpy(std::shared_ptr<const DataFile> file) {
  const ArrayPlace all = {file->path(), 0, file->size()};
  return OpenArray(std::move(file), all);
}

absl::StatusOr<std::vector<NpyArray>> ArraysOfNpz(const DataFile& file) {
  constexpr int kEncrypted = 1;
  ZipReader zip(file);
  ISOMER_ASSIGN_OR_RETURN(const std::vector<Member> members, zip.Members());
  if (members.empty()) return file.Error("it has no arrays");
  std::vector<NpyArray> arrays;
  for (const Member& member : members) {
    absl::string_view key = member.name;
    if (!absl::ConsumeSuffix(&key, ".npy")) {
      return file.Error(absl::StrCat("its member ", Shown(member.name), " is no array"));
    }
    const std::string shown = absl::StrCat(file.path(), ": array ", Shown(key));
    if (member.method != 0 || (member.flags & kEncrypted) != 0 ||
        member.bytes != member.stored_bytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          shown,
          ": it is compressed; np.savez, in place of np.savez_compressed, writes what can "
          "be read row by row"));
    }
    ISOMER_ASSIGN_OR_RETURN(const int64_t begin, zip.BytesOf(member));
    ISOMER_ASSIGN_OR_RETURN(arrays.emplace_back(),
                            ReadArrayHeader(file, {shown, begin, member.bytes}));
    arrays.back().key = std::string(key);
  }
  return arrays;
}

absl::StatusOr<std::vector<NamedRecords>> OpenNpz(std::shared_ptr<const DataFile> file) {
  ISOMER_ASSIGN_OR_RETURN(const std::vector<NpyArray> arrays, ArraysOfNpz(*file));
  std::vector<NamedRecords> records;
  for (const NpyArray& array : arrays) {
    ISOMER_ASSIGN_OR_RETURN(std::shared_ptr<const Records> of_array,
                            BinaryRecords::OfArray(file, array.name, array.type, array.big_endian,
                                                   array.shape, array.offset, array.bytes));
    records.push_back({array.key, std::move(of_array)});
  }
  return records;
}

}  // namespace isomer
