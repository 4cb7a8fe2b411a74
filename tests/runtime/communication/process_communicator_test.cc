// The communicator of processes. Each case starts this program again, under mpirun and as a script
// would, where the disabled test of the case's name is what every rank does.
#include "runtime/communication/process_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/support/file.h"
#include "runtime/communication/tcp_messages.h"
#include "runtime/communication/thread_communicator.h"
#include "runtime/device/elements.h"
#include "runtime/device/whereabouts.h"

namespace isomer {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

enum class Carrier { kMpi, kTcp };

struct JobResult {
  int exit_code = -1;
  std::string output;
};

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

// `ranks` processes of this program, of which each does the disabled test `name`.
JobResult RunJob(Carrier carrier, int ranks, const std::string& name) {
  const bool is_mpi = carrier == Carrier::kMpi;
  const std::string out = absl::StrCat(testing::TempDir(), "/isomer-", is_mpi ? "mpi" : "tcp", "-",
                                       getpid(), "-", name);
  const std::string program =
      absl::StrCat("/proc/", getpid(), "/exe --gtest_also_run_disabled_tests --gtest_filter='",
                   is_mpi ? "MpiRank" : "TcpRank", ".DISABLED_", name, "'");
  // Under AddressSanitizer, ranks would fail with what Open MPI's modules leave behind.
  std::string command = absl::StrCat("ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 timeout 60 mpirun ",
                                     "-n ", ranks, " --oversubscribe --bind-to none ",
                                     geteuid() == 0 ? "--allow-run-as-root " : "", program);
  if (!is_mpi) {
    // As a script would; what a rank ends with, all do.
    command = absl::StrCat("ulimit -c 0; pids=''; for r in $(seq 0 ", ranks - 1, "); do RANK=$r ",
                           "WORLD_SIZE=", ranks, " MASTER_ADDR=localhost MASTER_PORT=", FreePort(),
                           " timeout 60 ", program,
                           " & pids=\"$pids $!\"; done; rc=0; for p in $pids; do wait $p || rc=$?; "
                           "done; exit $rc");
  }
  JobResult result;
  const int status =
      std::system(absl::StrCat("(", command, ") >'", out, "' 2>&1 </dev/null").c_str());
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.output = ReadFile(out).value_or("");
  std::remove(out.c_str());
  return result;
}

std::unique_ptr<ProcessCommunicator> Ranks(Carrier carrier, const ProcessOptions& options = {}) {
  auto communicator =
      carrier == Carrier::kMpi ? MakeMpiCommunicator(options) : MakeTcpCommunicator(options);
  EXPECT_TRUE(communicator.ok()) << communicator.status();
  return *std::move(communicator);
}

// A case: what each rank does, under both.
#define PROCESS_CASE(ranks, name)                                 \
  void name(Carrier carrier);                                     \
  TEST(MpiCommunicator, name) {                                   \
    if (!MpiIsBuilt()) GTEST_SKIP() << "this build has no MPI";   \
    const JobResult result = RunJob(Carrier::kMpi, ranks, #name); \
    EXPECT_EQ(result.exit_code, 0) << result.output;              \
  }                                                               \
  TEST(TcpCommunicator, name) {                                   \
    const JobResult result = RunJob(Carrier::kTcp, ranks, #name); \
    EXPECT_EQ(result.exit_code, 0) << result.output;              \
  }                                                               \
  TEST(MpiRank, DISABLED_##name) { name(Carrier::kMpi); }         \
  TEST(TcpRank, DISABLED_##name) { name(Carrier::kTcp); }         \
  void name(Carrier carrier)

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

PROCESS_CASE(3, GivesTheBitsOfTheThreads) {
  const auto c =
      Ranks(carrier, {.max_message_bytes = 100000});  // So that messages travel in parts.
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
PROCESS_CASE(2, SumsLargeBuffers) {
  const auto c = Ranks(carrier);
  const std::vector<int32_t> group = {0, 1};
  const int64_t count = 1000003;
  EXPECT_EQ(AllCollectives(c.get(), group, DataType::kFloat32, count),
            OnThreads(2, group, DataType::kFloat32, count)[c->rank()]);
  EXPECT_EQ(c->Finish(absl::OkStatus()), absl::OkStatus());
}

PROCESS_CASE(3, SendsAndReceivesInTheOrderListed) {
  const auto c = Ranks(carrier);
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

PROCESS_CASE(3, ErrorOfOneRankReachesThoseThatWait) {
  const auto c = Ranks(carrier);
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
PROCESS_CASE(2, CallsOfTheOneBesideMeetOnlyEachOther) {
  const auto c = Ranks(carrier, {.threads_per_rank = 2});
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
  std::thread beside(sums, &c->Channel(1), 300000);
  if (c->rank() == 1) std::this_thread::sleep_for(milliseconds(20));
  sums(c.get(), 3);
  beside.join();
  EXPECT_EQ(c->Finish(absl::OkStatus()), absl::OkStatus());
}

PROCESS_CASE(2, AnErrorReachesWhoWaitsBeside) {
  const auto c = Ranks(carrier, {.threads_per_rank = 2});
  const absl::Status lost = absl::DataLossError("the device is gone");
  float number = 1;
  if (c->rank() == 1) {
    absl::Status beside;
    std::thread thread([&] {
      beside = c->Channel(1).AllReduce({0, 1}, DataType::kFloat32, &number, 1);
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

PROCESS_CASE(2, RankThatDoesNotComeIsADeadline) {
  const auto c =
      Ranks(carrier, {.timeout = milliseconds(1000), .longest_work = milliseconds(1000)});
  float number = 1;
  if (c->rank() == 0) {
    const absl::Status status = c->AllReduce({0, 1}, DataType::kFloat32, &number, 1);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("rank 0 waited 1000 ms in all_reduce for ranks 1"));
    EXPECT_EQ(c->Finish(status), status);
  } else {
    std::this_thread::sleep_for(milliseconds(3000));
    EXPECT_EQ(c->Finish(absl::OkStatus()).code(), absl::StatusCode::kDeadlineExceeded);
  }
}

PROCESS_CASE(2, MessageOfAnotherSizeIsAnErrorOnEveryRank) {
  const auto c = Ranks(carrier);
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

// mpirun ends what is left; by TCP all notice it.
void KilledRankEndsTheJob(Carrier carrier) {
  const auto c = Ranks(carrier);
  float number = 1;
  if (c->rank() == 1) raise(SIGKILL);
  const absl::Status status = c->AllReduce({0, 1}, DataType::kFloat32, &number, 1);
  EXPECT_THAT(std::string(status.message()), StartsWith("rank 1 ended without a word"));
  EXPECT_TRUE(c->speaks());
}
// The next one speaks.
void KilledFirstRankEndsTheJob(Carrier carrier) {
  const auto c = Ranks(carrier);
  float number = 1;
  if (c->rank() == 0) raise(SIGKILL);
  const absl::Status status = c->AllReduce({0, 1, 2}, DataType::kFloat32, &number, 1);
  EXPECT_THAT(std::string(status.message()), StartsWith("rank 0 ended without a word"));
  EXPECT_EQ(c->Finish(status), status);
  EXPECT_EQ(c->speaks(), c->rank() == 1);
}
TEST(TcpRank, DISABLED_KilledFirstRankEndsTheJob) { KilledFirstRankEndsTheJob(Carrier::kTcp); }
TEST(TcpCommunicator, KilledFirstRankEndsTheJob) {
  const JobResult result = RunJob(Carrier::kTcp, 3, "KilledFirstRankEndsTheJob");
  EXPECT_EQ(result.exit_code, 137) << result.output;
  EXPECT_THAT(result.output, Not(HasSubstr("FAILED")));
}
TEST(MpiRank, DISABLED_KilledRankEndsTheJob) { KilledRankEndsTheJob(Carrier::kMpi); }
TEST(TcpRank, DISABLED_KilledRankEndsTheJob) { KilledRankEndsTheJob(Carrier::kTcp); }

TEST(MpiCommunicator, KilledRankEndsTheJob) {
  if (!MpiIsBuilt()) GTEST_SKIP() << "this build has no MPI";
  const JobResult result = RunJob(Carrier::kMpi, 2, "KilledRankEndsTheJob");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.exit_code, 124) << "hangs";
  EXPECT_THAT(result.output, HasSubstr("signal 9"));
}
TEST(TcpCommunicator, KilledRankEndsTheJob) {
  const JobResult result = RunJob(Carrier::kTcp, 2, "KilledRankEndsTheJob");
  EXPECT_EQ(result.exit_code, 137) << result.output;
  EXPECT_THAT(result.output, HasSubstr("[  PASSED  ] 1 test"));
  EXPECT_THAT(result.output, Not(HasSubstr("FAILED")));
}

// The others say who it was and where; continued, it ends as they do.
PROCESS_CASE(3, StoppedRankEndsTheJob) {
  const auto c = Ranks(carrier, {.stall_timeout = milliseconds(3000)});
  float number = 1;
  EnterStep(7);
  std::this_thread::sleep_for(milliseconds(600));  // Until all have heard that.
  EXPECT_TRUE(c->AllReduce({0, 1, 2}, DataType::kFloat32, &number, 1).ok());
  if (c->rank() == 1) {
    const std::string wakes = absl::StrCat("(sleep 6; kill -CONT ", getpid(), ") &");
    EXPECT_EQ(std::system(wakes.c_str()), 0);
    raise(SIGSTOP);
  }
  // What the others had sent before they gave it up may be there when it is continued.
  const absl::Status status = c->Finish(c->AllReduce({0, 1, 2}, DataType::kFloat32, &number, 1));
  EXPECT_THAT(std::string(status.message()), StartsWith("rank 1 is not heard any more since "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("when it was in step 7"));
  EXPECT_EQ(c->speaks(), c->rank() == 0);
}

PROCESS_CASE(3, LongWorkIsNoStall) {
  const auto c =
      Ranks(carrier, {.timeout = milliseconds(500), .stall_timeout = milliseconds(1000)});
  float number = 1;
  if (c->rank() == 1) std::this_thread::sleep_for(milliseconds(2500));
  const absl::Status status = c->AllReduce({0, 1, 2}, DataType::kFloat32, &number, 1);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(number, 3);
  EXPECT_TRUE(c->Finish(status).ok());
}

// Ranks that wait for each other in a circle do not work.
PROCESS_CASE(2, AllThatWaitIsADeadline) {
  const auto c = Ranks(carrier, {.timeout = milliseconds(1000)});
  char byte = 0;
  const absl::Status status = c->Exchange({}, {{1 - c->rank(), &byte, 1}});
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_EQ(c->Finish(status), status);
}

// What a rank says of how far it is reaches the others while they wait for something else.
PROCESS_CASE(3, ProgressReachesTheOthers) {
  const auto c = Ranks(carrier);
  EXPECT_TRUE(c->has_own_process());
  if (carrier == Carrier::kTcp) {
    for (int32_t r = 0; r < 3; ++r) EXPECT_EQ(c->Posted(r), 0);
    EXPECT_EQ(c->Meet(), absl::OkStatus());
    c->Post(100 + c->rank());
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (int32_t r = 0; r < 3; ++r) {
      while (c->Posted(r) == 0 && std::chrono::steady_clock::now() < end) {
        EXPECT_EQ(c->Poll(), absl::OkStatus());
      }
      EXPECT_EQ(c->Posted(r), 100 + r);
    }
  } else {
    EXPECT_EQ(c->Posted(1), ControlPlane::kUnknown);
  }
  EXPECT_EQ(c->Finish(absl::OkStatus()), absl::OkStatus());
}

// Bytes that are nobody's greeting do not keep a job from starting.
PROCESS_CASE(3, StrangersAreTurnedAway) {
  if (carrier == Carrier::kTcp && std::string(std::getenv("RANK")) == "2") {
    // Some hang up, and many wait for an answer, for as long as the test lasts.
    std::vector<const char*> all = {"", "GET / HTTP/1.1\r\n\r\n", "ISOMER"};
    constexpr size_t kHangUp = 3, kAll = 20;
    while (all.size() < kAll) all.push_back("I");
    for (size_t i = 0; i < kAll; ++i) {
      const char* words = all[i];
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address = {};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      address.sin_port = htons(static_cast<uint16_t>(std::atoi(std::getenv("MASTER_PORT"))));
      while (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        std::this_thread::sleep_for(milliseconds(5));
      }
      EXPECT_EQ(send(fd, words, std::strlen(words), 0), static_cast<ssize_t>(std::strlen(words)));
      if (i < kHangUp) close(fd);
    }
  }
  const auto start = std::chrono::steady_clock::now();
  const auto c = Ranks(carrier);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(c->Meet(), absl::OkStatus());
  EXPECT_EQ(c->Finish(absl::OkStatus()), absl::OkStatus());
}

class Environment : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE",
          "TORCHELASTIC_RUN_ID", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NODELIST",
          "SLURM_JOB_NODELIST", "SLURM_JOB_ID", "SLURM_STEP_ID", "ISOMER_PORT"}) {
      unsetenv(name);
    }
  }
  static void Set(const std::vector<std::pair<const char*, const char*>>& variables) {
    for (const auto& [name, value] : variables) setenv(name, value, 1);
  }
  static std::string Error() { return std::string(RankFromEnvironment().status().message()); }
};

TEST_F(Environment, OfTorchrun) {
  EXPECT_THAT(Error(), HasSubstr("RANK is not set; start the program with torchrun or srun"));
  Set({{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}});
  const RankOfJob rank = RankFromEnvironment().value();
  EXPECT_EQ(rank.rank, 3);
  EXPECT_EQ(rank.num_ranks, 8);
  EXPECT_EQ(rank.host, "node7");
  EXPECT_EQ(rank.port, 29500);
  Set({{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TORCHELASTIC_RUN_ID", "a"}});
  EXPECT_EQ(RankFromEnvironment()->port, 29501);
  EXPECT_EQ(RankFromEnvironment()->job, "a");
  Set({{"ISOMER_PORT", "12345"}});
  EXPECT_EQ(RankFromEnvironment()->port, 12345);
  Set({{"ISOMER_PORT", "70000"}});
  EXPECT_THAT(Error(), HasSubstr("there is no port 70000"));
  Set({{"ISOMER_PORT", "x"}});
  EXPECT_THAT(Error(), HasSubstr("ISOMER_PORT=x is no number"));
  Set({{"ISOMER_PORT", "1"}, {"RANK", "8"}});
  EXPECT_THAT(Error(), HasSubstr("rank 8 of 8 is not there"));
  Set({{"RANK", "0"}, {"MASTER_ADDR", ""}});
  EXPECT_THAT(Error(), HasSubstr("MASTER_ADDR is not set"));
}

TEST_F(Environment, OfSrun) {
  Set({{"SLURM_PROCID", "9"},
       {"SLURM_NTASKS", "16"},
       {"SLURM_JOB_NODELIST", "gpu[003-004,9],x"},
       {"SLURM_JOB_ID", "1234567"},
       {"SLURM_STEP_ID", "2"}});
  const RankOfJob rank = RankFromEnvironment().value();
  EXPECT_EQ(rank.rank, 9);
  EXPECT_EQ(rank.num_ranks, 16);
  EXPECT_EQ(rank.host, "gpu003");
  EXPECT_EQ(rank.port, 24567);
  EXPECT_EQ(rank.job, "1234567.2");
  Set({{"SLURM_STEP_NODELIST", "gpu009"}});
  EXPECT_EQ(RankFromEnvironment()->host, "gpu009");
}

TEST(FirstOfNodeList, ReadsTheShortForm) {
  EXPECT_EQ(FirstOfNodeList("a"), "a");
  EXPECT_EQ(FirstOfNodeList("a,b"), "a");
  EXPECT_EQ(FirstOfNodeList("n[1-3]"), "n1");
  EXPECT_EQ(FirstOfNodeList("n[07,9-11]-eth,m"), "n07-eth");
  EXPECT_EQ(FirstOfNodeList("r[1-2]n[3-4]"), "r1n3");
  EXPECT_EQ(FirstOfNodeList("n[5"), "n5");
  EXPECT_EQ(FirstOfNodeList(""), "");
}

TEST(ConnectByTcp, SaysWhoDidNotCome) {
  const ProcessOptions options = {.timeout = milliseconds(200)};
  const int port = FreePort();
  EXPECT_EQ(ConnectByTcp({0, 3, "localhost", port, ""}, options).status().message(),
            "rank 0 waited 200 ms to start for ranks 1,2");
  EXPECT_EQ(
      ConnectByTcp({2, 3, "localhost", port, ""}, options).status().message(),
      absl::StrCat("rank 2 waited 200 ms to start, at localhost port ", port, ", for ranks 0"));
  EXPECT_EQ(ConnectByTcp({1, 2, "no.such.computer.invalid", port, ""}, options).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

// Connects as rank 1 of 3 would, and hangs up.
TEST(ConnectByTcp, NoticesWhoDiesAtTheStart) {
  const int port = FreePort();
  const ProcessOptions options = {.timeout = std::chrono::seconds(30)};
  const pid_t lost = fork();
  if (lost == 0) {
    // Ends while it waits for rank 2.
    alarm(1);
    ConnectByTcp({1, 3, "localhost", port, ""}, options).IgnoreError();
    _exit(0);
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(ConnectByTcp({0, 3, "localhost", port, ""}, options).status().message(),
            "rank 1 ended without a word");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  waitpid(lost, nullptr, 0);
}

// How a process of its own ends that is `rank`; `dies_after`: from then on it is killed.
class RankInProcess {
 public:
  RankInProcess(RankOfJob rank, ProcessOptions options,
                std::optional<std::chrono::microseconds> dies_after = std::nullopt) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    process_ = fork();
    if (process_ == 0) {
      if (dies_after) {
        itimerval timer = {};
        timer.it_value.tv_usec = dies_after->count();
        setitimer(ITIMER_REAL, &timer, nullptr);
      }
      auto messages = ConnectByTcp(rank, options);
      absl::Status status = messages.status();
      if (status.ok() && dies_after) pause();
      if (status.ok()) status = (*messages)->Finish(absl::OkStatus());
      if (messages.ok()) messages->reset();
      const std::string words(status.message());
      _exit(write(ends[1], words.data(), words.size()) == static_cast<ssize_t>(words.size()) ? 0
                                                                                             : 1);
    }
    close(ends[1]);
    out_ = ends[0];
  }
  std::string Message() {
    std::string words;
    char bytes[1024];
    for (ssize_t got = 0; (got = read(out_, bytes, sizeof bytes)) > 0;) words.append(bytes, got);
    close(out_);
    waitpid(process_, nullptr, 0);
    return words;
  }

 private:
  pid_t process_ = 0;
  int out_ = 0;
};

// Whoever is killed, and whenever: the others name it, though they may not have met it. Who comes
// when rank 0 has given up or is about to finds nobody.
TEST(ConnectByTcp, AllNameWhoIsKilledAtTheStart) {
  const ProcessOptions options = {.timeout = milliseconds(400)};
  for (int victim = 0; victim < 3; ++victim) {
    for (const int after : {300, 1000, 2000, 3000, 5000, 50000}) {
      const int port = FreePort();
      std::vector<RankInProcess> ranks;
      const auto start = std::chrono::steady_clock::now();
      for (int r = 0; r < 3; ++r) {
        std::optional<std::chrono::microseconds> dies_after;
        if (r == victim) dies_after = std::chrono::microseconds(after);
        ranks.emplace_back(RankOfJob{r, 3, "localhost", port, ""}, options, dies_after);
      }
      for (int r = 0; r < 3; ++r) {
        const std::string message = ranks[r].Message();
        if (r == victim) continue;
        EXPECT_THAT(message,
                    AnyOf(StartsWith(absl::StrCat("rank ", victim, " ended without a word")),
                          AllOf(HasSubstr("waited"), HasSubstr(absl::StrCat("ranks ", victim))),
                          AllOf(HasSubstr("waited"), HasSubstr("to start"), HasSubstr("ranks 0")),
                          StartsWith("rank 0 ended without a word")))
            << "rank " << r << ", killed after " << after << " us";
      }
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
    }
  }
}

// Who does not belong to the job learns it at once; the job goes on.
TEST(ConnectByTcp, TurnsAwayWithAReason) {
  const ProcessOptions options = {.timeout = std::chrono::seconds(30)};
  const int port = FreePort();
  RankInProcess first({0, 2, "localhost", port, "mine"}, options);
  EXPECT_EQ(ConnectByTcp({1, 3, "localhost", port, "mine"}, options).status().message(),
            "rank 0, where this one connects to, is of a job of 2 ranks called mine, and this one "
            "of another");
  EXPECT_THAT(
      std::string(ConnectByTcp({1, 2, "localhost", port, "yours"}, options).status().message()),
      HasSubstr("and this one of another"));
  EXPECT_EQ(ConnectByTcp({0, 2, "localhost", port, "mine"}, options).status().code(),
            absl::StatusCode::kUnavailable);
  RankInProcess second({1, 2, "localhost", port, "mine"}, options);
  EXPECT_EQ(first.Message(), "");
  EXPECT_EQ(second.Message(), "");

  RankInProcess again({0, 3, "localhost", port, ""}, {.timeout = milliseconds(500)});
  RankInProcess one({1, 3, "localhost", port, ""}, options);
  RankInProcess other({1, 3, "localhost", port, ""}, options);
  const std::string late = "rank 0 waited 500 ms to start for ranks 2";
  EXPECT_EQ(again.Message(), late);
  EXPECT_THAT((std::vector<std::string>{one.Message(), other.Message()}),
              testing::UnorderedElementsAre(late, "another process is rank 1 already"));
}

// A server that is not ours, at the port of rank 0.
TEST(ConnectByTcp, NoticesThatRankZeroIsAnotherProgram) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  std::thread server([fd] {
    const int client = accept(fd, nullptr, nullptr);
    const std::string words = "HTTP/1.1 400 Bad Request\r\n\r\n";
    EXPECT_EQ(send(client, words.data(), words.size(), 0), static_cast<ssize_t>(words.size()));
    char byte = 0;
    while (recv(client, &byte, 1, 0) > 0) {
    }
    close(client);
  });
  EXPECT_EQ(ConnectByTcp({1, 2, "127.0.0.1", ntohs(address.sin_port), ""}, {}).status().message(),
            "who answers as rank 0 is no rank of Isomer");
  server.join();
  close(fd);
}

TEST(ConnectByTcp, SaysThatAPortIsTaken) {
  const int fd = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int port = ntohs(address.sin6_port);
  EXPECT_THAT(std::string(ConnectByTcp({0, 2, "localhost", port, ""}, {}).status().message()),
              HasSubstr(absl::StrCat("port ", port, " of this computer: Address already in use")));
  close(fd);
}

}  // namespace
}  // namespace isomer
