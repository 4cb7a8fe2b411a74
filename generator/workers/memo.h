// Results of earlier runs: what a step computes is a function of its input, so it is kept under a
// digest of the step and the input. A run that was killed goes on where it stopped, and a run after
// a change computes only what the change touches.
//
// A memo is one file that only grows, "memo.log" in the folder of a run:
//
//   offset  bytes
//        0      8  "ISOMEMO\n"
//        8      8  version of the format
//       16         records
//
//   record: 8  marker
//           8  size of the payload
//          16  key
//           8  HashBytes of the payload, seeded with the digest of the size and the key
//              payload
//
// Integers are little-endian. A record is written by one call at the end of the file, so a killed
// run leaves at most a part of the last one, which is cut off. Damage in the middle costs the
// records that it lies in: reading goes on at the next marker.
//
// A run of many ranks has a log for each but rank 0, "memo.rank-3.<digest>.log": what a rank finds
// is there before rank 0 knows of it. The next run puts what they have into its own, by key, and
// removes them.
#ifndef ISOMER_GENERATOR_WORKERS_MEMO_H_
#define ISOMER_GENERATOR_WORKERS_MEMO_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isomer {

// Of 128 bits, since what is found under a key is taken for the result of its input.
using MemoKey = std::array<uint64_t, 2>;
MemoKey MemoKeyOf(absl::string_view text);

// Safe to use from several threads.
class Memo {
 public:
  struct Counts {
    int64_t hits = 0, misses = 0;
  };

  // One that keeps nothing.
  Memo() = default;
  // The memo of a folder, which is made if it does not exist. Errors, which name the path: it is no
  // folder, cannot be written, is in use by another run, or its log has another version. Takes over
  // the logs of ranks that are not in use; those that cannot be read stay where they are, and a
  // note says so.
  static absl::StatusOr<std::unique_ptr<Memo>> Open(const std::string& folder);
  // A new log of one rank, whose folder another process has made its own.
  static absl::StatusOr<std::unique_ptr<Memo>> OpenLogOfRank(const std::string& folder, int rank);
  ~Memo();
  Memo(const Memo&) = delete;
  Memo& operator=(const Memo&) = delete;

  // `step` is what the look-up is counted under.
  std::optional<std::string> Find(const std::string& step, const MemoKey& key);
  void Put(const MemoKey& key, absl::string_view payload);

  std::map<std::string, Counts> counts() const;
  // What was wrong with the log and those of ranks, a line each, for people.
  const std::vector<std::string>& notes() const { return notes_; }
  // The first error of Put: a full disk.
  absl::Status status() const;

 private:
  struct Place {
    int64_t offset = 0;  // of the payload
    int64_t size = 0;
  };
  static absl::StatusOr<std::unique_ptr<Memo>> OpenLog(const std::string& folder,
                                                       const std::string& name);
  absl::Status Lock(const std::string& folder);
  absl::Status ReadLog();
  absl::Status TakeOverLogsOfRanks(const std::string& folder);
  void TakeOver(const Memo& other);
  std::optional<std::string> PayloadAt(const Place& place) const;
  void Append(const std::string& record);

  std::string path_;
  int file_ = -1;
  std::vector<std::string> notes_;

  mutable std::mutex mutex_;  // guards what follows
  absl::flat_hash_map<MemoKey, Place> places_;
  std::map<std::string, Counts> counts_;
  int64_t end_ = 0;
  int64_t synced_ = 0;
  absl::Status status_;
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_WORKERS_MEMO_H_
