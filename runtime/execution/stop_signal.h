#ifndef ISOMER_RUNTIME_EXECUTION_STOP_SIGNAL_H_
#define ISOMER_RUNTIME_EXECUTION_STOP_SIGNAL_H_

namespace isomer {

// From now on the first SIGINT or SIGTERM only sets what AskedToStop returns; a second one ends the
// process, as it would have. Limits on the sizes of files become errors of calls.
void WatchStopSignals();
// "SIGINT" or "SIGTERM" once there was one; null before.
const char* AskedToStop();

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_STOP_SIGNAL_H_
