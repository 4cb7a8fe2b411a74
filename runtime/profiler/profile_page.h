#ifndef ISOMER_RUNTIME_PROFILER_PROFILE_PAGE_H_
#define ISOMER_RUNTIME_PROFILER_PROFILE_PAGE_H_

#include <string>

#include "pcg/profile/profile.h"

namespace isomer {

// A profile for people: its device, the slowest kernels with the rates they reach and the spread of
// their times, the tables, and how well the calibration predicts kernels left out of it.
std::string ProfilePage(const Profile& profile, int most_kernels = 25);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_PROFILER_PROFILE_PAGE_H_
