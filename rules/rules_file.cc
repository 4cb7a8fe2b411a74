// Rules files.
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"
#include "pcg/support/file.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"
#include "rules/rule_proto.h"

namespace isomer {
namespace {

// Rules of a file, one after another.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  void Begin(const std::string& generator, int num_rules) {
    rules_.generator = generator;
    rules_.rules.reserve(num_rules);
    ids_.reserve(num_rules);
  }

  absl::Status Add(const proto::Rule& from) {
    absl::StatusOr<Rule> rule = FromProto(from);
    if (!rule.ok()) return Refuse(from, rule.status().message());
    if (!ids_.insert(rule->id).second) return Refuse(from, "occurs twice");
    rules_.rules.push_back(*std::move(rule));
    return absl::OkStatus();
  }

  RuleSet Finish() && {
    rules_.BuildIndex();
    return std::move(rules_);
  }

 private:
  absl::Status Refuse(const proto::Rule& rule, absl::string_view why) const {
    const std::string name =
        rule.id().empty() ? absl::StrCat("number ", rules_.rules.size()) : rule.id();
    return absl::InvalidArgumentError(absl::StrCat(path_, ": rule ", name, ": ", why));
  }

  const std::string& path_;
  RuleSet rules_;
  absl::flat_hash_set<std::string> ids_;
};

}  // namespace

absl::Status SaveRules(const std::string& path, const RuleSet& rules) {
  proto::RuleSet out;
  out.set_generator(rules.generator);
  const bool for_people = IsTextName(path);
  for (const Rule& rule : rules.rules) *out.add_rules() = ToProto(rule, for_people);
  return SaveProto(path, "rules", out);
}

absl::StatusOr<RuleSet> LoadRules(const std::string& path) {
  ISOMER_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  Reader reader(path);
  if (IsBinaryForm(contents)) {
    proto::SerializedRuleSet in;
    ISOMER_RETURN_IF_ERROR(ParseProto(contents, path, "rules", &in));
    reader.Begin(in.generator(), in.rules_size());
    // Every rule's message lies where the last one's was: no allocation, warm caches.
    std::vector<char> block(1 << 16);
    google::protobuf::ArenaOptions options;
    options.initial_block = block.data();
    options.initial_block_size = block.size();
    google::protobuf::Arena arena(options);
    for (const std::string& bytes : in.rules()) {
      auto* rule = google::protobuf::Arena::CreateMessage<proto::Rule>(&arena);
      if (!rule->ParseFromString(bytes)) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": damaged: it holds what is no rule"));
      }
      ISOMER_RETURN_IF_ERROR(reader.Add(*rule));
      arena.Reset();
    }
  } else {
    proto::RuleSet in;
    ISOMER_RETURN_IF_ERROR(ParseProto(contents, path, "rules", &in));
    reader.Begin(in.generator(), in.rules_size());
    for (const proto::Rule& rule : in.rules()) ISOMER_RETURN_IF_ERROR(reader.Add(rule));
  }
  return std::move(reader).Finish();
}

}  // namespace isomer
