// Where this process is in its work, for whoever must say why it did not go on: itself, or another
// rank that hears no more of it.
#ifndef ISOMER_RUNTIME_DEVICE_WHEREABOUTS_H_
#define ISOMER_RUNTIME_DEVICE_WHEREABOUTS_H_

#include <cstdint>
#include <string>

namespace isomer {

// Plain bytes: ranks send it to each other.
struct Whereabouts {
  int64_t step = 0;     // from 1 on; 0: before the first
  char doing[40] = {};  // "all_reduce", "checkpoint: all_gather"; empty: it computes
};

// From any thread. Texts live for ever: literals; "": nothing of the kind.
void EnterStep(int64_t step);
// A part of the program beside the steps: "checkpoint"; and a call that waits for others.
void EnterPart(const char* part);
void EnterCall(const char* call);
Whereabouts CurrentWhereabouts();

// "in step 41, in all_reduce", "before step 1".
std::string WhereaboutsText(const Whereabouts& whereabouts);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_WHEREABOUTS_H_
