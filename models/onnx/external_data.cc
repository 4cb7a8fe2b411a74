#include "models/onnx/external_data.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "models/onnx/tensor.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

namespace fs = std::filesystem;

struct Place {
  std::string location;
  int64_t offset = 0;
  int64_t length = -1;  // to the end of the file
};

absl::StatusOr<Place> PlaceOf(const onnx::TensorProto& proto) {
  Place place;
  for (const onnx::StringStringEntryProto& entry : proto.external_data()) {
    if (entry.key() == "location") place.location = entry.value();
    int64_t* const number = entry.key() == "offset"   ? &place.offset
                            : entry.key() == "length" ? &place.length
                                                      : nullptr;
    if (number == nullptr) continue;
    if (!absl::SimpleAtoi(entry.value(), number) || *number < 0) {
      return absl::InvalidArgumentError(absl::StrCat("the ", entry.key(), " of its data is ",
                                                     QuotedName(entry.value()), ", no size"));
    }
  }
  if (place.location.empty()) return absl::InvalidArgumentError("its data lies in no named file");
  return place;
}

// The path of `location` inside of `folder`.
absl::StatusOr<fs::path> PathInside(const std::string& folder, const std::string& location) {
  const absl::Status outside = absl::InvalidArgumentError(absl::StrCat(
      "its data lies in ", QuotedName(location), ", outside of the folder of the model"));
  const fs::path relative(location);
  if (relative.is_absolute() || location.find('\0') != std::string::npos) return outside;
  std::error_code error;
  const fs::path root = fs::canonical(folder.empty() ? "." : folder, error);
  const fs::path path = error ? fs::path() : fs::canonical(root / relative, error);
  if (error || !fs::is_regular_file(path, error)) {
    // A name that leaves the folder is refused whether or not the file is there.
    if (!relative.lexically_normal().empty() && *relative.lexically_normal().begin() == "..") {
      return outside;
    }
    return absl::NotFoundError(
        absl::StrCat("its data lies in ", QuotedName(location), ", which is no file"));
  }
  const auto [end, unused] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  if (end != root.end()) return outside;
  return path;
}

}  // namespace

absl::StatusOr<ExternalData> LocateExternalData(const onnx::TensorProto& proto,
                                                const std::string& folder) {
  ISOMER_ASSIGN_OR_RETURN(Place place, PlaceOf(proto));
  ISOMER_ASSIGN_OR_RETURN(const fs::path path, PathInside(folder, place.location));
  std::error_code error;
  const int64_t size = static_cast<int64_t>(fs::file_size(path, error));
  if (error) {
    return absl::NotFoundError(
        absl::StrCat("its data lies in ", QuotedName(place.location), ": ", error.message()));
  }
  if (place.length < 0) place.length = std::max<int64_t>(0, size - place.offset);
  if (place.offset > size || place.length > size - place.offset) {
    return absl::InvalidArgumentError(absl::StrCat("its data lies in ", QuotedName(place.location),
                                                   ", which has ", size, " bytes, not ",
                                                   place.length, " from ", place.offset, " on"));
  }
  return ExternalData{path.string(), size, place.offset, place.length};
}

absl::StatusOr<std::string> ReadExternalData(const ExternalData& data) {
  std::string bytes(data.length, '\0');
  std::ifstream file(data.path, std::ios::binary);
  file.seekg(data.offset);
  if (!file.read(bytes.data(), data.length)) {
    return absl::DataLossError(
        absl::StrCat("its data lies in ", QuotedName(data.path), ", which cannot be read"));
  }
  return bytes;
}

}  // namespace isomer
