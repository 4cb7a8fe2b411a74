#include "runtime/data/open_data.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "pcg/support/status_macros.h"
#include "runtime/data/idx.h"
#include "runtime/data/npy.h"
#include "runtime/data/tokens.h"

namespace isomer {
namespace {

// How files begin that are not read, and what to do about each.
struct OtherFormat {
  absl::string_view magic, name, advice;
};
constexpr OtherFormat kOtherFormats[] = {
    {"\x1f\x8b", "compressed by gzip", "gunzip makes a file that can be read in places"},
    {"\x28\xb5\x2f\xfd", "compressed by zstd", "unzstd makes a file that can be read in places"},
    {"\xfd"
     "7zXZ",
     "compressed by xz", "unxz makes a file that can be read in places"},
    {"\x89HDF", "HDF5", "np.save writes its arrays as .npy"},
    {"PAR1", "Parquet", "np.save writes its columns as .npy"},
    {"\x80\x02", "a pickle", "np.save writes its arrays as .npy"},
    {"\x80\x04", "a pickle", "np.save writes its arrays as .npy"},
};

// Neither zeros nor other control characters but tabs and ends of lines.
bool IsText(absl::string_view head) {
  return std::all_of(head.begin(), head.end(), [](char c) {
    return static_cast<unsigned char>(c) >= ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
  });
}

}  // namespace

absl::StatusOr<OpenedData> OpenData(const std::string& path, std::optional<ElementType> raw_type) {
  constexpr int64_t kLookedAt = 4096;
  OpenedData data = {.path = path};
  const auto with =
      [&](absl::StatusOr<std::shared_ptr<const Records>> records) -> absl::StatusOr<OpenedData> {
    if (!records.ok()) return records.status();
    data.arrays.push_back({"", *std::move(records)});
    return std::move(data);
  };
  if (!raw_type.has_value()) {
    if (const auto prefix = MegatronPrefix(path); prefix.has_value()) {
      return with(OpenMegatron(*prefix));
    }
  }
  ISOMER_ASSIGN_OR_RETURN(const std::shared_ptr<const DataFile> file, DataFile::Open(path));
  ISOMER_ASSIGN_OR_RETURN(const std::string head, file->ReadSome(0, kLookedAt));
  if (absl::StartsWith(head, "\x93NUMPY")) return with(OpenNpy(file));
  if (absl::StartsWith(head, "PK\3\4") || absl::StartsWith(head, "PK\5\6")) {
    ISOMER_ASSIGN_OR_RETURN(data.arrays, OpenNpz(file));
    data.has_names = true;
    return data;
  }
  const bool is_named_idx = absl::StrContains(path, "idx") || absl::StrContains(path, "ubyte");
  if (!raw_type.has_value() &&
      (IsWholeIdx(head, file->size()) || (is_named_idx && MayBeIdx(head)))) {
    return with(OpenIdx(file));
  }
  const bool is_raw =
      raw_type.has_value() || TypeInName(path).has_value() || absl::EndsWith(path, ".bin");
  data.is_raw = is_raw;
  if (raw_type.has_value()) return with(OpenRawTokens(file, raw_type));
  for (const OtherFormat& format : kOtherFormats) {
    if (!is_raw && absl::StartsWith(head, format.magic)) {
      return file->Error(absl::StrCat("it is ", format.name, "; ", format.advice));
    }
  }
  if (IsText(head) && !absl::EndsWith(path, ".bin")) {
    data.is_raw = false;
    ISOMER_ASSIGN_OR_RETURN(data.table, CsvTable::Open(file));
    return data;
  }
  if (is_raw) return with(OpenRawTokens(file, std::nullopt));
  return file->Error(
      "it is no CSV, .npy, .npz or IDX file and none of Megatron's pair; if it is nothing but "
      "tokens, --data_dtype says of which type");
}

}  // namespace isomer
