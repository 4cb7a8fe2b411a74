// Networks that are built rather than read: graphs without weight values, at any size.
#ifndef ISOMER_MODELS_ZOO_ZOO_H_
#define ISOMER_MODELS_ZOO_ZOO_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/plan.h"

namespace isomer {

// A value for every parameter of a network.
using ZooArguments = std::map<std::string, int64_t>;

struct ZooModel {
  std::string name;
  std::string description;
  // With the defaults. Values are from 1 (vocabulary: 0) to 2^24 (layers: 4096).
  std::vector<std::pair<std::string, int64_t>> parameters;
  absl::StatusOr<Model> (*build)(const ZooArguments& arguments);
};

const std::vector<ZooModel>& ListModels();

// `spec` is NAME or NAME?key=value&key=value, without "zoo:". The batch size, when not 0, is the
// parameter `batch`. Errors begin with "zoo:" and the name:
//   "zoo:mlp: no parameter 'width'; there are layers=2, hidden=256, ..."
absl::StatusOr<Model> BuildZooModel(absl::string_view spec, int64_t batch_size = 0);

// One builder per file.
absl::StatusOr<Model> BuildMlp(const ZooArguments& arguments);
absl::StatusOr<Model> BuildEncoder(const ZooArguments& arguments);
absl::StatusOr<Model> BuildDigitsCnn(const ZooArguments& arguments);
absl::StatusOr<Model> BuildDlrm(const ZooArguments& arguments);

}  // namespace isomer

#endif  // ISOMER_MODELS_ZOO_ZOO_H_
