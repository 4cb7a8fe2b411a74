#include "pcg/support/progress.h"

#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pcg/support/messages.h"

namespace isomer {
namespace {

using std::chrono::steady_clock;

constexpr steady_clock::duration kSilentStart = std::chrono::milliseconds(500);
constexpr steady_clock::duration kRedrawPeriod = std::chrono::milliseconds(100);
constexpr steady_clock::duration kLogPeriod = std::chrono::seconds(10);
// How often seconds are counted while nothing else changes.
constexpr steady_clock::duration kClockPeriod = std::chrono::milliseconds(250);
constexpr int kBarWidth = 30;
constexpr int kUsualColumns = 80;

enum class Display { kNone, kRedrawn, kLog };

Display DisplayOf(std::FILE* out) {
  if (IsQuiet() || isatty(fileno(out)) != 1) return Display::kNone;
  const char* terminal = std::getenv("TERM");
  const bool is_dumb = terminal == nullptr || absl::string_view(terminal) == "dumb";
  return is_dumb ? Display::kLog : Display::kRedrawn;
}

// A longer line would wrap, and could not be drawn over.
size_t ColumnsOf(std::FILE* out) {
  winsize size = {};
  const bool is_known = ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : kUsualColumns;
}

}  // namespace

// The one line that all share.
class ProgressLine {
 public:
  static ProgressLine& Instance() {
    static auto* const line = new ProgressLine;
    return *line;
  }

  void Enter(Progress* progress) {
    std::lock_guard lock(mutex_);
    if (live_.empty()) {
      display_ = DisplayOf(progress->out_);
      next_ = progress->start_ + kSilentStart;
      if (display_ == Display::kRedrawn && !clock_.joinable()) StartClock();
    }
    live_.push_back(progress);
  }

  void Leave(Progress* progress) {
    std::thread ended;
    {
      std::lock_guard lock(mutex_);
      live_.erase(std::find(live_.begin(), live_.end(), progress));
      if (!live_.empty()) return;
      Erase();
      ended = std::exchange(clock_, std::thread());
    }
    changed_.notify_all();
    if (ended.joinable()) ended.join();
  }

  // Changes the state of a progress, and draws it if it is time to.
  template <typename Change>
  void Update(const Change& change) {
    std::lock_guard lock(mutex_);
    change();
    DrawIfDue();
  }

  template <typename Change>
  void UpdateFirst(const Change& change) {
    std::lock_guard lock(mutex_);
    if (live_.empty()) return;
    change(&live_.front()->state_);
    DrawIfDue();
  }

  void EraseForText() {
    std::lock_guard lock(mutex_);
    Erase();
  }

 private:
  // What is forked draws nothing, and finds no lock that a thread held which it does not have.
  ProgressLine() {
    pthread_atfork([] { Instance().mutex_.lock(); }, [] { Instance().mutex_.unlock(); },
                   [] {
                     Instance().display_ = Display::kNone;
                     Instance().is_drawn_ = false;
                     Instance().mutex_.unlock();
                   });
  }

  void StartClock() {
    clock_ = std::thread([this] {
      std::unique_lock lock(mutex_);
      const std::thread::id own = std::this_thread::get_id();
      while (clock_.get_id() == own) {
        changed_.wait_for(lock, kClockPeriod);
        if (!live_.empty()) DrawIfDue();
      }
    });
  }

  void DrawIfDue() {
    if (display_ == Display::kNone) return;
    const auto now = steady_clock::now();
    if (now < next_) return;
    Draw(now);
    next_ = now + (display_ == Display::kRedrawn ? kRedrawPeriod : kLogPeriod);
  }

  static ProgressState StateAt(Progress* progress, steady_clock::time_point now) {
    progress->state_.seconds = std::chrono::duration<double>(now - progress->start_).count();
    return progress->state_;
  }

