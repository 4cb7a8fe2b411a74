#include "runtime/weight_files/weight_file.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/tensor_type.h"
#include "pcg/support/file.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/data_file.h"
#include "runtime/data/element_type.h"
#include "runtime/data/npy.h"
#include "runtime/weight_files/safetensors.h"

namespace isomer {
namespace {

constexpr char kSingleFile[] = "model.safetensors", kIndexFile[] = "model.safetensors.index.json";
constexpr char kReadTypes[] = "; float16, bfloat16, float32 and float64 are read";

// Whether a file begins as torch.save writes it: a ZIP archive whose first member is a pickle, or,
// of versions before 1.6, a pickle itself.
bool IsPickle(absl::string_view head) {
  constexpr size_t kNameSize = 26, kName = 30;  // in the header of a member
  if (absl::StartsWith(head, "\x80\x02") || absl::StartsWith(head, "\x80\x04")) return true;
  if (!absl::StartsWith(head, "PK\3\4") || head.size() < kName) return false;
  const size_t size = static_cast<uint8_t>(head[kNameSize]);
  return absl::EndsWith(head.substr(kName, size), "/data.pkl");
}

// Elements of a file, little-endian unless it says otherwise.
struct Place {
  int64_t offset = 0, elements = 0;
  ElementType type = ElementType::kFloat32;
  bool big_endian = false;
};

StoredValues Taken(std::vector<float> values) { return StoredValues(std::move(values)); }

absl::StatusOr<StoredValues> InFile(const DataFile& file, const Place& place, DataType dtype) {
  return StoredValues::InFile({.path = file.path(),
                               .file_bytes = file.size(),
                               .offset = place.offset,
                               .dtype = dtype,
                               .elements = place.elements});
}

absl::StatusOr<StoredValues> ValuesAt(const DataFile& file, const Place& place) {
  if (!place.big_endian && place.type == ElementType::kFloat32) {
    return InFile(file, place, DataType::kFloat32);
  }
  if (!place.big_endian && place.type == ElementType::kFloat16) {
    return InFile(file, place, DataType::kFloat16);
  }
  std::vector<char> bytes(static_cast<size_t>(place.elements * ElementBytes(place.type)));
  ISOMER_RETURN_IF_ERROR(
      file.ReadAt(place.offset, static_cast<int64_t>(bytes.size()), bytes.data()));
  std::vector<double> numbers(static_cast<size_t>(place.elements));
  ConvertElements(place.type, place.big_endian, bytes.data(), place.elements, numbers.data());
  return Taken(std::vector<float>(numbers.begin(), numbers.end()));
}

class WeightFileReader {
 public:
  explicit WeightFileReader(std::string path) { read_.path = std::move(path); }

  // A file of its own, or one of several.
  absl::Status AddSafetensors(const std::string& path) {
    ISOMER_ASSIGN_OR_RETURN(const std::shared_ptr<const DataFile> file, Open(path));
    ISOMER_ASSIGN_OR_RETURN(const std::vector<SafetensorsEntry> entries,
                            EntriesOfSafetensors(*file));
    for (const SafetensorsEntry& entry : entries) {
      const auto values = [file, entry]() -> absl::StatusOr<StoredValues> {
        Place place = {.offset = entry.offset,
                       .elements = entry.bytes / BytesOfSafetensorsType(entry.type)};
        if (entry.type == "BF16") return InFile(*file, place, DataType::kBFloat16);
        const std::map<absl::string_view, ElementType> types = {{"F16", ElementType::kFloat16},
                                                                {"F32", ElementType::kFloat32},
                                                                {"F64", ElementType::kFloat64}};
        const auto type = types.find(entry.type);
        if (type == types.end()) {
          return file->Error(
              absl::StrCat("'", absl::CEscape(entry.name), "' is ", entry.type, kReadTypes));
        }
        place.type = type->second;
        return ValuesAt(*file, place);
      };
      ISOMER_RETURN_IF_ERROR(Add({entry.name, path, entry.dims, values}));
    }
    return absl::OkStatus();
  }

