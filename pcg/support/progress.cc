#include "pcg/support/progress.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace isomer {
namespace {

using std::chrono::steady_clock;

constexpr steady_clock::duration kQuiet = std::chrono::seconds(2);
constexpr steady_clock::duration kTerminalPeriod = std::chrono::milliseconds(100);
constexpr steady_clock::duration kLogPeriod = std::chrono::seconds(10);
constexpr int kBarWidth = 30;

}  // namespace

std::string RenderProgress(absl::string_view label, int64_t done, int64_t total, double seconds) {
  if (total <= 0) return absl::StrFormat("%s  %d  %.0f s", label, done, seconds);
  const double fraction = std::clamp(static_cast<double>(done) / total, 0.0, 1.0);
  const int filled = static_cast<int>(fraction * kBarWidth);
  std::string line =
      absl::StrFormat("%s  [%s%s] %3.0f%%  %d/%d  %.0f s", label, std::string(filled, '#'),
                      std::string(kBarWidth - filled, '.'), 100 * fraction, done, total, seconds);
  if (done > 0 && done < total) {
    absl::StrAppendFormat(&line, ", %.0f s left", seconds * (total - done) / done);
  }
  return line;
}

Progress::Progress(absl::string_view label, int64_t total, std::FILE* out)
    : label_(label),
      total_(total),
      out_(out),
      terminal_(isatty(fileno(out)) == 1),
      start_(steady_clock::now()),
      next_print_(start_ + kQuiet) {}

Progress::~Progress() {
  std::lock_guard lock(mutex_);
  if (!printed_) return;
  Print(steady_clock::now());
  if (terminal_) std::fputc('\n', out_);
}

void Progress::Advance(int64_t count) {
  std::lock_guard lock(mutex_);
  done_ += count;
  const auto now = steady_clock::now();
  if (now < next_print_) return;
  Print(now);
  printed_ = true;
  next_print_ = now + (terminal_ ? kTerminalPeriod : kLogPeriod);
}

void Progress::Print(steady_clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const std::string line = RenderProgress(label_, done_, total_, seconds);
  // \r and "erase to the end of the line": the bar is drawn over itself.
  std::fprintf(out_, terminal_ ? "\r%s\x1b[K" : "%s\n", line.c_str());
  std::fflush(out_);
}

}  // namespace isomer
