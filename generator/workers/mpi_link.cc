#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <iterator>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "generator/workers/rank_link.h"
#include "pcg/support/check.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// For what is on its way at the end to who may be gone.
constexpr std::chrono::seconds kLastMessages(2);
constexpr std::chrono::seconds kPatience(10);
// MPI_Init waits for all ranks, of which one may be killed before it comes: no other call ends
// that.
constexpr std::chrono::seconds kLongestStart(60);

void EndIfMpiDoesNotStart(std::future<void> started) {
  if (started.wait_for(kLongestStart) == std::future_status::ready) return;
  _exit(ExitWith(absl::DeadlineExceededError(
      absl::StrCat("--communicator=mpi: MPI_Init did not return within ", kLongestStart.count(),
                   " s; a rank may have been killed before it came"))));
}

class MpiLink : public RankLink {
 public:
  MpiLink() {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &num_ranks_);
  }
  ~MpiLink() override { Close(/*all=*/false); }

  int rank() const override { return rank_; }
  int num_ranks() const override { return num_ranks_; }

  void Send(int to, std::string bytes) override {
    ISOMER_CHECK(bytes.size() <= static_cast<size_t>(std::numeric_limits<int>::max()));
    const std::lock_guard<std::mutex> lock(mutex_);
    Outgoing& outgoing = outgoing_.emplace_back();
    outgoing.bytes = std::move(bytes);
    MPI_Isend(outgoing.bytes.data(), static_cast<int>(outgoing.bytes.size()), MPI_BYTE, to, kTag,
              comm_, &outgoing.request);
    DropSent();
  }

  std::optional<RankMessage> Receive() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    DropSent();
    int is_there = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, kTag, comm_, &is_there, &status) != MPI_SUCCESS ||
        is_there == 0) {
      return std::nullopt;
    }
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    RankMessage message{status.MPI_SOURCE, std::string(size, '\0')};
    if (MPI_Recv(message.bytes.data(), size, MPI_BYTE, message.from, kTag, comm_,
                 MPI_STATUS_IGNORE) != MPI_SUCCESS) {
      return std::nullopt;
    }
    return message;
  }

  void Close(bool all) override {
    if (is_closed_) return;
    is_closed_ = true;
    const auto end = std::chrono::steady_clock::now() + kLastMessages;
    while (std::chrono::steady_clock::now() < end) {
      const std::lock_guard<std::mutex> lock(mutex_);
      DropSent();
      if (outgoing_.empty()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (all) Finalize();
  }

 private:
  static constexpr int kTag = 0;
  struct Outgoing {
    std::string bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  // Waits for all ranks, of which one may be killed now.
  static void Finalize() {
    auto done = std::make_shared<std::promise<void>>();
    std::future<void> ended = done->get_future();
    std::thread([done = std::move(done)] {
      MPI_Finalize();
      done->set_value();
    }).detach();
    ended.wait_for(kPatience);
  }

  // Tests some of the oldest: what is on its way to who does not hear may be much.
  void DropSent() {
    constexpr int kMost = 64;
    int looked = 0;
    for (auto at = outgoing_.begin(); at != outgoing_.end() && looked < kMost; ++looked) {
      int is_sent = 0;
      MPI_Test(&at->request, &is_sent, MPI_STATUS_IGNORE);
      at = is_sent != 0 ? outgoing_.erase(at) : std::next(at);
    }
  }

  int rank_ = 0, num_ranks_ = 1;
  MPI_Comm comm_;
  bool is_closed_ = false;
  std::mutex mutex_;  // guards what follows, and MPI
  std::list<Outgoing> outgoing_;
};

}  // namespace

absl::Status CanOpenMpiLink() {
  // Open MPI's mpirun, or a launcher that speaks PMIx or PMI to it. Alone, MPI_Init would start
  // services of its own.
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(variable) != nullptr) return absl::OkStatus();
  }
  return absl::FailedPreconditionError("--communicator=mpi: start the program with mpirun");
}

absl::StatusOr<std::unique_ptr<RankLink>> OpenMpiLink() {
  ISOMER_RETURN_IF_ERROR(CanOpenMpiLink());
  int provided = 0;
  std::promise<void> started;
  std::thread guard(EndIfMpiDoesNotStart, started.get_future());
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  started.set_value();
  guard.join();
  if (provided < MPI_THREAD_SERIALIZED) {
    return absl::UnimplementedError("--communicator=mpi: this MPI serves one thread only");
  }
  return std::make_unique<MpiLink>();
}

}  // namespace isomer