  absl::Status AddNpz(const std::string& path) {
    ISOMER_ASSIGN_OR_RETURN(const std::shared_ptr<const DataFile> file, Open(path));
    ISOMER_ASSIGN_OR_RETURN(const std::vector<NpyArray> arrays, ArraysOfNpz(*file));
    for (const NpyArray& array : arrays) {
      int64_t needed = ElementBytes(array.type);
      bool is_too_large = false;
      for (int64_t size : array.shape) {
        is_too_large |= __builtin_mul_overflow(needed, size, &needed);
      }
      if (is_too_large || needed != array.bytes) {
        return absl::InvalidArgumentError(absl::StrCat(array.name, ": its shape is ",
                                                       DimsText(array.shape), ", but there are ",
                                                       array.bytes, " bytes"));
      }
      const auto values = [file, array]() -> absl::StatusOr<StoredValues> {
        if (!IsFloatElement(array.type)) {
          return absl::InvalidArgumentError(
              absl::StrCat(array.name, ": it is ", ElementTypeName(array.type), kReadTypes));
        }
        return ValuesAt(*file, {.offset = array.offset,
                                .elements = array.bytes / ElementBytes(array.type),
                                .type = array.type,
                                .big_endian = array.big_endian});
      };
      ISOMER_RETURN_IF_ERROR(Add({array.key, path, array.shape, values}));
    }
    return absl::OkStatus();
  }

  // The files that an index names, in the folder.
  absl::Status AddIndexed(const std::string& folder) {
    const std::string path = absl::StrCat(folder, "/", kIndexFile);
    ISOMER_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    google::protobuf::Struct index;
    const auto error = [&](const auto&... what) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": ", what...));
    };
    if (!google::protobuf::util::JsonStringToMessage(text, &index).ok()) {
      return error("it is damaged: it is no JSON object");
    }
    const auto found = index.fields().find("weight_map");
    if (found == index.fields().end() || found->second.struct_value().fields().empty()) {
      return error("it has no 'weight_map'");
    }
    std::map<std::string, std::string> file_of;
    std::set<std::string> files;
    for (const auto& [name, value] : found->second.struct_value().fields()) {
      const std::string& file = value.string_value();
      // Files of a folder that somebody else made are not looked for elsewhere.
      if (file.empty() || absl::StrContains(file, '/')) {
        return error("'", absl::CEscape(name), "' is in no file of the folder");
      }
      file_of[name] = absl::StrCat(folder, "/", file);
      files.insert(file_of[name]);
    }
    for (const std::string& file : files) ISOMER_RETURN_IF_ERROR(AddSafetensors(file));
    for (const WeightTensor& tensor : read_.tensors) {
      const auto of = file_of.find(tensor.name);
      if (of != file_of.end() && of->second == tensor.file) file_of.erase(of);
    }
    if (file_of.empty()) return absl::OkStatus();
    const auto& [name, file] = *file_of.begin();
    return error("'", absl::CEscape(name), "' should be in ", file, ", and is not");
  }

  // The weights; states of an optimizer are of no use without it.
  absl::Status AddCheckpoint(const Checkpoint& checkpoint) {
    const std::string path = absl::StrCat(checkpoint.path(), "/", kStateFile);
    ISOMER_ASSIGN_OR_RETURN(const std::shared_ptr<const DataFile> file, Open(path));
    ISOMER_ASSIGN_OR_RETURN(const StateLayout layout, LayoutOf(checkpoint.manifest()));
    for (int t = 0; t < checkpoint.manifest().tensors_size(); ++t) {
      const CheckpointManifest::Tensor& tensor = checkpoint.manifest().tensors(t);
      if (tensor.slot() != 0) continue;
      const Place place = {.offset = layout.tensors[t].begin,
                           .elements = layout.tensors[t].elements()};
      ISOMER_RETURN_IF_ERROR(Add({tensor.name(), path, layout.tensors[t].dims,
                                  [file, place] { return ValuesAt(*file, place); }}));
    }
    return absl::OkStatus();
  }

  WeightFile Take() { return std::move(read_); }

 private:
  absl::StatusOr<std::shared_ptr<const DataFile>> Open(const std::string& path) {
    ISOMER_ASSIGN_OR_RETURN(std::shared_ptr<const DataFile> file, DataFile::Open(path));
    read_.fingerprint = HashCombine(read_.fingerprint, file->fingerprint());
    read_.files.push_back(path);
    return file;
  }

  absl::Status Add(WeightTensor tensor) {
    if (!names_.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(tensor.file, ": '", absl::CEscape(tensor.name), "' is there twice"));
    }
    read_.tensors.push_back(std::move(tensor));
    return absl::OkStatus();
  }

  WeightFile read_;
  std::set<std::string> names_;
};

