// Of devices that do the same beside each other, one is kept. Internal to pcg/schedule.
//
// A schedule of classes has two devices or more along a digit, so that groups are groups. Where all
// of them have one program, of tasks of equal sizes, they also have it at equal times, and what one
// does says it all: tasks of others go, and a collective keeps the members that are there, with the
// group of all (Schedule::GroupOf). A send_receive keeps all its buffers, as what its links carry
// depends on them; those of devices that go are filled by nobody, at the time when those of the
// devices that stay are.
//
// The first of such devices may do more than the others (sum up the loss): step and peak are its.
#ifndef ISOMER_PCG_SCHEDULE_SYMMETRY_SYMMETRIC_DEVICES_H_
#define ISOMER_PCG_SCHEDULE_SYMMETRY_SYMMETRIC_DEVICES_H_

#include "pcg/schedule/schedule.h"
#include "pcg/schedule/symmetry/device_classes.h"

namespace isomer {

// Keeps the first of the devices along each digit whose values are alike. Where programs differ
// then, or a device that stays would wait for one that goes and not for the first beside that:
// along those digits that are cut, and others one by one, as long as neither is so; along none of
// those that are cut, if it is so of these. `schedule` is that of the classes,
// with the devices' numbers and the sizes that they have among all, and without deps and programs.
// Schedule::shards is not kept.
// Returns how many tasks would have stayed for one that does, had devices stayed along digits of
// which the classes have all values; 1 if no devices go.
double KeepOneOfSymmetricDevices(const DeviceClasses& classes, Schedule* schedule);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_SYMMETRY_SYMMETRIC_DEVICES_H_
