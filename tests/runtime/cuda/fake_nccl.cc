#include "tests/runtime/cuda/fake_nccl.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "runtime/device/elements.h"
#include "tests/runtime/cuda/fake_cuda_driver.h"
#include "tests/runtime/cuda/fake_streams.h"

namespace isomer {

std::atomic<int> fake_nccl_calls = 0;
std::atomic<int> fake_nccl_hangs = -1;

namespace {

constexpr int kInvalidArgument = 4, kInvalidUsage = 5;

// What a rank asks for.
struct Call {
  std::string kind;
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
  int type = 0, root = -1;
  bool MeansWhat(const Call& other) const {
    return kind == other.kind && count == other.count && type == other.type && root == other.root;
  }
};
struct Message {
  const void* from = nullptr;
  void* to = nullptr;
  size_t bytes = 0;
  int* waits = nullptr;  // of the group that it is of, how many are not there
};

// Ranks that meet. What is here is touched with all streams locked.
struct Clique {
  int ranks = 0;
  std::set<int> joined;
  std::set<const fake::StreamDevice*> devices;
  struct Meeting {
    std::map<int, Call> calls;
    bool is_done = false;
  };
  std::map<int64_t, std::shared_ptr<Meeting>> meetings;                // by number of the call
  std::map<std::pair<int, int>, std::deque<Message>> sends, receives;  // by who, and to whom
};
struct Comm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  const fake::StreamDevice* device = nullptr;
  int64_t calls = 0;
  std::atomic<bool> aborted = false;
};

std::map<std::string, std::shared_ptr<Clique>> cliques;  // by id
std::atomic<int64_t> ids = 0;

Comm* OfComm(Nccl::Comm comm) { return static_cast<Comm*>(comm); }
int64_t BytesOf(int type) {
  switch (type) {
    case nccl::kBytes:
      return 1;
    case nccl::kFloat16:
    case nccl::kBFloat16:
      return 2;
    case nccl::kInt64:
      return 8;
    default:
      return 4;
  }
}
DataType DtypeOfNccl(int type) {
  switch (type) {
    case nccl::kFloat16:
      return DataType::kFloat16;
    case nccl::kBFloat16:
      return DataType::kBFloat16;
    case nccl::kInt64:
      return DataType::kInt64;
    case nccl::kInt32:
      return DataType::kInt32;
    default:
      return DataType::kFloat32;
  }
}

// The sum over the ranks of `count` numbers from number `begin` on.
std::vector<char> SumOf(const Clique::Meeting& meeting, size_t begin, size_t count) {
  const Call& first = meeting.calls.begin()->second;
  const int64_t element = BytesOf(first.type);
  std::vector<const void*> terms;
  for (const auto& [rank, call] : meeting.calls) {
    terms.push_back(static_cast<const char*>(call.send) + begin * element);
  }
  std::vector<char> sum(count * element);
  SumElements(DtypeOfNccl(first.type), terms, static_cast<int64_t>(count), sum.data());
  return sum;
}

// All have come: what is written is not read by another, as all that is read is read first.
void Do(const Clique::Meeting& meeting) {
  const Call& first = meeting.calls.begin()->second;
  const int64_t element = BytesOf(first.type);
  std::vector<std::pair<void*, std::vector<char>>> results;
  const auto bytes_of = [&](const void* data, size_t count) {
    const char* begin = static_cast<const char*>(data);
    return std::vector<char>(begin, begin + count * element);
  };
  for (const auto& [rank, call] : meeting.calls) {
    if (first.kind == "all_reduce" || (first.kind == "reduce" && rank == first.root)) {
      results.push_back({call.receive, SumOf(meeting, 0, first.count)});
    } else if (first.kind == "reduce_scatter") {
      results.push_back({call.receive, SumOf(meeting, rank * first.count, first.count)});
    } else if (first.kind == "broadcast") {
      results.push_back({call.receive, bytes_of(meeting.calls.at(first.root).send, first.count)});
    } else if (first.kind == "all_gather") {
      for (const auto& [from, other] : meeting.calls) {
        results.push_back({static_cast<char*>(call.receive) + from * first.count * element,
                           bytes_of(other.send, first.count)});
      }
    }
  }
  for (const auto& [to, bytes] : results) std::memcpy(to, bytes.data(), bytes.size());
}

int Check(Comm* comm, Nccl::Stream stream) {
  const auto* of = static_cast<fake::Stream*>(stream);
  if (comm->aborted) return kInvalidUsage;
  return fake::DeviceOf(of) == comm->device && FakeCurrentDevice() == comm->device
             ? nccl::kSuccess
             : kInvalidArgument;
}

bool Hangs(const Comm* comm) { return comm->rank == fake_nccl_hangs; }

int Collective(Comm* comm, Call call, Nccl::Stream stream) {
  if (const int error = Check(comm, stream); error != nccl::kSuccess) return error;
  // As a graph does it again, the number of the call is found when a stream comes to it.
  auto meeting = std::make_shared<std::shared_ptr<Clique::Meeting>>();
  const auto may_run = [=] {
    if (comm->aborted) return true;
    if (Hangs(comm)) return false;
    Clique& clique = *comm->clique;
    if (*meeting == nullptr) {
      std::shared_ptr<Clique::Meeting>& there = clique.meetings[comm->calls++];
      if (there == nullptr) there = std::make_shared<Clique::Meeting>();
      *meeting = there;
      there->calls[comm->rank] = call;
    }
    return static_cast<int>((*meeting)->calls.size()) == clique.ranks;
  };
  const auto run = [=]() -> int {
    if (comm->aborted) return fake::kSuccess;
    Clique::Meeting& all = **meeting;
    ++fake_nccl_calls;
    if (!all.is_done) {
      for (const auto& [rank, other] : all.calls) {
        if (call.MeansWhat(other)) continue;
        ADD_FAILURE() << "rank " << comm->rank << " calls " << call.kind << " of " << call.count
                      << ", rank " << rank << " " << other.kind << " of " << other.count;
        return fake::kIllegalAddress;
      }
      Do(all);
      all.is_done = true;
    }
    meeting->reset();
    return fake::kSuccess;
  };
  fake::Give(static_cast<fake::Stream*>(stream), {run, may_run});
  return nccl::kInProgress;
}

// Messages that were asked for since the thread's group began.
struct Asked {
  Comm* comm = nullptr;
  Nccl::Stream stream = nullptr;
  int peer = 0;
  Message message;
};
thread_local int depth = 0;
thread_local std::vector<Asked> asked;

void Match(Clique* clique, int from, int to) {
  auto &sends = clique->sends[{from, to}], &receives = clique->receives[{from, to}];
  while (!sends.empty() && !receives.empty()) {
    EXPECT_EQ(sends.front().bytes, receives.front().bytes) << from << " to " << to;
    std::memmove(receives.front().to, sends.front().from, receives.front().bytes);
    --*sends.front().waits;
    --*receives.front().waits;
    sends.pop_front();
    receives.pop_front();
  }
}

int EndGroup() {
  if (--depth > 0) return nccl::kSuccess;
  std::vector<Asked> all = std::move(asked);
  asked.clear();
  if (all.empty()) return nccl::kSuccess;
  Comm* const comm = all[0].comm;
  for (const Asked& one : all) {
    if (one.comm != comm || one.stream != all[0].stream) return kInvalidUsage;
  }
  if (const int error = Check(comm, all[0].stream); error != nccl::kSuccess) return error;
  struct State {
    bool is_there = false;
    int waits = 0;
  };
  auto state = std::make_shared<State>();
  const auto may_run = [=] {
    if (comm->aborted) return true;
    if (Hangs(comm)) return false;
    Clique& clique = *comm->clique;
    if (!state->is_there) {
      state->is_there = true;
      state->waits = static_cast<int>(all.size());
      for (const Asked& one : all) {
        Message message = one.message;
        message.waits = &state->waits;
        const bool sends = message.from != nullptr;
        const std::pair<int, int> way =
            sends ? std::pair(comm->rank, one.peer) : std::pair(one.peer, comm->rank);
        (sends ? clique.sends : clique.receives)[way].push_back(message);
        Match(&clique, way.first, way.second);
      }
    }
    return state->waits == 0;
  };
  const auto run = [=] {
    ++fake_nccl_calls;
    state->is_there = false;
    return fake::kSuccess;
  };
  fake::Give(static_cast<fake::Stream*>(all[0].stream), {run, may_run});
  return nccl::kInProgress;
}

int Ask(Asked one) {
  ++depth;
  asked.push_back(std::move(one));
  return EndGroup();
}

}  // namespace

