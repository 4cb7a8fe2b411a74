// Steps that go through a pipeline without a flush in between.
//
// PipeDream-2BW (Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", 2021, section
// 3.1): while the last micro-batches of a step are on their way back, the first of the next are on
// their way in, so that no stage is idle. Those cannot wait for the update of the step before; they
// take the weights that it began with. Two versions of a weight are then enough:
//
//     step    reads             updates           writes
//     0       version 0: w(-1)  version 1: w(0)   version 0: w(1)
//     1       version 1: w(0)   version 0: w(1)   version 1: w(2)
//     2       version 0: w(1)   version 1: w(2)   version 0: w(3)
//
// where w(-1) = w(0) are the initial weights, and an update overwrites the version that its step
// has read. After an even number of steps the versions are as at the start, so a schedule is of
// that many steps, and drained behind the last.
//
// It is made from that of one step, before deps and order: the steps one after the other, each with
// buffers of its own but for weights and the optimizer's states. Dependencies then are those of
// steps that end before the next begins, and whatever order keeps them (pipeline.h) computes what
// those do.
#ifndef ISOMER_PCG_SCHEDULE_ORDER_WEIGHT_VERSIONS_H_
#define ISOMER_PCG_SCHEDULE_ORDER_WEIGHT_VERSIONS_H_

#include "absl/status/status.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// What training makes, and unloads behind the last step: weights, or their masters.
inline bool HoldsTrained(BufferRole role) {
  return role == BufferRole::kParameter || role == BufferRole::kMaster;
}

// Makes a schedule of one step, as LowerToTasks leaves it, one of as many as its options say.
// InvalidArgument: there is no pipeline that more would fill, or its stages work on more
// micro-batches at a time than a step has, for which two versions are not enough.
// ResourceExhausted: millions of tasks.
absl::Status RepeatSteps(Schedule* schedule);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_ORDER_WEIGHT_VERSIONS_H_