// Of a folder with checkpoints, or of one of them; null: it is neither.
absl::StatusOr<std::unique_ptr<Checkpoint>> CheckpointAt(const std::string& path,
                                                         ControlPlane* control,
                                                         std::vector<std::string>* notes) {
  std::error_code ignored;
  if (std::filesystem::exists(absl::StrCat(path, "/", kManifestFile), ignored)) {
    return WholeCheckpoint(path, control);
  }
  if (CheckpointSteps(path).empty()) return nullptr;
  ISOMER_ASSIGN_OR_RETURN(std::unique_ptr<Checkpoint> newest,
                          NewestCheckpoint(path, control, notes));
  if (newest != nullptr) return newest;
  return absl::DataLossError(absl::StrCat(path, ": none of its checkpoints is whole"));
}

}  // namespace

std::string DimsText(const std::vector<int64_t>& dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

absl::StatusOr<std::optional<WeightFile>> OpenWeightFile(const std::string& path,
                                                         ControlPlane* control,
                                                         std::vector<std::string>* notes) {
  constexpr int64_t kLookedAt = 256;
  WeightFileReader reader(path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    const std::string single = absl::StrCat(path, "/", kSingleFile);
    if (std::filesystem::exists(absl::StrCat(path, "/", kIndexFile), ignored)) {
      ISOMER_RETURN_IF_ERROR(reader.AddIndexed(path));
      return reader.Take();
    }
    if (std::filesystem::exists(single, ignored)) {
      ISOMER_RETURN_IF_ERROR(reader.AddSafetensors(single));
      return reader.Take();
    }
    ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint,
                            CheckpointAt(path, control, notes));
    if (checkpoint == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": a folder with checkpoints, ", kSingleFile, " or ", kIndexFile, " is expected"));
    }
    ISOMER_RETURN_IF_ERROR(reader.AddCheckpoint(*checkpoint));
    return reader.Take();
  }
  ISOMER_ASSIGN_OR_RETURN(const std::shared_ptr<const DataFile> file, DataFile::Open(path));
  ISOMER_ASSIGN_OR_RETURN(const std::string head, file->ReadSome(0, kLookedAt));
  // The size of a header may look like the beginning of a pickle.
  if (!IsSafetensors(head) && IsPickle(head)) {
    return file->Error(
        "it is a pickle of PyTorch's, which may run any code; "
        "safetensors.torch.save_file(module.state_dict(), ..) writes what is read");
  }
  if (absl::StartsWith(head, "PK\3\4") || absl::StartsWith(head, "PK\5\6")) {
    ISOMER_RETURN_IF_ERROR(reader.AddNpz(path));
    return reader.Take();
  }
  // One that is cut short, or damaged, is still said to be what its name says.
  if (IsSafetensors(head) || absl::EndsWith(path, ".safetensors")) {
    ISOMER_RETURN_IF_ERROR(reader.AddSafetensors(path));
    return reader.Take();
  }
  return std::nullopt;
}

}  // namespace isomer
