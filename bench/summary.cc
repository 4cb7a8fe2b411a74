#include "bench/summary.h"

#include <google/protobuf/util/json_util.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "pcg/support/file.h"
#include "pcg/support/status_macros.h"

namespace isomer {

absl::StatusOr<Summary> Summary::Read(const std::string& path) {
  ISOMER_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Summary summary;
  if (!google::protobuf::util::JsonStringToMessage(text, &summary.root_).ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is not a summary in JSON"));
  }
  return summary;
}

const google::protobuf::Value* Summary::Find(const std::string& path) const {
  const google::protobuf::Struct* at = &root_;
  const google::protobuf::Value* value = nullptr;
  for (const std::string& key : std::vector<std::string>(absl::StrSplit(path, '.'))) {
    if (at == nullptr) return nullptr;
    const auto found = at->fields().find(key);
    if (found == at->fields().end()) return nullptr;
    value = &found->second;
    at = value->has_struct_value() ? &value->struct_value() : nullptr;
  }
  return value;
}

absl::StatusOr<double> Summary::Number(const std::string& path) const {
  const google::protobuf::Value* value = Find(path);
  if (value == nullptr || value->kind_case() != google::protobuf::Value::kNumberValue) {
    return absl::NotFoundError(absl::StrCat("no number ", path, " in the summary"));
  }
  return value->number_value();
}

absl::StatusOr<std::string> Summary::Text(const std::string& path) const {
  const google::protobuf::Value* value = Find(path);
  if (value == nullptr || value->kind_case() != google::protobuf::Value::kStringValue) {
    return absl::NotFoundError(absl::StrCat("no text ", path, " in the summary"));
  }
  return value->string_value();
}

}  // namespace isomer
