// Networks that are built rather than read: graphs without weight values, at any size.
//
// One file per network, networks/NAME.cc: a function that returns its ZooModel, with the sizes of
// the paper as defaults. A new network is such a file, its line in models.h, and its line in the
// list of zoo.cc; tests, --list_models and docs/models.md then know it.
#ifndef ISOMER_MODELS_ZOO_ZOO_H_
#define ISOMER_MODELS_ZOO_ZOO_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/plan.h"

namespace isomer {

// A value for every parameter of a network.
using ZooArguments = std::map<std::string, int64_t>;

struct ZooParameter {
  std::string name;
  int64_t value;  // the default
  int64_t smallest = 1;
  int64_t largest = int64_t{1} << 24;
};
// A parameter that is 0 or 1.
ZooParameter ZooSwitch(std::string name, bool value);
// A number of layers, or of what else makes the graph longer: from 1 to 4096.
ZooParameter ZooCount(std::string name, int64_t value);

struct ZooModel {
  std::string name;
  std::string description;  // one line
  // One is `batch`: by default that of one node of four GPUs, four times what the paper gives for
  // one, or what the paper has.
  std::vector<ZooParameter> parameters;
  absl::StatusOr<Model> (*build)(const ZooArguments& arguments);

  // Settings that make it small, "hidden=8&batch=16": it runs on a laptop, and splits over 16
  // devices.
  std::string small = {};

  // For docs/models.md. What it is built after: a paper with its table or section, or the code of
  // its authors.
  std::string source = {};
  // The parameters that a source counts, and for which configuration; 0: none counts them.
  int64_t published_parameters = 0;
  std::string published_for = {};  // settings, "aux=1"; empty: the defaults
  // What is different from the source.
  std::string notes = {};
};

const std::vector<ZooModel>& ListModels();
// "zoo:mlp" and so on.
std::vector<std::string> ZooWords();

// `spec` is NAME or NAME?key=value&key=value, without "zoo:". The batch size, when not 0, is the
// parameter `batch`. Errors begin with "zoo:" and the name:
//   "zoo:mlp: no parameter 'width'; there are layers=2, hidden=256, ..."
absl::StatusOr<Model> BuildZooModel(absl::string_view spec, int64_t batch_size = 0);

}  // namespace isomer

#endif  // ISOMER_MODELS_ZOO_ZOO_H_
