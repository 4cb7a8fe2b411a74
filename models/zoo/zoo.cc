#include "models/zoo/zoo.h"

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "models/zoo/models.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::StatusOr<const ZooModel*> FindModel(const std::string& name) {
  std::vector<std::string> names;
  for (const ZooModel& model : ListModels()) {
    if (model.name == name) return &model;
    names.push_back(model.name);
  }
  return absl::NotFoundError(absl::StrCat(
      "zoo:", absl::CHexEscape(name), ": no such network; there are ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<const ZooParameter*> FindParameter(const ZooModel& model, const std::string& name) {
  std::vector<std::string> known;
  for (const ZooParameter& parameter : model.parameters) {
    if (parameter.name == name) return &parameter;
    known.push_back(absl::StrCat(parameter.name, "=", parameter.value));
  }
  return absl::InvalidArgumentError(absl::StrCat("zoo:", model.name, ": no parameter '",
                                                 absl::CHexEscape(name), "'; there are ",
                                                 absl::StrJoin(known, ", ")));
}

// Reads key=value into `arguments`.
absl::Status SetArgument(const ZooModel& model, absl::string_view setting,
                         ZooArguments* arguments) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(setting, absl::MaxSplits('=', 1));
  ISOMER_ASSIGN_OR_RETURN(const ZooParameter* const parameter, FindParameter(model, parts.first));
  int64_t value;
  if (!absl::SimpleAtoi(parts.second, &value) || value < parameter->smallest ||
      value > parameter->largest) {
    return absl::InvalidArgumentError(
        absl::StrCat("zoo:", model.name, ": ", parts.first, " is '", absl::CHexEscape(parts.second),
                     "', not an integer from ", parameter->smallest, " to ", parameter->largest));
  }
  (*arguments)[parts.first] = value;
  return absl::OkStatus();
}

}  // namespace

ZooParameter ZooSwitch(std::string name, bool value) {
  return {.name = std::move(name), .value = value ? 1 : 0, .smallest = 0, .largest = 1};
}

ZooParameter ZooCount(std::string name, int64_t value) {
  return {.name = std::move(name), .value = value, .smallest = 1, .largest = 4096};
}

std::vector<std::string> ZooWords() {
  std::vector<std::string> words;
  for (const ZooModel& model : ListModels()) words.push_back(absl::StrCat("zoo:", model.name));
  return words;
}

const std::vector<ZooModel>& ListModels() {
  static const auto* const models = new std::vector<ZooModel>{
      DigitsCnn(),  Encoder(),                                                                 //
      Resnext50(),  InceptionV3(), BertLarge(), Dlrm(),     Xdl(),        CandleUno(), Mlp(),  //
      AlexNet(),    Resnet101(),   Rnntc(),     Rnnlm(),    Nmt(),        LeNet(),             //
      SqueezeNet(), Vgg19(),       NasnetA(),   Nasrnn(),   GshardMoe(),  Gpt(),       Gpt175B(),
      Llama(),      Llama70B(),    Llama405B(), Mixtral(),  Vit(),        Unet(),      Gemma2(),
      T5(),         Swin(),        ConvNext(),  Qwen3Moe(), DeepSeekV3(), GptOss20B(),
  };
  return *models;
}

absl::StatusOr<Model> BuildZooModel(absl::string_view spec, int64_t batch_size) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(spec, absl::MaxSplits('?', 1));
  ISOMER_ASSIGN_OR_RETURN(const ZooModel* const zoo_model, FindModel(parts.first));
  ZooArguments arguments;
  for (const ZooParameter& parameter : zoo_model->parameters) {
    arguments[parameter.name] = parameter.value;
  }
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
