// Arrays as NumPy saves them: .npy, and .npz, a ZIP archive of them.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
#ifndef ISOMER_RUNTIME_DATA_NPY_H_
#define ISOMER_RUNTIME_DATA_NPY_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/data_file.h"
#include "runtime/data/records.h"

namespace isomer {

// The first dim is that of rows. Errors: Fortran's order, structures, strings and complex numbers,
// another length than the header says.
absl::StatusOr<std::shared_ptr<const Records>> OpenNpy(std::shared_ptr<const DataFile> file);

// The arrays by their names. Errors besides: compressed arrays (np.savez_compressed), which cannot
// be read in places.
absl::StatusOr<std::vector<NamedRecords>> OpenNpz(std::shared_ptr<const DataFile> file);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DATA_NPY_H_
