// A machine of round numbers.
#ifndef ISOMER_TESTS_OPTIMIZER_TEST_MACHINE_H_
#define ISOMER_TESTS_OPTIMIZER_TEST_MACHINE_H_

#include <cstdint>

#include "optimizer/machine/machine.h"

namespace isomer {

inline Machine TestMachine(int64_t nodes, int64_t devices) {
  Machine machine;
  machine.name = "test";
  machine.kinds[0].name = "device";
  machine.kinds[0].flops_per_us = 1e6;
  machine.kinds[0].memory_bytes_per_us = 1e5;
  machine.kinds[0].memory_bytes = int64_t{1} << 34;
  machine.kinds[0].launch_us = 1;
  machine.levels = {{"node", devices, 1e5, 0.5}, {"cluster", nodes, 1e4, 2}};
  return machine;
}

}  // namespace isomer

#endif  // ISOMER_TESTS_OPTIMIZER_TEST_MACHINE_H_
