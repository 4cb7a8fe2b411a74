#include "runtime/device/pinning.h"

#include <pthread.h>
#include <sched.h>

namespace isomer {

int32_t UsableCores() {
  cpu_set_t cores;
  if (pthread_getaffinity_np(pthread_self(), sizeof cores, &cores) != 0) return 1;
  return CPU_COUNT(&cores);
}

bool PinThisThread(int32_t index, int32_t devices) {
  cpu_set_t cores;
  if (pthread_getaffinity_np(pthread_self(), sizeof cores, &cores) != 0) return false;
  if (CPU_COUNT(&cores) < devices) return false;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &cores) || index-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0;
  }
  return false;
}

}  // namespace isomer
