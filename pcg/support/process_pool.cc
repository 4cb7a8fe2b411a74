#include "pcg/support/process_pool.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/support/forked_child.h"

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
  std::chrono::steady_clock::time_point began;
  bool is_over_time = false;  // and was ended

  // Takes whole messages out of the buffer.
  void Deliver(absl::FunctionRef<void(size_t, std::string)> done) {
    size_t begin = 0;
    Header header;
    while (buffer.size() - begin >= sizeof header) {
      std::memcpy(&header, buffer.data() + begin, sizeof header);
      if (buffer.size() - begin < sizeof header + header.size) break;
      begin += sizeof header;
      at = header.begins ? std::optional(header.item) : std::nullopt;
      if (header.begins) began = std::chrono::steady_clock::now();
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

using Clock = std::chrono::steady_clock;

// The children of one call, each in a place of its own.
class Pool {
 public:
  Pool(size_t count, const Isolation& isolation, absl::FunctionRef<ItemWorker()> make_worker)
      : count_(count), isolation_(isolation), make_worker_(make_worker) {}

  // `died` as of ForEachInIsolation; null: a child that dies is an error, and not replaced.
  absl::Status Run(int jobs, absl::FunctionRef<void(size_t, std::string)> done,
                   const std::function<void(size_t, std::string)>& died) {
    if (!next_.usable()) return CannotStartChild();
    children_.resize(jobs);
    absl::Status status;
    for (Child& child : children_) status.Update(Start(&child));
    if (!status.ok()) {
      for (const Child& child : children_) {
        if (child.pid > 0) kill(child.pid, SIGKILL);
      }
    }
    std::vector<char> bytes(1 << 16);
    while (true) {
      std::vector<pollfd> waiting;
      for (const Child& child : children_) waiting.push_back({child.in, POLLIN, 0});
      if (std::all_of(waiting.begin(), waiting.end(), [](const pollfd& w) { return w.fd < 0; })) {
        return status;
      }
      if (poll(waiting.data(), waiting.size(), MillisecondsToWait()) < 0) continue;
      for (size_t c = 0; c < children_.size(); ++c) {
        if (waiting[c].fd < 0 || waiting[c].revents == 0) continue;
        Child& child = children_[c];
        const ssize_t size = read(child.in, bytes.data(), bytes.size());
        if (size < 0 && errno == EINTR) continue;
        if (size > 0) {
          child.buffer.append(bytes.data(), static_cast<size_t>(size));
          child.Deliver(done);
          continue;
        }
        const std::string why = Join(&child);
        if (why.empty()) continue;
        if (died == nullptr || !child.at.has_value()) {
          status.Update(absl::InternalError(absl::StrCat(
              "a process died", child.at.has_value() ? absl::StrCat(" at item ", *child.at) : "",
              " (", why, ")")));
          continue;
        }
        died(*child.at, why);
        child.at.reset();
        status.Update(Start(&child));
      }
      EndThoseOverTime();
    }
  }

 private:
  absl::Status Start(Child* child) {
    int ends[2];
    if (pipe(ends) != 0) return CannotStartChild();
    const absl::StatusOr<pid_t> pid = ForkChild([&] {
      close(ends[0]);
      for (const Child& sibling : children_) {
        if (sibling.in >= 0) close(sibling.in);
      }
      LimitMemory();
      Work(make_worker_(), next_.get(), count_, ends[1]);
    });
    close(ends[1]);
    if (!pid.ok()) {
      close(ends[0]);
      return pid.status();
    }
    *child = {*pid, ends[0], "", std::nullopt, {}, false};
    return absl::OkStatus();
  }

  void LimitMemory() const {
    if (isolation_.bytes == 0) return;
    // The address space that is there, in pages, is the first number of this file.
    int64_t pages = 0;
    if (std::FILE* file = std::fopen("/proc/self/statm", "r"); file != nullptr) {
      if (std::fscanf(file, "%" SCNd64, &pages) != 1) pages = 0;
      std::fclose(file);
    }
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0) return;
    const rlim_t wanted = static_cast<rlim_t>(isolation_.bytes + pages * sysconf(_SC_PAGESIZE));
    limit.rlim_cur = std::min(limit.rlim_max, wanted);
    setrlimit(RLIMIT_AS, &limit);
  }

  int MillisecondsToWait() const {
    constexpr int kLookEvery = 100;
    return isolation_.seconds_per_item > 0 ? kLookEvery : -1;
  }

  void EndThoseOverTime() {
    if (isolation_.seconds_per_item <= 0) return;
    for (Child& child : children_) {
      if (child.in < 0 || !child.at.has_value() || child.is_over_time) continue;
      const std::chrono::duration<double> taken = Clock::now() - child.began;
      if (taken.count() < isolation_.seconds_per_item) continue;
      child.is_over_time = true;
      kill(child.pid, SIGKILL);
    }
  }

  // Closes and waits. What it ended of; "": it is done.
  std::string Join(Child* child) const {
    close(child->in);
    child->in = -1;
    const std::string why = JoinChild(std::exchange(child->pid, -1));
    if (why.empty() || !child->is_over_time) return why;
    return absl::StrCat("took longer than ", isolation_.seconds_per_item, " s");
  }

  const size_t count_;
  const Isolation isolation_;
  const absl::FunctionRef<ItemWorker()> make_worker_;
  SharedCounter next_;
  std::vector<Child> children_;
};

int Processes(int jobs, size_t count) {
  return static_cast<int>(std::min<size_t>(std::max(jobs, 1), count));
}

}  // namespace

absl::Status ForEachInProcesses(int jobs, size_t count, absl::FunctionRef<ItemWorker()> make_worker,
                                absl::FunctionRef<void(size_t, std::string)> done) {
  if (Processes(jobs, count) <= 1) {
    if (count == 0) return absl::OkStatus();
    const ItemWorker worker = make_worker();
    for (size_t item = 0; item < count; ++item) done(item, worker(item));
    return absl::OkStatus();
  }
  return Pool(count, {}, make_worker).Run(Processes(jobs, count), done, nullptr);
}

absl::Status ForEachInIsolation(int jobs, const Isolation& isolation, size_t count,
                                absl::FunctionRef<ItemWorker()> make_worker,
                                absl::FunctionRef<void(size_t, std::string)> done,
                                absl::FunctionRef<void(size_t, std::string)> died) {
  if (count == 0) return absl::OkStatus();
  return Pool(count, isolation, make_worker)
      .Run(Processes(jobs, count), done,
           [&](size_t item, std::string why) { died(item, std::move(why)); });
}

}  // namespace isomer
