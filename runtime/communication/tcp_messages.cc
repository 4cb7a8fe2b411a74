#include "runtime/communication/tcp_messages.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "runtime/communication/liveness.h"
#include "runtime/device/last_resort.h"

namespace isomer {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A lane for each channel, and one for what is said beside them.
constexpr int kControlLane = ProcessMessages::kMostChannels;
constexpr int kLanes = kControlLane + 1;
// How long ranks wait for each other to end after an error, before they end without.
constexpr std::chrono::seconds kPatience(10);
// Small messages take about so long; who waits for longer sleeps until something comes.
constexpr std::chrono::microseconds kSpin(50);
// A rank whose connection ended may have said why, on another one. Who waits for rank 0 waits for
// so long after it, to hear for whom rank 0 waited.
constexpr milliseconds kLastWords(500);
// For the first words of whoever connects.
constexpr milliseconds kGreeting(5000);

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// Until `fd` is ready; false: the time is over.
bool Await(int fd, short events, steady_clock::time_point end) {
  const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now()).count();
  if (left <= 0) return false;
  pollfd wanted = {fd, events, 0};
  poll(&wanted, 1, static_cast<int>(std::min<int64_t>(left + 1, 1000)));
  return true;
}

bool WriteAll(int fd, const void* data, size_t bytes, steady_clock::time_point end) {
  for (size_t at = 0; at < bytes;) {
    const ssize_t sent =
        send(fd, static_cast<const char*>(data) + at, bytes - at, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && !WouldBlock()) return false;
    if (sent > 0) {
      at += static_cast<size_t>(sent);
    } else if (!Await(fd, POLLOUT, end)) {
      return false;
    }
  }
  return true;
}

void SetUp(int fd) {
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
}

// On all addresses of this computer; 0: a port that is free.
absl::StatusOr<Socket> Listen(int32_t port) {
  const int yes = 1, no = 0;
  Socket six(socket(AF_INET6, SOCK_STREAM, 0));
  if (six.is_open()) {
    setsockopt(six.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    setsockopt(six.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    sockaddr_in6 address = {};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_any;
    address.sin6_port = htons(static_cast<uint16_t>(port));
    if (bind(six.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
        listen(six.fd(), SOMAXCONN) == 0) {
      SetUp(six.fd());
      return six;
    }
    six = Socket();
  }
  Socket four(socket(AF_INET, SOCK_STREAM, 0));
  setsockopt(four.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (!four.is_open() ||
      bind(four.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(four.fd(), SOMAXCONN) != 0) {
    return absl::UnavailableError(absl::StrCat("--communicator=tcp: port ", port,
                                               " of this computer: ", std::strerror(errno),
                                               "; ISOMER_PORT says another one"));
  }
  SetUp(four.fd());
  return four;
}

int32_t PortOf(const Socket& listener) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

// Empty: it is this computer's own.
std::string AddressOfPeer(const Socket& socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  char text[INET6_ADDRSTRLEN] = {};
  getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size);
  const void* bytes = &reinterpret_cast<sockaddr_in&>(address).sin_addr;
  if (address.ss_family == AF_INET6) bytes = &reinterpret_cast<sockaddr_in6&>(address).sin6_addr;
  inet_ntop(address.ss_family, bytes, text, sizeof text);
  absl::string_view name = text;
  constexpr absl::string_view kMapped = "::ffff:";
  if (name.substr(0, kMapped.size()) == kMapped && name.find('.') != name.npos) {
    name.remove_prefix(kMapped.size());
  }
  return name == "::1" || name.substr(0, 4) == "127." ? "" : std::string(name);
}

bool IsConnectedToItself(const Socket& socket) {
  sockaddr_storage near = {}, far = {};
  socklen_t near_size = sizeof near, far_size = sizeof far;
  getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&near), &near_size);
  getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&far), &far_size);
  return near_size == far_size && std::memcmp(&near, &far, near_size) == 0;
}

