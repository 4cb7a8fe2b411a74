#include "generator/workers/memo.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "pcg/support/file.h"
#include "pcg/support/hash.h"
#include "pcg/support/little_endian.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Of names of logs of ranks.
constexpr absl::string_view kRankPrefix = "memo.rank-", kRankSuffix = ".log";
constexpr absl::string_view kMagic = "ISOMEMO\n";
constexpr uint64_t kVersion = 1;
constexpr int64_t kFileHeaderSize = 16;
constexpr uint64_t kMarker = 0x8fe3d1a95bc70264;
constexpr int64_t kRecordHeaderSize = 40;

uint64_t ChecksumOf(const MemoKey& key, absl::string_view payload) {
  return HashBytes(payload, HashCombine(payload.size(), key[0], key[1]));
}

std::string FileHeader() {
  std::string header(kMagic);
  AppendLittleEndian(kVersion, &header);
  return header;
}

std::string RecordOf(const MemoKey& key, absl::string_view payload) {
  std::string record;
  record.reserve(kRecordHeaderSize + payload.size());
  AppendLittleEndian(kMarker, &record);
  AppendLittleEndian<uint64_t>(payload.size(), &record);
  AppendLittleEndian(key[0], &record);
  AppendLittleEndian(key[1], &record);
  AppendLittleEndian(ChecksumOf(key, payload), &record);
  record.append(payload.data(), payload.size());
  return record;
}

// The size of the payload of the record that begins at `offset`; nullopt if none does.
std::optional<int64_t> RecordAt(absl::string_view bytes, int64_t offset, MemoKey* key) {
  const int64_t left = static_cast<int64_t>(bytes.size()) - offset - kRecordHeaderSize;
  if (left < 0 || LittleEndianAt<uint64_t>(bytes.data() + offset) != kMarker) return std::nullopt;
  const uint64_t size = LittleEndianAt<uint64_t>(bytes.data() + offset + 8);
  if (size > static_cast<uint64_t>(left)) return std::nullopt;
  *key = {LittleEndianAt<uint64_t>(bytes.data() + offset + 16),
          LittleEndianAt<uint64_t>(bytes.data() + offset + 24)};
  const uint64_t checksum = LittleEndianAt<uint64_t>(bytes.data() + offset + 32);
  if (checksum != ChecksumOf(*key, bytes.substr(offset + kRecordHeaderSize, size))) {
    return std::nullopt;
  }
  return static_cast<int64_t>(size);
}

absl::Status Refuse(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
}

}  // namespace

MemoKey MemoKeyOf(absl::string_view text) { return {HashBytes(text, 1), HashBytes(text, 2)}; }

absl::StatusOr<std::unique_ptr<Memo>> Memo::Open(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder, error)) {
    return Refuse(folder, error ? error.message() : "is not a folder");
  }
  ISOMER_ASSIGN_OR_RETURN(auto memo, OpenLog(folder, "memo.log"));
  ISOMER_RETURN_IF_ERROR(memo->TakeOverLogsOfRanks(folder));
  return memo;
}

// The name is that of no rank of another run, which may still be ending.
absl::StatusOr<std::unique_ptr<Memo>> Memo::OpenLogOfRank(const std::string& folder, int rank) {
  char computer[256] = {};
  gethostname(computer, sizeof computer - 1);
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const uint64_t digest = HashBytes(absl::StrCat(computer, " ", getpid(), " ", now));
  return OpenLog(folder, absl::StrCat(kRankPrefix, rank, ".", DigestString(digest), kRankSuffix));
}

absl::StatusOr<std::unique_ptr<Memo>> Memo::OpenLog(const std::string& folder,
                                                    const std::string& name) {
  auto memo = std::make_unique<Memo>();
  memo->path_ = absl::StrCat(folder, "/", name);
  ISOMER_RETURN_IF_ERROR(memo->Lock(folder));
  ISOMER_RETURN_IF_ERROR(memo->ReadLog());
  return memo;
}

absl::Status Memo::TakeOverLogsOfRanks(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (absl::StartsWith(name, kRankPrefix) && absl::EndsWith(name, kRankSuffix)) {
      names.insert(name);
    }
  }
  for (const std::string& name : names) {
    const auto other = OpenLog(folder, name);
    if (absl::IsUnavailable(other.status()))
      continue;  // Its rank has not ended: the next run has it.
    if (!other.ok()) {
      notes_.push_back(absl::StrCat(other.status().message(), "; what is in it is not used"));
      continue;
    }
    notes_.insert(notes_.end(), (*other)->notes_.begin(), (*other)->notes_.end());
    TakeOver(**other);
    ISOMER_RETURN_IF_ERROR(status_);
    if (fdatasync(file_) != 0) return Refuse(path_, std::strerror(errno));
    unlink((*other)->path_.c_str());
  }
  return absl::OkStatus();
}

