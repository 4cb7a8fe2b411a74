// Rules files.
#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/arena.h"
#include "pcg/ir/declared_operator.h"
#include "pcg/support/data_path.h"
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

// Rules of a declared operator are about the declaration with which they were proved.
template <typename Message>
absl::Status CheckDeclarations(const std::string& path, const Message& message) {
  for (const proto::DeclaredOperator& declared : message.declared_operators()) {
    const absl::StatusOr<OpKind> kind = ParseOpKind(declared.name());
    if (!kind.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": rules of operator '", declared.name(),
                       "', which nothing declares; --operators=FILE does"));
    }
    if (DeclarationDigest(*kind) != declared.digest()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": rules of operator '", declared.name(),
                       "' that were proved of another declaration; make them again"));
    }
  }
  return absl::OkStatus();
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
  ISOMER_RETURN_IF_ERROR(CheckDeclarations(path, in));
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
  ISOMER_RETURN_IF_ERROR(CheckDeclarations(path, in));
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

void AddDeclared(const Rule& rule, std::set<OpKind>* declared) {
  for (const Pattern* pattern : {&rule.source, &rule.target}) {
    for (const PatternNode& node : pattern->nodes) {
      if (!IsBuiltIn(node.kind)) declared->insert(node.kind);
    }
  }
}

}  // namespace

absl::Status SaveRules(const std::string& path, const RuleSet& rules) {
  proto::RuleSet out;
  out.set_generator(rules.generator);
  const bool for_people = IsTextName(path);
  std::set<OpKind> declared;
  for (const Rule& rule : rules.rules) {
    *out.add_rules() = ToProto(rule, for_people);
    AddDeclared(rule, &declared);
  }
  for (const OpKind kind : declared) {
    proto::DeclaredOperator* const message = out.add_declared_operators();
    message->set_name(std::string(OpName(kind)));
    message->set_digest(DeclarationDigest(kind));
  }
  return SaveProto(path, "rules", out);
}

absl::StatusOr<RuleSet> LoadRuleFiles(const std::string& list) {
  const std::string shipped = DataPath("rules/default.rules");
  if (list.empty()) return LoadRules(shipped);
  std::error_code error;
  if (std::filesystem::exists(list, error)) return LoadRules(list);  // of a name with a comma, too
  RuleSet all;
  absl::flat_hash_set<std::string> ids;
  for (const absl::string_view name : absl::StrSplit(list, ',')) {
    if (name.empty()) return absl::InvalidArgumentError("--rules: a name in the list is empty");
    ISOMER_ASSIGN_OR_RETURN(RuleSet one,
                            LoadRules(name == "default" ? shipped : std::string(name)));
    for (Rule& rule : one.rules) {
      if (ids.insert(rule.id).second) all.rules.push_back(std::move(rule));
    }
    all.file_ends.push_back(all.rules.size());
    absl::StrAppend(&all.generator, all.generator.empty() ? "" : "; ", one.generator);
  }
  all.BuildIndex();
  return all;
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
