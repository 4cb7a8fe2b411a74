#include "generator/workers/local_workers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/check.h"
#include "pcg/support/forked_child.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// An item at which so many workers die has what kills them.
constexpr int kMostDeaths = 5;

// Before an item, and before a result.
struct ItemHeader {
  uint64_t ticket = 0, has_result = 1, step_size = 0, input_size = 0;
};
struct ResultHeader {
  uint64_t ticket = 0, lasts = 1, size = 0;
};

template <typename Header>
absl::string_view BytesOf(const Header& header) {
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

void AppendItem(uint64_t ticket, bool has_result, const StepItem& item, std::string* out) {
  const ItemHeader header{ticket, has_result, item.step.size(), item.input.size()};
  absl::StrAppend(out, BytesOf(header), item.step, item.input);
}

const Step& StepOf(const Steps& steps, const std::string& name) {
  const auto found = steps.find(name);
  ISOMER_CHECK(found != steps.end());
  return found->second;
}

// A worker's side of its socket: ends the process when nobody is at the other end.
void ReadAll(int socket, void* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = read(socket, static_cast<char*>(bytes) + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) _exit(0);
    done += static_cast<size_t>(got);
  }
}
void SendAll(int socket, absl::string_view bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t sent = send(socket, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) _exit(0);
    done += static_cast<size_t>(sent);
  }
}

[[noreturn]] void Serve(const Steps& steps, int socket) {
  while (true) {
    ItemHeader header;
    ReadAll(socket, &header, sizeof header);
    std::string step(header.step_size, '\0'), input(header.input_size, '\0');
    ReadAll(socket, step.data(), step.size());
    ReadAll(socket, input.data(), input.size());
    const StepResult result = StepOf(steps, step)(input);
    if (header.has_result == 0) continue;
    const ResultHeader reply{header.ticket, result.lasts, result.bytes.size()};
    SendAll(socket, absl::StrCat(BytesOf(reply), result.bytes));
  }
}

}  // namespace

WaitingItems::Item WaitingItems::Take() {
  Item item;
  if (!first_.empty()) {
    item = std::move(first_.front());
    first_.pop_front();
  } else {
    item = std::move(others_.extract(std::prev(others_.end())).mapped());
  }
  return item;
}

absl::StatusOr<FinishedItem> OwnWorker::Next() {
  const WaitingItems::Item next = waiting_.Take();
  return FinishedItem{next.ticket, StepOf(steps_, next.item.step)(next.item.input)};
}

void OwnWorker::Tell(const StepItem& item, bool /*anew*/) { StepOf(steps_, item.step)(item.input); }

absl::StatusOr<std::unique_ptr<ChildWorkers>> ChildWorkers::Make(int processes,
                                                                 MakeSteps make_steps) {
  std::unique_ptr<ChildWorkers> workers(new ChildWorkers(std::move(make_steps)));
  workers->children_.resize(std::max(1, processes));
  for (Child& child : workers->children_) ISOMER_RETURN_IF_ERROR(workers->Begin(&child));
  return workers;
}

ChildWorkers::~ChildWorkers() {
  for (Child& child : children_) {
    if (child.pid < 0) continue;
    // What it does now nobody waits for.
    kill(child.pid, SIGKILL);
    close(child.socket);
    JoinChild(child.pid);
  }
}

absl::Status ChildWorkers::Begin(Child* child) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return CannotStartChild();
  const absl::StatusOr<pid_t> pid = ForkChild([&] {
    close(ends[0]);
    for (const Child& sibling : children_) {
      if (sibling.socket >= 0) close(sibling.socket);
    }
    Serve(make_steps_(), ends[1]);
  });
  close(ends[1]);
  if (!pid.ok()) {
    close(ends[0]);
    return pid.status();
  }
  fcntl(ends[0], F_SETFL, fcntl(ends[0], F_GETFL) | O_NONBLOCK);
  *child = Child();
  child->pid = *pid;
  child->socket = ends[0];
  return absl::OkStatus();
}

// Another one in the place of a child that died; its items are done again.
absl::Status ChildWorkers::Replace(Child* child) {
  const std::string why = JoinChild(child->pid);
  close(child->socket);
  child->pid = child->socket = -1;
  ++deaths_;
  if (!child->items.empty()) {
    const WaitingItems::Item& at = child->items.front();
    if (++deaths_at_[at.ticket] == kMostDeaths) {
      return absl::InternalError(absl::StrCat("a worker died ", kMostDeaths,
                                              " times at an item of ", at.item.step, " (",
                                              why.empty() ? "it exited" : why, ")"));
    }
  }
  for (auto item = child->items.rbegin(); item != child->items.rend(); ++item) {
    waiting_.AddAgain(std::move(*item));
  }
  child->items.clear();
  return Begin(child);
}

