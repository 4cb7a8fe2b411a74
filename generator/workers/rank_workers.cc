#include "generator/workers/rank_workers.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/check.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Looks for messages, between which a rank sleeps unless a child of its own is done.
constexpr std::chrono::microseconds kLookEvery(200);
constexpr std::chrono::milliseconds kBeatEvery(500);

enum class Kind : uint32_t {
  kHello,   // to rank 0: number of workers
  kFolder,  // of rank 0: where to keep the log
  kItem,    // of rank 0
  kTell,    // of rank 0
  kResult,  // to rank 0
  kError,   // to rank 0: text
  kBeat,    // both ways
  kRoll,    // of rank 0: a beat is wanted at once
  kEnd,     // of rank 0: whether all end together
};

struct Header {
  Kind kind = Kind::kBeat;
  uint32_t flag = 0;    // of a result: it lasts; of the end: all end
  uint64_t number = 0;  // a ticket, or how many workers
  double cost = 0;      // of an item
  MemoKey key{};
  uint64_t step_size = 0;  // of the bytes that follow
};

std::string MessageOf(const Header& header, absl::string_view step = "",
                      absl::string_view bytes = "") {
  return absl::StrCat(absl::string_view(reinterpret_cast<const char*>(&header), sizeof header),
                      step, bytes);
}

std::string MessageOf(Kind kind, uint64_t ticket, const StepItem& item) {
  return MessageOf({kind, item.first, ticket, item.cost, item.key, item.step.size()}, item.step,
                   item.input);
}

struct Parsed {
  Header header;
  std::string step, bytes;
};
Parsed Parse(const RankMessage& message) {
  Parsed parsed;
  ISOMER_CHECK(message.bytes.size() >= sizeof(Header));
  std::memcpy(&parsed.header, message.bytes.data(), sizeof(Header));
  parsed.step = message.bytes.substr(sizeof(Header), parsed.header.step_size);
  parsed.bytes = message.bytes.substr(sizeof(Header) + parsed.header.step_size);
  return parsed;
}

}  // namespace

RankWorkers::RankWorkers(std::unique_ptr<RankLink> link, std::unique_ptr<ChildWorkers> children,
                         const RankOptions& options)
    : link_(std::move(link)),
      children_(std::move(children)),
      options_(options),
      ranks_(link_->num_ranks()) {
  beats_ = std::thread([this] { Beat(); });
}

RankWorkers::~RankWorkers() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
  }
  over_.notify_all();
  beats_.join();
  const bool all = CallTheRoll();
  for (int r = 1; r < link_->num_ranks(); ++r) link_->Send(r, MessageOf({Kind::kEnd, all}));
  link_->Close(all);
}

// Whether all ranks are there: they end together, or each for itself.
bool RankWorkers::CallTheRoll() {
  const Clock::time_point begin = Clock::now();
  for (int r = 1; r < link_->num_ranks(); ++r) link_->Send(r, MessageOf({Kind::kRoll}));
  bool all = false;
  while (!all && num_lost() == 0 && Clock::now() - begin < options_.stall_timeout) {
    if (!Hear().ok()) return false;
    all = std::all_of(ranks_.begin() + 1, ranks_.end(),
                      [&](const Rank& rank) { return rank.workers > 0 && rank.heard > begin; });
    if (!all) std::this_thread::sleep_for(kLookEvery);
  }
  return all;
}

void RankWorkers::Beat() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!over_.wait_for(lock, kBeatEvery, [this] { return is_over_; })) {
    for (int r = 1; r < link_->num_ranks(); ++r) link_->Send(r, MessageOf({Kind::kBeat}));
  }
}

int RankWorkers::count() const {
  int count = children_->count();
  for (const Rank& rank : ranks_) count += rank.is_lost ? 0 : static_cast<int>(rank.workers);
  return count;
}

int RankWorkers::num_lost() const {
  return static_cast<int>(
      std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.is_lost; }));
}

void RankWorkers::Start(uint64_t ticket, const StepItem& item) {
  waiting_.Add(ticket, item);
  DealOut();
}

