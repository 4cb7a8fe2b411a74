// A loop shared out among threads.
#ifndef ISOMER_GENERATOR_ENUMERATION_IN_CHUNKS_H_
#define ISOMER_GENERATOR_ENUMERATION_IN_CHUNKS_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace isomer {

// Calls work(thread, begin, end) for pieces of [0, count) of `chunk` at most, each once, in
// `threads` threads (this one among them), and returns when all are done.
inline void InChunks(int threads, size_t count, size_t chunk,
                     absl::FunctionRef<void(int, size_t, size_t)> work) {
  std::atomic<size_t> next = 0;
  auto run = [&](int thread) {
    for (size_t begin = next.fetch_add(chunk); begin < count; begin = next.fetch_add(chunk)) {
      work(thread, begin, std::min(begin + chunk, count));
    }
  };
  std::vector<std::thread> others;
  const size_t chunks = (count + chunk - 1) / chunk;
  for (int t = 1; t < threads && static_cast<size_t>(t) < chunks; ++t) others.emplace_back(run, t);
  run(0);
  for (std::thread& other : others) other.join();
}

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ENUMERATION_IN_CHUNKS_H_