void Memo::TakeOver(const Memo& other) {
  for (const auto& [key, place] : other.places_) {
    if (places_.contains(key)) continue;
    if (const std::optional<std::string> payload = other.PayloadAt(place)) Put(key, *payload);
  }
}

// A lock of POSIX, which ends with the process and which children do not inherit.
absl::Status Memo::Lock(const std::string& folder) {
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) return Refuse(path_, std::strerror(errno));
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(file_, F_SETLK, &lock) == 0) return absl::OkStatus();
  if (errno != EACCES && errno != EAGAIN) return Refuse(folder, std::strerror(errno));
  return absl::UnavailableError(absl::StrCat(folder, ": another run is using this folder"));
}

absl::Status Memo::ReadLog() {
  std::string bytes;
  // Through the open file: closing another one of this path would end the lock.
  struct stat state;
  if (fstat(file_, &state) != 0) return Refuse(path_, std::strerror(errno));
  bytes.resize(state.st_size);
  for (int64_t done = 0; done < state.st_size;) {
    const ssize_t count = pread(file_, bytes.data() + done, bytes.size() - done, done);
    if (count <= 0) return Refuse(path_, "cannot be read");
    done += count;
  }
  const std::string header = FileHeader();
  if (bytes.size() < header.size() && absl::string_view(header).substr(0, bytes.size()) == bytes) {
    // New, or killed as it was made.
    if (ftruncate(file_, 0) != 0) return Refuse(path_, std::strerror(errno));
    Append(header);
    return status_;
  }
  if (absl::string_view(bytes).substr(0, kMagic.size()) != kMagic) {
    return Refuse(path_, "is no log of results; name another folder");
  }
  if (LittleEndianAt<uint64_t>(bytes.data() + 8) != kVersion) {
    return Refuse(path_, absl::StrCat("has version ", LittleEndianAt<uint64_t>(bytes.data() + 8),
                                      ", not ", kVersion, "; remove it or name another folder"));
  }
  std::string marker;
  AppendLittleEndian(kMarker, &marker);
  int64_t damaged = 0;
  for (int64_t at = kFileHeaderSize; at < static_cast<int64_t>(bytes.size());) {
    MemoKey key;
    const std::optional<int64_t> size = RecordAt(bytes, at, &key);
    if (size.has_value()) {
      places_[key] = {at + kRecordHeaderSize, *size};
      at += kRecordHeaderSize + *size;
      end_ = at;
      continue;
    }
    const size_t next = bytes.find(marker, at + 1);
    const int64_t to = static_cast<int64_t>(next == bytes.npos ? bytes.size() : next);
    damaged += to - at;
    at = to;
  }
  end_ = std::max(end_, kFileHeaderSize);
  const int64_t tail = static_cast<int64_t>(bytes.size()) - end_;
  // The tail of a killed run is no damage.
  if (damaged > tail) {
    notes_.push_back(absl::StrCat(path_, ": ", damaged - tail, " damaged bytes are passed over"));
  }
  if (ftruncate(file_, end_) != 0) return Refuse(path_, std::strerror(errno));
  synced_ = end_;
  return absl::OkStatus();
}

Memo::~Memo() {
  if (file_ < 0) return;
  fdatasync(file_);
  close(file_);
}

std::optional<std::string> Memo::PayloadAt(const Place& place) const {
  std::string payload(place.size, '\0');
  const ssize_t count = pread(file_, payload.data(), payload.size(), place.offset);
  if (count != static_cast<ssize_t>(payload.size())) return std::nullopt;
  return payload;
}

std::optional<std::string> Memo::Find(const std::string& step, const MemoKey& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = places_.find(key);
  std::optional<std::string> payload;
  if (found != places_.end()) payload = PayloadAt(found->second);
  ++(payload.has_value() ? counts_[step].hits : counts_[step].misses);
  return payload;
}

void Memo::Put(const MemoKey& key, absl::string_view payload) {
  if (file_ < 0) return;
  const std::string record = RecordOf(key, payload);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!status_.ok()) return;
  Append(record);
  if (!status_.ok()) return;
  places_[key] = {end_ - static_cast<int64_t>(payload.size()),
                  static_cast<int64_t>(payload.size())};
  // What a killed program wrote is in the file; this is for machines that lose power.
  constexpr int64_t kSyncEvery = 16 << 20;
  if (end_ - synced_ < kSyncEvery) return;
  fdatasync(file_);
  synced_ = end_;
}

void Memo::Append(const std::string& record) {
  for (size_t done = 0; done < record.size();) {
    const ssize_t count = pwrite(file_, record.data() + done, record.size() - done, end_ + done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      status_ = Refuse(path_, std::strerror(errno));
      return;
    }
    done += static_cast<size_t>(count);
  }
  end_ += static_cast<int64_t>(record.size());
}

std::map<std::string, Memo::Counts> Memo::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

absl::Status Memo::status() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

}  // namespace isomer
