#include "runtime/communication/mpi_messages.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"
#include "runtime/communication/process_communicator.h"
#include "runtime/device/last_resort.h"

namespace isomer {
namespace {

using std::chrono::steady_clock;

// How long ranks wait for each other to end after an error, before they end without.
constexpr std::chrono::seconds kMpiPatience(10);
// What is said in errors_.
constexpr int kAbortTag = 0, kBeatTag = 1;
// Where threads have to share cores, and this rank computes, who waits looks again at once for so
// long, which small messages take, and then sleeps between looks: who looks all the time leaves
// half of the core to what computes there. (bench/overlap.sh 5 1 8 bert_base: of what is lost
// without overlap 80 % are lost if nobody ever sleeps, 69 % with 50 us of sleep, 59 % with 200, 81
// % with 1,000.)
constexpr std::chrono::microseconds kMpiSpin(50), kSleep(200);
// Looks between two at whether the job is given up, or too late.
constexpr int kLooksPerCheck = 256;

absl::Status MpiError(const char* call, int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return absl::InternalError(absl::StrCat(call, ": ", absl::string_view(text, length)));
}

// A tag for messages of one kind of call in one group; `largest` is the largest that MPI allows.
int TagOf(const char* call, absl::Span<const int32_t> group, int largest) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto add = [&hash](uint64_t byte) { hash = (hash ^ byte) * 1099511628211u; };
  for (const char* at = call; *at != 0; ++at) add(static_cast<uint8_t>(*at));
  for (int32_t member : group) add(static_cast<uint64_t>(member) + 256);
  return static_cast<int>((hash ^ (hash >> 32)) % static_cast<uint64_t>(largest));
}

int RankInWorld() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int RanksOfWorld() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

}  // namespace

MpiMessages::MpiMessages(const ProcessOptions& options, bool serves_other_threads)
    : options_(options),
      serves_other_threads_(serves_other_threads),
      liveness_(RankInWorld(), RanksOfWorld(), options.stall_timeout) {
  for (MPI_Comm& comm : data_) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &errors_);
  for (MPI_Comm comm : data_) MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (MPI_Comm comm : {MPI_COMM_WORLD, errors_}) MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(errors_, &rank_);
  MPI_Comm_size(errors_, &num_ranks_);
  MPI_Comm local;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local);
  MPI_Comm_rank(local, &local_rank_);
  MPI_Comm_size(local, &num_local_ranks_);
  MPI_Comm_free(&local);
  is_crowded_ =
      options.threads_per_rank > 1 && num_local_ranks_ * options.threads_per_rank >
                                          static_cast<int>(std::thread::hardware_concurrency());
  int* upper = nullptr;
  int found = 0;
  MPI_Comm_get_attr(errors_, MPI_TAG_UB, &upper, &found);
  if (found != 0) largest_tag_ = *upper;
  beats_.resize(num_ranks_);
  if (serves_other_threads_) liveness_.Start([this] { SayThatItLives(); });
}

MpiMessages::~MpiMessages() {
  if (!finished_) Finish(absl::AbortedError("the process gave up")).IgnoreError();
  liveness_.Stop();
  if (!error_.ok()) {
    // MPI_Finalize waits for all ranks; one may be lost.
    std::thread([] {
      std::this_thread::sleep_for(kMpiPatience);
      _exit(kExitBadInput);
    }).detach();
  }
  MPI_Finalize();
}

absl::Status MpiMessages::Exchange(int channel, const char* call, absl::Span<const int32_t> group,
                                   absl::Span<const Send> sends,
                                   absl::Span<const Receive> receives) {
  std::unique_lock lock(mutex_);
  ISOMER_RETURN_IF_ERROR(CheckForAbort());
  const Liveness::Waiting waiting(&liveness_, call);
  const int tag = TagOf(call, group, largest_tag_);
  std::vector<MPI_Request> requests;
  std::vector<Expected> expected;  // of the receives: from whom, bytes
  const auto in_parts = [&](int64_t bytes, const auto& f) {
    for (int64_t at = 0; at < bytes; at += options_.max_message_bytes) {
      requests.emplace_back();
      f(at, std::min(bytes - at, options_.max_message_bytes));
    }
  };
  for (const Receive& receive : receives) {
    in_parts(receive.bytes, [&](int64_t at, int64_t size) {
      MPI_Irecv(static_cast<char*>(receive.data) + at, static_cast<int>(size), MPI_BYTE,
                receive.from, tag, data_[channel], &requests.back());
      expected.emplace_back(receive.from, size);
    });
  }
  for (const Send& send : sends) {
    in_parts(send.bytes, [&](int64_t at, int64_t size) {
      MPI_Isend(static_cast<const char*>(send.data) + at, static_cast<int>(size), MPI_BYTE, send.to,
                tag, data_[channel], &requests.back());
    });
  }
  return Wait(call, expected, &lock, &requests);
}

