#include "runtime/data/tokens.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Every second uint16 is zero: the upper halves of uint32.
absl::StatusOr<bool> HasZeroUpperHalves(const DataFile& file) {
  constexpr int64_t kLookedAt = int64_t{64} << 10;
  ISOMER_ASSIGN_OR_RETURN(const std::string head, file.ReadSome(0, kLookedAt));
  for (size_t i = 0; i + 4 <= head.size(); i += 4) {
    if (head[i + 2] != 0 || head[i + 3] != 0) return false;
  }
  return true;
}

// MMapIndexedDataset's DType.
std::optional<ElementType> TypeOfMegatron(int code) {
  constexpr ElementType kTypes[] = {
      ElementType::kUint8, ElementType::kInt8,    ElementType::kInt16,   ElementType::kInt32,
      ElementType::kInt64, ElementType::kFloat64, ElementType::kFloat32, ElementType::kUint16};
  if (code < 1 || code > static_cast<int>(std::size(kTypes))) return std::nullopt;
  return kTypes[code - 1];
}

bool IsFile(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

bool BeginsAsMegatron(const std::string& path) {
  const auto file = DataFile::Open(path);
  if (!file.ok()) return false;
  const auto head = (*file)->ReadSome(0, sizeof(kMegatronMagic));
  return head.ok() && absl::StrContains(*head, absl::string_view(kMegatronMagic));
}

// That each sequence begins where the one before ends; how many bytes all have.
absl::StatusOr<int64_t> BytesOfSequences(const DataFile& index, int64_t lengths_at,
                                         int64_t places_at, int64_t count, int64_t token_bytes) {
  constexpr int64_t kAtOnce = int64_t{1} << 16;
  std::vector<int32_t> lengths(std::min(kAtOnce, count));
  std::vector<int64_t> places(lengths.size());
  int64_t end = 0;
  for (int64_t first = 0; first < count; first += kAtOnce) {
    const int64_t now = std::min(kAtOnce, count - first);
    ISOMER_RETURN_IF_ERROR(index.ReadAt(lengths_at + first * static_cast<int64_t>(sizeof(int32_t)),
                                        now * static_cast<int64_t>(sizeof(int32_t)),
                                        lengths.data()));
    ISOMER_RETURN_IF_ERROR(index.ReadAt(places_at + first * static_cast<int64_t>(sizeof(int64_t)),
                                        now * static_cast<int64_t>(sizeof(int64_t)),
                                        places.data()));
    for (int64_t i = 0; i < now; ++i) {
      if (lengths[i] < 0) {
        return index.Error(absl::StrCat("sequence ", first + i, " has ", lengths[i], " tokens"));
      }
      if (places[i] != end) {
        return index.Error(absl::StrCat("sequence ", first + i, " begins at byte ", places[i],
                                        ", and the one before it ends at ", end));
      }
      if (__builtin_add_overflow(end, lengths[i] * token_bytes, &end)) {
        return index.Error("no file has so many tokens");
      }
    }
  }
  return end;
}

}  // namespace

std::optional<ElementType> TypeInName(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  for (absl::string_view word : absl::StrSplit(name, absl::ByAnyChar(".-_"))) {
    if (const auto type = ElementTypeNamed(word); type.has_value()) return type;
  }
  return std::nullopt;
}

absl::StatusOr<std::shared_ptr<const Records>> OpenRawTokens(std::shared_ptr<const DataFile> file,
                                                             std::optional<ElementType> type) {
  if (!type.has_value()) type = TypeInName(file->path());
  if (!type.has_value()) {
    ISOMER_ASSIGN_OR_RETURN(const bool is_wide, HasZeroUpperHalves(*file));
    type = is_wide && file->size() % 4 == 0 ? ElementType::kUint32 : ElementType::kUint16;
  }
  const int64_t token_bytes = ElementBytes(*type);
  if (file->size() % token_bytes != 0) {
    return file->Error(absl::StrCat("it has ", file->size(), " bytes, which are no whole ",
                                    ElementTypeName(*type)));
  }
  const int64_t bytes = file->size();
  const std::string path = file->path();
  return BinaryRecords::OfArray(std::move(file), path, *type, /*big_endian=*/false,
                                {bytes / token_bytes}, /*offset=*/0, bytes);
}