void RankWorkers::Tell(const StepItem& item, bool anew) {
  if (anew) {
    told_.clear();
    for (Rank& rank : ranks_) rank.told = 0;
  }
  told_.push_back(item);
  children_->Tell(item, anew);
}

void RankWorkers::KeepLogsIn(const std::string& folder) {
  for (int r = 1; r < link_->num_ranks(); ++r)
    link_->Send(r, MessageOf({Kind::kFolder}, "", folder));
}

void RankWorkers::DealOut() {
  for (size_t depth = 1; depth <= 2; ++depth) {
    while (!waiting_.empty() && (depth == 1 || waiting_.HasManyFor(count()))) {
      if (!GiveOne(depth)) break;
    }
  }
}

// To the rank that has fewest items for each of its workers. A second one for each goes to ranks
// whose items all come first: others may take long, and it would wait for them. False: all have
// `depth`.
bool RankWorkers::GiveOne(size_t depth) {
  double least = static_cast<double>(depth);
  int to = -1;
  const auto consider = [&](int rank, size_t open, size_t workers) {
    const double load = static_cast<double>(open) / static_cast<double>(workers);
    if (load >= least) return;
    least = load;
    to = rank;
  };
  // The others first: this process has its own work.
  for (size_t r = 1; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    if (rank.workers > 0 && !rank.is_lost && (depth == 1 || rank.num_others == 0)) {
      consider(static_cast<int>(r), rank.items.size(), rank.workers);
    }
  }
  if (depth == 1) consider(0, children_->open(), children_->count());
  if (to < 0) return false;
  WaitingItems::Item next = waiting_.Take();
  if (to == 0) {
    children_->Start(next.ticket, next.item);
    return true;
  }
  Rank& rank = ranks_[to];
  for (; rank.told < told_.size(); ++rank.told) {
    link_->Send(to, MessageOf(Kind::kTell, rank.told == 0, told_[rank.told]));
  }
  link_->Send(to, MessageOf(Kind::kItem, next.ticket, next.item));
  if (!next.item.first) ++rank.num_others;
  rank.items.emplace(next.ticket, std::move(next.item));
  return true;
}

absl::Status RankWorkers::HearOne(const RankMessage& message) {
  Rank& rank = ranks_[message.from];
  // Its items are those of others by now.
  if (rank.is_lost) return absl::OkStatus();
  rank.heard = Clock::now();
  Parsed parsed = Parse(message);
  switch (parsed.header.kind) {
    case Kind::kHello:
      rank.workers = parsed.header.number;
      return absl::OkStatus();
    case Kind::kResult: {
      const auto item = rank.items.find(parsed.header.number);
      ISOMER_CHECK(item != rank.items.end());
      if (!item->second.first) --rank.num_others;
      rank.items.erase(item);
      finished_.push_back(
          {parsed.header.number, {std::move(parsed.bytes), parsed.header.flag != 0}});
      return absl::OkStatus();
    }
    case Kind::kError:
      return absl::InternalError(absl::StrCat("rank ", message.from, ": ", parsed.bytes));
    default:
      return absl::OkStatus();
  }
}

absl::Status RankWorkers::Hear() {
  while (const std::optional<RankMessage> message = link_->Receive()) {
    ISOMER_RETURN_IF_ERROR(HearOne(*message));
  }
  return absl::OkStatus();
}

// REQUIRES: all that is there was heard.
void RankWorkers::GiveUpOnSilent() {
  for (Rank& rank : ranks_) {
    if (rank.workers == 0 || rank.is_lost) continue;
    if (Clock::now() - rank.heard < options_.stall_timeout) continue;
    rank.is_lost = true;
    for (auto& [ticket, item] : rank.items) waiting_.AddAgain({ticket, std::move(item)});
    rank.items.clear();
  }
}

