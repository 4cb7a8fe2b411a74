// Arrays as NumPy saves them: .npy, and .npz, a ZIP archive of them.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
#ifndef ISOMER_RUNTIME_DATA_NPY_H_
#define ISOMER_RUNTIME_DATA_NPY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/data_file.h"
#include "runtime/data/element_type.h"
#include "runtime/data/records.h"

namespace isomer {

// An array as its header has it. Whether its bytes are as many as its shape says is not looked at.
struct NpyArray {
  std::string name;      // what errors call it: "x.npy", "x.npz: array 'a'"
  std::string key = "";  // in the archive
  ElementType type = ElementType::kFloat32;
  bool big_endian = false;
  std::vector<int64_t> shape = {};
  int64_t offset = 0, bytes = 0;  // of its elements, in the file
};
// Those of an .npz. Errors as OpenNpz.
absl::StatusOr<std::vector<NpyArray>> ArraysOfNpz(const DataFile& file);

// The first dim is that of rows. Errors: Fortran's order, structures, strings and complex numbers,
// another length than the header says.
absl::StatusOr<std::shared_ptr<const Records>> OpenNpy(std::shared_ptr<const DataFile> file);

// The arrays by their names. Errors besides: compressed arrays (np.savez_compressed), which cannot
// be read in places.
absl::StatusOr<std::vector<NamedRecords>> OpenNpz(std::shared_ptr<const DataFile> file);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DATA_NPY_H_
