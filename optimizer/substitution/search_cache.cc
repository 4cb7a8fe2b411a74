#include "optimizer/substitution/search_cache.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "optimizer/code_digest.h"
#include "optimizer/substitution/search_cache.pb.h"
#include "pcg/ir/declared_operator.h"
#include "pcg/ir/derivation_proto.h"
#include "pcg/support/cache_folder.h"
#include "pcg/support/digest.h"
#include "pcg/support/hash.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr char kFileKind[] = "search";
// A context with more entries is reset.
constexpr size_t kMostPieces = 4096;

}  // namespace

std::string SearchCache::DefaultFolder() { return CacheFolder("searches"); }

SearchCache::SearchCache(std::string folder, uint64_t context)
    : folder_(std::move(folder)), context_(context) {
  std::error_code error;
  if (folder_.empty() || !std::filesystem::exists(path(), error)) return;
  proto::SearchCache message;
  if (const absl::Status read = LoadProto(path(), kFileKind, &message); !read.ok()) {
    note_ = absl::StrCat("the cache of searches is ignored: ", std::string(read.message()));
    return;
  }
  if (message.context() != context_ || static_cast<size_t>(message.pieces_size()) > kMostPieces) {
    return;
  }
  for (const proto::SearchCache::Piece& piece : message.pieces()) {
    std::vector<Steps>& candidates = pieces_[piece.key()];
    for (const proto::SearchCache::Candidate& candidate : piece.candidates()) {
      Steps& steps = candidates.emplace_back();
      for (const auto& step : candidate.steps()) {
        absl::StatusOr<DerivationStep> parsed = FromProto(step);
        if (!parsed.ok()) {
          note_ = absl::StrCat("the cache of searches is ignored: ", parsed.status().message());
          pieces_.clear();
          return;
        }
        steps.push_back(*std::move(parsed));
      }
    }
  }
}

std::string SearchCache::path() const { return absl::StrCat(folder_, "/", DigestString(context_)); }

const std::vector<SearchCache::Steps>* SearchCache::Find(uint64_t piece) const {
  const auto found = pieces_.find(piece);
  return found == pieces_.end() ? nullptr : &found->second;
}

void SearchCache::Put(uint64_t piece, std::vector<Steps> candidates) {
  if (folder_.empty()) return;
  pieces_[piece] = std::move(candidates);
  changed_ = true;
}

absl::Status SearchCache::Save() {
  if (!changed_) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return absl::InvalidArgumentError(absl::StrCat(folder_, ": ", error.message()));
  proto::SearchCache message;
  message.set_context(context_);
  for (const auto& [key, candidates] : pieces_) {
    proto::SearchCache::Piece* piece = message.add_pieces();
    piece->set_key(key);
    for (const Steps& steps : candidates) {
      proto::SearchCache::Candidate* candidate = piece->add_candidates();
      for (const DerivationStep& step : steps) ToProto(step, candidate->add_steps());
    }
  }
  ISOMER_RETURN_IF_ERROR(SaveProto(path(), kFileKind, message));
  changed_ = false;
  return absl::OkStatus();
}

uint64_t DigestOfCosts(const CostTables& tables, const std::vector<const Rule*>& algebra) {
  Digest digest;
  digest.Add(kSearchCodeDigest);
  digest.Add(DeclaredOperatorsDigest());
  // An id is a digest of its rule.
  for (const Rule* rule : algebra) digest.Add(rule->id);
  digest.Add(tables.cost().machine(), tables.options());
  if (const Profile* profile = tables.cost().profile(); profile != nullptr) digest.Add(*profile);
  return digest.value();
}

}  // namespace isomer
