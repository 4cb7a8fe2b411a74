// Kinds of tasks that timelines tell apart.
#ifndef ISOMER_OPTIMIZER_REPORT_TASK_CLASS_H_
#define ISOMER_OPTIMIZER_REPORT_TASK_CLASS_H_

#include "pcg/schedule/schedule.h"

namespace isomer {

enum class TaskClass {
  kForward,
  kRepeated,  // computed again for the backward pass
  kBackward,
  kUpdate,
  kOther,
  kGradientExchange,
  kDataExchange,
};
inline constexpr int kNumTaskClasses = 7;

inline TaskClass ClassOf(const Task& task) {
  if (IsHostCopy(task.kind)) return TaskClass::kDataExchange;
  if (IsCommunication(task.kind)) {
    return task.phase == Phase::kBackward || task.phase == Phase::kUpdate
               ? TaskClass::kGradientExchange
               : TaskClass::kDataExchange;
  }
  if (task.kind == TaskKind::kCompute) {
    return task.phase == Phase::kBackward ? TaskClass::kRepeated : TaskClass::kForward;
  }
  if (task.kind == TaskKind::kComputeGradient) return TaskClass::kBackward;
  return task.phase == Phase::kUpdate ? TaskClass::kUpdate : TaskClass::kOther;
}

inline const char* TaskClassName(TaskClass task_class) {
  switch (task_class) {
    case TaskClass::kForward:
      return "forward";
    case TaskClass::kRepeated:
      return "computed again";
    case TaskClass::kBackward:
      return "backward";
    case TaskClass::kUpdate:
      return "update";
    case TaskClass::kOther:
      return "other compute";
    case TaskClass::kGradientExchange:
      return "communication of gradients";
    case TaskClass::kDataExchange:
      return "communication of data";
  }
  return "?";
}

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_TASK_CLASS_H_
