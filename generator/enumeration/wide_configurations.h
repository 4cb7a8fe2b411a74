// Configurations for the operators beyond the core, each about a few of them.
#ifndef ISOMER_GENERATOR_ENUMERATION_WIDE_CONFIGURATIONS_H_
#define ISOMER_GENERATOR_ENUMERATION_WIDE_CONFIGURATIONS_H_

#include <vector>

#include "generator/enumeration/configuration.h"

namespace isomer {

// What holds of any operator because of its iteration space (families) is not sought here: these
// look for what is special, such as that the minimum absorbs the maximum, or that a look-up of a
// product is a product of a look-up.
std::vector<Configuration> WideConfigurations();

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ENUMERATION_WIDE_CONFIGURATIONS_H_
