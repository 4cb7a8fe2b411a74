// Ranks that talk by sockets in place of MPI: the same results, whoever is killed.
#include "generator/workers/rank_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "absl/strings/str_cat.h"
#include "pcg/support/check.h"

namespace isomer {
namespace {

// A star of sockets that keep messages apart: each other rank has one end.
class SocketLink : public RankLink {
 public:
  SocketLink(int rank, int num_ranks, std::vector<int> sockets)
      : rank_(rank), num_ranks_(num_ranks), sockets_(std::move(sockets)) {}
  ~SocketLink() override { Close(true); }
  int rank() const override { return rank_; }
  int num_ranks() const override { return num_ranks_; }
  void Send(int to, std::string bytes) override {
    // To who is gone it is lost.
    send(sockets_[to], bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  std::optional<RankMessage> Receive() override {
    for (int r = 0; r < static_cast<int>(sockets_.size()); ++r) {
      if (sockets_[r] < 0) continue;
      RankMessage message{r, std::string(1 << 17, '\0')};
      const ssize_t size =
          recv(sockets_[r], message.bytes.data(), message.bytes.size(), MSG_DONTWAIT);
      if (size <= 0) continue;
      message.bytes.resize(size);
      return message;
    }
    return std::nullopt;
  }
  void Close(bool) override {
    for (int& socket : sockets_) {
      if (socket >= 0) close(socket);
      socket = -1;
    }
  }

 private:
  const int rank_, num_ranks_;
  std::vector<int> sockets_;  // by rank; -1: none
};

Steps StepsOfRanks() {
  Steps steps;
  const auto told = std::make_shared<std::string>();
  steps["tell"] = [told](const std::string& input) {
    *told = input;
    return StepResult();
  };
  steps["twice"] = [told](const std::string& input) {
    usleep(1000);
    return StepResult{absl::StrCat(*told, input, input)};
  };
  steps["die"] = [](const std::string&) -> StepResult { _exit(1); };
  return steps;
}

RankOptions ShortPatience() {
  return {.stall_timeout = std::chrono::milliseconds(1500),
          .longest_silence = std::chrono::milliseconds(3000)};
}

// Ranks 1 to n - 1 as child processes of a test, which is rank 0.
class Ranks {
 public:
  explicit Ranks(int num_ranks) : pids_(num_ranks, -1) {
    std::vector<int> near(num_ranks, -1);
    for (int r = 1; r < num_ranks; ++r) {
      int ends[2];
      ISOMER_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
      pids_[r] = fork();
      if (pids_[r] == 0) {
        for (int socket : near) close(socket);
        close(ends[0]);
        auto children = ChildWorkers::Make(2, StepsOfRanks);
        std::vector<int> far = {ends[1]};
        _exit(ServeRank(std::make_unique<SocketLink>(r, num_ranks, far), *std::move(children),
                        ShortPatience())
                      .ok()
                  ? 0
                  : 1);
      }
      close(ends[1]);
      near[r] = ends[0];
    }
    auto children = ChildWorkers::Make(1, StepsOfRanks);
    workers_ = std::make_unique<RankWorkers>(std::make_unique<SocketLink>(0, num_ranks, near),
                                             *std::move(children), ShortPatience());
  }

  RankWorkers& workers() { return *workers_; }
  void Kill(int rank) { kill(pids_[rank], SIGKILL); }
  // How a rank ended, when rank 0 did.
  int EndOf(int rank) {
    workers_.reset();
    int state = 0;
    waitpid(pids_[rank], &state, 0);
    return state;
  }

 private:
  std::vector<pid_t> pids_;
  std::unique_ptr<RankWorkers> workers_;
};

void StartItems(Workers* workers, uint64_t count) {
  for (uint64_t ticket = 0; ticket < count; ++ticket) {
    workers->Start(ticket, {"twice", absl::StrCat(" ", ticket), MemoKeyOf(absl::StrCat(ticket)),
                            ticket % 2 == 0});
  }
}

// Each item once; `after` is called with how many are done.
void TakeItems(Workers* workers, uint64_t count, const std::function<void(uint64_t)>& after) {
  std::set<uint64_t> tickets;
  for (uint64_t i = 0; i < count; ++i) {
    const auto finished = workers->Next();
    ASSERT_TRUE(finished.ok()) << finished.status();
    EXPECT_TRUE(tickets.insert(finished->ticket).second) << finished->ticket;
    EXPECT_EQ(finished->result.bytes,
              absl::StrCat("told ", finished->ticket, " ", finished->ticket));
    after(i + 1);
  }
}

TEST(RankWorkers, EveryItemOnceAndAllEnd) {
  for (int num_ranks : {1, 2, 4}) {
    Ranks ranks(num_ranks);
    ranks.workers().Tell({"tell", "old"}, true);
    ranks.workers().Tell({"tell", "told"}, true);
    StartItems(&ranks.workers(), 300);
    TakeItems(&ranks.workers(), 300, [](uint64_t) {});
    EXPECT_EQ(ranks.workers().count(), 1 + 2 * (num_ranks - 1));
    for (int r = 1; r < num_ranks; ++r) EXPECT_EQ(ranks.EndOf(r), 0) << r;
  }
}

TEST(RankWorkers, ItemsOfARankThatIsKilledAreDoneByOthers) {
  Ranks ranks(3);
  ranks.workers().Tell({"tell", "told"}, true);
  StartItems(&ranks.workers(), 400);
  TakeItems(&ranks.workers(), 400, [&](uint64_t done) {
    if (done == 100) ranks.Kill(1);
    if (done == 200) ranks.Kill(2);
  });
  EXPECT_EQ(ranks.workers().num_lost(), 2);
  EXPECT_EQ(ranks.workers().count(), 1);
  EXPECT_NE(ranks.EndOf(1), 0);
}

TEST(RankWorkers, RanksKeepWhatTheyFindInLogsOfTheirOwn) {
  const std::string folder = testing::TempDir() + "/rank_workers_logs";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  {
    Ranks ranks(3);
    ranks.workers().KeepLogsIn(folder);
    ranks.workers().Tell({"tell", "told"}, true);
    StartItems(&ranks.workers(), 200);
    TakeItems(&ranks.workers(), 200, [](uint64_t) {});
    EXPECT_EQ(ranks.EndOf(1) + ranks.EndOf(2), 0);
  }
  // Rank 0 kept nothing: it may have been killed.
  const auto memo = Memo::Open(folder);
  ASSERT_TRUE(memo.ok()) << memo.status();
  int found = 0;
  for (uint64_t ticket = 0; ticket < 200; ++ticket) {
    const auto kept = (*memo)->Find("twice", MemoKeyOf(absl::StrCat(ticket)));
    if (!kept.has_value()) continue;
    EXPECT_EQ(*kept, absl::StrCat("told ", ticket, " ", ticket));
    ++found;
  }
  EXPECT_GT(found, 50);
}

TEST(RankWorkers, AnItemThatKillsIsAnErrorOfItsRank) {
  Ranks ranks(2);
  StartItems(&ranks.workers(), 1);
  ASSERT_TRUE(ranks.workers().Next().ok());
  while (ranks.workers().count() < 3) {  // The other rank is there.
    StartItems(&ranks.workers(), 1);
    ASSERT_TRUE(ranks.workers().Next().ok());
  }
  ranks.workers().Start(7, {"die", ""});
  EXPECT_EQ(ranks.workers().Next().status().message(),
            "rank 1: a worker died 5 times at an item of die (it exited)");
}

}  // namespace
}  // namespace isomer
