// The communicator of MPI processes. Each case starts this program again under mpirun, where the
// disabled test of the case's name is what every rank does.
#include "runtime/mpi_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "pcg/support/file.h"
#include "runtime/elements.h"
#include "runtime/thread_communicator.h"

namespace isomer {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

struct MpirunResult {
  int exit_code = -1;
  std::string output;
};

// `ranks` processes of this program, of which each does the disabled test `name`.
MpirunResult Mpirun(int ranks, const std::string& name) {
  const std::string out = absl::StrCat(testing::TempDir(), "/isomer-mpi-", getpid(), "-", name);
  // Under AddressSanitizer, ranks would fail with what Open MPI's modules leave behind.
  const std::string command = absl::StrCat(
      "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 timeout 60 mpirun -n ", ranks,
      " --oversubscribe --bind-to none ", geteuid() == 0 ? "--allow-run-as-root " : "", "/proc/",
      getpid(), "/exe --gtest_also_run_disabled_tests --gtest_filter='MpiRank.DISABLED_", name,
      "' >'", out, "' 2>&1 </dev/null");
  MpirunResult result;
  const int status = std::system(command.c_str());
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.output = ReadFile(out).value_or("");
  std::remove(out.c_str());
  return result;
}

std::unique_ptr<MpiCommunicator> Ranks(MpiOptions options = {}) {
  auto communicator = MakeMpiCommunicator(options);
  EXPECT_TRUE(communicator.ok()) << communicator.status();
  return *std::move(communicator);
}

#define MPI_CASE(ranks, name)                                   \
  TEST(MpiCommunicator, name) {                                 \
    if (!MpiIsBuilt()) GTEST_SKIP() << "this build has no MPI"; \
    const MpirunResult result = Mpirun(ranks, #name);           \
    EXPECT_EQ(result.exit_code, 0) << result.output;            \
  }                                                             \
  TEST(MpiRank, DISABLED_##name)

bool MpiIsBuilt() {
  return MakeMpiCommunicator().status().code() != absl::StatusCode::kUnimplemented;
}

// What a rank holds at the start: numbers whose sums round.
std::vector<char> Values(DataType dtype, int32_t rank, int64_t count) {
  std::vector<float> numbers(count);
  for (int64_t i = 0; i < count; ++i) {
    numbers[i] = IsFloat(dtype) ? 1.0f / static_cast<float>(3 + (i + 7 * rank) % 1001)
                                : static_cast<float>((i * 37 + rank) % 1000);
  }
  std::vector<char> bytes(count * BytesPerElement(dtype));
  StoreElements(numbers.data(), count, dtype, bytes.data());
  return bytes;
}

// Everything that one rank gets from one call of each collective.
std::vector<char> AllCollectives(Communicator* c, absl::Span<const int32_t> group, DataType dtype,
                                 int64_t count) {
  const int64_t members = static_cast<int64_t>(group.size()), element = BytesPerElement(dtype);
  std::vector<char> all;
  const auto keep = [&](const absl::Status& status, const std::vector<char>& bytes) {
    EXPECT_EQ(status, absl::OkStatus());
    all.insert(all.end(), bytes.begin(), bytes.end());
  };
  std::vector<char> data = Values(dtype, c->rank(), count);
  keep(c->AllReduce(group, dtype, data.data(), count), data);
  data = Values(dtype, c->rank(), count);
  std::vector<char> sum(c->rank() == group[1] ? data.size() : 0);
  keep(c->Reduce(group, group[1], dtype, data.data(), sum.empty() ? nullptr : sum.data(), count),
       sum);
  keep(c->Broadcast(group, group[0], data.data(), count * element), data);
  const std::vector<char> pieces = Values(dtype, c->rank(), count * members);
  std::vector<char> piece(count * element), gathered(pieces.size());
  keep(c->ReduceScatter(group, dtype, pieces.data(), piece.data(), count), piece);
  keep(c->AllGather(group, data.data(), gathered.data(), count * element), gathered);
  keep(c->AllToAll(group, pieces.data(), gathered.data(), count * element), gathered);
  return all;
}

// What the ranks of the in-process communicator get.
std::vector<std::vector<char>> OnThreads(int32_t ranks, absl::Span<const int32_t> group,
                                         DataType dtype, int64_t count) {
  auto communicators = MakeThreadCommunicators(ranks);
  std::vector<std::vector<char>> results(ranks);
  std::vector<std::thread> threads;
  for (int32_t r : group) {
    threads.emplace_back(
        [&, r] { results[r] = AllCollectives(communicators[r].get(), group, dtype, count); });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

MPI_CASE(3, GivesTheBitsOfTheThreads) {
  const auto c = Ranks({.max_message_bytes = 100000});  // So that messages travel in parts.
  ASSERT_EQ(c->num_ranks(), 3);
  EXPECT_EQ(c->num_local_ranks(), 3);
  const std::vector<std::vector<int32_t>> groups = {{0, 1, 2}, {0, 2}};
  for (DataType dtype : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16,
                         DataType::kInt64, DataType::kInt32}) {
    for (int64_t count : {1, 2, 1000, 70001}) {
      for (const std::vector<int32_t>& group : groups) {
        const auto expected = OnThreads(3, group, dtype, count);
        if (expected[c->rank()].empty()) continue;  // Not of the group.
        EXPECT_EQ(AllCollectives(c.get(), group, dtype, count), expected[c->rank()])
            << DataTypeName(dtype) << " " << count;
      }
    }
  }
  EXPECT_EQ(c->Finish(absl::OkStatus()), absl::OkStatus());
}

// More than the segments in which sums are made.
MPI_CASE(2, SumsLargeBuffers) {
  const auto c = Ranks();
  const std::vector<int32_t> group = {0, 1};
  const int64_t count = 1000003;
  EXPECT_EQ(AllCollectives(c.get(), group, DataType::kFloat32, count),
            OnThreads(2, group, DataType::kFloat32, count)[c->rank()]);
  EXPECT_EQ(c->Finish(absl::OkStatus()), absl::OkStatus());
}

MPI_CASE(3, SendsAndReceivesInTheOrderListed) {
  const auto c = Ranks();
  const std::vector<int32_t> group = {0, 1, 2};
  const int32_t next = (c->rank() + 1) % 3, previous = (c->rank() + 2) % 3;
  const std::vector<int32_t> sent = {10 + c->rank(), 20 + c->rank(), 30 + c->rank()};
  std::vector<int32_t> received(3);
  EXPECT_EQ(
      c->SendReceive(
          group, {{next, &sent[0], 4}, {previous, &sent[1], 4}, {next, &sent[2], 4}},
          {{previous, &received[0], 4}, {next, &received[1], 4}, {previous, &received[2], 4}}),
      absl::OkStatus());
  EXPECT_EQ(received, (std::vector<int32_t>{10 + previous, 20 + next, 30 + previous}));
  EXPECT_EQ(c->Finish(absl::OkStatus()), absl::OkStatus());
}

MPI_CASE(3, ErrorOfOneRankReachesThoseThatWait) {
  const auto c = Ranks();
  const absl::Status lost = absl::DataLossError("the device is gone");
  float number = 1;
  if (c->rank() == 1) {
    c->Abort(lost);
  } else {
    EXPECT_EQ(c->AllReduce({0, 1, 2}, DataType::kFloat32, &number, 1), lost);
    EXPECT_EQ(c->AllReduce({0, 2}, DataType::kFloat32, &number, 1), lost);
  }
  EXPECT_EQ(c->Finish(c->rank() == 1 ? lost : absl::OkStatus()), lost);
}

// Two threads a process, which begin in unlike orders.
MPI_CASE(2, CallsOfTheOneBesideMeetOnlyEachOther) {
  const auto c = Ranks({.threads_per_rank = 2});
  ASSERT_TRUE(c->serves_other_threads());
  const std::vector<int32_t> group = {0, 1};
  const auto sums = [&](Communicator* of, int64_t count) {
    const auto expected = OnThreads(2, group, DataType::kFloat32, count);
    for (int i = 0; i < 10; ++i) {
      std::vector<char> data = Values(DataType::kFloat32, c->rank(), count);
      ASSERT_EQ(of->AllReduce(group, DataType::kFloat32, data.data(), count), absl::OkStatus());
      EXPECT_TRUE(std::equal(data.begin(), data.end(), expected[c->rank()].begin()));
    }
  };
  std::thread beside(sums, &c->Beside(), 300000);
  if (c->rank() == 1) std::this_thread::sleep_for(milliseconds(20));
  sums(c.get(), 3);
  beside.join();
  EXPECT_EQ(c->Finish(absl::OkStatus()), absl::OkStatus());
}

MPI_CASE(2, AnErrorReachesWhoWaitsBeside) {
  const auto c = Ranks({.threads_per_rank = 2});
  const absl::Status lost = absl::DataLossError("the device is gone");
  float number = 1;
  if (c->rank() == 1) {
    absl::Status beside;
    std::thread thread([&] {
      beside = c->Beside().AllReduce({0, 1}, DataType::kFloat32, &number, 1);
    });
    std::this_thread::sleep_for(milliseconds(20));
    c->Abort(lost);
    thread.join();
    EXPECT_EQ(beside, lost);
  } else {
    EXPECT_EQ(c->AllReduce({0, 1}, DataType::kFloat32, &number, 1), lost);
  }
  EXPECT_EQ(c->Finish(c->rank() == 1 ? lost : absl::OkStatus()), lost);
}

MPI_CASE(2, RankThatDoesNotComeIsADeadline) {
  const auto c = Ranks({.timeout = milliseconds(200)});
  float number = 1;
  if (c->rank() == 0) {
    const absl::Status status = c->AllReduce({0, 1}, DataType::kFloat32, &number, 1);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("rank 0 waited 200 ms in all_reduce for ranks 1"));
    EXPECT_EQ(c->Finish(status), status);
  } else {
    std::this_thread::sleep_for(milliseconds(600));
    EXPECT_EQ(c->Finish(absl::OkStatus()).code(), absl::StatusCode::kDeadlineExceeded);
  }
}

MPI_CASE(2, MessageOfAnotherSizeIsAnErrorOnEveryRank) {
  const auto c = Ranks();
  float data[8] = {}, more[8] = {};
  const int64_t bytes = c->rank() == 0 ? 16 : 8;
  const absl::Status status = c->AllGather({0, 1}, data, more, bytes);
  EXPECT_EQ(c->Finish(status).code(), absl::StatusCode::kInternal);
  if (!status.ok()) {
    EXPECT_THAT(std::string(status.message()), HasSubstr("does not send"));
  }
}

TEST(MpiCommunicator, OutsideOfMpirunIsAnError) {
  if (!MpiIsBuilt()) GTEST_SKIP() << "this build has no MPI";
  EXPECT_THAT(std::string(MakeMpiCommunicator().status().message()), HasSubstr("mpirun"));
}

// mpirun ends what is left.
TEST(MpiRank, DISABLED_KilledRankEndsTheJob) {
  const auto c = Ranks();
  float number = 1;
  if (c->rank() == 1) raise(SIGKILL);
  EXPECT_NE(c->AllReduce({0, 1}, DataType::kFloat32, &number, 1), absl::OkStatus());
}

TEST(MpiCommunicator, KilledRankEndsTheJob) {
  if (!MpiIsBuilt()) GTEST_SKIP() << "this build has no MPI";
  const MpirunResult result = Mpirun(2, "KilledRankEndsTheJob");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.exit_code, 124) << "hangs";
  EXPECT_THAT(result.output, HasSubstr("signal 9"));
}

}  // namespace
}  // namespace isomer
