#include "runtime/execution/stop_signal.h"

#include <csignal>

namespace isomer {
namespace {

volatile std::sig_atomic_t stop_signal = 0;

void NoteSignal(int signal) { stop_signal = signal; }

}  // namespace

void WatchStopSignals() {
  for (int signal : {SIGINT, SIGTERM}) {
    struct sigaction action = {};
    action.sa_handler = NoteSignal;
    // Calls that it meets go on, and the next one is as it was.
    action.sa_flags = SA_RESTART | SA_RESETHAND;
    sigaction(signal, &action, nullptr);
  }
  // A file that may not grow so far is an error of who writes it.
  std::signal(SIGXFSZ, SIG_IGN);
}

const char* AskedToStop() {
  const int signal = stop_signal;
  return signal == 0 ? nullptr : signal == SIGINT ? "SIGINT" : "SIGTERM";
}

}  // namespace isomer
