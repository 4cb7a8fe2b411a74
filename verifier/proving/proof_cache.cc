#include "verifier/proving/proof_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/ir/declared_operator.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"
#include "rules/language/rule_proto.h"
#include "verifier/code_digest.h"
#include "verifier/proving/proofs.pb.h"
#include "verifier/terms/smt.h"

namespace isomer {
namespace {

constexpr char kFileKind[] = "proofs";

// Nobody but this user, and root, can have written the file, or put it into the folder in place of
// another.
bool IsOnlyOurs(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return false;
  const bool owned = status.st_uid == geteuid() || status.st_uid == 0;
  const bool sticky = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
  return owned && (sticky || (status.st_mode & (S_IWGRP | S_IWOTH)) == 0);
}

}  // namespace

std::string ProverVersion() {
  const uint64_t declared = DeclaredOperatorsDigest();
  return absl::StrCat(kProverCodeDigest, " ", SolverName(),
                      declared == 0 ? "" : absl::StrCat(" ", declared));
}

std::string ProofCache::DefaultPath() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return absl::StrCat(cache, "/isomer/proofs");
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return "";
  return absl::StrCat(home, "/.cache/isomer/proofs");
}

ProofCache::ProofCache(std::string path, std::string prover)
    : path_(std::move(path)), prover_(std::move(prover)) {
  std::error_code error;
  if (path_.empty() || !std::filesystem::exists(path_, error)) return;
  for (const std::filesystem::path& place :
       {std::filesystem::path(path_), std::filesystem::absolute(path_, error).parent_path()}) {
    if (IsOnlyOurs(place.string())) continue;
    note_ = absl::StrCat("the cache of proofs is ignored: others may write ", place.string());
    return;
  }
  proto::ProofCache message;
  if (const absl::Status read = LoadProto(path_, kFileKind, &message); !read.ok()) {
    note_ = absl::StrCat("the cache of proofs is ignored: ", std::string(read.message()));
    return;
  }
  if (message.prover() != prover_) {
    note_ = absl::StrCat("the proofs in ", path_, " are another prover's and are ignored");
    return;
  }
  for (const proto::ProofCache::Entry& entry : message.entries()) {
    absl::StatusOr<ProofRecord> record = FromProto(entry.proof());
    if (record.ok()) records_[entry.rule()] = *std::move(record);
  }
}

std::string ProofCache::KeyOf(const Rule& rule) {
  proto::Rule message = ToProto(rule, /*with_text=*/false);
  message.clear_id();
  message.clear_origin();
  message.clear_proof();
  return message.SerializeAsString();  // It has no maps: equal for equal rules.
}

std::optional<ProofRecord> ProofCache::Find(const Rule& rule) const {
  const auto found = records_.find(KeyOf(rule));
  if (found == records_.end()) return std::nullopt;
  return found->second;
}

void ProofCache::Put(const Rule& rule, const ProofRecord& record) {
  records_[KeyOf(rule)] = record;
  changed_ = true;
}

absl::Status ProofCache::Save() {
  if (!changed_ || path_.empty()) return absl::OkStatus();
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) return absl::InvalidArgumentError(absl::StrCat(path_, ": ", error.message()));
  proto::ProofCache message;
  message.set_prover(prover_);
  for (const auto& [key, record] : records_) {
    proto::ProofCache::Entry* entry = message.add_entries();
    entry->set_rule(key);
    *entry->mutable_proof() = ToProto(record);
  }
  ISOMER_RETURN_IF_ERROR(SaveProto(path_, kFileKind, message));
  changed_ = false;
  return absl::OkStatus();
}

}  // namespace isomer