Nccl FakeNccl() {
  Nccl nccl;
  nccl.version = [](int* version) {
    *version = 22800;
    return nccl::kSuccess;
  };
  nccl.unique_id = [](Nccl::UniqueId* id) {
    std::memset(id->bytes, 0, sizeof id->bytes);
    const int64_t number = ids++;
    std::memcpy(id->bytes, &number, sizeof number);
    return nccl::kSuccess;
  };
  nccl.init = [](Nccl::Comm* comm, int ranks, Nccl::UniqueId id, int rank, Nccl::Config* config) {
    if (config->magic != 0xcafebeef || config->size != sizeof *config || config->blocking != 0 ||
        rank < 0 || rank >= ranks) {
      return kInvalidArgument;
    }
    int error = nccl::kInProgress;
    fake::Locked([&] {
      std::shared_ptr<Clique>& clique = cliques[{id.bytes, sizeof id.bytes}];
      if (clique == nullptr) clique = std::make_shared<Clique>();
      // "Duplicate GPU detected".
      const bool is_new = clique->devices.insert(FakeCurrentDevice()).second;
      if (!is_new || !clique->joined.insert(rank).second) error = kInvalidUsage;
      clique->ranks = ranks;
      // Work that is done may still know one that is destroyed.
      static auto* comms = new std::list<Comm>();
      Comm& made = comms->emplace_back();
      made.clique = clique;
      made.rank = rank;
      made.device = FakeCurrentDevice();
      *comm = &made;
    });
    return error;
  };
  // NCCL waits for graphs that it is in, and would for ever.
  nccl.destroy = [](Nccl::Comm comm) {
    EXPECT_EQ(OfComm(comm)->device->graphs, 0);
    fake::Locked([&] { OfComm(comm)->clique = nullptr; });
    return nccl::kSuccess;
  };
  nccl.abort = [](Nccl::Comm comm) {
    EXPECT_EQ(OfComm(comm)->device->graphs, 0);
    OfComm(comm)->aborted = true;
    return nccl::kSuccess;
  };
  nccl.async_error = [](Nccl::Comm comm, int* error) {
    fake::Locked([&] {
      const Clique& clique = *OfComm(comm)->clique;
      *error = static_cast<int>(clique.joined.size()) == clique.ranks ? nccl::kSuccess
                                                                      : nccl::kInProgress;
    });
    return nccl::kSuccess;
  };
  nccl.error_text = [](int error) { return error == kInvalidUsage ? "invalid usage" : "error"; };
  nccl.last_error = [](Nccl::Comm) { return "of the fake"; };
  nccl.all_reduce = [](const void* send, void* receive, size_t count, int type, int,
                       Nccl::Comm comm, Nccl::Stream stream) {
    return Collective(OfComm(comm), {"all_reduce", send, receive, count, type}, stream);
  };
  nccl.reduce = [](const void* send, void* receive, size_t count, int type, int, int root,
                   Nccl::Comm comm, Nccl::Stream stream) {
    return Collective(OfComm(comm), {"reduce", send, receive, count, type, root}, stream);
  };
  nccl.broadcast = [](const void* send, void* receive, size_t count, int type, int root,
                      Nccl::Comm comm, Nccl::Stream stream) {
    return Collective(OfComm(comm), {"broadcast", send, receive, count, type, root}, stream);
  };
  nccl.reduce_scatter = [](const void* send, void* receive, size_t count, int type, int,
                           Nccl::Comm comm, Nccl::Stream stream) {
    return Collective(OfComm(comm), {"reduce_scatter", send, receive, count, type}, stream);
  };
  nccl.all_gather = [](const void* send, void* receive, size_t count, int type, Nccl::Comm comm,
                       Nccl::Stream stream) {
    return Collective(OfComm(comm), {"all_gather", send, receive, count, type}, stream);
  };
  nccl.send = [](const void* data, size_t count, int type, int peer, Nccl::Comm comm,
                 Nccl::Stream stream) {
    return Ask({OfComm(comm), stream, peer, {.from = data, .bytes = count * BytesOf(type)}});
  };
  nccl.receive = [](void* data, size_t count, int type, int peer, Nccl::Comm comm,
                    Nccl::Stream stream) {
    return Ask({OfComm(comm), stream, peer, {.to = data, .bytes = count * BytesOf(type)}});
  };
  nccl.group_start = [] {
    ++depth;
    return nccl::kSuccess;
  };
  nccl.group_end = EndGroup;
  return nccl;
}

}  // namespace isomer