absl::StatusOr<FinishedItem> RankWorkers::Next() {
  while (true) {
    ISOMER_RETURN_IF_ERROR(Hear());
    GiveUpOnSilent();
    DealOut();
    const auto wait = finished_.empty() ? kLookEvery : std::chrono::microseconds(0);
    ISOMER_ASSIGN_OR_RETURN(const std::optional<FinishedItem> own, children_->NextWithin(wait));
    if (own.has_value()) finished_.push_back(*own);
    if (finished_.empty()) continue;
    FinishedItem finished = std::move(finished_.front());
    finished_.pop_front();
    return finished;
  }
}

namespace {

// A rank that is not 0.
class ServingRank {
 public:
  ServingRank(RankLink* link, ChildWorkers* children, const RankOptions& options)
      : link_(link), children_(children), options_(options) {}

  // Until rank 0 says that it is over, and whether all are there.
  absl::StatusOr<bool> Serve() {
    link_->Send(0, MessageOf({Kind::kHello, 0, static_cast<uint64_t>(children_->count())}));
    heard_ = beat_ = Clock::now();
    while (true) {
      while (const std::optional<RankMessage> message = link_->Receive()) {
        heard_ = Clock::now();
        const Parsed parsed = Parse(*message);
        if (parsed.header.kind == Kind::kEnd) return parsed.header.flag != 0;
        ISOMER_RETURN_IF_ERROR(Hear(parsed));
      }
      if (Clock::now() - heard_ > options_.longest_silence) {
        return absl::AbortedError(
            absl::StrCat("rank ", link_->rank(), ": rank 0 is not heard any more"));
      }
      ISOMER_ASSIGN_OR_RETURN(const std::optional<FinishedItem> finished,
                              children_->NextWithin(kLookEvery));
      if (finished.has_value()) ISOMER_RETURN_IF_ERROR(Report(*finished));
      if (Clock::now() - beat_ > kBeatEvery) {
        beat_ = Clock::now();
        link_->Send(0, MessageOf({Kind::kBeat}));
      }
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  absl::Status Hear(const Parsed& parsed) {
    const StepItem item{parsed.step, parsed.bytes, parsed.header.key, parsed.header.flag != 0,
                        parsed.header.cost};
    switch (parsed.header.kind) {
      case Kind::kFolder: {
        ISOMER_ASSIGN_OR_RETURN(log_, Memo::OpenLogOfRank(parsed.bytes, link_->rank()));
        return absl::OkStatus();
      }
      case Kind::kTell:
        children_->Tell(item, /*anew=*/parsed.header.number != 0);
        return absl::OkStatus();
      case Kind::kItem:
        keys_[parsed.header.number] = item.key;
        children_->Start(parsed.header.number, item);
        return absl::OkStatus();
      case Kind::kRoll:
        link_->Send(0, MessageOf({Kind::kBeat}));
        return absl::OkStatus();
      default:
        return absl::OkStatus();
    }
  }

  // First in the log, so that it is there whatever becomes of rank 0.
  absl::Status Report(const FinishedItem& finished) {
    const StepResult& result = finished.result;
    const auto key = keys_.find(finished.ticket);
    if (result.lasts && log_ != nullptr) {
      log_->Put(key->second, result.bytes);
      ISOMER_RETURN_IF_ERROR(log_->status());
    }
    keys_.erase(key);
    link_->Send(0, MessageOf({Kind::kResult, result.lasts, finished.ticket}, "", result.bytes));
    return absl::OkStatus();
  }

  RankLink* const link_;
  ChildWorkers* const children_;
  const RankOptions options_;
  std::unique_ptr<Memo> log_;
  std::map<uint64_t, MemoKey> keys_;  // by ticket
  Clock::time_point heard_, beat_;
};

}  // namespace

absl::Status ServeRank(std::unique_ptr<RankLink> link, std::unique_ptr<ChildWorkers> children,
                       const RankOptions& options) {
  const absl::StatusOr<bool> all = ServingRank(link.get(), children.get(), options).Serve();
  if (!all.ok() && all.status().code() != absl::StatusCode::kAborted) {
    const std::string text(all.status().message());
    link->Send(0, MessageOf({Kind::kError}, "", text));
  }
  link->Close(all.ok() && *all);
  return all.status();
}

}  // namespace isomer