void ChildWorkers::Start(uint64_t ticket, const StepItem& item) {
  ++open_;
  waiting_.Add(ticket, item);
  DealOut();
}

void ChildWorkers::Tell(const StepItem& item, bool anew) {
  if (anew) {
    told_.clear();
    for (Child& child : children_) child.told = 0;
  }
  told_.push_back(item);
}

void ChildWorkers::DealOut() {
  for (Child& child : children_) {
    if (child.items.empty() && !waiting_.empty()) Give(&child, waiting_.Take());
  }
  for (Child& child : children_) {
    if (!waiting_.HasManyFor(children_.size())) return;
    if (child.items.size() == 1 && child.items[0].item.first) Give(&child, waiting_.Take());
  }
}

void ChildWorkers::Give(Child* child, WaitingItems::Item item) {
  for (; child->told < told_.size(); ++child->told) {
    AppendItem(0, false, told_[child->told], &child->out);
  }
  AppendItem(item.ticket, true, item.item, &child->out);
  child->items.push_back(std::move(item));
  Flush(child);
}

// Sends what goes without waiting. Of a child that died its socket tells.
void ChildWorkers::Flush(Child* child) {
  while (child->sent < child->out.size()) {
    const ssize_t sent = send(child->socket, child->out.data() + child->sent,
                              child->out.size() - child->sent, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    child->sent += static_cast<size_t>(sent);
  }
  child->out.clear();
  child->sent = 0;
}

void ChildWorkers::TakeResults(Child* child) {
  size_t at = 0;
  ResultHeader header;
  while (child->in.size() - at >= sizeof header) {
    std::memcpy(&header, child->in.data() + at, sizeof header);
    if (child->in.size() - at - sizeof header < header.size) break;
    at += sizeof header;
    finished_.push_back({header.ticket, {child->in.substr(at, header.size), header.lasts != 0}});
    at += header.size;
    ISOMER_CHECK(!child->items.empty() && child->items.front().ticket == header.ticket);
    deaths_at_.erase(header.ticket);
    child->items.pop_front();
  }
  child->in.erase(0, at);
}

absl::Status ChildWorkers::Communicate(Child* child, short events) {
  if ((events & POLLOUT) != 0) Flush(child);
  if ((events & (POLLIN | POLLHUP | POLLERR)) == 0) return absl::OkStatus();
  char bytes[1 << 16];
  const ssize_t size = read(child->socket, bytes, sizeof bytes);
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return absl::OkStatus();
  if (size <= 0) return Replace(child);
  child->in.append(bytes, static_cast<size_t>(size));
  TakeResults(child);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<FinishedItem>> ChildWorkers::NextWithin(
    std::chrono::microseconds wait) {
  if (finished_.empty()) {
    std::vector<pollfd> waits;
    for (const Child& child : children_) {
      const bool sends = child.sent < child.out.size();
      waits.push_back({child.socket, static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN), 0});
    }
    const timespec limit{wait.count() / 1000000, wait.count() % 1000000 * 1000};
    if (ppoll(waits.data(), waits.size(), &limit, nullptr) > 0) {
      for (size_t c = 0; c < children_.size(); ++c) {
        ISOMER_RETURN_IF_ERROR(Communicate(&children_[c], waits[c].revents));
      }
    }
    DealOut();
  }
  if (finished_.empty()) return std::nullopt;
  std::optional<FinishedItem> finished = std::move(finished_.front());
  finished_.pop_front();
  --open_;
  return finished;
}

absl::StatusOr<FinishedItem> ChildWorkers::Next() {
  while (true) {
    ISOMER_ASSIGN_OR_RETURN(std::optional<FinishedItem> finished,
                            NextWithin(std::chrono::hours(1)));
    if (finished.has_value()) return *std::move(finished);
  }
}

absl::StatusOr<std::unique_ptr<Workers>> MakeLocalWorkers(int processes,
                                                          const MakeSteps& make_steps) {
  if (processes <= 1) return std::make_unique<OwnWorker>(make_steps);
  return ChildWorkers::Make(processes, make_steps);
}

}  // namespace isomer
