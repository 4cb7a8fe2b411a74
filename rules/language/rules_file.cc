// Rules files.
#include <algorithm>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"
#include "pcg/support/file.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"
#include "rules/language/rule_proto.h"

namespace isomer {
namespace {

// Above so many rules a thread more reads them.
constexpr int kRulesOfAThread = 250;
constexpr int kMostThreads = 4;

// Errors name the file and the rule, by its id or else by its place.
absl::Status Refuse(const std::string& path, const std::string& id, size_t place,
                    absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": rule ", id.empty() ? absl::StrCat("number ", place) : id, ": ", why));
}

// Reads rules first, first + 1, .. end - 1 into `rules`.
absl::Status ReadSome(const std::string& path, const proto::SerializedRuleSet& in, int first,
                      int end, Rule* rules) {
  // Every rule's message lies where the last one's was: no allocation, warm caches.
  std::vector<char> block(1 << 16);
  google::protobuf::ArenaOptions options;
  options.initial_block = block.data();
  options.initial_block_size = block.size();
  google::protobuf::Arena arena(options);
  for (int i = first; i < end; ++i) {
    auto* message = google::protobuf::Arena::CreateMessage<proto::Rule>(&arena);
    if (!message->ParseFromString(in.rules(i))) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": damaged: it holds what is no rule"));
    }
    absl::StatusOr<Rule> rule = isomer::FromProto(*message);
    if (!rule.ok()) return Refuse(path, message->id(), i, rule.status().message());
    rules[i] = *std::move(rule);
    arena.Reset();
  }
  return absl::OkStatus();
}

// The error is that of the first rule in the file that has one, however many threads read.
absl::Status ReadBinary(const std::string& path, const std::string& contents, RuleSet* rules) {
  proto::SerializedRuleSet in;
  ISOMER_RETURN_IF_ERROR(ParseProto(contents, path, "rules", &in));
  rules->generator = in.generator();
  rules->rules.resize(in.rules_size());
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int parts = std::min({cores, kMostThreads, 1 + in.rules_size() / kRulesOfAThread});
  std::vector<absl::Status> statuses(parts);
  auto read = [&](int part) {
    const int64_t count = in.rules_size();
    statuses[part] = ReadSome(path, in, static_cast<int>(count * part / parts),
                              static_cast<int>(count * (part + 1) / parts), rules->rules.data());
  };
  std::vector<std::thread> threads;
  for (int part = 1; part < parts; ++part) threads.emplace_back(read, part);
  read(0);
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) ISOMER_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::Status ReadText(const std::string& path, const std::string& contents, RuleSet* rules) {
  proto::RuleSet in;
  ISOMER_RETURN_IF_ERROR(ParseProto(contents, path, "rules", &in));
  rules->generator = in.generator();
  for (const proto::Rule& message : in.rules()) {
    absl::StatusOr<Rule> rule = isomer::FromProto(message);
    if (!rule.ok()) {
      return Refuse(path, message.id(), rules->rules.size(), rule.status().message());
    }
    rules->rules.push_back(*std::move(rule));
  }
  return absl::OkStatus();
}

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
  RuleSet rules;
  ISOMER_RETURN_IF_ERROR(IsBinaryForm(contents) ? ReadBinary(path, contents, &rules)
                                                : ReadText(path, contents, &rules));
  absl::flat_hash_set<absl::string_view> ids;
  ids.reserve(rules.rules.size());
  for (size_t i = 0; i < rules.rules.size(); ++i) {
    const std::string& id = rules.rules[i].id;
    if (!ids.insert(id).second) return Refuse(path, id, i, "occurs twice");
  }
  rules.BuildIndex();
  return rules;
}

}  // namespace isomer
