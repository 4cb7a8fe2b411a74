#include "verifier/audit/read_rules.h"

#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "pcg/support/file.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"
#include "verifier/audit/foreign.pb.h"

namespace isomer {
namespace {

constexpr size_t kMaxBytes = 256 << 20;
constexpr int kMaxRules = 100000;

absl::StatusOr<ForeignTensor> ReadTensor(const proto::ForeignTensor& message) {
  if (!message.has_op_id() || !message.has_ts_id()) {
    return absl::InvalidArgumentError("an input lacks opId or tsId");
  }
  return ForeignTensor{message.op_id(), message.ts_id()};
}

absl::StatusOr<std::string> ReadName(const proto::TasoOperator& op) {
  const absl::string_view name = TasoOperatorName(op.has_type() ? op.type() : -1);
  if (!name.empty()) return std::string(name);
  return absl::InvalidArgumentError(op.has_type()
                                        ? absl::StrCat("operator type ", op.type(), " is unknown")
                                        : "an operator has no type");
}

absl::StatusOr<std::string> ReadName(const proto::UnityOperator& op) {
  if (IsUnityOperator(op.type())) return op.type();
  return absl::InvalidArgumentError(absl::StrCat("operator type '", op.type(), "' is unknown"));
}

absl::StatusOr<std::string> ReadKey(const proto::TasoParameter& parameter) {
  const absl::string_view name = TasoParameterName(parameter.has_key() ? parameter.key() : -1);
  if (!name.empty()) return std::string(name);
  return absl::InvalidArgumentError(absl::StrCat("parameter ", parameter.key(), " is unknown"));
}

// Files name the dim and the degree of parallel operators in two ways.
absl::StatusOr<std::string> ReadKey(const proto::UnityParameter& parameter) {
  const std::string& key = parameter.key();
  if (!IsUnityParameter(key)) {
    return absl::InvalidArgumentError(absl::StrCat("parameter '", key, "' is unknown"));
  }
  for (const char* prefix : {"PM_REPARTITION_", "PM_REPLICATE_", "PM_COMBINE_", "PM_REDUCTION_"}) {
    if (absl::StartsWith(key, prefix)) return absl::StrReplaceAll(key, {{prefix, "PM_PARALLEL_"}});
  }
  return key;
}

template <typename Operator>
absl::StatusOr<ForeignOperator> ReadOperator(const Operator& message) {
  ForeignOperator op;
  ISOMER_ASSIGN_OR_RETURN(op.type, ReadName(message));
  for (const auto& input : message.input()) {
    ISOMER_ASSIGN_OR_RETURN(const ForeignTensor tensor, ReadTensor(input));
    op.inputs.push_back(tensor);
  }
  for (const auto& parameter : message.para()) {
    ISOMER_ASSIGN_OR_RETURN(const std::string key, ReadKey(parameter));
    if (!parameter.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("parameter ", key, " has no value"));
    }
    if (!op.parameters.emplace(key, parameter.value()).second) {
      return absl::InvalidArgumentError(absl::StrCat("parameter ", key, " is given twice"));
    }
  }
  return op;
}

template <typename Operators>
absl::Status ReadSide(const Operators& messages, absl::string_view side,
                      std::vector<ForeignOperator>* ops) {
  for (const auto& message : messages) {
    absl::StatusOr<ForeignOperator> op = ReadOperator(message);
    if (!op.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(side, " operator ", ops->size(), ": ", op.status().message()));
    }
    ops->push_back(*std::move(op));
  }
  return absl::OkStatus();
}

template <typename Rule>
absl::Status ReadRule(const Rule& message, ForeignRule* rule) {
  ISOMER_RETURN_IF_ERROR(ReadSide(message.src_op(), "source", &rule->source));
  ISOMER_RETURN_IF_ERROR(ReadSide(message.dst_op(), "target", &rule->target));
  for (const proto::ForeignMapOutput& output : message.mapped_output()) {
    if (!output.has_src_op_id() || !output.has_dst_op_id() || !output.has_src_ts_id() ||
        !output.has_dst_ts_id()) {
      return absl::InvalidArgumentError("a mapped output lacks an id");
    }
    rule->outputs.push_back(
        {{output.src_op_id(), output.src_ts_id()}, {output.dst_op_id(), output.dst_ts_id()}});
  }
  return CheckAndSort(rule);
}

std::string NameOf(const proto::TasoRule&, int index) { return absl::StrCat("rule ", index); }
std::string NameOf(const proto::UnityRule& rule, int index) {
  return rule.name().empty() ? absl::StrCat("rule ", index) : rule.name();
}

template <typename Collection>
absl::StatusOr<std::vector<ForeignRule>> ReadCollection(const std::string& path,
                                                        const Collection& collection) {
  if (collection.rule_size() == 0 || collection.rule_size() > kMaxRules) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has ", collection.rule_size(), " rules, not 1 to ", kMaxRules));
  }
  std::vector<ForeignRule> rules;
  for (const auto& message : collection.rule()) {
    ForeignRule rule;
    rule.name = NameOf(message, static_cast<int>(rules.size()));
    if (absl::Status status = ReadRule(message, &rule); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": ", rule.name, ": ", status.message()));
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

absl::StatusOr<std::string> ReadBounded(const std::string& path) {
  ISOMER_ASSIGN_OR_RETURN(std::string contents, ReadFile(path));
  if (contents.size() > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is larger than 256 MiB"));
  }
  return contents;
}

// The first error of a text form, as line:column: message.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text.empty()) text = absl::StrCat(line + 1, ":", column + 1, ": ", message);
  }
  std::string text;
};

}  // namespace

absl::StatusOr<std::vector<ForeignRule>> ReadTasoRules(const std::string& path) {
  ISOMER_ASSIGN_OR_RETURN(const std::string contents, ReadBounded(path));
  proto::TasoRuleCollection collection;
  if (IsTextName(path)) {
    google::protobuf::TextFormat::Parser parser;
    FirstError error;
    parser.RecordErrorsTo(&error);
    if (!parser.ParseFromString(contents, &collection)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ":", error.text));
    }
  } else if (!collection.ParseFromString(contents)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is cut short, or no RuleCollection of TASO"));
  }
  return ReadCollection(path, collection);
}

absl::StatusOr<std::vector<ForeignRule>> ReadUnityRules(const std::string& path) {
  ISOMER_ASSIGN_OR_RETURN(const std::string contents, ReadBounded(path));
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // "_t" names each object's type.
  proto::UnityRuleCollection collection;
  const auto status = google::protobuf::util::JsonStringToMessage(contents, &collection, options);
  if (!status.ok()) {
    // A line that says what, then the text around the place, then a mark below it.
    const std::string message = status.message().ToString();
    const std::vector<std::string> lines = absl::StrSplit(message, '\n');
    const std::string near = lines.size() > 1 ? lines[1] : "";
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", lines[0], near.empty() ? "" : absl::StrCat(" Near: ", near)));
  }
  return ReadCollection(path, collection);
}

}  // namespace isomer
