#ifndef ISOMER_PCG_SUPPORT_PROGRESS_H_
#define ISOMER_PCG_SUPPORT_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace isomer {

struct ProgressState {
  std::string label;   // "enumerate"
  std::string detail;  // "pipelines on 8 devices"; may be empty
  int64_t done = 0;
  int64_t total = 0;  // 0: not known
  double seconds = 0;
  std::optional<double> limit_s = {};  // that it may take
  std::string unit = "done";           // of `done` without a total: "plans"
};

// "enumerate  [#####.....]  50%  500/1000  3 s, 3 s left"; without a total "plan: pipelines on 8
// devices  12 done  4 s, at most 56 s left".
std::string RenderProgress(const ProgressState& state);
// Of what is done within something else, the second in brackets: "plan: grids  4 s  (search
// 9/300)".
std::string RenderProgress(const ProgressState& outer, const ProgressState& inner);

// Progress of something that may take long: what is done, how far it is, how long it will still
// take. It is one line of a terminal, drawn over itself at most ten times a second, after the first
// half second, and erased at the end; on a terminal that cannot do so (TERM=dumb) a line every ten
// seconds. Nothing if `out` is no terminal, or with --quiet. Those that live at one time share the
// line: the first of them, and the last in brackets. Thread-safe.
//
//   Progress progress("prove", candidates.size());
//   for (...) { ...; progress.Advance(); }
class Progress {
 public:
  // `total` 0: not known beforehand. `out` null: somebody else tells of it.
  Progress(absl::string_view label, int64_t total, std::FILE* out = stderr);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void Advance(int64_t count = 1);
  // What is being done now.
  void Say(absl::string_view detail);
  // It ends after so many seconds from its start.
  void LimitTo(double seconds);
  void CountIn(absl::string_view unit);

 private:
  friend class ProgressLine;

  ProgressState state_;
  std::FILE* const out_;
  const std::chrono::steady_clock::time_point start_;
};

// Say and Advance of the first that lives, for who is deep within its work; nothing if none does.
void SayProgress(absl::string_view detail);
void AdvanceProgress();

// Makes room for a line of text; the line of progress is drawn again when it changes.
void EraseProgressLine();

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_PROGRESS_H_