std::optional<std::string> MegatronPrefix(const std::string& path) {
  std::vector<std::string> prefixes;
  for (absl::string_view ending : {".bin", ".idx"}) {
    absl::string_view prefix = path;
    if (absl::ConsumeSuffix(&prefix, ending)) prefixes.emplace_back(prefix);
  }
  if (!IsFile(path)) prefixes.push_back(path);
  for (const std::string& prefix : prefixes) {
    if (BeginsAsMegatron(prefix + ".idx")) return prefix;
  }
  return std::nullopt;
}

absl::StatusOr<std::shared_ptr<const Records>> OpenMegatron(const std::string& prefix) {
  ISOMER_ASSIGN_OR_RETURN(const std::shared_ptr<const DataFile> index,
                          DataFile::Open(prefix + ".idx"));
  // Magic, version, type, numbers of sequences and of documents.
  constexpr int64_t kMagicBytes = 9, kHeadBytes = kMagicBytes + 8 + 1 + 8 + 8;
  if (index->size() < kHeadBytes) return index->Error("it is cut short in its header");
  ISOMER_ASSIGN_OR_RETURN(const std::string head, index->ReadSome(0, kHeadBytes));
  const auto number = [&](int64_t at) {
    int64_t value;
    std::memcpy(&value, head.data() + at, sizeof(value));
    return value;
  };
  if (number(kMagicBytes) != 1) {
    return index->Error(absl::StrCat("it is of version ", number(kMagicBytes), "; 1 is read"));
  }
  const std::optional<ElementType> type = TypeOfMegatron(head[kMagicBytes + 8]);
  if (!type.has_value()) {
    return index->Error(
        absl::StrCat("its type has the code ", int{head[kMagicBytes + 8]}, "; there are 1 to 8"));
  }
  const int64_t sequences = number(kMagicBytes + 9), documents = number(kMagicBytes + 17);
  // A length and a place of each sequence, an end of each document; of several modalities there
  // follows a byte for each sequence.
  constexpr int64_t kOfSequence = sizeof(int32_t) + sizeof(int64_t);
  const int64_t most = index->size() / static_cast<int64_t>(sizeof(int64_t));
  const bool is_possible =
      sequences >= 0 && documents >= 0 && sequences <= most && documents <= most;
  const int64_t needed = is_possible ? kHeadBytes + sequences * kOfSequence +
                                           documents * static_cast<int64_t>(sizeof(int64_t))
                                     : 0;
  if (!is_possible || (index->size() != needed && index->size() != needed + sequences)) {
    return index->Error(absl::StrCat("it has ", index->size(), " bytes, which are not those of ",
                                     sequences, " sequences and ", documents, " documents"));
  }
  const int64_t token_bytes = ElementBytes(*type);
  ISOMER_ASSIGN_OR_RETURN(
      const int64_t bytes,
      BytesOfSequences(*index, kHeadBytes,
                       kHeadBytes + sequences * static_cast<int64_t>(sizeof(int32_t)), sequences,
                       token_bytes));
  ISOMER_ASSIGN_OR_RETURN(std::shared_ptr<const DataFile> file, DataFile::Open(prefix + ".bin"));
  if (file->size() != bytes) {
    return file->Error(absl::StrCat("it has ", file->size(), " bytes, but ", index->path(),
                                    " says ", bytes,
                                    file->size() < bytes ? ": it is cut short" : ""));
  }
  const std::string path = file->path();
  return BinaryRecords::OfArray(std::move(file), path, *type, /*big_endian=*/false,
                                {bytes / token_bytes}, /*offset=*/0, bytes);
}

}  // namespace isomer