void MpiMessages::Abort(const absl::Status& status) {
  std::lock_guard lock(mutex_);
  AbortNow(status);
}

void MpiMessages::AbortNow(const absl::Status& status) {
  if (!error_.ok() || status.ok()) return;
  SetError(status);
  last_words_ = absl::StrCat(static_cast<int>(status.code()), " ",
                             absl::string_view(status.message().data(), status.message().size()));
  for (int r = 0; r < num_ranks_; ++r) {
    if (r == rank_) continue;
    MPI_Request request;
    MPI_Isend(last_words_.data(), static_cast<int>(last_words_.size()), MPI_BYTE, r, kAbortTag,
              errors_, &request);
    MPI_Request_free(&request);
  }
}

absl::Status MpiMessages::Finish(const absl::Status& status) {
  finished_ = true;
  Abort(status);
  // Not a barrier of MPI's: a collective that has begun cannot be given up.
  return MeetToFinish();
}

// Until all are done. The first of `requests` are receives, of what is `expected`.
absl::Status MpiMessages::Wait(const char* call, absl::Span<const Expected> expected,
                               std::unique_lock<TicketLock>* lock,
                               std::vector<MPI_Request>* requests) {
  std::vector<MPI_Status> statuses(requests->size());
  const auto begin = steady_clock::now();
  for (int looks = 1;; ++looks) {
    int done = 0;
    const int code =
        MPI_Testall(static_cast<int>(requests->size()), requests->data(), &done, statuses.data());
    if (code != MPI_SUCCESS) return Failed(requests, Refused(call, code, expected, statuses));
    if (done != 0) break;
    const auto waited = steady_clock::now() - begin;
    const bool sleeps = is_crowded_ && computes_ && waited > kMpiSpin;
    if (sleeps || looks % kLooksPerCheck == 0) {
      if (absl::Status status = CheckForAbort(); !status.ok()) return Failed(requests, status);
      const std::chrono::milliseconds limit =
          waited > options_.timeout && liveness_.AnyWorks(options_.timeout) ? options_.longest_work
                                                                            : options_.timeout;
      if (waited > limit) return Failed(requests, Late(call, expected, *requests, limit));
    }
    lock->unlock();
    if (sleeps) {
      std::this_thread::sleep_for(kSleep);
    } else if (looks % kLooksPerCheck == 0) {
      sched_yield();  // Ranks may be more than cores.
    }
    lock->lock();
  }
  for (size_t r = 0; r < expected.size(); ++r) {
    int size = 0;
    MPI_Get_count(&statuses[r], MPI_BYTE, &size);
    if (size != expected[r].second) return Failed(nullptr, Unmatched(expected[r], call, size));
  }
  return absl::OkStatus();
}

absl::Status MpiMessages::Unmatched(const Expected& expected, const char* call, int size) const {
  return absl::InternalError(absl::StrCat(
      "rank ", rank_, " expects ", expected.second, " bytes in ", call, " that rank ",
      expected.first, " does not send", size < 0 ? "" : absl::StrCat(" (but ", size, ")")));
}

absl::Status MpiMessages::Refused(const char* call, int code, absl::Span<const Expected> expected,
                                  const std::vector<MPI_Status>& statuses) const {
  if (code != MPI_ERR_IN_STATUS) return MpiError(call, code);
  for (size_t r = 0; r < expected.size(); ++r) {
    int error_class = MPI_SUCCESS;
    MPI_Error_class(statuses[r].MPI_ERROR, &error_class);
    if (error_class == MPI_ERR_TRUNCATE) return Unmatched(expected[r], call, -1);
  }
  return MpiError(call, code);
}

