// Losses of trainings, as isomer-run --json has them.
#ifndef ISOMER_TESTS_INTEGRATION_LOSSES_H_
#define ISOMER_TESTS_INTEGRATION_LOSSES_H_

#include <string>
#include <vector>

namespace isomer {

// The losses of a run that is expected to end well.
std::vector<double> LossesOf(std::vector<std::string> flags);

}  // namespace isomer

#endif  // ISOMER_TESTS_INTEGRATION_LOSSES_H_