  void Draw(steady_clock::time_point now) {
    out_ = live_.front()->out_;
    const ProgressState outer = StateAt(live_.front(), now);
    std::string text = live_.size() == 1 ? RenderProgress(outer)
                                         : RenderProgress(outer, StateAt(live_.back(), now));
    if (display_ == Display::kLog) {
      absl::FPrintF(out_, "%s\n", text);
    } else {
      // The last column stays free: some terminals wrap when it is written.
      text.resize(std::min(text.size(), ColumnsOf(out_) - 1));
      absl::FPrintF(out_, "\r%s\x1b[K", text);
      is_drawn_ = true;
    }
    std::fflush(out_);
  }

  void Erase() {
    if (!is_drawn_) return;
    std::fputs("\r\x1b[K", out_);
    std::fflush(out_);
    is_drawn_ = false;
  }

  std::mutex mutex_;  // guards what follows, and the states of all
  std::vector<Progress*> live_;
  std::thread clock_;  // draws what nobody changes; ends when it is another one, or none
  std::condition_variable changed_;
  Display display_ = Display::kNone;
  steady_clock::time_point next_;
  std::FILE* out_ = nullptr;  // where it is drawn
  bool is_drawn_ = false;
};

std::string RenderProgress(const ProgressState& state) {
  std::string line = state.label;
  if (!state.detail.empty()) absl::StrAppend(&line, ": ", state.detail);
  if (state.total > 0) {
    const double fraction = std::clamp(static_cast<double>(state.done) / state.total, 0.0, 1.0);
    const int filled = static_cast<int>(fraction * kBarWidth);
    absl::StrAppendFormat(&line, "  [%s%s] %3.0f%%  %d/%d", std::string(filled, '#'),
                          std::string(kBarWidth - filled, '.'), 100 * fraction, state.done,
                          state.total);
  } else if (state.done > 0) {
    absl::StrAppendFormat(&line, "  %d %s", state.done, state.unit);
  }
  absl::StrAppendFormat(&line, "  %.0f s", state.seconds);
  if (state.limit_s.has_value()) {
    absl::StrAppendFormat(&line, ", at most %.0f s left",
                          std::max(0.0, *state.limit_s - state.seconds));
  } else if (state.done > 0 && state.done < state.total) {
    absl::StrAppendFormat(&line, ", %.0f s left",
                          state.seconds * (state.total - state.done) / state.done);
  }
  return line;
}

std::string RenderProgress(const ProgressState& outer, const ProgressState& inner) {
  std::string line = absl::StrCat(RenderProgress(outer), "  (", inner.label);
  if (!inner.detail.empty()) absl::StrAppend(&line, ": ", inner.detail);
  if (inner.done > 0 || inner.total > 0) absl::StrAppend(&line, " ", inner.done);
  if (inner.total > 0) absl::StrAppend(&line, "/", inner.total);
  return absl::StrCat(line, ")");
}

Progress::Progress(absl::string_view label, int64_t total, std::FILE* out)
    : state_{.label = std::string(label), .detail = "", .total = total},
      out_(out),
      start_(steady_clock::now()) {
  if (out_ != nullptr) ProgressLine::Instance().Enter(this);
}

Progress::~Progress() {
  if (out_ != nullptr) ProgressLine::Instance().Leave(this);
}

void Progress::Advance(int64_t count) {
  ProgressLine::Instance().Update([&] { state_.done += count; });
}

void Progress::Say(absl::string_view detail) {
  ProgressLine::Instance().Update([&] { state_.detail = std::string(detail); });
}

void Progress::LimitTo(double seconds) {
  ProgressLine::Instance().Update([&] { state_.limit_s = seconds; });
}

void Progress::CountIn(absl::string_view unit) {
  ProgressLine::Instance().Update([&] { state_.unit = std::string(unit); });
}

void SayProgress(absl::string_view detail) {
  ProgressLine::Instance().UpdateFirst(
      [&](ProgressState* state) { state->detail = std::string(detail); });
}

void AdvanceProgress() {
  ProgressLine::Instance().UpdateFirst([](ProgressState* state) { ++state->done; });
}

void EraseProgressLine() { ProgressLine::Instance().EraseForText(); }

}  // namespace isomer