absl::Status MpiMessages::Late(const char* call, absl::Span<const Expected> expected,
                               const std::vector<MPI_Request>& requests,
                               std::chrono::milliseconds waited) const {
  std::vector<int32_t> missing;
  for (size_t r = 0; r < expected.size(); ++r) {
    int done = 0;
    MPI_Request_get_status(requests[r], &done, MPI_STATUS_IGNORE);
    if (done == 0) missing.push_back(expected[r].first);
  }
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  return absl::DeadlineExceededError(
      absl::StrCat("rank ", rank_, " waited ", waited.count(), " ms in ", call, " for ",
                   missing.empty() ? "the others" : "ranks ", absl::StrJoin(missing, ",")));
}

// Gives the requests up, and tells the others.
absl::Status MpiMessages::Failed(std::vector<MPI_Request>* requests, const absl::Status& status) {
  for (size_t r = 0; requests != nullptr && r < requests->size(); ++r) {
    if ((*requests)[r] == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&(*requests)[r]);
    MPI_Request_free(&(*requests)[r]);
  }
  AbortNow(status);
  return error_;
}

// The job's error, if there is one by now.
absl::Status MpiMessages::Poll() {
  std::lock_guard lock(mutex_);
  return CheckForAbort();
}

absl::Status MpiMessages::CheckForAbort() {
  if (!error_.ok()) return error_;
  int there = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, kAbortTag, errors_, &there, &status);
  if (there == 0) return absl::OkStatus();
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  std::string words(size, ' ');
  MPI_Recv(words.data(), size, MPI_BYTE, status.MPI_SOURCE, kAbortTag, errors_, MPI_STATUS_IGNORE);
  const size_t space = words.find(' ');
  SetError(absl::Status(static_cast<absl::StatusCode>(std::atoi(words.c_str())),
                        words.substr(space + 1)));
  return error_;
}

void MpiMessages::SetError(const absl::Status& status) {
  error_ = status;
  ArmLastResort(status);
}

void MpiMessages::SayThatItLives() {
  std::lock_guard lock(mutex_);
  if (!CheckForAbort().ok()) return;
  for (int r = 0; r < num_ranks_; ++r) {
    if (r == rank_) continue;
    // To one who does not hear them they do not pile up.
    int is_gone = 0;
    MPI_Test(&beats_[r].request, &is_gone, MPI_STATUS_IGNORE);
    if (is_gone == 0) continue;
    beats_[r].beat = liveness_.Own();
    MPI_Isend(&beats_[r].beat, sizeof(Beat), MPI_BYTE, r, kBeatTag, errors_, &beats_[r].request);
  }
  HearWhoLives();
  AbortNow(liveness_.Check());
}

void MpiMessages::HearWhoLives() {
  while (true) {
    int there = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, kBeatTag, errors_, &there, &status);
    if (there == 0) return;
    Beat beat;
    MPI_Recv(&beat, sizeof beat, MPI_BYTE, status.MPI_SOURCE, kBeatTag, errors_, MPI_STATUS_IGNORE);
    liveness_.Heard(status.MPI_SOURCE, beat);
  }
}

bool MpiMessages::speaks() const {
  if (liveness_.StoodStill()) return false;  // The others do.
  for (int r = 0; r < rank_; ++r) {
    if (!liveness_.IsLost(r)) return false;
  }
  return true;
}

absl::StatusOr<std::unique_ptr<ProcessCommunicator>> MakeMpiCommunicator(
    const ProcessOptions& options) {
  // Open MPI's mpirun, or a launcher that speaks PMIx or PMI to it. Alone, MPI_Init would start
  // services of its own.
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr && std::getenv("PMIX_RANK") == nullptr &&
      std::getenv("PMI_RANK") == nullptr) {
    return absl::FailedPreconditionError(
        "--communicator=mpi: start the program with mpirun, one process for each device");
  }
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (initialised != 0) return absl::FailedPreconditionError("MPI runs already in this process");
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  return MakeProcessCommunicator(
      std::make_unique<MpiMessages>(options, provided >= MPI_THREAD_SERIALIZED));
}

}  // namespace isomer
