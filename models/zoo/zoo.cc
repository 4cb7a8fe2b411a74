#include "models/zoo/zoo.h"

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr int64_t kLargestValue = int64_t{1} << 24;
constexpr int64_t kMostLayers = 4096;

absl::StatusOr<const ZooModel*> FindModel(const std::string& name) {
  std::vector<std::string> names;
  for (const ZooModel& model : ListModels()) {
    if (model.name == name) return &model;
    names.push_back(model.name);
  }
  return absl::NotFoundError(absl::StrCat(
      "zoo:", absl::CHexEscape(name), ": no such network; there are ", absl::StrJoin(names, ", ")));
}

// Reads key=value into `arguments`, which holds the defaults.
absl::Status SetArgument(const ZooModel& model, absl::string_view setting,
                         ZooArguments* arguments) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(setting, absl::MaxSplits('=', 1));
  const auto at = arguments->find(parts.first);
  if (at == arguments->end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "zoo:", model.name, ": no parameter '", absl::CHexEscape(parts.first), "'; there are ",
        absl::StrJoin(model.parameters, ", ", absl::PairFormatter("="))));
  }
  const int64_t smallest = parts.first == "vocabulary" ? 0 : 1;
  const int64_t largest = parts.first == "layers" ? kMostLayers : kLargestValue;
  int64_t value;
  if (!absl::SimpleAtoi(parts.second, &value) || value < smallest || value > largest) {
    return absl::InvalidArgumentError(
        absl::StrCat("zoo:", model.name, ": ", parts.first, " is '", absl::CHexEscape(parts.second),
                     "', not an integer from ", smallest, " to ", largest));
  }
  at->second = value;
  return absl::OkStatus();
}

}  // namespace

const std::vector<ZooModel>& ListModels() {
  static const auto* const models = new std::vector<ZooModel>{
      {"mlp",
       "layers of MatMul, bias and Relu on rows of features; logits",
       {{"layers", 2}, {"inputs", 64}, {"hidden", 256}, {"classes", 10}, {"batch", 64}},
       BuildMlp},
      {"digits_cnn",
       "two convolutions and two dense layers on images of side x side pixels; logits",
       {{"side", 8}, {"channels", 16}, {"hidden", 64}, {"classes", 10}, {"batch", 64}},
       BuildDigitsCnn},
      {"encoder",
       "post-LN transformer encoder as in BERT; token ids in, or vectors with vocabulary=0",
       {{"layers", 2},
        {"hidden", 64},
        {"heads", 4},
        {"intermediate", 256},
        {"vocabulary", 128},
        {"seq", 16},
        {"batch", 8}},
       BuildEncoder},
      {"bert_large",
       "the encoder at the size of BERT-Large (Devlin et al., 2019, table 1)",
       {{"layers", 24},
        {"hidden", 1024},
        {"heads", 16},
        {"intermediate", 4096},
        {"vocabulary", 30522},
        {"seq", 512},
        {"batch", 16}},
       BuildEncoder},
      {"dlrm",
       "deep learning recommendation model (Naumov et al., 2019), interaction by concatenation",
       {{"tables", 4},
        {"rows", 100000},
        {"hidden", 64},
        {"dense", 16},
        {"layers", 3},
        {"batch", 256}},
       BuildDlrm},
  };
  return *models;
}

absl::StatusOr<Model> BuildZooModel(absl::string_view spec, int64_t batch_size) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(spec, absl::MaxSplits('?', 1));
  ISOMER_ASSIGN_OR_RETURN(const ZooModel* const zoo_model, FindModel(parts.first));
  ZooArguments arguments(zoo_model->parameters.begin(), zoo_model->parameters.end());
  const int64_t default_batch = arguments["batch"];
  for (absl::string_view setting : absl::StrSplit(parts.second, '&', absl::SkipEmpty())) {
    ISOMER_RETURN_IF_ERROR(SetArgument(*zoo_model, setting, &arguments));
  }
  if (batch_size != 0) {
    if (arguments["batch"] != default_batch && arguments["batch"] != batch_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("zoo:", zoo_model->name, ": batch is ", arguments["batch"],
                       " here and --batch_size=", batch_size, "; give one of them"));
    }
    ISOMER_RETURN_IF_ERROR(SetArgument(*zoo_model, absl::StrCat("batch=", batch_size), &arguments));
  }
  absl::StatusOr<Model> model = zoo_model->build(arguments);
  if (!model.ok()) {
    return absl::Status(model.status().code(),
                        absl::StrCat("zoo:", zoo_model->name, ": ", model.status().message()));
  }
  model->name = zoo_model->name;
  return model;
}

}  // namespace isomer
