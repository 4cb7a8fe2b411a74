#ifndef ISOMER_PCG_SUPPORT_PROGRESS_H_
#define ISOMER_PCG_SUPPORT_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"

namespace isomer {

// "enumerate  [#####.....]  50%  500/1000  3 s, 3 s left"; with total 0, which stands for unknown,
// "enumerate  500  3 s".
std::string RenderProgress(absl::string_view label, int64_t done, int64_t total, double seconds);

// Progress of something that may take long, on stderr: nothing in the first 2 s, then a bar on a
// terminal or a line every 10 s in a log. Safe to advance from several threads.
//
//   Progress progress("prove", candidates.size());
//   for (...) { ...; progress.Advance(); }
class Progress {
 public:
  // `total` 0: not known beforehand.
  Progress(absl::string_view label, int64_t total, std::FILE* out = stderr);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Prints the last state when anything was printed before.
  ~Progress();

  void Advance(int64_t count = 1);

 private:
  void Print(std::chrono::steady_clock::time_point now);

  const std::string label_;
  const int64_t total_;
  std::FILE* const out_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point start_;

  std::mutex mutex_;  // guards what follows
  int64_t done_ = 0;
  bool printed_ = false;
  std::chrono::steady_clock::time_point next_print_;
};

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_PROGRESS_H_
