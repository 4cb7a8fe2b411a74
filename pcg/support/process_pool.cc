#include "pcg/support/process_pool.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"

namespace isomer {
namespace {

// What precedes a message of a child: it begins an item (no bytes follow), or has its result.
struct Header {
  uint64_t item = 0;
  uint64_t size = 0;
  uint64_t begins = 0;
};

void WriteAll(int file, const void* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t written = write(file, static_cast<const char*>(bytes) + done, size - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(1);  // Nobody reads.
    done += static_cast<size_t>(written);
  }
}

[[noreturn]] void Work(const ItemWorker& worker, std::atomic<size_t>* next, size_t count, int out) {
  for (size_t item = (*next)++; item < count; item = (*next)++) {
    const Header begin{item, 0, 1};
    WriteAll(out, &begin, sizeof begin);
    const std::string result = worker(item);
    const Header header{item, result.size(), 0};
    WriteAll(out, &header, sizeof header);
    WriteAll(out, result.data(), result.size());
  }
  _exit(0);
}

// The parent's side of a child.
struct Child {
  pid_t pid = -1;
  int in = -1;  // -1: closed
  std::string buffer;
  std::optional<size_t> at;  // the item it is doing

  // Takes whole messages out of the buffer.
  void Deliver(absl::FunctionRef<void(size_t, std::string)> done) {
    size_t begin = 0;
    Header header;
    while (buffer.size() - begin >= sizeof header) {
      std::memcpy(&header, buffer.data() + begin, sizeof header);
      if (buffer.size() - begin < sizeof header + header.size) break;
      begin += sizeof header;
      at = header.begins ? std::optional(header.item) : std::nullopt;
      if (!header.begins) done(header.item, buffer.substr(begin, header.size));
      begin += header.size;
    }
    buffer.erase(0, begin);
  }
};

// The number of the next item, in memory that the children share.
class SharedCounter {
 public:
  SharedCounter()
      : memory_(mmap(nullptr, sizeof(std::atomic<size_t>), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (usable()) new (memory_) std::atomic<size_t>(0);
  }
  ~SharedCounter() {
    if (usable()) munmap(memory_, sizeof(std::atomic<size_t>));
  }
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;
  bool usable() const { return memory_ != MAP_FAILED; }
  std::atomic<size_t>* get() const { return static_cast<std::atomic<size_t>*>(memory_); }

 private:
  void* const memory_;
};

absl::Status CannotStart() {
  return absl::InternalError(absl::StrCat("cannot start processes: ", std::strerror(errno)));
}

absl::Status Start(int jobs, size_t count, absl::FunctionRef<ItemWorker()> make_worker,
                   SharedCounter* next, std::vector<Child>* children) {
  const pid_t parent = getpid();
  for (int job = 0; job < jobs; ++job) {
    int ends[2];
    if (pipe(ends) != 0) return CannotStart();
    const pid_t pid = fork();
    if (pid < 0) {
      close(ends[0]);
      close(ends[1]);
      return CannotStart();
    }
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);  // It died before the line above.
      close(ends[0]);
      for (const Child& sibling : *children) close(sibling.in);
      Work(make_worker(), next->get(), count, ends[1]);
    }
    close(ends[1]);
    children->push_back({pid, ends[0], "", std::nullopt});
  }
  return absl::OkStatus();
}

void ReadUntilAllClose(std::vector<Child>* children,
                       absl::FunctionRef<void(size_t, std::string)> done) {
  std::vector<char> bytes(1 << 16);
  while (true) {
    std::vector<pollfd> waiting;
    for (const Child& child : *children) waiting.push_back({child.in, POLLIN, 0});
    if (std::all_of(waiting.begin(), waiting.end(), [](const pollfd& w) { return w.fd < 0; })) {
      return;
    }
    if (poll(waiting.data(), waiting.size(), -1) < 0) continue;
    for (size_t c = 0; c < children->size(); ++c) {
      if (waiting[c].fd < 0 || waiting[c].revents == 0) continue;
      Child& child = (*children)[c];
      const ssize_t size = read(child.in, bytes.data(), bytes.size());
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) {
        close(child.in);
        child.in = -1;
        continue;
      }
      child.buffer.append(bytes.data(), static_cast<size_t>(size));
      child.Deliver(done);
    }
  }
}

// Waits for all; an error if one did not end well.
absl::Status Join(const std::vector<Child>& children) {
  absl::Status status;
  for (const Child& child : children) {
    int state = 0;
    pid_t joined;
    while ((joined = waitpid(child.pid, &state, 0)) < 0 && errno == EINTR) {
    }
    if (joined == child.pid && WIFEXITED(state) && WEXITSTATUS(state) == 0) continue;
    status.Update(absl::InternalError(absl::StrCat(
        "a process died", child.at.has_value() ? absl::StrCat(" at item ", *child.at) : "",
        WIFSIGNALED(state) ? absl::StrCat(" (", strsignal(WTERMSIG(state)), ")") : "")));
  }
  return status;
}

}  // namespace

absl::Status ForEachInProcesses(int jobs, size_t count, absl::FunctionRef<ItemWorker()> make_worker,
                                absl::FunctionRef<void(size_t, std::string)> done) {
  jobs = static_cast<int>(std::min<size_t>(std::max(jobs, 1), count));
  if (jobs <= 1) {
    if (count == 0) return absl::OkStatus();
    const ItemWorker worker = make_worker();
    for (size_t item = 0; item < count; ++item) done(item, worker(item));
    return absl::OkStatus();
  }
  SharedCounter next;
  if (!next.usable()) return CannotStart();
  std::vector<Child> children;
  const absl::Status started = Start(jobs, count, make_worker, &next, &children);
  if (!started.ok()) {
    for (const Child& child : children) kill(child.pid, SIGKILL);
  }
  ReadUntilAllClose(&children, done);
  absl::Status joined = Join(children);
  return started.ok() ? joined : started;
}

}  // namespace isomer
