#include "runtime/communication/thread_communicator.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <thread>

namespace isomer {
namespace {

using std::chrono::milliseconds;

// Runs one function per rank, each in its own thread; the statuses by rank.
std::vector<absl::Status> OnRanks(int32_t ranks, milliseconds timeout,
                                  const std::function<absl::Status(Communicator&)>& function) {
  auto communicators = MakeThreadCommunicators(ranks, timeout);
  std::vector<absl::Status> statuses(ranks);
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] { statuses[r] = function(*communicators[r]); });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

void ExpectAllOk(const std::vector<absl::Status>& statuses) {
  for (const absl::Status& status : statuses) EXPECT_EQ(status, absl::OkStatus());
}

constexpr milliseconds kLong(30000);

TEST(ThreadCommunicator, AllReduceSums) {
  const std::vector<int32_t> group = {0, 1, 2, 3};
  ExpectAllOk(OnRanks(4, kLong, [&](Communicator& c) {
    for (int64_t count : {1, 3, 4, 1000}) {
      std::vector<float> data(count);
      for (int64_t i = 0; i < count; ++i) data[i] = static_cast<float>(i + 100 * c.rank());
      if (auto status = c.AllReduce(group, DataType::kFloat32, data.data(), count); !status.ok())
        return status;
      for (int64_t i = 0; i < count; ++i) EXPECT_EQ(data[i], 4 * i + 600);
    }
    return absl::OkStatus();
  }));
}

// Two threads a rank, which begin in unlike orders; with one channel, calls of other sizes would
// meet.
TEST(ThreadCommunicator, CallsOfTheOneBesideMeetOnlyEachOther) {
  const std::vector<int32_t> group = {0, 1};
  ExpectAllOk(OnRanks(2, kLong, [&](Communicator& c) -> absl::Status {
    const auto sum = [&](Communicator& of, int64_t count) -> absl::Status {
      std::vector<float> data(count, static_cast<float>(1 + c.rank()));
      if (auto status = of.AllReduce(group, DataType::kFloat32, data.data(), count); !status.ok())
        return status;
      EXPECT_EQ(data, std::vector<float>(count, 3));
      return absl::OkStatus();
    };
    absl::Status beside;
    std::thread thread([&] {
      for (int i = 0; i < 20 && beside.ok(); ++i) beside = sum(c.Channel(1), 1000);
    });
    if (c.rank() == 1) std::this_thread::sleep_for(milliseconds(5));
    absl::Status status;
    for (int i = 0; i < 20 && status.ok(); ++i) status = sum(c, 3);
    thread.join();
    return status.ok() ? beside : status;
  }));
}

TEST(ThreadCommunicator, AnErrorReachesWhoWaitsBeside) {
  const auto statuses = OnRanks(2, kLong, [&](Communicator& c) -> absl::Status {
    if (c.rank() == 0) {
      c.Abort(absl::InternalError("broken"));
      return absl::OkStatus();
    }
    float number = 0;
    return c.Channel(1).AllReduce(std::vector<int32_t>{0, 1}, DataType::kFloat32, &number, 1);
  });
  EXPECT_EQ(statuses[1].message(), "broken");
}

TEST(ThreadCommunicator, ReduceSumsOnTheRootAloneAndMayBeInPlace) {
  const std::vector<int32_t> group = {0, 2, 3};
  ExpectAllOk(OnRanks(4, kLong, [&](Communicator& c) {
    if (c.rank() == 1) return absl::OkStatus();
    for (int32_t root : group) {
      for (bool in_place : {true, false}) {
        for (int64_t count : {1, 2, 3000}) {
          std::vector<float> data(count), sum(count, -1);
          for (int64_t i = 0; i < count; ++i) data[i] = static_cast<float>(i + 100 * c.rank());
          void* receive = c.rank() != root ? nullptr : in_place ? data.data() : sum.data();
          if (auto status = c.Reduce(group, root, DataType::kFloat32, data.data(), receive, count);
              !status.ok()) {
            return status;
          }
          const bool summed = c.rank() == root && in_place;
          for (int64_t i = 0; i < count; ++i) {
            EXPECT_EQ(data[i], summed ? 3 * i + 500 : i + 100 * c.rank());
            EXPECT_EQ(sum[i], c.rank() == root && !in_place ? 3 * i + 500 : -1);
          }
        }
      }
    }
    return absl::OkStatus();
  }));
}

TEST(ThreadCommunicator, BroadcastCopiesTheRoots) {
  const std::vector<int32_t> group = {0, 1, 2};
  ExpectAllOk(OnRanks(3, kLong, [&](Communicator& c) {
    for (int32_t root : group) {
      std::vector<int32_t> data = {c.rank(), c.rank() + 10};
      if (auto status = c.Broadcast(group, root, data.data(), 8); !status.ok()) return status;
      EXPECT_EQ(data, (std::vector<int32_t>{root, root + 10}));
    }
    return absl::OkStatus();
  }));
}

TEST(ThreadCommunicator, AllReduceGivesTheSameBitsEverywhere) {
  const std::vector<int32_t> group = {0, 1, 2};
  std::vector<std::vector<float>> results(3);
  ExpectAllOk(OnRanks(3, kLong, [&](Communicator& c) {
    std::vector<float> data(64);
    for (int i = 0; i < 64; ++i) data[i] = 1.0f / static_cast<float>(3 + i + 7 * c.rank());
    absl::Status status = c.AllReduce(group, DataType::kFloat32, data.data(), 64);
    results[c.rank()] = data;
    return status;
  }));
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(ThreadCommunicator, ReduceScatterGivesEachItsPiece) {
  const std::vector<int32_t> group = {0, 1, 2};
  ExpectAllOk(OnRanks(3, kLong, [&](Communicator& c) {
    std::vector<float> send(6), receive(2);
    std::iota(send.begin(), send.end(), 10.0f * static_cast<float>(c.rank()));
    absl::Status status =
        c.ReduceScatter(group, DataType::kFloat32, send.data(), receive.data(), 2);
    const float first = static_cast<float>(3 * 2 * c.rank() + 30);
    EXPECT_EQ(receive, (std::vector<float>{first, first + 3}));
    return status;
  }));
}

TEST(ThreadCommunicator, AllGatherAndAllToAllKeepTheOrderOfTheGroup) {
  const std::vector<int32_t> group = {1, 3};
  ExpectAllOk(OnRanks(4, kLong, [&](Communicator& c) {
    if (c.rank() % 2 == 0) return absl::OkStatus();  // Not of the group.
    const char send[] = {static_cast<char>('a' + c.rank()), static_cast<char>('A' + c.rank())};
    char receive[4];
    if (auto status = c.AllGather(group, send, receive, 2); !status.ok()) return status;
    EXPECT_EQ(std::string(receive, 4), "bBdD");
    absl::Status status = c.AllToAll(group, send, receive, 1);
    EXPECT_EQ(std::string(receive, 2), c.rank() == 1 ? "bd" : "BD");
    return status;
  }));
}

TEST(ThreadCommunicator, SendReceiveRotates) {
  const std::vector<int32_t> group = {0, 1, 2};
  ExpectAllOk(OnRanks(3, kLong, [&](Communicator& c) {
    const int32_t value = 7 + c.rank();
    int32_t received = 0;
    const Send send{(c.rank() + 1) % 3, &value, sizeof value};
    const Receive receive{(c.rank() + 2) % 3, &received, sizeof received};
    absl::Status status = c.SendReceive(group, {send}, {receive});
    EXPECT_EQ(received, 7 + (c.rank() + 2) % 3);
    return status;
  }));
}

TEST(ThreadCommunicator, DifferentCallsAreAnErrorOnEveryRank) {
  const std::vector<int32_t> group = {0, 1};
  const auto statuses = OnRanks(2, kLong, [&](Communicator& c) {
    std::vector<float> data(8), more(8);
    return c.rank() == 0 ? c.AllReduce(group, DataType::kFloat32, data.data(), 4)
                         : c.AllGather(group, data.data(), more.data(), 16);
  });
  EXPECT_FALSE(statuses[0].ok());
  EXPECT_EQ(statuses[0], statuses[1]);
  EXPECT_NE(statuses[0].message().find("all_gather"), absl::string_view::npos);
}

TEST(ThreadCommunicator, MessageThatNobodySendsIsAnError) {
  const std::vector<int32_t> group = {0, 1};
  const auto statuses = OnRanks(2, kLong, [&](Communicator& c) {
    int32_t received = 0;
    if (c.rank() == 1) return c.SendReceive(group, {}, {});
    return c.SendReceive(group, {}, {Receive{1, &received, sizeof received}});
  });
  EXPECT_EQ(statuses[0].message(), "rank 0 expects 4 bytes that rank 1 does not send");
  EXPECT_EQ(statuses[1], statuses[0]);
}

TEST(ThreadCommunicator, FailureOfOneRankWakesThoseThatWait) {
  const std::vector<int32_t> group = {0, 1, 2};
  const auto statuses = OnRanks(3, kLong, [&](Communicator& c) {
    if (c.rank() == 2) {
      absl::Status status = absl::DataLossError("rank 2 is gone");
      c.Abort(status);
      return status;
    }
    float data = 1;
    return c.AllReduce(group, DataType::kFloat32, &data, 1);
  });
  for (const absl::Status& status : statuses) EXPECT_EQ(status.message(), "rank 2 is gone");
}

TEST(ThreadCommunicator, RankThatNeverComesEndsTheWait) {
  const std::vector<int32_t> group = {0, 1, 2};
  const auto statuses = OnRanks(3, milliseconds(50), [&](Communicator& c) {
    if (c.rank() == 2) return absl::OkStatus();
    float data = 1;
    return c.AllReduce(group, DataType::kFloat32, &data, 1);
  });
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(statuses[0], statuses[1]);
}

}  // namespace
}  // namespace isomer
