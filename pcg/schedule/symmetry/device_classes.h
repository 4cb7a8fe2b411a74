// Devices that do the same are looked at once: a plan on fewer devices that stands for all of them.
//
// Devices are numbered in mixed radix: if every axis of every view strides over whole digits, then
// device = sum of digit * weight, and the plan says the same of all values of a digit. Data
// parallelism over 128 nodes of 8, tensor parallelism within: digits of radix 8 and 128. Nothing in
// the plan knows that a digit has 128 values but the degrees: with every digit cut to its smallest
// prime factor, and degrees cut likewise, the same graph of the same sizes is a plan for 2 x 2
// devices. Its lowering has the same tasks in the same order on each device as the plan's on any
// device whose digits agree, where values from r' - 1 on count as one (what is sent, to whom, when;
// sizes of pieces differ). What CheckSchedule looks at (order of communications, members of groups,
// reads before writes, updates) therefore holds of all devices if it holds of these.
//
// Digits that split a dim over which windows reach into neighbours stay as they are: the first, the
// last and a middle piece do not do the same. So do digits that starts of views have: stages of a
// pipeline differ. Micro-batches are no digits of devices, and stay as many as they are. A plan
// whose views overlap in other ways is not looked at in classes.
//
// That the lowering treats the values of a digit alike is a fact about pcg/schedule that is tested,
// not proved; whoever does not want to rest on it looks at all devices (CertificateOptions).
#ifndef ISOMER_PCG_SCHEDULE_SYMMETRY_DEVICE_CLASSES_H_
#define ISOMER_PCG_SCHEDULE_SYMMETRY_DEVICE_CLASSES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "pcg/ir/plan.h"

namespace isomer {

struct DeviceClasses {
  Plan plan;  // on fewer devices; without model, steps and seal
  // Digits, innermost first: how many values, and how many of them `plan` has.
  std::vector<int64_t> radix, reduced_radix;
  // Digits of which all values do the same, as far as the plan says: those that are cut, and others
  // by ClassOptions::uncut_alike.
  std::vector<bool> alike;
  int64_t node = 1;  // ClassOptions::node

  // The device of `plan` that does what `device` does.
  int64_t ClassOf(int64_t device) const;
  // The first device whose class is `reduced`.
  int64_t DeviceOf(int64_t reduced) const;
};

struct ClassOptions {
  // Digits that weigh less than so many devices keep their values: all devices of a node, if one is
  // there.
  int64_t whole = 1;
  // No digit reaches from below so many devices to beyond them: a node, within which devices are
  // nearer than others.
  int64_t node = 1;
  // Digits that weigh so many devices or more keep their values, too, as kinds of devices may
  // differ there (Machine::devices_alike); 0: all devices are alike.
  int64_t alike = 0;
  // Views of `moments` micro-batches have `represented` in the plan on fewer devices.
  int64_t moments = 1, represented = 1;
  // Where an axis comes to lie over other digits, its degree must be cut alike, or there is no plan
  // on fewer devices. Set: digits get more values until all degrees come out. What is moved between
  // such digits then goes from and to devices that are like those of the plan, but not always the
  // same values: good for a simulation, not for a proof.
  bool widen = false;
  // Digits that keep their values for none of these reasons, and have all of them in the plan on
  // fewer devices, are alike, too: two nodes, but not two devices of one that is whole, which meet
  // at its links. There are classes then even if no digit is cut.
  bool uncut_alike = false;
};

// Absent if no fewer devices, nor micro-batches, stand for all (but see uncut_alike). REQUIRES:
// types and views of `plan` are valid.
std::optional<DeviceClasses> ClassesOfDevices(const Plan& plan, const ClassOptions& options = {});

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_SYMMETRY_DEVICE_CLASSES_H_
