#include "runtime/weight_files/safetensors.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "runtime/checkpoint/state_file.h"

namespace isomer {
namespace {

using JsonObject = google::protobuf::Struct;
using JsonValue = google::protobuf::Value;

constexpr int64_t kLengthBytes = sizeof(uint64_t);
// The format's own limit.
constexpr int64_t kLongestHeader = int64_t{100} * 1000 * 1000;

struct Type {
  absl::string_view name;
  int64_t bytes;
};
constexpr Type kTypes[] = {{"BOOL", 1},    {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
                           {"F8_E8M0", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},     {"BF16", 2},
                           {"I32", 4},     {"U32", 4}, {"F32", 4}, {"C64", 8},     {"F64", 8},
                           {"I64", 8},     {"U64", 8}};

int64_t HeaderLength(absl::string_view head) {
  uint64_t length = 0;
  std::memcpy(&length, head.data(), sizeof(length));
  return length > std::numeric_limits<int64_t>::max() ? -1 : static_cast<int64_t>(length);
}

// Whole numbers that are not negative; nothing of anything else.
std::optional<std::vector<int64_t>> Counts(const JsonValue& value) {
  constexpr double kLargest = 9007199254740992;  // 2^53: from there on a double skips some
  if (value.kind_case() != JsonValue::kListValue) return std::nullopt;
  std::vector<int64_t> counts;
  for (const JsonValue& element : value.list_value().values()) {
    const double number = element.number_value();
    if (element.kind_case() != JsonValue::kNumberValue || number < 0 || number > kLargest ||
        number != std::floor(number)) {
      return std::nullopt;
    }
    counts.push_back(static_cast<int64_t>(number));
  }
  return counts;
}

const JsonValue* FieldOf(const JsonObject& object, const char* name) {
  const auto found = object.fields().find(name);
  return found == object.fields().end() ? nullptr : &found->second;
}

absl::StatusOr<SafetensorsEntry> EntryOf(const DataFile& file, const std::string& name,
                                         const JsonValue& value, int64_t data) {
  const auto error = [&](const auto&... what) {
    return file.Error(absl::StrCat("'", absl::CEscape(name), "' ", what...));
  };
  const JsonObject& fields = value.struct_value();
  const JsonValue *type = FieldOf(fields, "dtype"), *shape = FieldOf(fields, "shape"),
                  *offsets = FieldOf(fields, "data_offsets");
  if (type == nullptr || shape == nullptr || offsets == nullptr) {
    return error("has no dtype, shape and data_offsets");
  }
  const auto dims = Counts(*shape), range = Counts(*offsets);
  if (!dims.has_value() || !range.has_value() || range->size() != 2) {
    return error("has no shape and place of whole numbers");
  }
  const int64_t begin = (*range)[0], end = (*range)[1];
  if (begin > end || end > file.size() - data) {
    return error("lies from byte ", begin, " to ", end, " of the ", file.size() - data,
                 " that the file has for tensors: it is cut short, or damaged");
  }
  SafetensorsEntry entry = {.name = name,
                            .type = type->string_value(),
                            .dims = *dims,
                            .offset = data + begin,
                            .bytes = end - begin};
  int64_t needed = BytesOfSafetensorsType(entry.type);
  if (needed == 0) return error("is of type '", absl::CEscape(entry.type), "', which nobody knows");
  for (int64_t size : *dims) {
    if (__builtin_mul_overflow(needed, size, &needed)) {
      return error("is larger than any file");
    }
  }
  if (needed == entry.bytes) return entry;
  return error("has ", entry.bytes, " bytes, and its shape is of ", needed);
}

}  // namespace

int64_t BytesOfSafetensorsType(absl::string_view type) {
  for (const Type& known : kTypes) {
    if (known.name == type) return known.bytes;
  }
  return 0;
}

bool IsSafetensors(absl::string_view head) {
  if (static_cast<int64_t>(head.size()) <= kLengthBytes) return false;
  const int64_t length = HeaderLength(head);
  return length >= 2 && length <= kLongestHeader && head[kLengthBytes] == '{';
}

absl::StatusOr<std::vector<SafetensorsEntry>> EntriesOfSafetensors(const DataFile& file) {
  ISOMER_ASSIGN_OR_RETURN(const std::string head, file.ReadSome(0, kLengthBytes + 1));
  if (!IsSafetensors(head)) return file.Error("it is no safetensors file");
  const int64_t length = HeaderLength(head), data = kLengthBytes + length;
  if (data > file.size()) return file.Error("it is cut short in its header");
  ISOMER_ASSIGN_OR_RETURN(const std::string text, file.ReadSome(kLengthBytes, length));
  JsonObject header;
  if (!google::protobuf::util::JsonStringToMessage(text, &header).ok()) {
    return file.Error("its header is damaged: it is no JSON object");
  }
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, value] : header.fields()) {
    if (name == kMetadataName) continue;
    ISOMER_ASSIGN_OR_RETURN(entries.emplace_back(), EntryOf(file, name, value, data));
  }
  std::sort(entries.begin(), entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
            });
  // One behind the other, as the format wants it.
  int64_t at = data;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.offset != at) {
      return file.Error(absl::StrCat("'", absl::CEscape(entry.name), "' begins at byte ",
                                     entry.offset, " and not where the one before ends, ", at));
    }
    at += entry.bytes;
  }
  if (at != file.size()) {
    return file.Error(absl::StrCat("it has ", file.size(), " bytes, and its tensors end at ", at));
  }
  return entries;
}

}  // namespace isomer