// Tries until the time is over or `check` has an error; who is to be met may not be there yet.
absl::StatusOr<std::optional<Socket>> Connect(const std::string& host, int32_t port,
                                              steady_clock::time_point end,
                                              const std::function<absl::Status()>& check) {
  while (steady_clock::now() < end) {
    ISOMER_RETURN_IF_ERROR(check());
    addrinfo hints = {}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found) == 0) {
      for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
        Socket socket(::socket(at->ai_family, SOCK_STREAM, 0));
        if (!socket.is_open()) continue;
        SetUp(socket.fd());
        int error = connect(socket.fd(), at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
        if (error == EINPROGRESS) {
          pollfd wanted = {socket.fd(), POLLOUT, 0};
          const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
          poll(&wanted, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
          socklen_t size = sizeof error;
          error = ETIMEDOUT;
          if (wanted.revents != 0) getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
        }
        // A port of this computer that nobody listens at may have been taken for the near end, too.
        if (error != 0 || IsConnectedToItself(socket)) continue;
        freeaddrinfo(found);
        return std::optional<Socket>(std::move(socket));
      }
      freeaddrinfo(found);
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
  return std::optional<Socket>();
}

// What a connection begins with.
struct Greeting {
  static constexpr uint64_t kMagic = 0x49534f4d45523031;  // "ISOMER01"
  uint64_t magic = kMagic, job = 0;
  int32_t rank = 0, lane = 0;
  // Where the rank listens, and the name of its computer.
  int32_t port = 0;
  char computer[256] = {};
};
// Where each rank is, as rank 0 tells all.
struct Place {
  char address[INET6_ADDRSTRLEN] = {};  // empty: that of rank 0
  int32_t port = 0;
  char computer[256] = {};
};

// Before a message.
struct Header {
  uint64_t tag = 0, bytes = 0;
};
// Before what is said beside messages.
struct Word {
  enum Kind : uint32_t {
    kAbort = 1,
    kPost = 2,
    kBye = 3,
    kPlaces = 4,  // of rank 0: where each rank is
    kReady = 5,   // to rank 0: all connections of who says it are there
    kStart = 6,   // of rank 0: all are ready
    kBeat = 7,    // a Beat
  };
  static constexpr uint32_t kMostBytes = 1u << 28;
  uint32_t kind = kBye, bytes = 0;
};
std::string WordOf(Word::Kind kind, absl::string_view bytes) {
  const Word word = {kind, static_cast<uint32_t>(bytes.size())};
  return absl::StrCat(absl::string_view(reinterpret_cast<const char*>(&word), sizeof word), bytes);
}
std::string AbortOf(const absl::Status& status) {
  const auto code = static_cast<int32_t>(status.code());
  return WordOf(Word::kAbort,
                absl::StrCat(absl::string_view(reinterpret_cast<const char*>(&code), sizeof code),
                             status.message()));
}

uint64_t TagOf(const char* call, absl::Span<const int32_t> group) {
  return HashBytes(absl::StrCat(call, " ", absl::StrJoin(group, ",")));
}

class TcpMessages : public ProcessMessages {
 public:
  TcpMessages(const RankOfJob& rank, const ProcessOptions& options)
      : rank_(rank),
        options_(options),
        peers_(rank.num_ranks),
        liveness_(rank.rank, rank.num_ranks, options.stall_timeout) {}

  // Waits for the others to end, too, if the job failed: whoever starts them may end all when one
  // has ended.
  ~TcpMessages() override {
    if (!is_connected_) return;
    if (!is_finished_) Finish(absl::AbortedError("the process gave up")).IgnoreError();
    liveness_.Stop();
    std::unique_lock lock(mutex_);
    SayToAll(WordOf(Word::kBye, ""));
    const auto end = steady_clock::now() + kPatience;
    while (!error_.ok() && steady_clock::now() < end) {
      Listen(lock);
      bool all = true;
      for (int32_t r = 0; r < num_ranks(); ++r) {
        const Peer& peer = peers_[r];
        all &= peer.has_ended || !peer.lanes[kControlLane].is_open() || liveness_.IsLost(r);
      }
      if (all) break;
      lock.unlock();
      std::this_thread::sleep_for(milliseconds(1));
      lock.lock();
    }
  }

  int32_t rank() const override { return rank_.rank; }
  int32_t num_ranks() const override { return rank_.num_ranks; }
  int32_t local_rank() const override { return local_rank_; }
  int32_t num_local_ranks() const override { return num_local_ranks_; }
  bool serves_other_threads() const override { return true; }
  void SetComputes(bool computes) override {
    computes_ = computes;
    liveness_.SetComputes(computes);
  }

  // Meets all ranks. An error reaches all that this one has met, also one that it has heard: they
  // may not have met who said it.
  absl::Status Connect() {
    const absl::Status status = ConnectAndStart();
    if (status.ok()) return status;
    std::lock_guard lock(mutex_);
    SayToAll(AbortOf(status));
    return status;
  }
  absl::Status Exchange(int channel, const char* call, absl::Span<const int32_t> group,
                        absl::Span<const Send> sends, absl::Span<const Receive> receives) override;

  void Abort(const absl::Status& status) override {
    std::lock_guard lock(mutex_);
    AbortNow(status);
  }
  absl::Status Finish(const absl::Status& status) override {
    is_finished_ = true;
    Abort(status);
    return MeetToFinish();
  }
  absl::Status Poll() override {
    std::unique_lock lock(mutex_);
    if (error_.ok()) Listen(lock);
    return error_;
  }
  bool speaks() const override {
    std::lock_guard lock(mutex_);
    if (liveness_.StoodStill()) return false;  // The others do.
    for (int32_t r = 0; r < rank(); ++r) {
      const bool is_gone = !peers_[r].has_ended && !peers_[r].lanes[kControlLane].is_open();
      if (!is_gone && !liveness_.IsLost(r)) return false;
    }
    return true;
  }
  void Post(int64_t progress) override {
    std::lock_guard lock(mutex_);
    peers_[rank()].posted = progress;
    SayToAll(WordOf(Word::kPost, {reinterpret_cast<const char*>(&progress), sizeof progress}));
  }
  int64_t Posted(int32_t rank) const override {
    std::lock_guard lock(mutex_);
    return peers_[rank].posted;
  }

 private:
  struct Peer {
    std::array<Socket, kLanes> lanes;
    std::string heard;       // of the control lane, what is no whole word yet
    bool has_ended = false;  // it said so
    bool is_ready = false;   // it said so, to rank 0
    int64_t posted = 0;
  };
  // What is on its way to or from a rank, in one exchange.
  struct Stream {
    int32_t peer = 0;
    int fd = -1;
    bool is_of_sends = false;
    std::vector<size_t> messages;  // in the order in which they go
    size_t current = 0, at = 0;    // bytes of the current one, header first
    Header header;
    bool is_over() const { return current == messages.size(); }
  };

  uint64_t Job() const { return HashBytes(absl::StrCat(rank_.job, " ", rank_.num_ranks)); }
  Greeting GreetingOf(int lane) const {
    Greeting greeting;
    greeting.job = Job();
    greeting.rank = rank();
    greeting.lane = lane;
    return greeting;
  }
  absl::Status ConnectAndStart();
  void Keep(int32_t peer, int lane, Socket socket);
  // Hears what others say until `is_true`. Errors: what they said; `late`, when the time is over.
  absl::Status HearUntil(const std::function<bool()>& is_true, steady_clock::time_point end,
                         const std::function<absl::Status()>& late);
  // The next rank of this job that connects. Errors: one that did has ended; `late`, when the time
  // is over.
  absl::StatusOr<Greeting> Accept(const Socket& listener, steady_clock::time_point end,
                                  const std::function<absl::Status()>& late);
  absl::Status Late(absl::string_view what, std::vector<int32_t> ranks, milliseconds waited) const;
  absl::Status Late(absl::string_view what, std::vector<int32_t> ranks) const {
    return Late(what, std::move(ranks), options_.timeout);
  }

  // Sends or receives what goes without waiting. True: something did.
  absl::StatusOr<bool> Advance(Stream* stream, const char* call, uint64_t tag,
                               absl::Span<const Send> sends, absl::Span<const Receive> receives);
  absl::Status Gone(int32_t peer);
  absl::Status Failed(const absl::Status& status) {
    std::lock_guard lock(mutex_);
    AbortNow(status);
    return error_;
  }

  // What follows is for who has locked mutex_.
  void AbortNow(const absl::Status& status) {
    if (!error_.ok() || status.ok()) return;
    SetError(status);
    SayToAll(AbortOf(status));
  }
  void SetError(const absl::Status& status) {
    error_ = status;
    if (is_connected_) ArmLastResort(status);
  }
  void SayToAll(absl::string_view word) {
    for (Peer& peer : peers_) {
      const Socket& lane = peer.lanes[kControlLane];
      if (!lane.is_open() || peer.has_ended) continue;
      if (!WriteAll(lane.fd(), word.data(), word.size(), steady_clock::now() + milliseconds(200))) {
        shutdown(lane.fd(), SHUT_RDWR);  // Half a word is none.
      }
    }
  }
  // Of liveness_, in its thread.
  void SayThatItLives() {
    std::unique_lock lock(mutex_);
    if (!error_.ok()) return;
    const Beat own = liveness_.Own();
    SayToAll(WordOf(Word::kBeat, {reinterpret_cast<const char*>(&own), sizeof own}));
    Listen(lock);
    AbortNow(liveness_.Check());
  }
  absl::Status EndedWithoutAWord(int32_t peer) const {
    const std::string place = liveness_.LastPlace(peer);
    return absl::AbortedError(absl::StrCat("rank ", peer, " ended without a word",
                                           place.empty() ? "" : "; it was ", place));
  }
  // Hears what others said; does not wait.
  void Listen(const std::unique_lock<std::mutex>&);
  void Hear(int32_t peer);

  const RankOfJob rank_;
  const ProcessOptions options_;
  bool is_crowded_ = false;  // threads are more than cores
  int32_t local_rank_ = 0, num_local_ranks_ = 1;
  std::atomic<bool> is_connected_ = false;
  bool is_finished_ = false;
  std::atomic<bool> computes_ = true;
  // Who connected and has not said yet who it is.
  struct Arriving {
    Socket socket;
    std::string heard;
    steady_clock::time_point since;
  };
  std::vector<Arriving> arriving_;
  std::vector<Place> places_;  // of the ranks, as soon as rank 0 has told
  bool is_started_ = false;
  Socket said_;               // an epoll of all control lanes
  mutable std::mutex mutex_;  // guards what follows, of peers what is of the control lane
  std::vector<Peer> peers_;
  absl::Status error_;
  Liveness liveness_;  // The last: its thread uses all the others.
};

absl::Status TcpMessages::Late(absl::string_view what, std::vector<int32_t> ranks,
                               milliseconds waited) const {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return absl::DeadlineExceededError(absl::StrCat("rank ", rank(), " waited ", waited.count(),
                                                  " ms ", what, " for ranks ",
                                                  absl::StrJoin(ranks, ",")));
}

// Several may be about to say who they are, and some never do.
absl::StatusOr<Greeting> TcpMessages::Accept(const Socket& listener, steady_clock::time_point end,
                                             const std::function<absl::Status()>& late) {
  std::vector<pollfd> waits;
  while (steady_clock::now() < end) {
    for (Socket came(accept(listener.fd(), nullptr, nullptr)); came.is_open();
         came = Socket(accept(listener.fd(), nullptr, nullptr))) {
      SetUp(came.fd());
      arriving_.push_back({std::move(came), "", steady_clock::now()});
    }
    for (auto at = arriving_.begin(); at != arriving_.end();) {
      Greeting greeting;
      char bytes[sizeof greeting];
      const ssize_t got =
          recv(at->socket.fd(), bytes, sizeof greeting - at->heard.size(), MSG_DONTWAIT);
      if (got > 0) at->heard.append(bytes, static_cast<size_t>(got));
      const bool is_whole = at->heard.size() == sizeof greeting;
      const bool is_lost =
          got == 0 || (got < 0 && !WouldBlock()) || steady_clock::now() - at->since > kGreeting;
      if (!is_whole && !is_lost) {
        ++at;
        continue;
      }
      Socket socket = std::move(at->socket);
      if (is_whole) std::memcpy(&greeting, at->heard.data(), sizeof greeting);
      at = arriving_.erase(at);
      if (!is_whole || greeting.magic != Greeting::kMagic) continue;
      const auto turn_away = [&](absl::string_view why) {
        const std::string word = AbortOf(absl::FailedPreconditionError(why));
        WriteAll(socket.fd(), word.data(), word.size(), steady_clock::now() + milliseconds(200));
      };
      if (greeting.job != Job() || greeting.rank < 0 || greeting.rank >= num_ranks() ||
          greeting.lane < 0 || greeting.lane >= kLanes) {
        turn_away(absl::StrCat("rank ", rank(), ", where this one connects to, is of a job of ",
                               num_ranks(), rank_.job.empty() ? " ranks" : " ranks called ",
                               rank_.job, ", and this one of another"));
        continue;
      }
      if (greeting.rank == rank() || peers_[greeting.rank].lanes[greeting.lane].is_open()) {
        turn_away(absl::StrCat("another process is rank ", greeting.rank, " already"));
        continue;  // The first counts.
      }
      greeting.computer[sizeof greeting.computer - 1] = '\0';
      Keep(greeting.rank, greeting.lane, std::move(socket));
      return greeting;
    }
    ISOMER_RETURN_IF_ERROR(Poll());
    waits = {{listener.fd(), POLLIN, 0}, {said_.fd(), POLLIN, 0}};
    for (const Arriving& one : arriving_) waits.push_back({one.socket.fd(), POLLIN, 0});
    constexpr int kLookAgainMs = 50;
    poll(waits.data(), waits.size(), kLookAgainMs);
  }
  return late();
}

void TcpMessages::Keep(int32_t peer, int lane, Socket socket) {
  std::lock_guard lock(mutex_);
  peers_[peer].lanes[lane] = std::move(socket);
  if (lane != kControlLane) return;
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = peer;
  epoll_ctl(said_.fd(), EPOLL_CTL_ADD, peers_[peer].lanes[lane].fd(), &event);
}

absl::Status TcpMessages::HearUntil(const std::function<bool()>& is_true,
                                    steady_clock::time_point end,
                                    const std::function<absl::Status()>& late) {
  while (true) {
    const absl::Status heard = Poll();
    if (is_true()) return absl::OkStatus();  // An error after that is for who comes next.
    ISOMER_RETURN_IF_ERROR(heard);
    if (!Await(said_.fd(), POLLIN, end)) return late();
  }
}

// Rank 0 hears from all where they are and tells all. Then each connects to those before it. No
// rank leaves before all are ready: from there on, whoever loses a connection has lost a rank.
absl::Status TcpMessages::ConnectAndStart() {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  const auto end = steady_clock::now() + options_.timeout;
  ISOMER_ASSIGN_OR_RETURN(const Socket listener, isomer::Listen(rank() == 0 ? rank_.port : 0));
  Greeting own = GreetingOf(kControlLane);
  own.port = PortOf(listener);
  gethostname(own.computer, sizeof own.computer - 1);
  said_ = Socket(epoll_create1(EPOLL_CLOEXEC));
  const auto missing = [&](int lane, int32_t from) {
    std::vector<int32_t> ranks;
    for (int32_t r = from; r < num_ranks(); ++r) {
      if (r != rank() && !peers_[r].lanes[lane].is_open()) ranks.push_back(r);
    }
    return ranks;
  };
  if (rank() == 0) {
    places_.resize(num_ranks());
    std::copy_n(own.computer, sizeof own.computer, places_[0].computer);
    places_[0].port = rank_.port;
    while (!missing(kControlLane, 1).empty()) {
      ISOMER_ASSIGN_OR_RETURN(const Greeting came, Accept(listener, end, [&] {
                                return Late("to start", missing(kControlLane, 1));
                              }));
      Place& place = places_[came.rank];
      const std::string address = AddressOfPeer(peers_[came.rank].lanes[kControlLane]);
      std::copy_n(address.c_str(), address.size() + 1, place.address);
      place.port = came.port;
      std::copy_n(came.computer, sizeof place.computer, place.computer);
    }
    const std::string word = WordOf(Word::kPlaces, {reinterpret_cast<const char*>(places_.data()),
                                                    places_.size() * sizeof(Place)});
    for (int32_t r = 1; r < num_ranks(); ++r) {
      if (WriteAll(peers_[r].lanes[kControlLane].fd(), word.data(), word.size(), end)) continue;
      ISOMER_RETURN_IF_ERROR(Poll());
      return Late("to start", {r});
    }
  } else {
    const auto connect = [&](int32_t to, const std::string& host, int32_t port, int lane,
                             absl::string_view what) -> absl::Status {
      const Greeting greeting = lane == kControlLane ? own : GreetingOf(lane);
      ISOMER_ASSIGN_OR_RETURN(std::optional<Socket> socket,
                              isomer::Connect(host, port, end, [&] { return Poll(); }));
      if (!socket || !WriteAll(socket->fd(), &greeting, sizeof greeting, end)) {
        ISOMER_RETURN_IF_ERROR(Poll());
        return Late(what, {to});
      }
      Keep(to, lane, *std::move(socket));
      return absl::OkStatus();
    };
    const std::string to_first =
        absl::StrCat("to start, at ", rank_.host, " port ", rank_.port, ",");
    ISOMER_RETURN_IF_ERROR(connect(0, rank_.host, rank_.port, kControlLane, to_first));
    ISOMER_RETURN_IF_ERROR(HearUntil([&] { return !places_.empty(); }, end + kLastWords,
                                     [&] { return Late(to_first, {0}); }));
    for (int32_t to = 0; to < rank(); ++to) {
      const std::string host = places_[to].address[0] == '\0' ? rank_.host : places_[to].address;
      for (int lane = 0; lane < kLanes; ++lane) {
        if (peers_[to].lanes[lane].is_open()) continue;
        ISOMER_RETURN_IF_ERROR(connect(to, host, places_[to].port, lane, "to connect"));
      }
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    while (!missing(lane, rank() + 1).empty()) {
      ISOMER_RETURN_IF_ERROR(Accept(listener, end, [&] {
                               return Late("to be connected", missing(lane, rank() + 1));
                             }).status());
    }
  }
  num_local_ranks_ = 0;
  for (int32_t r = 0; r < num_ranks(); ++r) {
    if (std::strcmp(places_[r].computer, own.computer) != 0) continue;
    if (r < rank()) ++local_rank_;
    ++num_local_ranks_;
  }
  is_crowded_ = num_local_ranks_ * options_.threads_per_rank >
                static_cast<int>(std::thread::hardware_concurrency());
  arriving_.clear();
  if (rank() == 0) {
    const auto unready = [&] {
      std::vector<int32_t> ranks;
      for (int32_t r = 1; r < num_ranks(); ++r) {
        if (!peers_[r].is_ready) ranks.push_back(r);
      }
      return ranks;
    };
    ISOMER_RETURN_IF_ERROR(HearUntil([&] { return unready().empty(); }, end,
                                     [&] { return Late("to start", unready()); }));
    std::lock_guard lock(mutex_);
    SayToAll(WordOf(Word::kStart, ""));
  } else {
    const std::string word = WordOf(Word::kReady, "");
    WriteAll(peers_[0].lanes[kControlLane].fd(), word.data(), word.size(), end);
    ISOMER_RETURN_IF_ERROR(HearUntil([&] { return is_started_; }, end + kLastWords,
                                     [&] { return Late("to start", {0}); }));
  }
  is_connected_ = true;
  liveness_.Start([this] { SayThatItLives(); });
  return absl::OkStatus();
}

void TcpMessages::Listen(const std::unique_lock<std::mutex>&) {
  epoll_event events[64];
  const int count = epoll_wait(said_.fd(), events, 64, 0);
  for (int i = 0; i < count; ++i) Hear(events[i].data.fd);
}

void TcpMessages::Hear(int32_t from) {
  Peer& peer = peers_[from];
  Socket& lane = peer.lanes[kControlLane];
  char bytes[4096];
  ssize_t got = 0;
  while ((got = recv(lane.fd(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
    peer.heard.append(bytes, static_cast<size_t>(got));
  }
  bool is_closed = got == 0 || !WouldBlock();
  Word word;
  while (peer.heard.size() >= sizeof word) {
    std::memcpy(&word, peer.heard.data(), sizeof word);
    if (word.kind < Word::kAbort || word.kind > Word::kBeat || word.bytes > Word::kMostBytes) {
      if (error_.ok()) {
        SetError(absl::UnavailableError(
            absl::StrCat("who answers as rank ", from, " is no rank of Isomer")));
      }
      is_closed = true;
      break;
    }
    if (peer.heard.size() < sizeof word + word.bytes) break;
    const std::string words = peer.heard.substr(sizeof word, word.bytes);
    peer.heard.erase(0, sizeof word + word.bytes);
    if (word.kind == Word::kBye) {
      peer.has_ended = true;
      liveness_.Ended(from);
    }
    if (Beat beat; word.kind == Word::kBeat && words.size() == sizeof beat) {
      std::memcpy(&beat, words.data(), sizeof beat);
      liveness_.Heard(from, beat);
    }
    if (word.kind == Word::kPost && words.size() == sizeof peer.posted) {
      std::memcpy(&peer.posted, words.data(), sizeof peer.posted);
    }
    if (word.kind == Word::kReady) peer.is_ready = true;
    if (word.kind == Word::kStart && from == 0) is_started_ = true;
    if (word.kind == Word::kPlaces && from == 0 && words.size() == num_ranks() * sizeof(Place)) {
      places_.resize(num_ranks());
      std::memcpy(places_.data(), words.data(), words.size());
      for (Place& place : places_) {  // Texts end, whatever came.
        place.address[sizeof place.address - 1] = '\0';
        place.computer[sizeof place.computer - 1] = '\0';
      }
    }
    int32_t code = 0;
    if (word.kind == Word::kAbort && words.size() >= sizeof code && error_.ok()) {
      std::memcpy(&code, words.data(), sizeof code);
      SetError(absl::Status(static_cast<absl::StatusCode>(code), words.substr(sizeof code)));
    }
  }
  if (!is_closed) return;
  lane = Socket();  // Leaves the epoll.
  if (!peer.has_ended && error_.ok()) SetError(EndedWithoutAWord(from));
}

// A rank whose connection has ended has said why, or it was killed.
absl::Status TcpMessages::Gone(int32_t peer) {
  const auto end = steady_clock::now() + kLastWords;
  while (steady_clock::now() < end) {
    ISOMER_RETURN_IF_ERROR(Poll());
    std::this_thread::sleep_for(milliseconds(1));
  }
  return Failed(EndedWithoutAWord(peer));
}

absl::StatusOr<bool> TcpMessages::Advance(Stream* stream, const char* call, uint64_t tag,
                                          absl::Span<const Send> sends,
                                          absl::Span<const Receive> receives) {
  bool any = false;
  while (!stream->is_over()) {
    const size_t message = stream->messages[stream->current];
    const size_t bytes =
        static_cast<size_t>(stream->is_of_sends ? sends[message].bytes : receives[message].bytes);
    if (stream->is_of_sends && stream->at == 0) stream->header = {tag, bytes};
    const size_t of_header = std::min(stream->at, sizeof(Header));
    const size_t of_data = stream->at - of_header;
    iovec parts[2];
    parts[0] = {reinterpret_cast<char*>(&stream->header) + of_header, sizeof(Header) - of_header};
    const char* data = static_cast<const char*>(stream->is_of_sends ? sends[message].data
                                                                    : receives[message].data);
    parts[1] = {const_cast<char*>(data) + of_data, bytes - of_data};
    msghdr what = {};
    what.msg_iov = parts;
    what.msg_iovlen = 2;
    // What follows a header depends on it.
    if (!stream->is_of_sends && of_header < sizeof(Header)) what.msg_iovlen = 1;
    const ssize_t moved = stream->is_of_sends
                              ? sendmsg(stream->fd, &what, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : recvmsg(stream->fd, &what, MSG_DONTWAIT);
    if (moved < 0 && WouldBlock()) return any;
    if (moved <= 0) return Gone(stream->peer);
    any = true;
    stream->at += static_cast<size_t>(moved);
    if (!stream->is_of_sends && of_header < sizeof(Header) && stream->at == sizeof(Header)) {
      if (stream->header.tag != tag) {
        return Failed(
            absl::InternalError(absl::StrCat("rank ", rank(), " calls ", call, ", and rank ",
                                             stream->peer, " another call, or with other ranks")));
      }
      if (stream->header.bytes != bytes) {
        return Failed(absl::InternalError(
            absl::StrCat("rank ", rank(), " expects ", bytes, " bytes in ", call, " that rank ",
                         stream->peer, " does not send (but ", stream->header.bytes, ")")));
      }
    }
    if (stream->at == sizeof(Header) + bytes) {
      ++stream->current;
      stream->at = 0;
    }
  }
  return any;
}

absl::Status TcpMessages::Exchange(int channel, const char* call, absl::Span<const int32_t> group,
                                   absl::Span<const Send> sends,
                                   absl::Span<const Receive> receives) {
  ISOMER_RETURN_IF_ERROR(Poll());
  const Liveness::Waiting waiting(&liveness_, call);
  const uint64_t tag = TagOf(call, group);
  std::vector<Stream> streams;
  std::vector<size_t> to_self;
  const auto stream_of = [&](int32_t peer, bool is_of_sends) -> Stream& {
    for (Stream& stream : streams) {
      if (stream.peer == peer && stream.is_of_sends == is_of_sends) return stream;
    }
    Stream& stream = streams.emplace_back();
    stream.peer = peer;
    stream.fd = peers_[peer].lanes[channel].fd();
    stream.is_of_sends = is_of_sends;
    return stream;
  };
  for (size_t s = 0; s < sends.size(); ++s) {
    if (sends[s].to == rank()) {
      to_self.push_back(s);
    } else {
      stream_of(sends[s].to, true).messages.push_back(s);
    }
  }
  size_t from_self = 0;
  for (size_t r = 0; r < receives.size(); ++r) {
    if (receives[r].from != rank()) {
      stream_of(receives[r].from, false).messages.push_back(r);
      continue;
    }
    if (from_self == to_self.size() || sends[to_self[from_self]].bytes != receives[r].bytes) {
      return Failed(
          absl::InternalError(absl::StrCat("rank ", rank(), " expects ", receives[r].bytes,
                                           " bytes in ", call, " that it does not send itself")));
    }
    std::memcpy(receives[r].data, sends[to_self[from_self++]].data, receives[r].bytes);
  }
  auto begin = steady_clock::now();  // of the time in which nothing moved
  std::vector<pollfd> waits;
  while (!streams.empty()) {
    bool any = false;
    for (Stream& stream : streams) {
      ISOMER_ASSIGN_OR_RETURN(const bool moved, Advance(&stream, call, tag, sends, receives));
      any |= moved;
    }
    std::erase_if(streams, [](const Stream& stream) { return stream.is_over(); });
    if (any) {
      begin = steady_clock::now();
      liveness_.Moved();
    }
    if (any || streams.empty()) continue;
    const auto waited = steady_clock::now() - begin;
    if (waited < kSpin && !(is_crowded_ && computes_)) continue;
    waits.clear();
    for (const Stream& stream : streams) {
      waits.push_back({stream.fd, static_cast<short>(stream.is_of_sends ? POLLOUT : POLLIN), 0});
    }
    waits.push_back({said_.fd(), POLLIN, 0});
    constexpr int kLookAgainMs = 100;
    poll(waits.data(), waits.size(), kLookAgainMs);
    // The thread of liveness_ may have heard what would have ended the poll.
    ISOMER_RETURN_IF_ERROR(Poll());
    if (waited <= options_.timeout) continue;
    const milliseconds limit =
        liveness_.AnyWorks(options_.timeout) ? options_.longest_work : options_.timeout;
    if (waited <= limit) continue;
    std::vector<int32_t> ranks;
    for (const Stream& stream : streams) ranks.push_back(stream.peer);
    return Failed(Late(absl::StrCat("in ", call), std::move(ranks), limit));
  }
  return absl::OkStatus();
}

absl::StatusOr<int32_t> NumberIn(const char* variable) {
  const char* text = std::getenv(variable);
  int32_t number = 0;
  if (text == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("--communicator=tcp: ", variable,
                                                      " is not set; start the program with "
                                                      "torchrun or srun (docs/running.md)"));
  }
  if (!absl::SimpleAtoi(text, &number) || number < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--communicator=tcp: ", variable, "=", text, " is no number"));
  }
  return number;
}

std::string TextIn(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

}  // namespace

std::string FirstOfNodeList(absl::string_view nodes) {
  std::string name;
  for (size_t at = 0; at < nodes.size() && nodes[at] != ','; ++at) {
    if (nodes[at] != '[') {
      name.push_back(nodes[at]);
      continue;
    }
    const size_t close = std::min(nodes.find(']', at), nodes.size());
    const absl::string_view inside = nodes.substr(at + 1, close - at - 1);
    absl::StrAppend(&name, inside.substr(0, inside.find_first_of(",-")));
    at = close;
  }
  return name;
}

absl::StatusOr<RankOfJob> RankFromEnvironment() {
  RankOfJob rank;
  const bool is_of_slurm = std::getenv("RANK") == nullptr && std::getenv("SLURM_PROCID") != nullptr;
  ISOMER_ASSIGN_OR_RETURN(rank.rank, NumberIn(is_of_slurm ? "SLURM_PROCID" : "RANK"));
  ISOMER_ASSIGN_OR_RETURN(rank.num_ranks, NumberIn(is_of_slurm ? "SLURM_NTASKS" : "WORLD_SIZE"));
  if (rank.num_ranks < 1 || rank.rank >= rank.num_ranks) {
    return absl::InvalidArgumentError(absl::StrCat("--communicator=tcp: rank ", rank.rank, " of ",
                                                   rank.num_ranks, " is not there"));
  }
  rank.host = TextIn("MASTER_ADDR");
  if (is_of_slurm) {
    if (rank.host.empty()) rank.host = FirstOfNodeList(TextIn("SLURM_STEP_NODELIST"));
    if (rank.host.empty()) rank.host = FirstOfNodeList(TextIn("SLURM_JOB_NODELIST"));
    rank.job = absl::StrCat(TextIn("SLURM_JOB_ID"), ".", TextIn("SLURM_STEP_ID"));
  } else {
    rank.job = TextIn("TORCHELASTIC_RUN_ID");
  }
  if (rank.host.empty()) {
    return absl::FailedPreconditionError(
        "--communicator=tcp: MASTER_ADDR is not set: the name or address of rank 0's computer");
  }
  if (std::getenv("ISOMER_PORT") != nullptr) {
    ISOMER_ASSIGN_OR_RETURN(rank.port, NumberIn("ISOMER_PORT"));
  } else if (is_of_slurm && std::getenv("MASTER_PORT") == nullptr) {
    // As jobs that share a computer have ids near each other.
    ISOMER_ASSIGN_OR_RETURN(const int32_t job, NumberIn("SLURM_JOB_ID"));
    constexpr int32_t kFirst = 20000, kPorts = 10000;
    rank.port = kFirst + job % kPorts;
  } else {
    ISOMER_ASSIGN_OR_RETURN(rank.port, NumberIn("MASTER_PORT"));
    if (TextIn("TORCHELASTIC_USE_AGENT_STORE") == "True") ++rank.port;
  }
  if (rank.port < 1 || rank.port > std::numeric_limits<uint16_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--communicator=tcp: there is no port ", rank.port));
  }
  return rank;
}

absl::StatusOr<std::unique_ptr<ProcessMessages>> ConnectByTcp(const RankOfJob& rank,
                                                              const ProcessOptions& options) {
  auto messages = std::make_unique<TcpMessages>(rank, options);
  ISOMER_RETURN_IF_ERROR(messages->Connect());
  return messages;
}

}  // namespace isomer
