#ifndef ISOMER_RUNTIME_DATA_OPEN_DATA_H_
#define ISOMER_RUNTIME_DATA_OPEN_DATA_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/csv.h"
#include "runtime/data/element_type.h"
#include "runtime/data/records.h"

namespace isomer {

// What a file of data has.
struct OpenedData {
  std::string path;
  // Of CSV: which of its columns are wanted is not known yet. Else null, and `arrays` are there.
  std::shared_ptr<const CsvTable> table = nullptr;
  std::vector<NamedRecords> arrays = {};
  bool has_names = false;  // .npz: arrays have them
  bool is_raw = false;     // nothing in the file says its type
};

// Opens a file as what it is: by how it begins (.npy, .npz, IDX, Megatron's index, text), and where
// that says nothing by its name (.bin) or `raw_type`. Errors name the file, and what is read.
absl::StatusOr<OpenedData> OpenData(const std::string& path, std::optional<ElementType> raw_type);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DATA_OPEN_DATA_H_
